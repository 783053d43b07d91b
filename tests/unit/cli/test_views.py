"""What the everyday command line says, from what is seen: no cluster, no terminal."""

import asyncio
import json
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text

from kube_node_ready import __version__
from kube_node_ready.api.objects import ConfigMap, Metadata, Taint
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord, decode_record
from kube_node_ready.api.report import CheckResult, Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import files
from kube_node_ready.checks.check import CHECKS
from kube_node_ready.cli import (
    errors,
    explain_text,
    fleet,
    installation,
    permissions,
    screen,
    selector,
    status,
    status_json,
    table,
    verify,
)
from kube_node_ready.cli.cluster import ClusterLocation, Notes
from kube_node_ready.cli.errors import UsageError
from kube_node_ready.cli.fleet import FleetView, NodeStatus, ObservedNode, natural
from kube_node_ready.cli.installation import Installed, Mode
from kube_node_ready.cli.leader import Leader
from kube_node_ready.cli.permissions import NoAccess, NotAllowed
from kube_node_ready.cli.screen import Frame
from kube_node_ready.cli.table import Style
from kube_node_ready.cli.watch import FleetWatcher, Watch
from kube_node_ready.controller import removal_ledger
from kube_node_ready.kube.errors import AccessError, KubeError, Rejected, Unreachable
from kube_node_ready.settings import worker
from kube_node_ready.verification.model import Ledger, Node, Phase, Removal, RemovalPolicy, State, Worker
from tests.support import chart
from tests.support.model_cluster import POLICY, START
from tools.docs import cli_sample

GATE = Taint("node-ready/unverified", "NoSchedule", "true")
REMOVING = msgspec.structs.replace(POLICY, removal=RemovalPolicy())
BAD = (CheckResult("dns", ok=False, ms=10003), CheckResult("api", ok=True, ms=31))
PROOF = VerificationRecord(
    1, outcome=Outcome.PASSED, at=START, since=START, checks=(CheckResult("dns", ok=True, ms=12),)
)
DAY = timedelta(days=1)
NONE = VerificationRecord()
NO_FACTS = explain_text.Facts()


def verified(name: str, record: VerificationRecord = PROOF) -> Node:
    return Node(name, f"uid-{name}", labelled=True, record=record)


def gated(name: str, record: VerificationRecord = NONE, **fields: Any) -> Node:  # noqa: ANN401  a Node's
    return Node(name, f"uid-{name}", taints=(GATE,), record=record, **fields)


def failed(
    failures: int = 1, *, ago: float = 0.2, reason: str = "dns: example.com: timed out after 10 s"
) -> VerificationRecord:
    at = START - timedelta(seconds=ago)
    return VerificationRecord(
        failures,
        failures,
        Outcome.FAILED,
        at,
        at,
        cause=Cause.CHECKS,
        node_failures=failures,
        reason=reason,
        checks=BAD,
    )


def a_fleet_view(
    *nodes: Node,
    workers: tuple[Worker, ...] = (),
    book: Ledger = removal_ledger.EMPTY,
    into: Installed | None = None,
) -> FleetView:
    known = [ObservedNode(node, "1", START - DAY) for node in nodes]
    return FleetView(into or Installed(POLICY, "kube-system", slots=9)).add_all(known, workers, book)


def statuses(*nodes: Node, **more: Any) -> list[NodeStatus]:  # noqa: ANN401  as a_fleet_view's
    fleet_view = a_fleet_view(*nodes, **more)
    return fleet_view.statuses(fleet_view.known, START)


def node_status(node: Node, **more: Any) -> NodeStatus:  # noqa: ANN401  as a_fleet_view's
    (found,) = statuses(node, **more)
    return found


def a_worker(node: Node, number: int = 1, **fields: Any) -> Worker:  # noqa: ANN401  a Worker's
    created = START - timedelta(seconds=6)
    return Worker(f"worker-{number}", f"w-{number}", node.uid, node.name, number=number, created=created, **fields)


def plain_lines(found: list[NodeStatus], look: Style, now: datetime) -> list[str]:
    return [line.plain for line in table.lines(found, look, now)]


def styled(line: Text, style: str) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if span.style == style]


