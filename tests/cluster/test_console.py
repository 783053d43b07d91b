"""The everyday command line on a real control plane, with a real controller where something is to happen."""

import asyncio
import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import Outcome
from kube_node_ready.cli import cluster
from kube_node_ready.cli import verify as again
from kube_node_ready.cli.cluster import ClusterLocation
from kube_node_ready.cli.fleet import ObservedNode
from kube_node_ready.cli.installation import Installed
from lab import waiting
from tests.support.builders import has_node
from tests.support.cli import PROGRAM, Console, environment, install, run
from tests.support.controller_process import operating
from tests.support.site import Site, a_site
from tests.support.terminals import on_a_terminal

LABEL = "node-ready/verified"
FOREIGN = lab.Taint("example.com/foreign", "PreferNoSchedule", "x")
NEVER = {"exhaustedRetrySeconds": 3600, "maxRetries": 1}
NO_ACCESS = 3


@pytest.fixture
def site(plane: lab.Plane, namespace: str) -> Iterator[Site]:
    mine = Site(plane, namespace)
    yield mine
    mine.leave()


@pytest.fixture
def console(site: Site) -> Console:
    install(site, site.config())
    return Console(site)


def whole(site: Site, name: str) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(site.plane.client.get(NodeObject, name).to_dict())
    return found


def test_status_reports_what_nodes_wait_for_until_they_are_verified(
    site: Site, console: Console, tmp_path: Path
) -> None:
    names = site.join(2).names
    before = console.ask("status", *names)
    assert before.returncode == 1
    assert "the controller to begin attempt 1" in before.stdout
    assert all(node["gated"] and not node["verified"] for node in console.status(*names))
    late = console.ask("status", "--until=verified", "--timeout=1s", *names)
    assert (late.returncode, "2 nodes not verified within 1 s" in late.stderr) == (1, True)
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        watched = console.ask("status", "--until=verified", "--timeout=60s", *names)
        assert watched.returncode == 0, watched.stderr
        assert {line.split()[1] for line in watched.stdout.splitlines()} == set(names)
    after = console.ask("status", *names)
    assert after.returncode == 0
    assert after.stdout.splitlines()[-1] == "2 nodes: 2 verified"
    assert all(node["labelled"] and node["attempt"] == 1 for node in console.status(*names))


def test_status_filters_sorts_and_groups(site: Site, console: Console) -> None:
    names = site.join(3).names
    for name, zone, disk in zip(names, ("b", "a", "b"), ("ssd", "ssd", "hdd"), strict=True):
        site.plane.kubectl("label", "node", name, "--overwrite", f"topology.kubernetes.io/zone={zone}", f"disk={disk}")
    mine = f"--selector=site={site.namespace}"
    grouped = console.ask("status", mine, "--group-by=zone", "--sort-by=name").stdout
    shown = [line.split()[:2] for line in grouped.splitlines()]
    assert [words[0] for words in shown] == ["NODE", "zone", names[1], "zone", names[0], names[2], "3"]
    assert [words[1].rstrip(":") for words in shown if words[0] == "zone"] == ["a", "b"]
    selected = console.ask("status", f"{mine},disk in (hdd, nvme)", "-o", "json").stdout
    assert [node["name"] for node in json.loads(selected)] == [names[2]]
    assert json.loads(console.ask("status", mine, "--pool=no-such-pool", "-o", "json").stdout) == []
    watched = console.ask("status", f"{mine},disk=ssd", "--watch", "--timeout=1s").stdout
    assert {line.split()[1] for line in watched.splitlines()} == set(names[:2])


