"""DaemonSet mode opens a gate only from inside a pod on that very node, as its token or the pod's spec shows (D1).

Everything else is a dry run: it changes nothing and exits with a code of its own. The chart's admission policy is not
installed here: it would stop some of these runs, and they must stop themselves.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Event, Node

import lab
from lab import simulated_node, waiting
from tests.attacks.history import History, record_of
from tests.support.agent_live import VALUES, command, environment_of
from tests.support.chart_release import Release, apply, token_of
from tests.support.controller_process import taints
from tests.support.scenarios.agent import GATE

NAMESPACE = "unproved-gates"
EXIT_NOT_PROVED = 4
PATIENCE = 180
CHECKS = {"services": ["default/kubernetes"]}
"""Outside a pod, the name of the API Service and the way to the DNS servers cannot be checked."""
_PROGRAM = "from kube_node_ready.entrypoints import main; main()"


@pytest.fixture(scope="module")
def release(plane: lab.Plane) -> Iterator[Release]:
    release = Release(plane, NAMESPACE, {**VALUES, "admissionPolicy": {"enabled": False}})
    release.install()
    yield release
    release.uninstall()


@pytest.fixture
def nodes(plane: lab.Plane, prefix: str) -> Iterator[list[str]]:
    names = plane.simulated_nodes(2, prefix=prefix, taints=taints(GATE)).names
    yield list(names)
    plane.kubectl("delete", "node", *names)


def events_of(plane: lab.Plane, node: str) -> list[str]:
    events = plane.client.list(Event, namespace="default", fields={"involvedObject.name": node})
    return [str(event.reason) for event in events if event.reportingComponent == "kube-node-ready"]


class Outcome:
    """What a run did. It ends by itself, or is stopped when it has opened the gate and reported that."""

    def __init__(self, argv: list[str], environment: Mapping[str, str], plane: lab.Plane, node: str) -> None:
        history = History(plane, node)
        with subprocess.Popen(
            argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            give_up = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < give_up and "Verified" not in events_of(plane, node):
                time.sleep(0.5)
            process.terminate()
            self.output, _ = process.communicate()
        self.exit_code = process.returncode
        versions = history.versions()
        self.was_open = history.was_ever_open(GATE["key"]) if versions else False
        self.wrote = [
            version
            for version in versions
            if record_of(version) or "node-ready/verified" in version["metadata"].get("labels", {})
        ]
        self.events = events_of(plane, node)

    def changed_nothing(self) -> bool:
        return not self.was_open and not self.wrote and not self.events


def in_pod(release: Release, node: str, token: str, folder: Path) -> Outcome:
    """A run that finds a mounted ServiceAccount, with this token in it."""
    mounted = folder / "serviceaccount"
    mounted.mkdir()
    (mounted / "token").write_text(token)
    (mounted / "ca.crt").write_bytes(release.plane.authority.certificate.read_bytes())
    environment = environment_of(release, release.plane.api_endpoint, NODE_NAME=node)
    return Outcome(command(mounted, "--metrics-port=0"), environment, release.plane, node)


def test_a_run_outside_a_pod_is_a_dry_run(release: Release, nodes: list[str]) -> None:
    """With the administrator's kubeconfig, so nothing but the program itself keeps it from opening the gate."""
    plane, node = release.plane, nodes[0]
    environment = environment_of(release, ("", 0)) | {
        "KUBERNETES_SERVICE_HOST": "",
        "KUBERNETES_SERVICE_PORT": "",
        "DNS_TEST_DOMAINS": "kubernetes.default.svc.cluster.local",
        "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(CHECKS),
    }
    argv = [sys.executable, "-c", _PROGRAM, f"--node-name={node}", f"--kubeconfig={plane.kubeconfig()}"]
    done = Outcome([*argv, "--metrics-port=0"], environment, plane, node)
    assert done.changed_nothing(), done.output
    assert done.exit_code == EXIT_NOT_PROVED, done.output
    assert "only a pod with its ServiceAccount's token proves something" in done.output
    assert "All checks passed" not in done.output


def test_the_token_of_a_pod_on_another_node_opens_no_gate(release: Release, nodes: list[str], tmp_path: Path) -> None:
    """As when NODE_NAME is a fixed value instead of spec.nodeName."""
    home, other = nodes
    token = token_of(release.kubeconfig(pod=release.put_pod(home)))
    done = in_pod(release, other, token, tmp_path)
    assert done.changed_nothing(), done.output
    assert done.exit_code == EXIT_NOT_PROVED, done.output
    assert f'this pod runs on node "{home}"' in done.output