class TestWaitReasons:
    def test_a_verified_node_waits_for_nothing(self) -> None:
        assert node_status(verified("a")).waits_for == ""

    def test_a_failed_node_waits_for_a_retry_with_its_reason(self) -> None:
        described = node_status(gated("a", failed(3)))
        assert described.phase is Phase.BACKING_OFF
        assert described.waits_for.startswith("retry in 4 s: dns: example.com: timed out after 10 s")

    def test_a_node_waits_for_its_worker_with_its_age(self) -> None:
        node = gated("a")
        described = node_status(node, workers=(a_worker(node, state=State.RUNNING),))
        assert described.waits_for == "the worker of attempt 1 is running (6 s)"
        assert (described.attempt, described.node.record.attempt) == (1, 0)

    def test_an_open_node_in_verification_is_shown_as_open(self) -> None:
        asked = VerificationRecord(1, outcome=Outcome.PENDING, at=START, since=START, reason="its label was removed")
        unlabelled = Node("a", "uid-a", record=asked)
        assert node_status(unlabelled).waits_for.startswith("open meanwhile: the controller to begin attempt 2")
        assert explain_text.headline(node_status(unlabelled)).startswith("a is verifying: open meanwhile: ")
        assert "open" not in node_status(gated("a", asked)).waits_for

    @pytest.mark.parametrize(
        ("mode", "who"), [(Mode.CONTROLLER, "the controller"), (Mode.DAEMONSET, "the pod on the node")]
    )
    def test_the_source_of_the_next_attempt_is_shown(self, mode: Mode, who: str) -> None:
        described = node_status(gated("a"), into=Installed(POLICY, "kube-system", mode, slots=1))
        assert described.waits_for == f"{who} to begin attempt 1"

    def test_a_held_node_waits_for_the_budget_with_its_numbers(self) -> None:
        described = node_status(
            gated("a", failed(5)),
            into=Installed(REMOVING, "kube-system", slots=1),
            book=Ledger(removals=(Removal("x", "x", "", START),)),
        )
        assert described.phase is Phase.HELD
        assert "1 of 1 removals used in 3600 s" in described.waits_for

    def test_text_of_a_node_has_no_control_characters(self) -> None:
        described = node_status(gated("a", failed(reason="\x1b[2Jdns\r\nfailed")))
        assert described.waits_for.endswith("[2Jdns failed")
        assert "\x1b" not in "\n".join(plain_lines([described], Style(), START))

    def test_an_unselected_node_is_shown_as_such(self) -> None:
        fleet_view = a_fleet_view(into=Installed(POLICY, "kube-system", slots=1))
        fleet_view.node_changed("a", None, ObservedNode(gated("a"), "1", selected=False))
        (described,) = fleet_view.statuses(["a"], START)
        assert (described.phase, described.needs_attention) == (Phase.IGNORED, False)
        assert "nodeSelector" in described.waits_for


