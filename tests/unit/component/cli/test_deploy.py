"""The verbs that need a cluster, as they are run, in front of a server that a test plays."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
import yaml

from kubernetes_daemonset.cli import deploy
from kubernetes_daemonset.cli import main as cli
from kubernetes_daemonset.manifest import reader
from tests.support.component_tool import Ran
from tests.support.manifests.builders import NAMESPACE, a_manifest, as_yaml, objects_of, read, rendered
from tests.support.manifests.texts import WHOLE
from tests.unit.component.deploy.test_apply import DAEMON_SET, Answer, a_cluster, applied, made_by, refusal, to

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
        monkeypatch.setattr(deploy, "connect", lambda *_: a_cluster(note, *answers))
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, "-f", str(file), *flags])
        output = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, output.out, output.err)

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


def test_a_dry_run_of_delete_lists_what_would_remain(run: Run, asked: list[str]) -> None:
    there = (namespace_of(US), to("GET", DAEMON_SET, made_by(US)))
    output = run("delete", "--dry-run", answers=there)
    reason = "which can contain other objects; use --delete-namespace to delete it and everything in it"
    assert output.out.splitlines() == [
        f"would delete DaemonSet {NAMESPACE}/agent",
        f"would keep Namespace {NAMESPACE}, {reason}",
    ]
    output = run("delete", "--dry-run", answers=(namespace_of(US), to("GET", DAEMON_SET, made_by("terraform"))))
    assert output.out.splitlines()[0] == f"would keep DaemonSet {NAMESPACE}/agent, which is managed by terraform"
    assert asked == []


def test_a_dry_run_of_delete_lists_the_namespace(run: Run, asked: list[str]) -> None:
    there = (namespace_of(US), to("GET", DAEMON_SET, made_by(US)))
    output = run("delete", "--dry-run", "--delete-namespace", answers=there)
    assert (output.code, output.out.splitlines()[-1]) == (0, f"would delete Namespace {NAMESPACE} and everything in it")
    assert asked == []


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_namespace_of_another_owner_is_rejected_before_anything_is_deleted(
    run: Run, asked: list[str], flags: tuple[str, ...]
) -> None:
    there = (namespace_of("kubectl-create"), to("GET", DAEMON_SET, made_by(US)))
    output = run("delete", "--delete-namespace", "--timeout=0", *flags, answers=there)
    assert output.code == 3
    assert f"Namespace {NAMESPACE} is not managed by kubernetes-daemonset" in output.err
    assert "nothing was deleted" in output.err
    assert asked == []


def test_a_namespace_is_reported_as_being_deleted(run: Run, asked: list[str]) -> None:
    output = run("delete", "--delete-namespace", answers=(namespace_of(US), the_agent_then_nothing()))
    assert output.code == 0
    assert output.err.splitlines() == [
        f"deleted DaemonSet {NAMESPACE}/agent",
        f"Namespace {NAMESPACE} is being deleted with everything in it",
    ]
    assert asked == [f"DELETE {DAEMON_SET}", f"DELETE {THE_NAMESPACE}"]


def test_a_namespace_that_the_manifest_does_not_create_remains_and_is_reported(run: Run, asked: list[str]) -> None:
    output = run(
        "delete", "--delete-namespace", answers=(namespace_of(US),), manifests=(as_yaml(a_manifest()),)
    )  # fmt: skip
    assert output.code == 0
    assert f"kept Namespace {NAMESPACE}, which the manifest does not create" in output.err
    assert asked == []


@pytest.mark.parametrize("makes_it", [True, False])
def test_a_terminating_namespace_is_an_error(run: Run, makes_it: bool) -> None:  # noqa: FBT001
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {NAMESPACE} is being terminated"}
    ending = refusal(403, "Forbidden", "unable to create new content", cause)
    there = (namespace_of(US, deletionTimestamp="2026-01-01T00:00:00Z"), to("PATCH", f"{THE_NAMESPACE}/", ending))
    apps = to("PATCH", DAEMON_SET, ending)
    changes = {"spec.create_namespace": makes_it, "spec.config_maps": {"a": "", "b": ""}}
    output = run("apply", answers=(*there, apps), manifests=(as_yaml(a_manifest(changes)),))
    assert output.code == 3
    (reason,) = [line.strip() for line in output.err.splitlines()[1:]]
    assert reason == f"Namespace {NAMESPACE} is being deleted; wait until it is gone and retry"


def test_a_missing_namespace_is_reported_once_with_the_remedy(run: Run) -> None:
    missing = httpx2.Response(
        404,
        json={
            "reason": "NotFound",
            "message": f'namespaces "{NAMESPACE}" not found',
            "details": {"kind": "namespaces", "name": NAMESPACE},
        },
    )
    changes = {"spec.config_maps": {"a": "", "b": ""}, "spec.create_service_account": True}
    output = run("apply", answers=(to("PATCH", "/", missing),), manifests=(as_yaml(a_manifest(changes)),))
    assert output.code == 3
    (reason,) = [line.strip() for line in output.err.splitlines()[1:]]
    assert reason == f"Namespace {NAMESPACE} does not exist; set create_namespace: true or create it first"


def a_conflict(request: httpx2.Request) -> httpx2.Response | None:
    if request.method != "PATCH" or request.url.params["force"] == "true":
        return None
    causes = [{"field": f".spec.{name}", "message": 'conflict with "someone"'} for name in ("one", "two")]
    return refusal(409, "Conflict", "Apply failed with 2 conflicts", *causes)


def test_a_conflict_is_reported_once_with_its_remedy(run: Run, asked: list[str]) -> None:
    output = run(
        "apply", answers=(a_conflict, to("GET", DAEMON_SET, made_by(US))), manifests=(as_yaml(a_manifest()),)
    )  # fmt: skip
    assert output.code == 3
    assert [line.strip() for line in output.err.splitlines()[1:]] == [
        f'DaemonSet {NAMESPACE}/agent: .spec.one (conflict with "someone")',
        f'DaemonSet {NAMESPACE}/agent: .spec.two (conflict with "someone")',
        "use --force-conflicts to take over these fields",
    ]
    assert asked == []


def test_a_difference_is_shown_though_another_manager_owns_it(run: Run, asked: list[str]) -> None:
    (live,) = rendered({"app.image.tag": "theirs"})
    there = (a_conflict, to("GET", DAEMON_SET, httpx2.Response(200, json=applied(live, US))))
    output = run("diff", answers=there, manifests=(as_yaml(a_manifest()),))
    assert output.code == 1
    assert "image: registry.example.com/agent:theirs" in output.out
    assert f'DaemonSet {NAMESPACE}/agent: .spec.one (conflict with "someone")' in output.err
    assert output.err.splitlines()[-1] == "apply does not change these fields; use --force-conflicts to take them over"
    assert asked == []


def test_a_namespace_that_two_manifests_share_is_listed_once(run: Run) -> None:
    two = tuple(as_yaml(a_manifest({"spec.create_namespace": True, "metadata.name": name})) for name in ("a", "b"))
    for there in ((), (namespace_of(US),)):
        output = run("apply", "--dry-run", answers=there, manifests=two)
        assert [line.split()[0] for line in output.out.splitlines()[1:]] == ["Namespace", "DaemonSet", "DaemonSet"]


def test_missing_list_permissions_are_reported_with_their_consequence(run: Run) -> None:
    no = refusal(403, "Forbidden", "clusterroles is forbidden: …")
    output = run("apply", "--dry-run", answers=(to("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrole", no),))
    reported = [line for line in output.err.splitlines() if "not allowed" in line]
    (said_of_them,) = reported
    assert said_of_them == (
        "you are not allowed to list clusterrolebindings, clusterroles: if an earlier manifest had cluster_rules"
        " and this one has none, the objects created for them remain; otherwise nothing remains"
    )


CHOSEN = ("--kube-context", "any")  # the manifest names a cluster, and no kubeconfig is read here


def counted(desired: int, current: int, ready: int) -> Answer:
    (body,) = rendered()
    numbers = {"desiredNumberScheduled": desired, "currentNumberScheduled": current, "numberReady": ready}
    return to("GET", DAEMON_SET, httpx2.Response(200, json=applied(body, US) | {"status": numbers}))


def test_outputs_are_written_into_the_status_of_the_manifest(run: Run) -> None:
    ran = run("outputs", "-o", "manifest", answers=(counted(3, 2, 1),), manifests=(as_yaml(a_manifest()),))
    assert ran.code == 0, ran.err
    tree = yaml.safe_load(ran.out)
    assert list(tree) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert tree["status"] == {
        "outputs": {
            "namespace": NAMESPACE,
            "daemonset_name": "agent",
            "desired_number_scheduled": "3",
            "current_number_scheduled": "2",
            "number_ready": "1",
        }
    }


def test_a_manifest_with_its_status_is_the_same_manifest(run: Run) -> None:
    """It can be read again, renders to the same objects, and its status is replaced by the next one."""
    text = yaml.safe_dump(yaml.safe_load(WHOLE)["target"] | {"status": {"outputs": {"number_ready": "99"}}})
    first = run("outputs", "-o", "manifest", *CHOSEN, answers=(counted(3, 3, 0),), manifests=(text,))
    again = run("outputs", "-o", "manifest", *CHOSEN, answers=(counted(3, 3, 3),), manifests=(first.out,))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert [read(one.out).manifest.status.outputs.number_ready for one in (first, again)] == ["0", "3"]
    assert objects_of(read(again.out)) == objects_of(read(text))
    assert again.out == first.out.replace('number_ready: "0"', 'number_ready: "3"')
    expected = read(text).manifest
    expected.status.CopyFrom(read(again.out).manifest.status)
    assert read(again.out).manifest == expected


def test_several_manifests_with_their_status_are_one_stream(run: Run) -> None:
    """And texts that look like other things in YAML stay what they are."""
    texts = tuple(
        as_yaml(a_manifest({"metadata.name": name, "app.env.variables": {"A": "---\nx: 1e3", "B": "no", "C": "\x1b"}}))
        for name in ("agent", "other")
    )
    answers = tuple(
        to("GET", DAEMON_SET.replace("agent", name), httpx2.Response(200, json=rendered()[0]))
        for name in ("agent", "other")
    )
    ran = run("outputs", "-o", "manifest", answers=answers, manifests=texts)
    assert ran.code == 0, ran.err
    found = reader.load(ran.out.encode(), "-")
    assert [one.manifest.status.outputs.daemonset_name for one in found] == ["agent", "other"]
    variables = found[1].manifest.spec.container.app.env.variables
    assert {name: variables[name].value for name in variables} == {"A": "---\nx: 1e3", "B": "no", "C": "\x1b"}
    assert "\x1b" not in ran.out


def test_a_manifest_whose_daemon_set_is_not_there_gets_no_status(run: Run) -> None:
    gone = to("GET", DAEMON_SET, refusal(404, "NotFound", "gone"))
    ran = run("outputs", "-o", "manifest", answers=(gone,), manifests=(as_yaml(a_manifest()),))
    assert (ran.code, ran.out) == (3, "")
    assert f"DaemonSet {NAMESPACE}/agent does not exist in the cluster" in ran.err


@pytest.mark.parametrize("verb", ["apply", "diff", "delete"])
def test_a_server_that_is_not_kubernetes_is_reported_in_one_line(run: Run, verb: str) -> None:
    """A kubeconfig of another party can name one."""
    status = {"kind": "Status", "status": "Failure", "reason": "\x1b[2J", "details": None}
    ran = run(verb, answers=(lambda _: httpx2.Response(404, json=status),))
    assert ran.code == 3
    assert "unexpected" not in ran.err
    assert ran.err.count("\n") == 1
    assert ran.err.rstrip("\n").isprintable()
