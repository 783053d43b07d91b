"""What holds for every node that someone asks to be verified again."""

import copy
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.cli import fleet, verify
from kube_node_ready.cli.installation import Installed
from tests.support.model_cluster import GATE, LABEL, POLICY, START, Cluster, json_patched

INSTALLED = Installed(POLICY, "kube-system")
OURS = {LABEL, RECORD_ANNOTATION}
KEYS = st.one_of(st.sampled_from(sorted(OURS)), st.from_regex(r"\A[a-z~]{1,4}/[a-z~]{1,4}\Z"))
MAPS = st.one_of(st.none(), st.dictionaries(KEYS, st.one_of(st.just("true"), st.text(max_size=8))))
TAINTS = st.lists(
    st.sampled_from([GATE, {"key": "example.com/gpu", "effect": "NoSchedule"}, {**GATE, "effect": "NoExecute"}])
)


@given(labels=MAPS, annotations=MAPS, taints=TAINTS)
def test_labels_annotations_and_taints_of_others_are_unchanged(
    labels: dict[str, str] | None, annotations: dict[str, str] | None, taints: list[dict[str, str]]
) -> None:
    metadata: dict[str, Any] = {"name": "a", "uid": "u", "resourceVersion": "7"}
    metadata |= {"labels": labels} if labels is not None else {}
    metadata |= {"annotations": annotations} if annotations is not None else {}
    node = {"metadata": metadata, "spec": {"taints": taints}}
    before = copy.deepcopy(node)
    known = fleet.nodes(INSTALLED).transform(msgspec.convert(node, fleet.NodeWire))
    after = json_patched(node, verify.patch_of(known, POLICY, START))
    assert after["spec"] == before["spec"]
    for what in ("labels", "annotations"):
        assert _others(after, what) == _others(before, what)
    seen = fleet.nodes(INSTALLED).transform(msgspec.convert(after, fleet.NodeWire)).node
    assert not seen.labelled
    assert POLICY.guards(seen)
    assert seen.record.reason == verify.ASKED


def _others(node: dict[str, Any], what: str) -> dict[str, str]:
    return {key: value for key, value in node["metadata"].get(what, {}).items() if key not in OURS} | {
        key: value for key, value in node["metadata"].get(what, {}).items() if key == LABEL and value != "true"
    }


@given(
    verdicts=st.lists(st.sampled_from(["passes", "fails", "stuck", "misconfigured"]), max_size=3),
    gated=st.booleans(),
    seconds=st.integers(0, 400),
)
def test_verify_leads_to_a_new_attempt_in_every_state(
    verdicts: list[str],
    gated: bool,  # noqa: FBT001  drawn
    seconds: int,
) -> None:
    cluster = Cluster()
    cluster.join("a", taints=(GATE,) if gated else ())
    for verdict in verdicts:
        cluster.verdicts["a"] = verdict
        cluster.settle(seconds)
    cluster.pass_time(timedelta(seconds=2))
    before = cluster.node("a").record.attempt
    wire = {**cluster.nodes["a"], "metadata": {**cluster.nodes["a"]["metadata"], "resourceVersion": "7"}}
    known = fleet.nodes(INSTALLED).transform(msgspec.convert(wire, fleet.NodeWire))
    cluster.nodes["a"] = json_patched(wire, verify.patch_of(known, POLICY, cluster.now))
    cluster.verdicts["a"] = "passes"
    cluster.settle(5)
    node = cluster.node("a")
    assert node.record.attempt > before
    assert node.labelled
    assert not POLICY.is_gated(node)