class TestTheTable:
    def test_those_that_need_attention_come_first_and_names_are_counted(self) -> None:
        found = statuses(verified("n-10"), verified("n-2"), gated("z", failed()), gated("y"), Node("old", "o"))
        assert [each.name for each in found] == ["z", "y", "n-2", "n-10", "old"]

    def test_a_verified_node_that_fails_since_comes_before_those_that_do_not(self) -> None:
        doubtful = msgspec.structs.replace(PROOF, failures=1, cause=Cause.CHECKS, reason="dns: no answer")
        found = statuses(verified("a"), verified("z", doubtful))
        assert [(each.name, each.needs_attention) for each in found] == [("z", True), ("a", False)]

    def test_a_check_has_its_milliseconds_and_a_mark_if_it_failed(self) -> None:
        (_, old), (_, older) = (plain_lines(statuses(verified("a")), Style(), START + age) for age in (DAY, 2 * DAY))
        assert ("  2d" in old, "  3d" in older) == (True, True), "what was decided a while ago is older by now"
        head, bad, good = plain_lines(statuses(gated("b", failed()), verified("a")), Style(), START)
        assert head.split() == ["NODE", "PHASE", "ATTEMPT", "DNS", "API", "AGE", "WAITS", "FOR"]
        assert bad.split()[:6] == ["b", "backing-off", "1", "!10003", "31", "24h"]
        assert good.split() == ["a", "verified", "1", "12", "-", "24h"]

    def test_checks_come_in_the_order_of_the_worker(self) -> None:
        every = tuple(CheckResult(name, ok=True) for name in ("own", *reversed(CHECKS)))
        head, _ = plain_lines(statuses(verified("a", msgspec.structs.replace(PROOF, checks=every))), Style(), START)
        assert head.split()[3:-3] == [name.upper() for name in CHECKS]  # and no column that a kubelet made up

    def test_only_the_last_column_is_cut_and_in_a_pipe_nothing(self) -> None:
        long = gated("b", failed(reason="x" * 300))
        (_, cut), (_, whole) = (plain_lines(statuses(long), Style(width=width), START) for width in (90, None))
        assert len(cut) == 90
        assert cut.endswith("x…")
        assert "x" * 300 in whole

    def test_a_narrow_terminal_has_room_for_the_reason_before_checks_that_passed(self) -> None:
        lines = plain_lines(statuses(gated("b", failed())), Style(width=66), START)
        assert "API" not in lines[0]
        assert "!10003" in lines[1]
        assert "dns: exam" in lines[1]
        assert lines[-1].startswith("(not all checks are shown: the terminal is too narrow")
        assert len(plain_lines(statuses(gated("b", failed())), Style(width=200), START)) == 2
        assert all(len(line) <= 40 for line in plain_lines(statuses(gated("b", failed())), Style(width=40), START))

    def test_what_failed_is_red_and_the_heading_is_bold(self) -> None:
        head, row = table.lines(statuses(gated("b", failed())), Style(), START)
        assert styled(row, table.RED) == ["backing-off", "!10003"]
        assert styled(head, table.BOLD)[:2] == ["NODE", "PHASE"]

    @pytest.mark.parametrize("name", ["日本語", "e\u0301te\u0301", "x" * 30])
    def test_columns_align_whatever_the_width_of_characters(self, name: str) -> None:
        lines = plain_lines(statuses(gated(name), verified("b")), Style(), START)
        columns = {
            cell_len(line[: line.index(phase)])
            for line, phase in zip(lines, ("PHASE", "verifying", "verified"), strict=True)
        }
        assert len(columns) == 1

    @pytest.mark.parametrize("width", range(1, 120, 7))
    def test_no_line_is_wider_than_the_terminal(self, width: int) -> None:
        found = statuses(gated("日本語", failed(reason="原因" * 30)), gated("b", failed()))
        assert all(cell_len(line) <= width for line in plain_lines(found, Style(width=width), START))

    def test_the_work_per_line_is_independent_of_the_fleet_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[str] = []

        def measured(text: str) -> int:
            calls.append(text)
            return len(text)

        monkeypatch.setattr(table, "cell_len", measured)
        for size in (10, 100):
            plain_lines(statuses(*(verified(f"n-{number}") for number in range(size))), Style(), START)
            calls.append("then")
        small = calls.index("then")
        assert len(calls) - small <= 12 * small

    def test_text_of_other_clients_is_not_markup(self) -> None:
        (_, row) = table.lines(statuses(gated("a", failed(reason="[red]x[/red] [link=evil]y"))), Style(), START)
        assert "[red]x[/red] [link=evil]y" in row.plain
        assert {span.style for span in row.spans} == {table.RED}

    def test_results_of_the_previous_attempt_are_dim_while_one_runs(self) -> None:
        node = gated("a", failed())
        row = table.lines(statuses(node, workers=(a_worker(node, 2),)), Style(), START)[1]
        assert styled(row, table.DIM) == ["!10003", "31"]
        assert styled(row, table.RED) == []

    def test_wide_output_has_more_columns(self) -> None:
        node = gated("a", pool="spot", boot="0123456789")
        head, row = plain_lines(statuses(node, workers=(a_worker(node),)), Style(wide=True), START)
        assert "GATES" in head
        assert all(word in row.split() for word in ("node-ready/unverified:NoSchedule", "spot", "01234567", "worker-1"))

    def test_the_pool_is_a_column_where_there_are_several(self) -> None:
        one, two = gated("a", pool="spot"), gated("b", pool="\x1b[2Jlarge")
        head, *rows = plain_lines(statuses(one, two, gated("c")), Style(), START)
        assert head.split()[4:5] == ["POOL"]
        assert [row.split()[4] for row in rows] == ["spot", "[2Jlarge", "-"]
        assert "POOL" not in plain_lines(statuses(one, gated("c")), Style(), START)[0]
        assert plain_lines(statuses(one, two), Style(wide=True), START)[0].split().count("POOL") == 1

    @pytest.mark.parametrize("width", [None, 90])
    def test_groups_have_titles_and_keep_the_order(self, width: int | None) -> None:
        nodes = [gated("c", pool="b-10"), verified("a"), gated("b", pool="b-9"), gated("d", pool="b-9")]
        _, *lines = plain_lines(statuses(*nodes), Style(group="pool", width=width), START)
        assert [line for line in lines if ":" in line] == [
            "pool b-9: 2 nodes: 2 verifying",
            "pool b-10: 1 node: 1 verifying",
            "no pool: 1 node: 1 verified",
        ]
        assert [line.split()[0] for line in lines] == ["pool", "b", "d", "pool", "c", "no", "a"]

    def test_a_group_can_be_a_zone(self) -> None:
        fleet_view = a_fleet_view(verified("a"))
        zone = {"topology.kubernetes.io/zone": "eu-1\x1b[2J"}
        fleet_view.node_changed("b", None, ObservedNode(gated("b"), "1", labels=zone))
        lines = plain_lines(fleet_view.statuses(fleet_view.known, START), Style(group="zone"), START)
        titles = ["zone eu-1 [2J: 1 node: 1 verifying", "no zone: 1 node: 1 verified"]
        assert [line for line in lines if ":" in line] == titles

    def test_the_summary_counts(self) -> None:
        assert table.summary(statuses(verified("a"), verified("b"), gated("c", failed()))) == (
            "3 nodes: 2 verified, 1 backing-off"
        )
        assert table.summary([]) == "0 nodes"