def test_a_failing_node_is_explained(site: Site, console: Console, tmp_path: Path) -> None:
    report = '{"v":1,"checks":[{"name":"dns","ok":false,"ms":10003,"target":"example.com","error":"timed out"}]}'
    (name,) = site.join(verdict=lab.fails(report)).names
    config = site.config(reconciliation=NEVER)
    install(site, config)
    with operating(tmp_path, site.plane.kubeconfig(), config):
        site.until("it is given up", lambda: site.node(name).record.failures == 1)
        (reported,) = console.status(name)
        assert reported["phase"] == "exhausted"
        assert reported["checks"] == [{"name": "dns", "ok": False, "ms": 10003, "applies": True}]
        assert 3500 < reported["next"]["seconds"] <= 3600
        site.until("its Events are there", lambda: "VerificationFailed" in console.ask("explain", name).stdout)
        story = console.ask("explain", name)
    assert story.returncode == 1
    assert f"Closed by {site.gate.key}:NoSchedule" in story.stdout
    assert "dns example.com  FAILED   10003 ms  timed out" in story.stdout
    assert "Attempt 2 begins in 1 h" in story.stdout or "Attempt 2 begins in 59 min" in story.stdout
    assert f"kubectl logs --namespace={site.namespace} {reported['worker']['name']}" in story.stdout


