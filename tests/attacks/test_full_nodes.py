"""A tenant of another namespace whose pods tolerate every taint, and fill new nodes before their workers are created.

Any account that can create pods can give them any toleration. A gate does not keep such pods away.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from lightkube import Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, ServiceAccount

import lab
from tests.attacks.kubelet import pod_of
from tests.support.chart_run import a_run

ALL_CPUS = "15980m"
"""Of a simulated node, which has 16. Less than a worker requests is left."""
SHORT = {"timeoutSeconds": 10}


@contextmanager
def a_tenant(plane: lab.Plane, namespace: str) -> Iterator[Client]:
    """An account that can create pods in its own namespace, and nothing else."""
    group, metadata = "rbac.authorization.k8s.io", {"name": "tenant", "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    plane.client.create(ServiceAccount(metadata=ObjectMeta(name="tenant", namespace=namespace)))
    plane.apply(f"{json.dumps(role)}\n---\n{json.dumps(binding)}")
    config = KubeConfig.from_file(plane.kubeconfig(f"{namespace}/tenant"))
    with Client(config, timeout=httpx2.Timeout(30), trust_env=False) as client:
        yield client


@pytest.fixture
def priority_class(plane: lab.Plane, prefix: str) -> Iterator[str]:
    plane.kubectl("create", "priorityclass", prefix, "--value=1000")
    yield prefix
    plane.kubectl("delete", "priorityclass", prefix)


def fill(tenant: Client, namespace: str, case: str) -> None:
    """A pod that waits for a node of this test, and takes all of it."""
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": ALL_CPUS}}}
    spec = {
        "containers": [container],
        "nodeSelector": {"case": case},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 1,
    }
    tenant.create(pod_of({"metadata": {"name": "filler", "namespace": namespace}, "spec": spec}))


def pods_on(plane: lab.Plane, namespace: str, node: str) -> list[Pod]:
    return list(plane.client.list(Pod, namespace=namespace, fields={"spec.nodeName": node}))


@pytest.mark.parametrize("is_preferred", [True, False])
def test_a_tenant_that_fills_new_nodes_blocks_them_only_if_workers_have_no_priority(
    plane: lab.Plane, namespace: str, prefix: str, priority_class: str, tmp_path: Path, *, is_preferred: bool
) -> None:
    chosen = {"priorityClassName": priority_class} if is_preferred else {}
    case = f"{prefix[-20:].lstrip('-')}-r"
    with a_tenant(plane, namespace) as tenant, a_run(plane, case, tmp_path, values=chosen, worker=SHORT) as run:
        fill(tenant, namespace, case)
        node = run.join("node", lab.PASSES)
        run.until("it is filled", lambda: pods_on(plane, namespace, node))
        with run.controller() as operator:
            if is_preferred:
                run.until("it is verified", lambda: operator.logged("Node verified", node=node))
            else:
                run.until("its worker found no room", lambda: operator.logged("Verification failed", node=node))
                (failure,) = [line for line in operator.lines() if line["msg"] == "Verification failed"][:1]
                assert "Insufficient cpu" in json.dumps(failure)
                assert not operator.logged("Node verified", node=node)
            operator.stop()


def test_a_pod_that_repels_workers_delays_new_nodes_by_one_attempt(
    plane: lab.Plane, namespace: str, prefix: str, tmp_path: Path
) -> None:
    """A pod of another namespace and on another node: the scheduler applies its anti-affinity to workers, too."""
    case = f"{prefix[-20:].lstrip('-')}-r"
    with a_tenant(plane, namespace) as tenant, a_run(plane, case, tmp_path, worker=SHORT) as run:
        host = run.join("host", lab.PASSES)
        repel(tenant, namespace, host)
        try:
            run.until("the tenant's pod runs", lambda: pods_on(plane, namespace, host))
            node = run.join("node", lab.PASSES)
            with run.controller() as operator:
                run.until("its worker was not scheduled", lambda: operator.logged("Verification failed", node=node))
                failures = [line for line in operator.lines() if line["msg"] == "Verification failed"]
                assert all("anti-affinity" in json.dumps(line) for line in failures)
                run.until("it is verified", lambda: operator.logged("Node verified", node=node))
                operator.stop()
        finally:  # it repels the workers of other tests, too
            plane.kubectl("delete", "pod", "repels", f"--namespace={namespace}", "--grace-period=0", "--force")


def repel(tenant: Client, namespace: str, node: str) -> None:
    """A pod near which no worker of any namespace is scheduled; near means in the cluster."""
    workers = {"matchLabels": {"app": "kube-node-ready", "component": "worker"}}
    term = {"labelSelector": workers, "namespaceSelector": {}, "topologyKey": "kubernetes.io/os"}
    spec = {
        "containers": [{"name": "a", "image": "a"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "nodeName": node,
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 1,
    }
    tenant.create(pod_of({"metadata": {"name": "repels", "namespace": namespace}, "spec": spec}))