class TestTheChoice:
    def chosen(self, *nodes: ObservedNode, **options: Any) -> list[str]:  # noqa: ANN401  as Options'
        fleet_view = FleetView(Installed(POLICY, "kube-system", slots=9)).add_all(nodes, (), removal_ledger.EMPTY)
        found = fleet_view.statuses(fleet_view.known, START)
        return [each.name for each in status._chosen(found, status.Options(ClusterLocation("kube-system"), **options))]

    def known(self, name: str, *, days: int = 1, **fields: Any) -> ObservedNode:  # noqa: ANN401  a Node's
        labels = fields.pop("labels", {})
        return ObservedNode(gated(name, **fields), "1", START - days * DAY, labels=labels)

    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            (None, ["n-1", "n-9", "n-10"]),
            ("name", ["n-1", "n-9", "n-10"]),
            ("phase", ["n-1", "n-9", "n-10"]),
            ("age", ["n-10", "n-1", "n-9"]),
            ("pool", ["n-10", "n-9", "n-1"]),
        ],
    )
    def test_nodes_are_sorted(self, order: str | None, expected: list[str]) -> None:
        nodes = (
            self.known("n-10", days=3, pool="a"),
            self.known("n-9", days=1, pool="b-2"),
            self.known("n-1", record=failed(), days=2, pool="b-10"),
        )
        assert self.chosen(*nodes, sort_by=order) == expected

    def test_a_pool_and_labels_choose_nodes(self) -> None:
        nodes = (
            self.known("a", pool="spot", labels={"disk": "ssd"}),
            self.known("b", pool="spot"),
            self.known("c", labels={"disk": "ssd"}),
        )
        selected = selector.parse("disk=ssd")
        assert self.chosen(*nodes, pool="spot") == ["a", "b"]
        assert self.chosen(*nodes, selector=selected) == ["a", "c"]
        assert self.chosen(*nodes, selector=selected, pool="spot") == ["a"]
        assert self.chosen(*nodes, pool="no-such-pool") == []

    def test_labels_are_read(self) -> None:
        wire = fleet.NodeWire(Metadata("a", labels={"disk": "ssd"}))
        assert fleet.nodes(Installed(POLICY, "kube-system")).transform(wire).labels == {"disk": "ssd"}


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("disk=ssd", [0]),
        ("disk==ssd", [0]),
        ("disk!=ssd", [1, 2]),
        ("disk", [0, 1]),
        ("!disk", [2]),
        ("! disk", [2]),
        ("disk in (ssd, hdd)", [0, 1]),
        ("disk notin (hdd)", [0, 2]),
        ("disk in (hdd),example.com/gpu", [1]),
        ("example.com/gpu=", [1]),
        ("example.com/gpu=,disk=ssd", []),
        ("notin in (a)", []),
    ],
)
def test_selectors_match_as_in_kubectl(text: str, matching: list[int]) -> None:
    labels: list[dict[str, str]] = [{"disk": "ssd"}, {"disk": "hdd", "example.com/gpu": ""}, {}]
    parsed = selector.parse(text)
    assert parsed
    assert [number for number, each in enumerate(labels) if parsed.matches(each)] == matching


@pytest.mark.parametrize("text", ["", "a=(", "a b", "a in b", "=a", "a,,b", "a in (b", "x" * 2000])
def test_an_invalid_selector_is_rejected(text: str) -> None:
    assert selector.parse(text) is None


def test_json_has_the_documented_fields() -> None:
    node = gated("a", failed(2), pool="spot")
    data = json.loads(
        msgspec.json.encode(status_json.to_json(node_status(node, workers=(a_worker(node, 2),)), "kube-system"))
    )
    assert data["phase"] == "backing-off"
    assert (data["gated"], data["labelled"], data["verified"], data["failures"]) == (True, False, False, 2)
    assert data["checks"] == [
        {"name": "dns", "ok": False, "ms": 10003, "applies": True},
        {"name": "api", "ok": True, "ms": 31, "applies": True},
    ]
    assert 1 < data["next"]["seconds"] < 3
    assert datetime.fromisoformat(data["next"]["at"]) > START
    assert data["worker"]["name"] == "worker-2"
    assert data["gates"] == ["node-ready/unverified:NoSchedule"]


