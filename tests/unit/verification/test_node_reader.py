"""A Node object, as decisions see it."""

from typing import Any

import msgspec
import pytest

from kube_node_ready.api import objects
from kube_node_ready.api.contract import PAUSE_ANNOTATION
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import VerificationRecord
from kube_node_ready.verification.model import Gate, Node, Policy
from kube_node_ready.verification.node_reader import is_paused, read_node

POLICY = Policy((Gate("node-ready/unverified", "NoSchedule"),))
CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "default-x1", "uid": "claim-uid"}


def read(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> Node:  # noqa: ANN401
    node = {"metadata": {"name": "a", "uid": "u", **metadata}, "spec": spec or {}, "status": status or {}}
    return read_node(msgspec.convert(node, objects.Node), POLICY)


def test_every_field_is_read() -> None:
    taint = {"key": "node-ready/unverified", "effect": "NoSchedule", "value": "x"}
    node = read(
        spec={"providerID": "aws:///i-1", "taints": [taint], "unschedulable": True},
        status={"nodeInfo": {"bootID": "boot-1"}},
        labels={"node-ready/verified": "true", "eks.amazonaws.com/nodegroup": "blue"},
        annotations={"node-ready/verification": '{"attempt": 4, "failures": 2}', "node-ready/pause-removal": "true"},
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p"}, CLAIM],
        deletionTimestamp="2026-01-01T00:00:00Z",
    )
    assert node == Node(
        "a",
        "u",
        labelled=True,
        taints=(Taint("node-ready/unverified", "NoSchedule", "x"),),
        record=VerificationRecord(4, failures=2),
        deleting=True,
        registered=True,
        pool="blue",
        claim="claim-uid",
        claim_name="default-x1",
        claimed=True,
        provider_id="aws:///i-1",
        boot="boot-1",
        cordoned=True,
        removal_paused=True,
        record_text='{"attempt": 4, "failures": 2}',
    )


@pytest.mark.parametrize(("length", "kept"), [(16_384, "x" * 16_384), (16_385, "")])
def test_a_long_annotation_is_not_kept(length: int, kept: str) -> None:
    taint = {"key": "node-ready/unverified", "effect": "NoSchedule"}
    assert read(spec={"taints": [taint]}, annotations={"node-ready/verification": "x" * length}).record_text == kept


def test_of_a_node_whose_gate_is_open_no_text_is_kept() -> None:
    labels = {"node-ready/verified": "true"}
    assert read(labels=labels, annotations={"node-ready/verification": '{"attempt": 4}'}).record_text is None


def test_a_bare_node_has_none_of_it() -> None:
    assert read() == Node("a", "u", has_labels=False, has_annotations=False)


@pytest.mark.parametrize("value", ["false", "True", "", "1"])
def test_only_the_configured_label_value_means_verified(value: str) -> None:
    assert not read(labels={"node-ready/verified": value}).labelled


@pytest.mark.parametrize(
    "label",
    [
        "karpenter.sh/nodepool",
        "eks.amazonaws.com/nodegroup",
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
    ],
)
def test_the_pool_labels_of_the_large_clouds_are_known(label: str) -> None:
    assert read(labels={label: "p"}).pool == "p"


def test_the_karpenter_pool_comes_before_a_node_group() -> None:
    labels = {"eks.amazonaws.com/nodegroup": "group", "karpenter.sh/nodepool": "pool"}
    assert read(labels=labels).pool == "pool"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Machine"},
        {"apiVersion": "example.com/v1"},
        {"name": "../nodes/victim"},
        {"name": ""},
        {"uid": ""},
    ],
    ids=str,
)
def test_an_owner_that_cannot_be_a_node_claim_is_ignored(wrong: dict[str, str]) -> None:
    node = read(ownerReferences=[CLAIM | wrong])
    assert (node.claim, node.claim_name) == ("", "")


@pytest.mark.parametrize(
    ("labels", "taint", "registered"),
    [
        ({}, None, True),
        ({"karpenter.sh/nodepool": "p"}, None, False),
        ({"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true"}, None, True),
        ({"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "false"}, None, False),
        ({"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true"}, "karpenter.sh/unregistered", False),
        ({"eks.amazonaws.com/nodegroup": "p"}, None, True),
        ({}, "karpenter.sh/unregistered", False),
        ({}, "example.com/other", True),
    ],
)
def test_karpenter_registers_its_nodes_before_they_count(
    labels: dict[str, str],
    taint: str | None,
    registered: bool,  # noqa: FBT001  a table
) -> None:
    taints = [{"key": taint, "effect": "NoExecute"}] if taint else []
    assert read(spec={"taints": taints}, labels=labels).registered is registered


@pytest.mark.parametrize(
    ("value", "paused"), [("true", True), ("", True), ("yes", True), ("false", False), ("False", False)]
)
def test_any_value_but_false_pauses_removal(value: str, paused: bool) -> None:  # noqa: FBT001  a table
    assert is_paused({PAUSE_ANNOTATION: value}) is paused


def test_removal_is_not_paused_without_the_annotation() -> None:
    assert not is_paused({})
    assert PAUSE_ANNOTATION == "node-ready/pause-removal"
