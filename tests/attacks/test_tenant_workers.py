"""Pods that a tenant creates in the workers' namespace and that pass for workers.

The tenant is allowed to create pods there, and nothing else. It has seen a real worker and copies it with everything
that can be copied: labels, annotations, owner, spec. One thing is different, and that decides how the pod ends.

The nodes' kubelets are honest: they run what they are given. So the test plays them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lightkube import Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, ServiceAccount

from tests.attacks.history import History
from tests.attacks.kubelet import IMAGE, Json, Kubelet, kubelets, pod_of, short_name, worker_name
from tests.support.controller_process import operating
from tests.support.site import Site

PATIENCE = 120
_GIVEN_BY_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


@pytest.fixture
def tenant(site: Site) -> Iterator[Client]:
    """Who can create pods in the workers' namespace."""
    name, rbac = "tenant", "rbac.authorization.k8s.io"
    metadata = {"name": name, "namespace": site.namespace}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    subject = {"kind": "ServiceAccount", **metadata}
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        "subjects": [subject],
    }
    site.plane.client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=site.namespace)))
    site.plane.apply(f"{json.dumps(role)}\n---\n{json.dumps(binding)}")
    config = KubeConfig.from_file(site.plane.kubeconfig(f"{site.namespace}/{name}"))
    with Client(config, timeout=httpx2.Timeout(30), trust_env=False) as client:
        yield client


def with_image(pod: Json) -> None:
    """The annotation that names the image follows it."""
    pod["metadata"]["annotations"]["node-ready/worker-image"] = IMAGE
    pod["spec"]["containers"][0]["image"] = IMAGE


def in_spec(**fields: Any) -> Callable[[Json], None]:  # noqa: ANN401  the API's own fields
    return lambda pod: pod["spec"].update(fields)


def in_container(**fields: Any) -> Callable[[Json], None]:  # noqa: ANN401  the API's own fields
    return lambda pod: pod["spec"]["containers"][0].update(fields)


def with_variable(pod: Json) -> None:
    variables = pod["spec"]["containers"][0]["env"]
    (settings,) = [variable for variable in variables if "value" in variable]
    settings["value"] = '{"dnsTestDomains": [], "networkTargets": []}'


def with_script(pod: Json) -> None:
    """A module that Python imports before anything else."""
    with_path = {"name": "PYTHONPATH", "value": "/attack"}
    pod["spec"]["containers"][0]["env"].append(with_path)


DIFFERENCES: Mapping[str, Callable[[Json], None]] = {
    "image": with_image,
    "command": in_container(command=["/true"]),
    "args": in_container(args=["--help"]),
    "settings": with_variable,
    "variable": with_script,
    "network": in_spec(hostNetwork=True),
    "dns": in_spec(dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.53"]}),
    "hosts": in_spec(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["kubernetes.default.svc.cluster.local"]}]),
}


class ForgedWorkers:
    """One gated node for each difference, each with a forged worker on it, which the test's kubelets run."""

    def __init__(self, site: Site, nodes: dict[str, Kubelet], *, forged_code: int, genuine_code: int) -> None:
        self._site = site
        self._nodes = nodes
        self._codes = {True: forged_code, False: genuine_code}
        self.forged: set[str] = set()
        self.histories = {what: History(site.plane, kubelet.node) for what, kubelet in nodes.items()}

    def forge(self, tenant: Client, sample: Json) -> None:
        for what, kubelet in self._nodes.items():
            pod = copied(sample, kubelet)
            DIFFERENCES[what](pod)
            made = tenant.create(pod_of(pod))
            assert made.metadata
            self.forged.add(str(made.metadata.uid))

    def run_pods(self) -> None:
        for kubelet in self._nodes.values():
            kubelet.run_pods(self._exit_code)

    def _exit_code(self, pod: Pod) -> int:
        assert pod.metadata
        return self._codes[pod.metadata.uid in self.forged]

    def until(self, what: str, is_done: Callable[[str], bool]) -> None:
        """Run the pods until this holds for every difference."""

        def all_are_done() -> bool:
            self.run_pods()
            return all(is_done(difference) for difference in self._nodes)

        self._site.until(what, all_are_done, PATIENCE)

    def is_open(self, what: str) -> bool:
        node = self._site.node(self._nodes[what].node)
        return not self._site.policy.is_gated(node)

    def has_failed(self, what: str) -> bool:
        return self._site.node(self._nodes[what].node).record.failures > 0