class TestTheLiveView:
    def frame(self, count: int, **more: Any) -> Frame:  # noqa: ANN401  a Frame's
        return Frame(statuses(*(verified(f"n-{number}") for number in range(count))), START, **more)

    def drawn(self, frame: Frame, width: int, height: int) -> list[str]:
        return [line.plain for line in screen.drawn(frame, Style(width=width), height)]

    def test_it_fits_and_shows_the_number_of_hidden_lines(self) -> None:
        lines = self.drawn(self.frame(5000), 60, 20)
        assert len(lines) <= 20
        assert "… and 4,987 more" in lines
        shown = sum("verified" in line for line in lines[1:])
        assert shown + 4987 == 5000
        assert all(len(line) <= 60 for line in lines)

    def test_a_view_that_fits_is_complete(self) -> None:
        lines = self.drawn(self.frame(3), 60, 20)
        assert not any("more" in line for line in lines)
        assert sum("verified" in line for line in lines[1:]) == 3

    def test_stale_data_is_marked(self) -> None:
        assert any("since then" in line for line in self.drawn(self.frame(1, problem="since then: …"), 60, 9))

    @pytest.mark.parametrize("height", range(12, 24))
    def test_groups_fit_with_their_titles(self, height: int) -> None:
        found = statuses(*(gated(f"n-{number}", pool=f"p-{number % 3}") for number in range(90)))
        lines = [line.plain for line in screen.drawn(Frame(found, START), Style(width=60, group="pool"), height)]
        assert len(lines) <= height
        assert lines[-1] == "Press Ctrl-C to end."
        assert f"… and {90 - sum(line.startswith('n-') for line in lines)} more" in lines

    @pytest.mark.parametrize("height", range(1, 8))
    def test_a_low_terminal_is_not_exceeded(self, height: int) -> None:
        assert len(self.drawn(self.frame(9, notes=["a", "b"]), 20, height)) <= height

    def test_in_a_pipe_a_node_that_left_the_list_is_not_shown_as_gone(self) -> None:
        stream = StringIO()
        pipe = screen.Pipe(stream)
        pipe.show(Frame(statuses(gated("a"), gated("b")), START))
        pipe.show(Frame([], START, existing={"a"}))
        assert [line.split(maxsplit=1)[1] for line in stream.getvalue().splitlines()[2:]] in (
            ["a  is no longer selected", "b  gone"],
            ["b  gone", "a  is no longer selected"],
        )

    @pytest.mark.parametrize("turns", range(4))
    def test_ctrl_c_is_handled_together_with_an_update(self, turns: int) -> None:
        async def pressed() -> bool:
            view = FleetWatcher(cast("Any", None), Installed(POLICY, "kube-system"), Notes())
            waiting = asyncio.create_task(view.wait_for_change(5))
            await asyncio.sleep(0.01)
            view.wake()
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            return waiting.cancelled()

        assert asyncio.run(pressed())

    def test_ctrl_c_is_handled_without_a_wait(self) -> None:
        async def pressed() -> bool:
            view = FleetWatcher(cast("Any", None), Installed(POLICY, "kube-system"), Notes())

            async def look() -> None:
                waiting.cancel()  # as the handler does it, in the middle of a step
                await view.wait_for_change(0.01)

            waiting = asyncio.create_task(look())
            await asyncio.wait([waiting])
            return waiting.cancelled()

        assert asyncio.run(pressed())

    def test_a_failed_watch_raises_its_error(self) -> None:
        async def die() -> None:
            raise RuntimeError("a mistake of ours")

        async def watch() -> None:
            view = FleetWatcher(cast("Any", None), Installed(POLICY, "kube-system"), Notes())
            caches = [SimpleNamespace(run=run) for run in (die, asyncio.Event().wait)]
            view._watches += [cast("Watch", SimpleNamespace(cache=cache)) for cache in caches]
            view.start()
            with pytest.raises(RuntimeError, match="a mistake of ours"):
                await view.wait_for_change(0.3)
            await view.stop()
            assert all(task.done() for task in view._running), "the others ask no further"

        asyncio.run(watch())

    def test_a_pause_of_removal_is_shown_while_it_lasts(self) -> None:
        fleet_view = a_fleet_view(book=Ledger(paused=True))
        assert fleet_view.notes == ["removal is paused; run `kube-node-ready resume` to resume it"]
        fleet_view.ledger_changed(removal_ledger.EMPTY)
        assert fleet_view.notes == []