def test_verify_changes_only_our_label_and_record(site: Site, console: Console, tmp_path: Path) -> None:
    (name,) = site.join(taints=(FOREIGN,)).names
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("it is verified", lambda: site.released(name) and not site.workers())
    site.plane.kubectl("annotate", "node", name, "example.com/note=theirs")
    site.plane.kubectl("label", "node", name, "node-ready/else=theirs")
    before = whole(site, name)
    assert console.ask("verify", name).returncode == 0
    after = whole(site, name)
    assert LABEL not in after["metadata"]["labels"]
    assert site.node(name).record.outcome is Outcome.PENDING
    for node in (before, after):
        node["metadata"]["labels"].pop(LABEL, None)
        node["metadata"]["annotations"].pop(RECORD_ANNOTATION)
        node["metadata"].pop("managedFields")
        node["metadata"].pop("resourceVersion")
        taints = node["spec"]["taints"]  # those of the cluster come and go
        node["spec"]["taints"] = [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
        node.pop("status")
    assert after == before


def test_a_conflicting_write_is_retried(site: Site, console: Console) -> None:
    """The kubelet writes to its Node all the time."""
    (name,) = site.join().names
    installed = Installed(site.policy, site.namespace)
    stale = ObservedNode(site.node(name), version="1")

    async def main() -> ObservedNode | None:
        async with cluster.cluster(ClusterLocation(site.namespace, console.kubeconfig)) as kube:
            return await again._write(kube, stale, installed)

    written = asyncio.run(main())
    assert written
    assert written.node.record.reason == again.ASKED
    assert site.node(name).record.reason == again.ASKED


def test_verify_requests_a_proof_of_verified_and_of_existing_nodes(
    site: Site, console: Console, tmp_path: Path
) -> None:
    (name,) = site.join().names
    (old,) = site.plane.simulated_nodes(1, prefix=f"{site.namespace}-old", labels={"site": site.namespace}).names
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("it is verified", lambda: site.released(name))
        assert console.phase(old) == "ignored"
        asked = console.ask("verify", "--wait", "--timeout=60s", name, old)
        assert asked.returncode == 0, asked.stderr
        assert site.released(name, old)
        assert site.node(name).record.attempt == 2
        assert "it stays open even if it fails" in asked.stdout


def test_an_exhausted_node_is_retried_immediately_and_the_verdict_is_the_exit_code(
    site: Site, console: Console, tmp_path: Path
) -> None:
    nodes = site.join(verdict=lab.fails("dns: no answer"))
    (name,) = nodes.names
    config = site.config(reconciliation=NEVER)
    with operating(tmp_path, site.plane.kubeconfig(), config):
        site.until("it is given up", lambda: site.node(name).record.failures == 1)
        again = console.ask("verify", "--all-failed", "--wait")
        assert again.returncode == 1
        assert site.node(name).record.attempt == 2
        nodes.decide(lab.PASSES)
        healed = console.ask("verify", name, "--wait")
        assert (healed.returncode, healed.stderr) == (0, f"{name}: passed\n")
        assert site.released(name)


def test_a_running_worker_is_not_interrupted(site: Site, console: Console, tmp_path: Path) -> None:
    (name,) = site.join(verdict=lab.HANGS).names
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("a worker runs", site.workers)
        asked = console.ask("verify", name)
        assert (asked.returncode, "attempt 1 is already running" in asked.stdout) == (0, True)
        assert RECORD_ANNOTATION not in whole(site, name)["metadata"].get("annotations", {})


def blocked(site: Site, name: str) -> list[str]:
    """Why the controller did not remove it, as it said by Events."""
    return [str(event.message) for event in site.events(name) if event.reason == "RemovalBlocked"]


def test_a_pause_lasts_until_resume(site: Site, console: Console, tmp_path: Path) -> None:
    config = site.config(
        nodeManagement={"deleteFailedNodes": True, "removal": {"maxFailingPercent": 100}},
        reconciliation={"maxRetries": 1, "exhaustedRetrySeconds": 2, "backoffSeconds": 0.2, "maxBackoffSeconds": 1},
    )
    install(site, config)
    assert "no node is removed" in console.ask("pause").stdout
    (name,) = site.join(verdict=lab.fails("dns: no answer")).names
    with operating(tmp_path, site.plane.kubeconfig(), config):
        site.until("the controller heeds it", lambda: blocked(site, name))
        assert set(blocked(site, name)) == {"removal of all nodes is paused"}
        assert "Blocked: removal of all nodes is paused." in console.ask("explain", name).stdout
        console.ask("pause", name)
        console.ask("resume")
        site.until("its own pause counts", lambda: site.node(name).removal_paused)
        assert "paused by its annotation" in console.ask("explain", name).stdout
        assert console.ask("resume", name).returncode == 0
        site.until("it is removed", lambda: not has_node(site.plane, name), 180)
    assert console.ask("resume", name).returncode == 1


ACCOUNT = """
apiVersion: v1
kind: ServiceAccount
metadata: {{name: person, namespace: {namespace}}}
"""
MAY_LIST_NODES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}}}
rules: [{{apiGroups: [""], resources: [nodes], verbs: [list, watch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: ServiceAccount, name: person, namespace: {namespace}}}]
"""


MAY_WATCH_THE_LEDGER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: person, namespace: {namespace}}}
rules:
- {{apiGroups: [""], resources: [configmaps], verbs: [list]}}
- {{apiGroups: [""], resources: [configmaps], resourceNames: [kube-node-ready-removals], verbs: [get, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: person, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: person}}
subjects: [{{kind: ServiceAccount, name: person, namespace: {namespace}}}]
"""


def test_a_pause_without_an_installation_is_an_error(site: Site) -> None:
    """Otherwise a wrong namespace would look like success, and nodes would be lost."""
    asked = Console(site).ask("pause")
    assert asked.returncode == 2
    assert "nothing was paused: no removal ledger and no valid configuration were found" in asked.stderr
    assert f'in the namespace "{site.namespace}"' in asked.stderr
    assert "kube-node-ready-removals" not in site.plane.kubectl("get", "configmaps", f"--namespace={site.namespace}")


def test_verify_is_rejected_in_dry_run(site: Site) -> None:
    """The label would be removed and not restored."""
    install(site, site.config(dryRun=True))
    (name,) = site.join().names
    site.plane.kubectl("label", "node", name, f"{LABEL}=true")
    asked = Console(site).ask("verify", name)
    assert (asked.returncode, "dryRun is on" in asked.stderr) == (2, True)
    assert site.node(name).labelled


def test_the_permission_to_watch_the_ledger_is_sufficient(site: Site) -> None:
    install(site, site.config(nodeManagement={"deleteFailedNodes": True}))
    (name,) = site.join().names
    for grant in (ACCOUNT, MAY_LIST_NODES, MAY_WATCH_THE_LEDGER):
        site.plane.apply(grant.format(namespace=site.namespace))
    person = Console(site, site.plane.kubeconfig(f"{site.namespace}/person"))

    def is_granted() -> bool:
        output = person.ask("status", name)
        return output.returncode != NO_ACCESS and "configmaps" not in output.stderr

    waiting.until("the rights are there", is_granted, 180)
    watched = person.ask("status", "--watch", "--timeout=1s", name)
    assert name in watched.stdout
    assert "you are not allowed to watch configmaps" not in watched.stderr
    assert "you are not allowed to watch pods" in watched.stderr, "which was not granted"


def test_a_missing_permission_is_reported_with_all_other_output(site: Site, console: Console) -> None:
    (name,) = site.join().names
    site.plane.apply(ACCOUNT.format(namespace=site.namespace))
    person = Console(site, site.plane.kubeconfig(f"{site.namespace}/person"))
    refused = person.ask("status", name)
    assert refused.returncode == NO_ACCESS
    assert 'you are not allowed to list nodes: ask for the verb "list" on "nodes"' in refused.stderr
    assert refused.stdout == ""
    site.plane.apply(MAY_LIST_NODES.format(namespace=site.namespace))
    waiting.until("the right is there", lambda: person.ask("status", name).returncode != NO_ACCESS, 180)
    reported = person.ask("status", name)
    assert name in reported.stdout
    for resource in ("configmaps", "pods"):
        assert f'you are not allowed to list {resource} in the namespace "{site.namespace}"' in reported.stderr
    assert person.ask("status", "--watch", "--timeout=1s", name).stdout.split()[1:2] == [name]
    asked = person.ask("pause", name)
    assert (asked.returncode, 'ask for the verb "patch" on "nodes"' in asked.stderr) == (3, True)
    story = person.ask("explain", name)
    assert 'you are not allowed to list events in the namespace "default"' in story.stderr
    assert console.ask("status", name).stderr.count("you are not allowed") == 0


def test_kubectl_finds_the_plugin(site: Site, console: Console, tmp_path: Path) -> None:
    (name,) = site.join().names
    kubectl = site.plane.programs.path("kubectl")
    (tmp_path / "kubectl-node_ready").symlink_to(PROGRAM)
    reported = run(
        str(kubectl),
        "node-ready",
        "status",
        name,
        f"--namespace={site.namespace}",
        KUBECONFIG=str(console.kubeconfig),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    assert (reported.returncode, name in reported.stdout) == (1, True), reported.stderr
    helped = run(str(kubectl), "node-ready", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert helped.stdout.startswith("Usage: kubectl node-ready")


def test_a_live_view_restores_the_terminal(site: Site, console: Console) -> None:
    (name,) = site.join().names
    ended, shown = on_a_terminal(console.command("status", "--watch", name), environment(), until=name.encode())
    assert ended == 130
    assert shown.startswith(b"\x1b[?1049h\x1b[?25l\x1b[H")
    assert shown.endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"Traceback" not in shown


def test_a_live_view_outlives_the_api_server(fresh_plane: Callable[..., lab.Plane], tmp_path: Path) -> None:
    plane = fresh_plane()
    with a_site(plane, "away") as site:
        install(site, site.config())
        (name,) = site.join().names
        errors = tmp_path / "errors"
        with Console(site).watching(errors, "--until=verified", "--timeout=300s", name) as process:
            assert process.stdout
            assert name in process.stdout.readline()
            plane.apiserver.stop()
            waiting.until("it says so", lambda: "Retrying" in errors.read_text(), 180)
            assert process.poll() is None
            plane.apiserver.start()
            plane.wait_for_api()
            with operating(tmp_path, plane.kubeconfig(), site.config()):
                assert process.wait(280) == 0, errors.read_text()
        assert "Traceback" not in errors.read_text()


def test_an_unreachable_cluster_is_reported_in_one_line(site: Site, console: Console, tmp_path: Path) -> None:
    content = yaml.safe_load(console.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    closed = tmp_path / "kubeconfig"
    closed.write_text(yaml.safe_dump(content))
    reported = Console(site, closed).ask("status")
    assert reported.returncode == NO_ACCESS
    assert reported.stderr == (
        "kube-node-ready: the API server https://127.0.0.1:1 does not respond: connection refused\n"
    )
    assert reported.stderr.count("\n") == 1
