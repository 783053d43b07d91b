"""For everything that a kubelet could write into the annotation of the verification record."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import MAX_ATTEMPTS, Outcome, VerificationRecord, decode_record, encode_record
from kube_node_ready.cli import explain_text, fleet, output, screen, status, status_json, table, words
from kube_node_ready.cli.fleet import FleetView
from kube_node_ready.cli.installation import Installed
from kube_node_ready.cli.table import Style
from kube_node_ready.controller import removal_ledger
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.verification import decide, patches, reverify
from kube_node_ready.verification.model import Node, Phase, Policy, RemovalPolicy, Reverification, Snapshot
from kube_node_ready.verification.node_reader import read_node
from kubekit.terminal import replaced
from tests.support.model_cluster import GATE, LABEL, POLICY, START, Cluster

NUMBERS = st.integers() | st.sampled_from([10**7 - 1, 10**7, 2**63, -(2**63), 10**400]) | st.floats()
COUNTS = st.integers(0, 5) | NUMBERS
TEXTS = st.text(max_size=60) | st.sampled_from(["\x1b[2J", "\u202e", "\x9b31m", "\x00", "a\nb", "\ud800"])
LONG = TEXTS | st.integers(0, 6000).map(lambda size: "x" * size)
TIMES = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2025-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59.999999-23:59",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00+01:00",
        "1970-01-01T00:00:00Z",
        "9000-01-01T00:00:00Z",
    ]
)
CHECKS = st.fixed_dictionaries(
    {"name": TEXTS | st.just("dns"), "ok": st.booleans()},
    optional={"ms": COUNTS, "target": LONG, "error": LONG, "more": TEXTS},
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
RECORDS = st.fixed_dictionaries(
    {"attempt": COUNTS},
    optional={
        "failures": COUNTS,
        "outcome": st.sampled_from(["passed", "failed", "pending", "maybe"]),
        "at": TIMES,
        "since": TIMES,
        "boot": LONG | st.just("boot"),
        "cause": st.sampled_from(["", "checks", "late", "stopped", "whim"]),
        "blamed": COUNTS,
        "in_crowd": st.booleans(),
        "reason": LONG,
        "seconds": COUNTS | st.just(1e300),
        "checks": st.lists(CHECKS, max_size=4) | ANYTHING,
        "more": ANYTHING,
    },
)
ANNOTATIONS = st.text() | ANYTHING.map(json.dumps) | RECORDS.map(json.dumps)
POLICIES = (
    POLICY,
    replace(POLICY, removal=RemovalPolicy()),
    replace(POLICY, reverification=Reverification(interval=timedelta(hours=1)), slow_retry=None),
)


def a_node(annotation: str, *, labelled: bool, gated: bool) -> fleet.NodeWire:
    node = {
        "metadata": {
            "name": "a",
            "uid": "00000000-0000-0000-0000-000000000001",
            "resourceVersion": "1",
            "creationTimestamp": START - timedelta(days=1),
            "labels": {LABEL: "true"} if labelled else {},
            "annotations": {RECORD_ANNOTATION: annotation},
        },
        "spec": {"taints": [GATE] if gated else []},
        "status": {"nodeInfo": {"bootID": "boot"}},
    }
    return msgspec.convert(node, fleet.NodeWire)


class Present:
    """What the metrics describe: one node."""

    workers = ()
    queue_depth = 0
    removals = ()

    def __init__(self) -> None:
        self.nodes: tuple[Node, ...] = ()
        self.phases: dict[str, Phase] = {}


present = Present()
metrics = Metrics(POLICIES[1])
metrics.export_state(present, per_node=True)
registry = metrics.registry


@given(ANNOTATIONS)
def test_an_annotation_is_a_valid_record_or_none(annotation: str) -> None:
    record = decode_record(annotation)
    assert decode_record(encode_record(record)) == record
    assert 0 <= record.node_failures <= record.failures <= record.attempt <= MAX_ATTEMPTS
    assert 0 <= record.seconds < 10**9
    assert timedelta(seconds=record.seconds) >= timedelta()
    assert all(0 <= check.ms <= 86_400_000 for check in record.checks)
    texts = [record.reason, record.boot]
    texts += [text for check in record.checks for text in (check.name, check.target, check.error)]
    assert all(text.isprintable() and len(text) <= 4000 for text in texts)
    for time in filter(None, (record.at, record.since)):
        assert abs(START - time) < timedelta(days=365 * 8000)
        assert time.astimezone().year


@given(ANNOTATIONS, st.booleans(), st.booleans(), st.sampled_from(POLICIES))
def test_no_annotation_stops_a_decision_or_a_status(
    annotation: str,
    labelled: bool,  # noqa: FBT001  drawn
    gated: bool,  # noqa: FBT001  drawn
    policy: Policy,
) -> None:
    wire = a_node(annotation, labelled=labelled, gated=gated)
    node = read_node(wire, policy)
    decision = decide.decide(Snapshot(START, node, version="1"), policy)
    assert decision.recheck is None or START + decision.recheck >= START
    assert patches.write_status(node, node.record, policy)
    assert isinstance(reverify.is_degraded(node), bool)
    present.nodes = (node,)
    assert list(registry.collect())
    look(wire, policy)


def look(wire: fleet.NodeWire, policy: Policy) -> None:
    """Everything that the command line shows of it is printable."""
    installed = Installed(policy, "kube-system", slots=9)
    known = fleet.nodes(installed).transform(wire)
    statuses = FleetView(installed).add_all([known], [], removal_ledger.EMPTY).statuses(["a"], START)
    (node_status,) = statuses
    for wide in (True, False):
        lines = table.lines(statuses, Style(wide=wide), START)
        assert all(line.plain.isprintable() for line in lines)
    event = explain_text.Event(START, "Reason\x1b[2J", "a message\u202e")
    parts = explain_text.sections(node_status, installed, explain_text.Facts(events=(event,)))
    assert all(line.isprintable() for part in parts for line in part.lines)
    assert explain_text.headline(node_status).isprintable()
    data = [status_json.to_json(node_status, "kube-system")]
    text = words.escaped(msgspec.json.encode(data).decode())
    assert text.isprintable()
    assert json.loads(text) == json.loads(msgspec.json.encode(data))
    assert status.as_yaml(msgspec.to_builtins(data)).replace("\n", "").isprintable()
    pipe = StringIO()
    screen.Pipe(pipe).show(screen.Frame(statuses, START))
    assert pipe.getvalue().replace("\n", "").isprintable()


@given(st.text())
def test_any_line_is_printable_and_keeps_its_style(text: str) -> None:
    console = Console(file=StringIO(), force_terminal=True, color_system="standard")
    shown = output.rendered([Text(text, "red")], console)
    assert replaced(Text(text).plain) in shown, "markup is text as well"
    plain = shown.removeprefix("\x1b[31m").removesuffix("\x1b[0m")
    assert plain.isprintable()
    assert (plain != shown) == bool(plain)


@given(ANYTHING)
def test_escaped_json_means_the_same(data: Any) -> None:  # noqa: ANN401  any JSON
    text = json.dumps(data, ensure_ascii=False)
    shown = words.escaped(text)
    assert shown.isprintable()
    assert json.dumps(json.loads(shown)) == json.dumps(json.loads(text))


def test_a_proof_at_the_last_readable_attempt_is_read() -> None:
    last = VerificationRecord(MAX_ATTEMPTS, outcome=Outcome.PASSED, at=START, since=START)
    assert decode_record(encode_record(last)) == last


def test_the_last_attempt_that_a_record_allows_is_recorded_and_announced() -> None:
    """Written and read as by the API server: a forged count must not lose the verdict after it."""
    cluster = Cluster()
    cluster.join("a")
    forged = {"attempt": MAX_ATTEMPTS - 1, "failures": 1, "outcome": "failed", "reason": "forged"}
    cluster.nodes["a"]["metadata"]["annotations"][RECORD_ANNOTATION] = json.dumps(forged)
    cluster.settle(60)
    node = cluster.node("a")
    assert node.labelled
    assert node.record.is_proof
    (condition,) = cluster.nodes["a"]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("NodeVerified", "True")
    assert "Verified" in {news.reason for news in cluster.news.values()}
    cluster.unlabel("a")
    cluster.nodes["a"]["spec"]["taints"] = [GATE]
    cluster.settle(60)
    node = cluster.node("a")
    assert node.labelled, "after the last one, it starts over"
    assert node.record.attempt == 1
    assert node.record.is_proof