class TestExplain:
    def described(
        self,
        node: Node,
        into: Installed | None = None,
        facts: explain_text.Facts = NO_FACTS,
        **more: Any,  # noqa: ANN401  as a_fleet_view's
    ) -> str:
        place = into or Installed(POLICY, "kube-system", slots=9)
        parts = explain_text.sections(node_status(node, into=place, **more), place, facts)
        return "\n".join(f"{part.title}: {line}" for part in parts for line in part.lines)

    def test_explain_shows_a_failed_node(self) -> None:
        node = gated("a", failed(2, ago=0.5))
        report = Report(
            (TargetResult("dns", Verdict.FAILED, ms=10003, target="example.com", error="timed out after 10 s"),)
        )
        text = self.described(node, workers=(a_worker(node, 2, state=State.FAILED, finished=True, report=report),))
        assert "Gate: Closed by node-ready/unverified:NoSchedule" in text
        assert "Attempts: It has failed twice in a row" in text
        assert "Checks of the last attempt: dns example.com  FAILED   10003 ms  timed out after 10 s" in text
        assert f"Next steps: dns: {explain_text.HINTS['dns']}" in text

    def test_checks_with_names_that_no_check_has_are_not_shown(self) -> None:
        """A kubelet could write a command into the record of its own Node."""
        checks = (CheckResult("kubectl delete node b", ok=False, ms=1), CheckResult("dns", ok=True, ms=12))
        text = self.described(gated("a", replace(failed(2, ago=0.5), checks=checks)))
        assert "Checks of the last attempt: dns  passed  " in text
        assert "kubectl delete" not in text

    @pytest.mark.parametrize(
        ("verdict", "shown"),
        [(Verdict.PASSED, "passed"), (Verdict.INCONCLUSIVE, "not judged"), (Verdict.SKIPPED, "skipped")],
    )
    def test_an_inconclusive_target_has_its_verdict(self, verdict: Verdict, shown: str) -> None:
        report = Report((TargetResult("dns", verdict, ms=3, target="example.com"),))
        node = gated("a", failed(2, ago=0.5))
        text = self.described(node, workers=(a_worker(node, 2, state=State.FAILED, finished=True, report=report),))
        assert f"dns example.com  {shown}  " in text
        assert "Next: Attempt 3 begins in 2 s (at 2026-01-01T00:00:01Z)." in text
        assert "Removal: Never: nodeManagement.deleteFailedNodes is false." in text
        assert explain_text.HINTS["dns"] not in text, "only what failed needs advice"
        assert "Next steps: kubectl logs --namespace=kube-system worker-2" in text

    def test_a_check_that_did_not_apply_is_not_shown_as_passed(self) -> None:
        check = CheckResult("matrix", ok=True, ms=4, error="not enough peers: 1 of 2", applies=False)
        node = verified("a", msgspec.structs.replace(PROOF, checks=(*PROOF.checks, check)))
        text = self.described(node)
        assert "matrix  not applicable       4 ms  not enough peers: 1 of 2" in text
        assert any("n/a" in line for line in table.lines([node_status(node)], Style(), START))

    def test_explain_shows_a_verified_node(self) -> None:
        text = self.described(verified("a"))
        assert "Gate: Open. The node has the label node-ready/verified=true." in text
        assert "Next: Nothing, unless the node changes." in text
        assert "Removal: Never" in text
        assert "Next steps" not in text

    def test_removal_is_not_mentioned_without_its_data(self) -> None:
        text = self.described(gated("a", failed()), into=installation.defaults("nowhere"))
        assert "Removal: Unknown: the configuration cannot be read." in text
        assert "in a row it is exhausted" not in text

    def test_an_exhausted_node_is_called_exhausted(self) -> None:
        text = self.described(gated("a", failed(5)))
        assert "It has failed 5 times in a row, for 1 s. So it is exhausted: retried rarely" in text

    def test_a_removable_node_has_the_budgets_numbers(self) -> None:
        text = self.described(gated("a", failed(5)), Installed(REMOVING, "kube-system", slots=9))
        assert "0 of 1 removals of nodes without a pool are used within 1 h, and 1 of 1 node are failing" in text

    def test_the_page_shows_a_complete_explanation(self) -> None:
        text = "\n".join(cli_sample.explained())
        assert "The removal budget allows it" in text
        assert "in a row it is exhausted" in text
        assert "Unknown" not in text

    def test_a_kept_node_has_the_reason(self) -> None:
        text = self.described(
            gated("a", failed(5)), Installed(REMOVING, "kube-system", slots=9), book=Ledger(paused=True)
        )
        assert "Blocked: removal of all nodes is paused." in text

    def test_a_node_that_another_client_labeled_has_no_next_attempt(self) -> None:
        adopted = verified(
            "n",
            VerificationRecord(1, outcome=Outcome.PENDING, at=START, since=START, reason="labeled by another client"),
        )
        assert "Attempts: Not verified by kube-node-ready: labeled by another client" in self.described(adopted)

    def test_events_come_newest_last(self) -> None:
        events = (explain_text.Event(START, "Second", "b"), explain_text.Event(START - DAY, "First", "a"))
        text = self.described(gated("a"), facts=explain_text.Facts(events))
        assert text.index("First") < text.index("Second")

    def test_repeated_events_are_one_line_with_their_number(self) -> None:
        event = explain_text.Event(START - DAY, "Failed", "a", "kubelet")
        later = msgspec.structs.replace(event, at=START, count=3)
        others = [msgspec.structs.replace(event, message="b"), msgspec.structs.replace(event, source="other")]
        unknown = msgspec.structs.replace(event, at=None)
        text = self.described(gated("a"), facts=explain_text.Facts((later, event, *others, unknown)))
        assert "0s  Failed (x5)  a" in text
        assert text.count("  Failed") == 3

    def test_many_repeated_events_hide_no_other(self) -> None:
        many = [explain_text.Event(START, "Failed", "a")] * 500
        text = self.described(
            gated("a"), facts=explain_text.Facts((explain_text.Event(START - DAY, "Rare", "b"), *many))
        )
        assert "Failed (x500)  a" in text
        assert "Rare" in text

    @pytest.mark.parametrize(
        ("leader", "words"),
        [
            (Leader(), "No controller is running: the Lease has no holder."),
            (Leader("me", START - DAY), "No controller is running: me last renewed its Lease 1 d ago."),
            (Leader("me", START - timedelta(seconds=2)), "The controller is running: me renewed its Lease 2 s ago."),
        ],
    )
    def test_it_shows_whether_a_controller_runs(self, leader: Leader, words: str) -> None:
        assert words in self.described(gated("a"), facts=explain_text.Facts(leader=leader))

    def test_there_is_a_hint_for_every_check(self) -> None:
        assert explain_text.HINTS.keys() == set(CHECKS)


