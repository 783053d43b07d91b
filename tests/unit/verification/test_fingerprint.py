"""Which worker pods run the same, and which do not."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kube_node_ready.verification.fingerprint import fingerprint

Json = dict[str, Any]
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  a path


def a_spec(token: str = "kube-api-access-x7k2p") -> Json:  # noqa: S107  the name of a volume
    """A worker as the server admits it."""
    mount = {"name": token, "mountPath": TOKEN_PATH, "readOnly": True}
    return {
        "nodeName": "a",
        "serviceAccountName": "kube-node-ready-worker",
        "priority": 0,
        "tolerations": [{"key": "node-ready/unverified", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"values": ["a"]}},
        "dnsPolicy": "ClusterFirst",
        "securityContext": {"runAsNonRoot": True},
        "containers": [
            {
                "name": "worker",
                "image": "registry.example/worker:1",
                "command": ["/kube-node-ready-worker"],
                "env": [{"name": "KUBE_NODE_READY_WORKER_CONFIG", "value": "{}"}],
                "resources": {"limits": {"memory": "64Mi"}},
                "volumeMounts": [mount],
            }
        ],
        "volumes": [{"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
    }


def worker(spec: Json) -> Json:
    container: Json = spec["containers"][0]
    return container


def _set(where: Callable[[Json], Json], **fields: object) -> Callable[[Json], None]:
    return lambda spec: where(spec).update(fields)


def whole(spec: Json) -> Json:
    return spec


SAME: dict[str, Callable[[Json], None]] = {
    "another node": _set(whole, nodeName="b", affinity={"nodeAffinity": {"values": ["b"]}}),
    "not scheduled yet": lambda spec: spec.pop("nodeName"),
    "another priority": _set(whole, priority=10, priorityClassName="high", preemptionPolicy="Never"),
    "a node selector": _set(whole, nodeSelector={"pool": "a"}),
    "a scheduling gate": _set(whole, schedulingGates=[{"name": "quota"}]),
    "more tolerations": lambda spec: spec["tolerations"].append({"key": "b", "operator": "Exists"}),
}
OTHER: dict[str, Callable[[Json], None]] = {
    "another image": _set(worker, image="registry.example/says-yes:1"),
    "another command": _set(worker, command=["/bin/true"]),
    "arguments": _set(worker, args=["--help"]),
    "other settings": _set(worker, env=[{"name": "KUBE_NODE_READY_WORKER_CONFIG", "value": '{"checks":[]}'}]),
    "settings by reference": _set(worker, envFrom=[{"configMapRef": {"name": "a"}}]),
    "a file over the program": lambda spec: worker(spec)["volumeMounts"].append({"name": "v", "mountPath": "/worker"}),
    "a deadline that it cannot meet": _set(whole, activeDeadlineSeconds=1),
    "hardly any CPU": _set(worker, resources={"limits": {"cpu": "1m"}}),
    "another working directory": _set(worker, workingDir="/tmp"),
    "another name": _set(worker, name="main"),
    "no container": _set(whole, containers=[]),
    "a second container": lambda spec: spec["containers"].append({"name": "b", "image": "i"}),
    "an init container": _set(whole, initContainers=[{"name": "b", "image": "i"}]),
    "an ephemeral container": _set(whole, ephemeralContainers=[{"name": "b", "image": "i"}]),
    "the host's network": _set(whole, hostNetwork=True),
    "another DNS": _set(whole, dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.1"]}),
    "names of its own": _set(whole, hostAliases=[{"ip": "127.0.0.1", "hostnames": ["kubernetes.default"]}]),
    "another account": _set(whole, serviceAccountName="default"),
    "another token volume": lambda spec: spec["volumes"][0].update(projected={"sources": []}),
    "another volume": lambda spec: spec["volumes"].append({"name": "v", "emptyDir": {}}),
    "a field of a later Kubernetes": _set(whole, hostNamespaces="All"),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_where_and_when_a_worker_runs_does_not_matter(change: Callable[[Json], None]) -> None:
    spec = a_spec()
    change(spec)
    assert fingerprint(spec) == fingerprint(a_spec())


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_any_other_difference_changes_the_fingerprint(change: Callable[[Json], None]) -> None:
    spec = a_spec()
    change(spec)
    assert fingerprint(spec) != fingerprint(a_spec())


def test_the_random_name_of_the_token_volume_does_not_matter() -> None:
    assert fingerprint(a_spec("kube-api-access-aaaaa")) == fingerprint(a_spec("kube-api-access-zzzzz"))


def test_the_random_name_of_the_token_volume_does_not_matter_in_init_containers() -> None:
    def with_init_container(token: str) -> Json:
        return {"initContainers": [{"name": "b", "volumeMounts": [{"name": token, "mountPath": TOKEN_PATH}]}]}

    one, other = with_init_container("kube-api-access-aaaaa"), with_init_container("kube-api-access-zzzzz")
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("name", ["kube-api-access-", "kube-api-access-longer", "my-kube-api-access-aaaaa"])
def test_other_volumes_keep_their_names(name: str) -> None:
    assert fingerprint(a_spec(name)) != fingerprint(a_spec())


def test_a_fingerprint_leaves_the_spec_as_it_is() -> None:
    spec = a_spec()
    before = copy.deepcopy(spec)
    fingerprint(spec)
    assert spec == before


@pytest.mark.parametrize("spec", [{}, {"containers": None, "volumes": None}])
def test_a_spec_without_parts_has_a_fingerprint_too(spec: Json) -> None:
    assert fingerprint(spec)
