"""The verbs that need a cluster, as they are run, in front of a server that a test plays."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from kubernetes_daemonset import cli, online
from tests.component import NAMESPACE, a_manifest, as_yaml, rendered
from tests.component_tool import Ran
from tests.unit.test_component_direct import DAEMON_SET, Answer, a_cluster, applied, made_by, refusal, to

US = "kubernetes-daemonset"
THE_NAMESPACE = f"/api/v1/namespaces/{NAMESPACE}"
Run = Callable[..., Ran]


@pytest.fixture
def asked() -> list[str]:
    """Every request that changes something."""
    return []


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: list[str]
) -> Iterator[Run]:
    def note(request: httpx2.Request) -> None:
        if request.method in {"DELETE", "PATCH"} and "dryRun" not in request.url.params:
            asked.append(f"{request.method} {request.url.path}")

    def run(verb: str, *flags: str, answers: tuple[Answer, ...], manifests: tuple[str, ...] = ()) -> Ran:
        file = tmp_path / "agent.yaml"
        file.write_text("---\n".join(manifests) or as_yaml(a_manifest({"spec.create_namespace": True})))
        monkeypatch.setattr(online, "connect", lambda *_: a_cluster(note, *answers))
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, "-f", str(file), *flags])
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, said.out, said.err)

    yield run
    gc.enable()


def namespace_of(manager: str, **metadata: str) -> Answer:
    (body, _) = rendered({"spec.create_namespace": True})
    live = applied(body, manager)
    live["metadata"] |= metadata
    return lambda asked: (
        httpx2.Response(200, json=live) if asked.method == "GET" and asked.url.path == THE_NAMESPACE else None
    )


def the_agent_then_nothing() -> Answer:
    """There until it is deleted."""
    gone: list[bool] = []

    def answer(asked: httpx2.Request) -> httpx2.Response | None:
        if asked.method == "DELETE":
            gone.append(True)
            return httpx2.Response(200, json={})
        return made_by(US) if asked.method == "GET" and asked.url.path == DAEMON_SET and not gone else None

    return answer


def test_a_dry_run_of_a_deletion_says_what_would_be_left(run: Run, asked: list[str]) -> None:
    there = (namespace_of(US), to("GET", DAEMON_SET, made_by(US)))
    said = run("delete", "--dry-run", answers=there)
    assert said.out.splitlines() == [
        f"would delete DaemonSet {NAMESPACE}/agent",
        f"would leave Namespace {NAMESPACE}, which may hold more; --delete-namespace deletes it and all in it",
    ]
    said = run("delete", "--dry-run", answers=(namespace_of(US), to("GET", DAEMON_SET, made_by("terraform"))))
    assert said.out.splitlines()[0] == f"would leave DaemonSet {NAMESPACE}/agent, which was made by terraform"
    assert asked == []


def test_a_dry_run_of_a_deletion_says_that_the_namespace_would_go(run: Run, asked: list[str]) -> None:
    there = (namespace_of(US), to("GET", DAEMON_SET, made_by(US)))
    said = run("delete", "--dry-run", "--delete-namespace", answers=there)
    assert (said.code, said.out.splitlines()[-1]) == (0, f"would delete Namespace {NAMESPACE} and what is in it")
    assert asked == []


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_namespace_that_is_not_ours_is_refused_before_anything_is_deleted(
    run: Run, asked: list[str], flags: tuple[str, ...]
) -> None:
    there = (namespace_of("kubectl-create"), to("GET", DAEMON_SET, made_by(US)))
    said = run("delete", "--delete-namespace", "--timeout=0", *flags, answers=there)
    assert said.code == 3
    assert f"Namespace {NAMESPACE} was not made by kubernetes-daemonset" in said.err
    assert "nothing was deleted" in said.err
    assert asked == []


def test_a_namespace_is_said_to_be_on_its_way_out(run: Run, asked: list[str]) -> None:
    said = run("delete", "--delete-namespace", answers=(namespace_of(US), the_agent_then_nothing()))
    assert said.code == 0
    assert said.err.splitlines() == [
        f"deleted DaemonSet {NAMESPACE}/agent",
        f"Namespace {NAMESPACE} is being deleted, with what is in it",
    ]
    assert asked == [f"DELETE {DAEMON_SET}", f"DELETE {THE_NAMESPACE}"]


def test_a_namespace_that_the_manifest_does_not_make_is_left_and_that_is_said(run: Run, asked: list[str]) -> None:
    said = run(
        "delete", "--delete-namespace", answers=(namespace_of(US),), manifests=(as_yaml(a_manifest()),)
    )  # fmt: skip
    assert said.code == 0
    assert f"left Namespace {NAMESPACE}, which the manifest does not make" in said.err
    assert asked == []


@pytest.mark.parametrize("makes_it", [True, False])
def test_a_namespace_that_is_being_deleted_is_to_be_waited_for(run: Run, makes_it: bool) -> None:  # noqa: FBT001
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {NAMESPACE} is being terminated"}
    ending = refusal(403, "Forbidden", "unable to create new content", cause)
    there = (namespace_of(US, deletionTimestamp="2026-01-01T00:00:00Z"), to("PATCH", f"{THE_NAMESPACE}/", ending))
    apps = to("PATCH", DAEMON_SET, ending)
    changes = {"spec.create_namespace": makes_it, "spec.config_maps": {"a": "", "b": ""}}
    said = run("apply", answers=(*there, apps), manifests=(as_yaml(a_manifest(changes)),))
    assert said.code == 3
    (reason,) = [line.strip() for line in said.err.splitlines()[1:]]
    assert reason == f"Namespace {NAMESPACE} is being deleted; wait until it is gone, and run this again"


def test_a_namespace_that_is_missing_is_said_once_with_what_would_make_it(run: Run) -> None:
    missing = httpx2.Response(
        404,
        json={
            "reason": "NotFound",
            "message": f'namespaces "{NAMESPACE}" not found',
            "details": {"kind": "namespaces", "name": NAMESPACE},
        },
    )
    changes = {"spec.config_maps": {"a": "", "b": ""}, "spec.create_service_account": True}
    said = run("apply", answers=(to("PATCH", "/", missing),), manifests=(as_yaml(a_manifest(changes)),))
    assert said.code == 3
    (reason,) = [line.strip() for line in said.err.splitlines()[1:]]
    assert reason == f"Namespace {NAMESPACE} is not there; write create_namespace: true, or make it first"


def a_conflict(request: httpx2.Request) -> httpx2.Response | None:
    if request.method != "PATCH" or request.url.params["force"] == "true":
        return None
    causes = [{"field": f".spec.{name}", "message": 'conflict with "someone"'} for name in ("one", "two")]
    return refusal(409, "Conflict", "Apply failed with 2 conflicts", *causes)


def test_a_conflict_is_told_with_its_remedy_once(run: Run, asked: list[str]) -> None:
    said = run(
        "apply", answers=(a_conflict, to("GET", DAEMON_SET, made_by(US))), manifests=(as_yaml(a_manifest()),)
    )  # fmt: skip
    assert said.code == 3
    assert [line.strip() for line in said.err.splitlines()[1:]] == [
        f'DaemonSet {NAMESPACE}/agent: .spec.one (conflict with "someone")',
        f'DaemonSet {NAMESPACE}/agent: .spec.two (conflict with "someone")',
        "--force-conflicts takes these fields over",
    ]
    assert asked == []


def test_a_difference_is_shown_though_another_manager_owns_it(run: Run, asked: list[str]) -> None:
    (live,) = rendered({"app.image.tag": "theirs"})
    there = (a_conflict, to("GET", DAEMON_SET, httpx2.Response(200, json=applied(live, US))))
    said = run("diff", answers=there, manifests=(as_yaml(a_manifest()),))
    assert said.code == 1
    assert "image: registry.example.com/agent:theirs" in said.out
    assert f'DaemonSet {NAMESPACE}/agent: .spec.one (conflict with "someone")' in said.err
    assert said.err.splitlines()[-1] == "apply refuses to change these fields; --force-conflicts takes them over"
    assert asked == []


def test_a_namespace_that_two_manifests_share_is_listed_once(run: Run) -> None:
    two = tuple(as_yaml(a_manifest({"spec.create_namespace": True, "metadata.name": name})) for name in ("a", "b"))
    for there in ((), (namespace_of(US),)):
        said = run("apply", "--dry-run", answers=there, manifests=two)
        assert [line.split()[0] for line in said.out.splitlines()[1:]] == ["Namespace", "DaemonSet", "DaemonSet"]


def test_whoever_may_not_look_for_leftovers_is_told_what_follows(run: Run) -> None:
    no = refusal(403, "Forbidden", "clusterroles is forbidden: …")
    said = run("apply", "--dry-run", answers=(to("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrole", no),))
    told = [line for line in said.err.splitlines() if "may not" in line]
    (said_of_them,) = told
    assert said_of_them == (
        "you may not list clusterrolebindings, clusterroles: if an earlier manifest had cluster_rules and this one has"
        " none, what it made for them stays; otherwise nothing does"
    )