class TestVerifyAgain:
    def test_the_patch_tests_the_observed_values_and_changes_nothing_else(self) -> None:
        known = ObservedNode(verified("a", msgspec.structs.replace(PROOF, attempt=3)), "77")
        paths = [step["path"] for step in verify.patch_of(known, POLICY, START)]
        assert paths == [
            "/metadata/uid",
            "/metadata/resourceVersion",
            "/metadata/labels/node-ready~1verified",
            "/metadata/annotations/node-ready~1verification",
        ]
        record = decode_record(verify.patch_of(known, POLICY, START)[-1]["value"])
        assert (record.attempt, record.failures, record.outcome) == (3, 0, Outcome.PENDING)

    @pytest.mark.parametrize("node", [verified("a"), gated("a", failed(9, ago=1)), Node("a", "uid-a")])
    def test_in_every_state_the_next_step_is_a_new_attempt(self, node: Node) -> None:
        asked = msgspec.structs.replace(node, labelled=False, record=verify.record_of(node, START))
        assert node_status(asked).begins == max(1, node.record.attempt) + 1

    @pytest.mark.parametrize(
        ("record", "passed"),
        [
            (VerificationRecord(2, outcome=Outcome.PENDING), None),
            (PROOF, None),
            (msgspec.structs.replace(PROOF, attempt=3), True),
            (msgspec.structs.replace(failed(3), attempt=3), False),
            (VerificationRecord(3, 1, Outcome.PASSED, cause=Cause.CHECKS, reason="dns"), False),
        ],
    )
    def test_the_verdict_is_that_of_a_later_attempt(self, record: VerificationRecord, passed: bool | None) -> None:  # noqa: FBT001  expected
        assert verify.verdict(verify.VerificationRequest("a", "uid-a", 2), verified("a", record)) is passed

    def test_a_node_that_is_gone_did_not_pass(self) -> None:
        assert verify.verdict(verify.VerificationRequest("a", "uid-a", 2), None) is False
        assert verify.verdict(verify.VerificationRequest("a", "other", 0), verified("a")) is False

    def test_only_a_worker_that_can_still_pass_is_kept(self) -> None:
        node = gated("a")
        assert verify.running_attempt(node_status(node, workers=(a_worker(node, state=State.RUNNING),))) == 1
        assert verify.running_attempt(node_status(node, workers=(a_worker(node, state=State.FAILED),))) == 0
        assert verify.running_attempt(node_status(node)) == 0


