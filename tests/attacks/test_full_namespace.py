"""A kubelet that uses up a quota of pods in the workers' namespace with mirror pods: no worker can be created."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import ResourceQuota

import lab
from tests.attacks.kubelet import IMAGE, MIRROR, Kubelet, kubelets, pod_of, short_name
from tests.support.chart_release import apply
from tests.support.chart_run import Run, a_run

QUOTA = 5
SECURITY = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def namespace_of(run: Run) -> str:
    return str(run.release.made.config["worker"]["namespace"])


def mirror(kubelet: Kubelet, name: str, namespace: str, *, dry_run: bool = False) -> str:
    """Create a mirror pod that the `restricted` standard admits. Return why it is rejected; empty if it is not."""
    itself = {"apiVersion": "v1", "kind": "Node", "name": kubelet.node, "uid": kubelet.uid, "controller": True}
    metadata = {"name": name, "namespace": namespace, "annotations": {MIRROR: "a"}, "ownerReferences": [itself]}
    container = {"name": "a", "image": IMAGE, "securityContext": SECURITY}
    spec = {"nodeName": kubelet.node, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    try:
        kubelet.client.create(pod_of({"metadata": metadata, "spec": spec}), dry_run=dry_run)
    except ApiError as error:
        return str(error.status.message)
    return ""


@contextlib.contextmanager
def a_hostile_kubelet(run: Run, prefix: str) -> Iterator[Kubelet]:
    """In a namespace with a quota. The namespace is kept by the chart, so the quota is removed."""
    namespace = namespace_of(run)
    name = {"name": "pods", "namespace": namespace}
    apply(
        run.plane, [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": name, "spec": {"hard": {"pods": QUOTA}}}]
    )
    with kubelets(run.plane, short_name("hostile", prefix)) as (kubelet,):
        kubelet.register()
        run.until("the quota is counted", lambda: usage(run))
        yield kubelet
    run.plane.kubectl("delete", "resourcequota", f"--namespace={namespace}", "pods")


def usage(run: Run) -> dict[str, str] | None:
    """What the quota counts, as soon as it does."""
    quota = run.plane.client.get(ResourceQuota, "pods", namespace=namespace_of(run))
    return quota.status.used if quota.status else None


def condition(run: Run, node: str) -> str:
    status = run.node(node).status
    assert status
    messages = [item.message or "" for item in status.conditions or () if item.type == "NodeVerified"]
    return "".join(messages)


def is_released(run: Run, node: str) -> bool:
    spec = run.node(node).spec
    return bool(spec and not spec.taints)


def test_mirror_pods_do_not_fill_a_namespace_of_the_workers_own(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "worker": {"namespace": f"{prefix}-w", "createNamespace": True},
        "admissionPolicy": {"enabled": True},
    }
    with a_run(plane, prefix, tmp_path, values=values) as run, a_hostile_kubelet(run, prefix) as kubelet:
        namespace = namespace_of(run)
        denied = f"mirror pods cannot be created in namespace {namespace}"
        run.until("they are rejected", lambda: denied in mirror(kubelet, "quiet", namespace, dry_run=True))
        rejections = [mirror(kubelet, f"quiet-{number}", namespace) for number in range(QUOTA)]
        assert all(denied in rejection for rejection in rejections)
        node = run.join("node", lab.PASSES)
        with run.controller() as operator:
            run.until("a new node is released", lambda: is_released(run, node))
            operator.stop()
        assert mirror(kubelet, "elsewhere", prefix) == "", "other namespaces are not concerned"


def test_mirror_pods_fill_a_shared_namespace(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    """As docs/explanation/security.md documents: no quota of pods in a namespace that is not the workers' own."""
    with a_run(plane, prefix, tmp_path) as run, a_hostile_kubelet(run, prefix) as kubelet:
        namespace = namespace_of(run)
        rejections = [mirror(kubelet, f"quiet-{number}", namespace) for number in range(QUOTA + 1)]
        assert rejections[:QUOTA] == [""] * QUOTA
        assert "exceeded quota" in rejections[QUOTA]
        node = run.join("node", lab.PASSES)
        with run.controller() as operator:
            run.until("the new node waits", lambda: "exceeded quota" in condition(run, node))
            assert not is_released(run, node)
            operator.stop()