def copied(sample: Json, kubelet: Kubelet) -> Json:
    """The sample, made for another node."""
    (owner,) = sample["metadata"]["ownerReferences"]
    text = json.dumps(sample, default=str).replace(owner["uid"], kubelet.uid).replace(owner["name"], kubelet.node)
    pod: Json = json.loads(text)
    for field in _GIVEN_BY_THE_SERVER:
        pod["metadata"].pop(field, None)
    return {"metadata": pod["metadata"], "spec": {**pod["spec"], "nodeName": kubelet.node}}


@contextmanager
def fooled(site: Site, tenant: Client, folder: Path, *, forged_code: int, genuine_code: int) -> Iterator[ForgedWorkers]:
    """Forged workers that ended like this, and a controller that starts when they are there."""
    with ExitStack() as stack:
        names = {what: short_name(what, site.namespace) for what in DIFFERENCES}
        sampled, *made = stack.enter_context(
            kubelets(site.plane, short_name("sample", site.namespace), *names.values())
        )
        sample = a_worker(site, sampled, folder)
        for kubelet in made:
            kubelet.register(labels={"site": site.namespace}, taints=[site.gate])
        nodes = dict(zip(names, made, strict=True))
        world = ForgedWorkers(site, nodes, forged_code=forged_code, genuine_code=genuine_code)
        world.forge(tenant, sample)
        world.run_pods()
        stack.enter_context(operating(folder, site.plane.kubeconfig(), patient(site)))
        yield world


def patient(site: Site) -> dict[str, Any]:
    return site.config(reconciliation={"intervalSeconds": 1, "maxRetries": 9})


def a_worker(site: Site, kubelet: Kubelet, folder: Path) -> Json:
    """A real worker as an account that can read pods sees it. The worker and its node are gone afterwards."""
    kubelet.register(labels={"site": site.namespace}, taints=[site.gate])
    name = worker_name(kubelet.uid, 1)
    found: list[Pod] = []

    def seen() -> bool:
        found[:] = [site.plane.client.get(Pod, name, namespace=site.namespace)]
        return bool(found[0].spec and found[0].spec.nodeName)

    with operating(folder, site.plane.kubeconfig(), patient(site)) as operator:
        site.until("a real worker can be seen", seen)
        operator.kill()
    site.kubectl("delete", "node", kubelet.node)
    site.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found")
    sample: Json = found[0].to_dict()
    return sample


def test_a_tenants_pod_does_not_open_a_gate(site: Site, tenant: Client, tmp_path: Path) -> None:
    """Real workers fail on these nodes."""
    with fooled(site, tenant, tmp_path, forged_code=0, genuine_code=1) as nodes:
        nodes.until("each has a verdict", lambda what: nodes.is_open(what) or nodes.has_failed(what))
    opened = [what for what, history in nodes.histories.items() if history.was_ever_open(site.gate.key)]
    assert not opened, f"gates opened by forged workers that differ in {', '.join(opened)}"


def test_a_node_is_not_blamed_for_a_tenants_pod(site: Site, tenant: Client, tmp_path: Path) -> None:
    """Real workers pass on these nodes."""
    with fooled(site, tenant, tmp_path, forged_code=1, genuine_code=0) as nodes:
        nodes.until("each is verified", nodes.is_open)
    blamed = [what for what, history in nodes.histories.items() if history.was_ever_blamed()]
    assert not blamed, f"nodes blamed for forged workers that differ in {', '.join(blamed)}"