class TestWhatIsInstalled:
    def a_map(self, chart: str = f"kube-node-ready-{__version__}", **data: str) -> ConfigMap:
        return ConfigMap(
            Metadata("x", labels={"helm.sh/chart": chart}),
            data={key.replace("_yaml", ".yaml"): value for key, value in data.items()},
        )

    def test_the_controllers_own_configuration_decides(self) -> None:
        text = "reconciliation: {maxRetries: 9}\nnodeManagement: {nodeSelector: {a: b}}\nworker: {namespace: other}"
        found, note = installation.read([self.a_map(config_yaml=text)], "kube-system")
        assert (found.policy.max_failures, found.namespace, dict(found.selector), note) == (9, "other", {"a": "b"}, "")

    def test_daemonset_mode_is_detected_by_its_variables(self) -> None:
        found, note = installation.read([self.a_map(MODE="once", TAINT_KEY="example.com/gate")], "kube-system")
        assert (found.mode, found.policy.gates[0].key, note) == (Mode.DAEMONSET, "example.com/gate", "")

    @pytest.mark.parametrize("mode", Mode)
    @pytest.mark.parametrize("values", [{}, {"nameOverride": "other"}])
    def test_it_is_found_as_the_chart_writes_it(self, mode: Mode, values: dict[str, str]) -> None:
        config = {"taintKey": "example.com/gate", "maxRetries": 7}
        maps = chart.render({"deploymentMode": mode.value, "config": config, **values}).of("ConfigMap")
        selected = [one for one in maps if one["metadata"]["labels"]["app.kubernetes.io/component"] in list(Mode)]
        found, note = installation.read(msgspec.convert(selected, list[ConfigMap]), "kube-system")
        assert (found.mode, found.policy.gates[0].key, note) == (mode, "example.com/gate", "")
        assert found.policy.max_failures == (7 if mode is Mode.CONTROLLER else 8), "the DaemonSet counts retries"

    def test_other_charts_have_controllers_too(self) -> None:
        text = "reconciliation: {maxRetries: 9}"
        found, note = installation.read([self.a_map(chart="cert-manager-1.0", config_yaml=text)], "kube-system")
        assert (found.policy.max_failures, "no configuration of kube-node-ready was found" in note) == (5, True)

    @pytest.mark.parametrize(
        ("maps", "note"),
        [
            ([], 'no configuration of kube-node-ready was found in the namespace "there"'),
            (["reconciliation: {maxRetrys: 9}"], "did you mean maxRetries?"),
        ],
    )
    def test_problems_are_noted(self, maps: list[str], note: str) -> None:
        found, noted = installation.read([self.a_map(config_yaml=text) for text in maps], "there")
        assert note in noted
        assert (found.namespace, found.policy.max_failures) == ("there", 5)

    def named(self, name: str, managed_by: str = "", **data: str) -> ConfigMap:
        labels = {"helm.sh/chart": f"kube-node-ready-{__version__}", "app.kubernetes.io/managed-by": managed_by}
        return ConfigMap(Metadata(name, labels=labels), data=data)

    @pytest.mark.parametrize("managed_by", ["", "Helm"])
    def test_several_installations_are_ambiguous(self, managed_by: str) -> None:
        maps = [self.named(name, managed_by, MODE="once") for name in ("real", "a")]
        with pytest.raises(
            UsageError, match=r'found 2 .* in the namespace "there", expected one: ConfigMaps a, real\.'
        ):
            installation.read(maps, "there")

    def test_the_one_that_helm_installed_is_used(self) -> None:
        forged = self.named("a", MODE="once", VERIFIED_LABEL="node-role.kubernetes.io/worker")
        real = self.named("real", "Helm", MODE="once", VERIFIED_LABEL="example.com/verified")
        found, note = installation.read([forged, real], "there")
        assert found.policy.label == "example.com/verified"
        assert note == "ConfigMap real is used; not installed by Helm, ignored: a"

    @pytest.mark.parametrize("variable", ["WORKER_CONFIG_PATH", "KUBECONFIG"])
    def test_a_local_file_that_the_cluster_names_is_not_opened(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        file = tmp_path / "secrets.yaml"
        file.write_text("aws_secret_key: x")
        opened: list[str] = []
        monkeypatch.setattr(files, "read", opened.append)
        monkeypatch.setattr(worker, "FILE", str(file))
        data = {"MODE": "once", "TAINT_KEY": "example.com/gate", variable: str(file)}
        found, note = installation.read([self.named("real", **data)], "there")
        assert (found.policy.gates[0].key, note, opened) == ("example.com/gate", "", [])

    def test_every_variable_of_the_chart_is_read(self) -> None:
        values = {
            "deploymentMode": "daemonset",
            "daemonset": {"mode": "continuous"},
            "worker": {"config": {"payload": False}},
        }
        (found,) = chart.render(values).of("ConfigMap")
        assert found["data"].keys() <= installation._VARIABLES


class TestRights:
    @pytest.mark.parametrize(
        ("why", "sentence"),
        [
            (
                Rejected(403, "Forbidden", "no"),
                'you are not allowed to list pods in the namespace "a": ask for the verb "list" on',
            ),
            (Rejected(401, "Unauthorized", "no"), "the API server rejected your credentials (401 Unauthorized)"),
            (
                Unreachable(0, "Unreachable", "connection refused"),
                "the API server does not respond: connection refused",
            ),
            (AccessError("no kubeconfig"), "cannot connect to the Kubernetes API: no kubeconfig"),
        ],
    )
    def test_each_error_is_one_sentence(self, why: KubeError, sentence: str) -> None:
        with pytest.raises(NoAccess) as refused, permissions.requires("list", "pods", "a"):
            raise why
        assert str(refused.value).startswith(sentence)
        assert isinstance(refused.value, NotAllowed) == (why.status == 403)


@pytest.mark.parametrize(
    ("nodes", "settled", "all_verified"),
    [
        ([verified("a")], True, True),
        ([verified("a"), gated("b", failed())], True, False),
        ([gated("a"), gated("b", failed())], False, False),
    ],
    ids=["verified", "failed", "undecided"],
)
def test_a_watch_ends_when_all_are_verified_or_have_a_verdict(
    nodes: list[Node], *, settled: bool, all_verified: bool
) -> None:
    seen = statuses(*nodes)
    assert status.is_over(seen, "settled") is settled
    assert status.is_over(seen, "verified") is all_verified
    assert not status.is_over(seen, None)


@pytest.mark.parametrize(
    ("node", "code", "words"),
    [
        (verified("a"), 0, ""),
        (Node("a", "uid-a"), 1, "a is not verified: "),
        (gated("a", deleting=True), 1, "a is not verified: "),
    ],
    ids=["verified", "from before the install", "on its way out"],
)
def test_until_verified_requires_a_record(node: Node, code: int, words: str) -> None:
    asked = status.Options(ClusterLocation("kube-system"), ("a",), until="verified")
    seen = statuses(node)
    assert status.is_over(seen, "verified")
    assert status._verdict(seen, asked) == code
    assert status._unproved(seen, asked).startswith(words)


def test_a_gate_counts_for_explicitly_named_nodes() -> None:
    known = [ObservedNode(gated("a"), "1", START, selected=False)]
    fleet_view = FleetView(Installed(POLICY, "kube-system")).add_all(known, (), removal_ledger.EMPTY)
    seen = fleet_view.statuses(fleet_view.known, START)
    assert (status.needs_attention(seen), status.needs_attention(seen, named=True)) == (0, 1)


def test_an_unknown_name_is_reported_with_the_nearest() -> None:
    expected = r"node not found: nod-1 \(did you mean node-1\?\) and zzz; the cluster has 2 nodes"
    with pytest.raises(UsageError, match=expected):
        errors.check_names(["nod-1", "node-1", "zzz"], ["node-1", "node-2"])


def test_names_are_sorted_naturally() -> None:
    assert sorted(["n-10", "n-9", "n", "a10b2", "a10b10", "10"], key=natural) == [
        "10",
        "a10b2",
        "a10b10",
        "n",
        "n-9",
        "n-10",
    ]


def test_a_name_of_many_digits_can_be_sorted() -> None:
    assert min(["n-" + "9" * 5000, "n-1"], key=natural) == "n-1"


def test_unchanged_nodes_are_not_decided_again() -> None:
    fleet_view = a_fleet_view(verified("a"), gated("b"))
    first = {each.name: each for each in fleet_view.statuses(fleet_view.known, START)}
    second = {each.name: each for each in fleet_view.statuses(fleet_view.known, START + timedelta(seconds=1), DAY)}
    assert second["a"] is first["a"]
    assert second["b"] is not first["b"]
    fleet_view.node_changed("a", None, ObservedNode(gated("a", failed()), "2"))
    changed = fleet_view.statuses(["a"], START + timedelta(seconds=1), DAY)
    assert changed[0].phase is not Phase.VERIFIED