def test_a_token_that_belongs_to_no_pod_opens_no_gate(release: Release, nodes: list[str], tmp_path: Path) -> None:
    done = in_pod(release, nodes[0], token_of(release.kubeconfig()), tmp_path)
    assert done.changed_nothing(), done.output
    assert done.exit_code == EXIT_NOT_PROVED, done.output
    assert "is not bound to a pod" in done.output


def test_the_token_of_a_pod_on_the_node_opens_its_gate(release: Release, nodes: list[str], tmp_path: Path) -> None:
    token = token_of(release.kubeconfig(pod=release.put_pod(nodes[0])))
    done = in_pod(release, nodes[0], token, tmp_path)
    assert done.was_open, done.output
    assert done.exit_code == 0
    assert done.events == ["Verified"]


def recreated(release: Release, node: str, boot: str) -> str:
    """Delete the Node, make one of the same name, and return the token of a pod on the earlier one."""
    plane = release.plane
    token = token_of(release.kubeconfig(pod=release.put_pod(node)))
    plane.client.delete(Node, node)
    plane.client.create(simulated_node.node_object(node, plane.version, taints(GATE), {}))
    plane.kubectl(
        "patch", "node", node, "--subresource=status", f'--patch={{"status":{{"nodeInfo":{{"bootID":"{boot}"}}}}}}'
    )
    return token


def test_the_token_of_a_pod_on_an_earlier_node_of_that_name_opens_no_gate(
    release: Release, nodes: list[str], tmp_path: Path
) -> None:
    """Another machine can have taken over the name."""
    node = nodes[0]
    done = in_pod(release, node, recreated(release, node, "another-boot"), tmp_path)
    assert done.changed_nothing(), done.output
    assert done.exit_code == EXIT_NOT_PROVED, done.output
    assert f'a pod on an earlier Node "{node}"' in done.output


def test_the_boot_id_shows_that_a_new_node_is_the_same_machine(
    release: Release, nodes: list[str], tmp_path: Path
) -> None:
    """As when a Node is restored while its kubelet runs: the pod keeps its token for most of an hour."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    done = in_pod(release, nodes[0], recreated(release, nodes[0], boot), tmp_path)
    assert done.was_open, done.output
    assert done.exit_code == 0


class TestWithoutNodeClaim:
    """As before Kubernetes 1.30: a token that was requested before its pod was bound to a node names no node."""

    def test_the_spec_of_its_own_pod_is_a_proof(self, release: Release, nodes: list[str], tmp_path: Path) -> None:
        with_right_to_get_pods(release)
        done = in_pod(release, nodes[0], token_without_node(release, nodes[0]), tmp_path)
        assert done.was_open, done.output

    def test_the_spec_of_a_pod_on_another_node_is_not_a_proof(
        self, release: Release, nodes: list[str], tmp_path: Path
    ) -> None:
        with_right_to_get_pods(release)
        home, other = nodes
        done = in_pod(release, other, token_without_node(release, home), tmp_path)
        assert done.changed_nothing(), done.output
        assert done.exit_code == EXIT_NOT_PROVED
        assert f'this pod runs on node "{home}"' in done.output

    def test_without_the_right_to_read_its_pod_nothing_is_proved(
        self, release: Release, nodes: list[str], tmp_path: Path
    ) -> None:
        release.plane.kubectl("delete", "rolebinding", "own-pod", f"--namespace={NAMESPACE}", "--ignore-not-found")
        waiting.until("the right is gone", lambda: not release.may("get", "pods", NAMESPACE), PATIENCE)
        done = in_pod(release, nodes[0], token_without_node(release, nodes[0]), tmp_path)
        assert done.changed_nothing(), done.output
        assert done.exit_code == EXIT_NOT_PROVED
        assert "cannot get resource" in done.output


def token_without_node(release: Release, node: str) -> str:
    """The pod is bound to its node only after its token was requested."""
    name = f"unbound-{node}"[-63:].lstrip("-.")
    metadata = {**release.made.pod["metadata"], "name": name, "namespace": release.namespace}
    spec: dict[str, Any] = {**release.made.pod["spec"], "schedulerName": "nobody"}
    apply(release.plane, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    token = token_of(release.kubeconfig(pod=name))
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"/api/v1/namespaces/{release.namespace}/pods/{name}/binding"
    release.plane.kubectl("create", "--raw", path, "--filename=-", standard_input=json.dumps(binding))
    return token


def with_right_to_get_pods(release: Release) -> None:
    """As the chart grants it where tokens name no node."""
    metadata = {"name": "own-pod", "namespace": release.namespace}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": release.account, "namespace": release.namespace}
    role = {"apiGroup": group, "kind": "Role", "name": "own-pod"}
    apply(
        release.plane,
        [
            {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            },
        ],
    )
    waiting.until("the right is there", lambda: release.may("get", "pods", release.namespace), PATIENCE)
