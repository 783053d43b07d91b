"""A cluster of real nodes that join gated, and a release of the chart that is to open their gates.

The namespace of the release enforces the `restricted` Pod Security Standard, and cluster DNS tolerates what the docs
tell it to, and nothing else.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Event, Pod
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.types import PatchType

import lab
from demo import image as release_image
from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION, RECORD_ANNOTATION
from kube_node_ready.api.record import Outcome
from kube_node_ready.verification.model import Gate, Node, Policy
from kube_node_ready.verification.node_reader import read_node
from lab import images, waiting
from tests.support.helm import Release
from tests.support.shell import ROOT

NAMESPACE = "node-ready"
GATE = lab.Taint("node-ready/unverified", value="true")
LABEL = "node-ready/verified"
REAL = {"lab": "real"}
"""The label of real nodes: what has to run must not be put on a simulated one."""
PATIENCE = 240
T = TypeVar("T")
_POLICY = Policy((Gate(GATE.key, GATE.effect),))
_RESTRICTED = f"""
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels: {{pod-security.kubernetes.io/enforce: restricted}}
"""


class Guarded:
    """`guard` is what the release runs: `deployment/…` or `daemonset/…`."""

    def __init__(self, plane: lab.Plane, release: Release, guard: str) -> None:
        self.plane = plane
        self.release = release
        self.guard = guard

    def join(self, *names: str) -> None:
        """Real nodes, which register with the gate on."""
        self.plane.start_nodes(*names, taints=[GATE], labels=REAL)

    def close(self, *names: str) -> None:
        """As if they joined: gated, without label or record."""
        metadata = {"labels": {LABEL: None}, "annotations": {RECORD_ANNOTATION: None}}
        for name in names:
            new = {"metadata": metadata, "spec": {"taints": [GATE.as_dict()]}}
            self.plane.client.patch(NodeObject, name, new, patch_type=PatchType.MERGE)

    def unlabel(self, name: str) -> None:
        self.plane.kubectl("label", "node", name, f"{LABEL}-")

    def node(self, name: str) -> Node:
        return read_node(_wire(self.plane.client.get(NodeObject, name), objects.Node), _POLICY)

    def is_gated(self, name: str) -> bool:
        return _POLICY.is_gated(self.node(name))

    def is_released(self, *names: str) -> bool:
        return all(node.labelled and not _POLICY.is_gated(node) for node in map(self.node, names))

    def failures(self, name: str) -> int:
        return self.node(name).record.failures

    def condition(self, name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.plane.client.get(NodeObject, name).to_dict()["status"]["conditions"]
        return next((known for known in found if known["type"] == CONDITION), {})

    def event_messages(self, name: str, reason: str) -> list[str]:
        """The messages of the node's Events with this reason."""
        found = self.plane.client.list(
            Event,
            namespace="default",
            fields={"involvedObject.name": name, "involvedObject.kind": "Node", "reason": reason},
        )
        return [str(event.message) for event in found]

    def guards(self) -> list[Pod]:
        """The pods of the controller or the DaemonSet."""
        return self._pods("controller" if self.guard.startswith("deployment/") else "daemonset")

    def workers(self) -> list[Pod]:
        return self._pods("worker")

    def _pods(self, component: str) -> list[Pod]:
        found = self.plane.client.list(Pod, namespace=NAMESPACE, labels={"app.kubernetes.io/component": component})
        return list(found)

    def bound(self) -> list[str]:
        """The name of every pod of ours that was ever bound to a node, as often as it was."""
        found = self.plane.client.list(Event, namespace=NAMESPACE, fields={"reason": "Scheduled"})
        return sorted(str(event.involvedObject.name) for event in found)

    def remains(self) -> list[str]:
        """What the namespace holds that no empty namespace does."""
        kinds = "pods,configmaps,serviceaccounts,services,leases,roles,rolebindings"
        found = self.plane.kubectl("get", kinds, f"--namespace={NAMESPACE}", "--output=name").split()
        return [thing for thing in found if thing not in ("configmap/kube-root-ca.crt", "serviceaccount/default")]

    def until(self, what: str, answer: Callable[[], T | None]) -> T:
        """Until the answer is true, or at least something. Returns it."""
        return waiting.until(what, answer, PATIENCE, alive=self.plane.check)

    def rolled_out(self) -> None:
        """Until the release runs as it should, and nothing is left of what ran before."""
        status = ("rollout", "status", self.guard, f"--namespace={NAMESPACE}", "--watch=false")
        self.until("it is rolled out", lambda: "successfully" in self.plane.kubectl(*status))
        self.until("what was before is gone", lambda: not any(is_leaving(pod) for pod in self.guards()))

    def settle(self, *names: str) -> None:
        """What the next test expects: healed nodes with an open gate."""
        for name in names:
            self.plane.nodes[name].heal()
        self.until("every gate is open", lambda: self.is_released(*names))

    @contextlib.contextmanager
    def workload(self, node: str) -> Iterator[Callable[[], Pod]]:
        """An ordinary pod that wants to run on this node, and knows nothing of gates."""
        serve = Container(name="main", image=images.TOOLBOX, imagePullPolicy="Never", command=["/toolbox", "pause"])
        spec = PodSpec(
            containers=[serve], nodeSelector={"kubernetes.io/hostname": node}, terminationGracePeriodSeconds=0
        )
        name = f"workload-{node}"
        self.plane.client.create(Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        try:
            yield lambda: self.plane.client.get(Pod, name, namespace="default")
        finally:
            self.plane.client.delete(Pod, name, namespace="default")
            self.until(
                "the workload is gone",
                lambda: not any(self.plane.client.list(Pod, namespace="default", fields={"metadata.name": name})),
            )

    @contextlib.contextmanager
    def without_dns(self, node: str) -> Iterator[Callable[[], Pod]]:
        """As if the node joined without DNS; and a workload waits for it."""
        with self.plane.nodes[node].break_dns():
            self.close(node)
            with self.workload(node) as waiting:
                yield waiting

    def tolerate_as_documented(self) -> None:
        """Let cluster DNS tolerate the gate, and no other taint."""
        patch = {"spec": {"template": {"spec": _documented_tolerations()}}}
        coredns = ("deployment/coredns", "--namespace=kube-system")
        self.plane.kubectl("patch", *coredns, f"--patch={json.dumps(patch)}")
        self.until("the new one has come", lambda: "successfully" in self.plane.kubectl("rollout", "status", *coredns))
        self.until("the old one is gone", lambda: len(self.dns_nodes()) == 1)

    def dns_nodes(self) -> list[str | None]:
        """The node of each DNS server."""
        pods = self.plane.client.list(Pod, namespace="kube-system", labels={"k8s-app": "kube-dns"})
        return [pod.spec.nodeName for pod in pods if pod.spec]


@contextlib.contextmanager
def guarded(folder: Path, guard: str) -> Iterator[Guarded]:
    """Two gated nodes, `a` and `b`, and nothing yet that could open their gates."""
    with lab.plane() as plane:
        plane.import_image(release_image.archive())
        plane.apply(_RESTRICTED)
        site = Guarded(plane, Release(plane, NAMESPACE, folder), guard)
        site.join("a", "b")
        site.tolerate_as_documented()
        yield site


def is_kept_out(pod: Pod) -> bool:
    """Whether the scheduler says that it is a taint that keeps the pod from running."""
    conditions = (pod.status and pod.status.conditions) or []
    return any(one.type == "PodScheduled" and "untolerated taint" in (one.message or "") for one in conditions)


def is_leaving(pod: Pod) -> bool:
    return bool(pod.metadata and pod.metadata.deletionTimestamp)


def is_running(pod: Pod) -> bool:
    return bool(pod.status and pod.status.phase == "Running")


def uninstall_as_documented(site: Guarded) -> None:
    """With a node still gated, for which a workload waits."""
    made = site.release.manifest()
    with site.without_dns("b") as waiting:
        site.until("it failed", lambda: site.failures("b") >= 1)
        site.until("its workload waits", lambda: is_kept_out(waiting()))
        site.release.uninstall()
        site.until("what guarded it is gone", lambda: not site.guards())
        assert site.is_gated("b"), "to uninstall is not to release"
        assert site.is_released("a", "c")
        site.unlabel("a")  # so that one of those to be freed has no gate
        site.release.clean_up_as_documented()
        site.until("its workload runs", lambda: is_running(waiting()))
    assert site.plane.kubectl("get", "--filename=-", "--ignore-not-found", standard_input=made) == ""
    site.until("nothing of ours is left", lambda: site.remains() == [])


def name_of(pod: Pod) -> str:
    assert pod.metadata
    return str(pod.metadata.name)


def uids(pods: list[Pod]) -> set[str]:
    return {str(pod.metadata.uid) for pod in pods if pod.metadata}


def is_proved(node: Node) -> bool:
    """By an attempt in which every check passed."""
    record = node.record
    return record.outcome is Outcome.PASSED and record.attempt > 0 and all(check.ok for check in record.checks)


def _documented_tolerations() -> dict[str, Any]:
    text = (ROOT / "examples" / "cluster-autoscaler.md").read_text().partition("## What must tolerate the gate")[2]
    block = re.search(r"```yaml\n(.+?)```", text, re.DOTALL)
    assert block
    found: dict[str, Any] = yaml.safe_load(block[1])
    return found


def _wire(found: Any, kind: type[Any]) -> Any:  # noqa: ANN401  from lightkube's model to ours
    return msgspec.json.decode(msgspec.json.encode(found.to_dict()), type=kind)
