"""The gate at birth, by the chart's policy, with the credentials of kubelets and with NodeRestriction."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node
from lightkube.types import PatchType

import lab
from lab import waiting
from tests.attacks.kubelet import kubelets, short_name
from tests.support.chart_release import PATIENCE, Release

GATE = lab.Taint("node-ready/unverified", "NoSchedule", "true")
OTHER = lab.Taint("example.com/dedicated", "NoExecute", "gpu")
LINUX = {"kubernetes.io/os": "linux"}
VERIFIED = {"node-ready/verified": "true"}


@pytest.fixture(scope="class")
def release(plane: lab.Plane) -> Iterator[None]:
    with installed(plane, "gate-at-birth"):
        yield


@contextmanager
def installed(
    plane: lab.Plane, namespace: str, *, labels: Mapping[str, str] | None = None, **config: object
) -> Iterator[None]:
    """Install the chart, and wait until a node with these labels is gated. `config` is the controller's."""
    gate = {"atBirth": {"enabled": True, "additionalCreators": ["cloud"]}}
    release = Release(plane, namespace, {"gate": gate, "controller": {"config": config}})
    probe = short_name("probe", namespace)
    release.install()
    try:
        waiting.until("it is in force", lambda: born(plane, probe, labels=labels), PATIENCE, alive=plane.check)
        yield
    finally:
        release.uninstall()
        waiting.until("it is gone", lambda: not born(plane, probe, labels=labels), PATIENCE, alive=plane.check)


def born(
    plane: lab.Plane, name: str, *, labels: Mapping[str, str] | None = None, taints: Sequence[lab.Taint] = ()
) -> list[lab.Taint]:
    """Register a node, and return the taints that it has from then on."""
    with kubelets(plane, name) as (kubelet,):
        kubelet.register(labels={**LINUX, **(labels or {})}, taints=taints)
        return taints_of(plane, name)


def taints_of(plane: lab.Plane, name: str) -> list[lab.Taint]:
    spec = plane.client.get(Node, name).spec
    taints = (spec and spec.taints) or []
    ours = [lab.Taint(taint.key, taint.effect, taint.value or "") for taint in taints]
    return [taint for taint in ours if not taint.key.startswith("node.kubernetes.io/")]


@pytest.mark.usefixtures("release")
class TestInForce:
    @pytest.mark.parametrize(
        ("taints", "expected"),
        [((), [GATE]), ((OTHER,), [OTHER, GATE]), ((GATE,), [GATE]), ((OTHER, GATE), [OTHER, GATE])],
        ids=["no taints", "others", "gated already", "both"],
    )
    def test_a_kubelets_node_is_gated_and_keeps_its_taints(
        self, plane: lab.Plane, prefix: str, taints: Sequence[lab.Taint], expected: Sequence[lab.Taint]
    ) -> None:
        assert born(plane, prefix, taints=taints) == expected

    @pytest.mark.parametrize(
        "labels", [VERIFIED, {"node-ready/verified": "other"}, {"kubernetes.io/os": "windows"}], ids=str
    )
    def test_verified_nodes_and_those_that_are_not_selected_are_not_gated(
        self, plane: lab.Plane, prefix: str, labels: Mapping[str, str]
    ) -> None:
        assert born(plane, prefix, labels=labels) == []

    def test_the_kubelet_cannot_remove_the_gate(self, plane: lab.Plane, prefix: str) -> None:
        with kubelets(plane, prefix) as (kubelet,):
            kubelet.register(labels=LINUX)
            with pytest.raises(ApiError, match="is not allowed to modify taints"):
                kubelet.client.patch(Node, prefix, {"spec": {"taints": []}}, patch_type=PatchType.MERGE)
            kubelet.annotate(**{"example.com/heartbeat": "1"})
            assert taints_of(plane, prefix) == [GATE]

    def test_a_node_that_registers_again_is_gated_again(self, plane: lab.Plane, prefix: str) -> None:
        for _ in range(2):
            assert born(plane, prefix) == [GATE]

    def test_a_node_whose_gate_was_opened_stays_open(self, plane: lab.Plane, prefix: str) -> None:
        with kubelets(plane, prefix) as (kubelet,):
            kubelet.register(labels=LINUX)
            opened = {"metadata": {"labels": VERIFIED}, "spec": {"taints": []}}
            plane.client.patch(Node, prefix, opened, patch_type=PatchType.MERGE)
            kubelet.annotate(**{"example.com/heartbeat": "1"})
            assert taints_of(plane, prefix) == []

    @pytest.mark.parametrize(
        ("user", "labels", "gated"),
        [
            ("administrator", {}, False),
            ("cloud", {}, True),
            ("cloud", {"node-role.kubernetes.io/control-plane": ""}, False),
        ],
        ids=["others", "additional creators", "control plane"],
    )
    def test_nodes_of_other_creators_are_gated_only_if_they_are_named(
        self, plane: lab.Plane, prefix: str, user: str, labels: Mapping[str, str], *, gated: bool
    ) -> None:
        metadata = {"name": prefix, "labels": {**LINUX, **labels}}
        node = json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        identity = () if user == "administrator" else (f"--as={user}", "--as-group=system:masters")
        plane.kubectl("create", "--filename=-", *identity, standard_input=node)
        try:
            assert taints_of(plane, prefix) == [GATE] * gated
        finally:
            plane.client.delete(Node, prefix)


def test_nodes_that_exist_and_nodes_after_the_uninstallation_are_not_gated(plane: lab.Plane, prefix: str) -> None:
    with kubelets(plane, short_name("old", prefix), short_name("new", prefix)) as (old, new):
        old.register(labels=LINUX)
        with installed(plane, f"{prefix}-chart"):
            new.register(labels=LINUX)
            old.annotate(**{"example.com/heartbeat": "1"})
            assert (taints_of(plane, old.node), taints_of(plane, new.node)) == ([], [GATE])
        assert born(plane, short_name("later", prefix)) == []


def test_only_nodes_that_the_controller_verifies_are_gated(plane: lab.Plane, prefix: str) -> None:
    """Nothing would open the gate of another one."""
    management = {"nodeSelector": {"pool": "guarded"}, "taints": [OTHER.as_dict()]}
    guarded = {"pool": "guarded"}
    with installed(plane, prefix, labels=guarded, nodeManagement=management):
        assert born(plane, short_name("in", prefix), labels=guarded) == [OTHER]
        assert born(plane, short_name("out", prefix), labels={"pool": "other"}) == []
        assert born(plane, short_name("none", prefix)) == []
