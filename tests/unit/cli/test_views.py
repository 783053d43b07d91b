"""What the everyday command line says, from what is seen: no cluster, no terminal."""

import argparse
import asyncio
import json
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kube_node_ready import ledger
from kube_node_ready.checks import files, sources
from kube_node_ready.checks.model import CHECKS
from kube_node_ready.console import (
    again,
    installed,
    mistakes,
    rights,
    sample,
    screen,
    status,
    story,
    table,
    told,
    words,
)
from kube_node_ready.console.installed import Installed, Mode
from kube_node_ready.console.leader import Leader
from kube_node_ready.console.live import Live, Watch
from kube_node_ready.console.mistakes import Mistake
from kube_node_ready.console.picture import Known, Picture, Standing, natural
from kube_node_ready.console.reading import Notes
from kube_node_ready.console.rights import NoAccess, NotAllowed
from kube_node_ready.console.screen import Frame
from kube_node_ready.console.table import Look
from kube_node_ready.kube.errors import AccessError, KubeError, Refused, Unreachable
from kube_node_ready.objects import ConfigMap, Metadata, Taint
from kube_node_ready.verify import patches
from kube_node_ready.verify.model import (
    Cause,
    Ledger,
    Node,
    Outcome,
    Phase,
    Record,
    Removal,
    RemovalPolicy,
    State,
    Worker,
)
from kube_node_ready.verify.report import CheckResult, Report
from tests import chart
from tests.model import POLICY, START

GATE = Taint("node-ready/unverified", "NoSchedule", "true")
REMOVING = msgspec.structs.replace(POLICY, removal=RemovalPolicy())
BAD = (CheckResult("dns", ok=False, ms=10003), CheckResult("api", ok=True, ms=31))
PROOF = Record(1, outcome=Outcome.PASSED, at=START, since=START, checks=(CheckResult("dns", ok=True, ms=12),))
DAY = timedelta(days=1)
NONE = Record()
NO_FACTS = story.Facts()


def verified(name: str, record: Record = PROOF) -> Node:
    return Node(name, f"uid-{name}", labelled=True, record=record)


def gated(name: str, record: Record = NONE, **fields: Any) -> Node:  # noqa: ANN401  a Node's
    return Node(name, f"uid-{name}", taints=(GATE,), record=record, **fields)


def failed(failures: int = 1, *, ago: float = 0.2, reason: str = "dns: example.com: timed out after 10 s") -> Record:
    at = START - timedelta(seconds=ago)
    return Record(
        failures, failures, Outcome.FAILED, at, at, cause=Cause.CHECKS, blamed=failures, reason=reason, checks=BAD
    )


def a_picture(
    *nodes: Node, workers: tuple[Worker, ...] = (), book: Ledger = ledger.EMPTY, into: Installed | None = None
) -> Picture:
    known = [Known(node, "1", START - DAY) for node in nodes]
    return Picture(into or Installed(POLICY, "kube-system", slots=9)).put(known, workers, book)


def standings(*nodes: Node, **more: Any) -> list[Standing]:  # noqa: ANN401  as a_picture's
    picture = a_picture(*nodes, **more)
    return picture.standings(picture.known, START)


def standing(node: Node, **more: Any) -> Standing:  # noqa: ANN401  as a_picture's
    (found,) = standings(node, **more)
    return found


def a_worker(node: Node, attempt: int = 1, **fields: Any) -> Worker:  # noqa: ANN401  a Worker's
    created = START - timedelta(seconds=6)
    return Worker(f"worker-{attempt}", f"w-{attempt}", node.uid, attempt, node.name, created=created, **fields)


class TestWhatANodeWaitsFor:
    def test_nothing_if_it_is_verified(self) -> None:
        assert standing(verified("a")).waits_for == ""

    def test_a_retry_with_its_reason(self) -> None:
        told = standing(gated("a", failed(3)))
        assert told.phase is Phase.BACKING_OFF
        assert told.waits_for.startswith("retry in 4 s: dns: example.com: timed out after 10 s")

    def test_a_worker_and_how_long_it_runs(self) -> None:
        node = gated("a")
        told = standing(node, workers=(a_worker(node, state=State.RUNNING),))
        assert told.waits_for == "the worker of attempt 1 is running (6 s)"
        assert (told.attempt, told.node.record.attempt) == (1, 0)

    def test_one_that_is_open_meanwhile_says_so(self) -> None:
        asked = Record(1, outcome=Outcome.PENDING, at=START, since=START, reason="its label was taken off")
        unlabelled = Node("a", "uid-a", record=asked)
        assert standing(unlabelled).waits_for.startswith("open meanwhile: the controller to begin attempt 2")
        assert story.headline(standing(unlabelled)).startswith("a is verifying: open meanwhile: ")
        assert "open" not in standing(gated("a", asked)).waits_for

    @pytest.mark.parametrize(("mode", "who"), [(Mode.CONTROLLER, "the controller"), (Mode.DAEMONSET, "the pod on it")])
    def test_whoever_begins_the_next_attempt(self, mode: Mode, who: str) -> None:
        told = standing(gated("a"), into=Installed(POLICY, "kube-system", mode, slots=1))
        assert told.waits_for == f"{who} to begin attempt 1"

    def test_the_budget_with_its_numbers(self) -> None:
        told = standing(
            gated("a", failed(5)),
            into=Installed(REMOVING, "kube-system", slots=1),
            book=Ledger(removals=(Removal("x", "x", "", START),)),
        )
        assert told.phase is Phase.HELD
        assert "1 removed within 3600 s" in told.waits_for

    def test_what_a_node_wrote_cannot_command_a_terminal(self) -> None:
        told = standing(gated("a", failed(reason="\x1b[2Jdns\r\nfailed")))
        assert told.waits_for.endswith("[2Jdns failed")
        assert "\x1b" not in "\n".join(table.lines([told], Look(), START))

    def test_one_that_the_selector_leaves_out(self) -> None:
        picture = a_picture(into=Installed(POLICY, "kube-system", slots=1))
        picture.node_changed("a", None, Known(gated("a"), "1", selected=False))
        (told,) = picture.standings(["a"], START)
        assert (told.phase, told.needs_attention) == (Phase.IGNORED, False)
        assert "nodeSelector" in told.waits_for


class TestTheTable:
    def test_those_that_need_attention_come_first_and_names_are_counted(self) -> None:
        found = standings(verified("n-10"), verified("n-2"), gated("z", failed()), gated("y"), Node("old", "o"))
        assert [each.name for each in found] == ["z", "y", "n-2", "n-10", "old"]

    def test_a_verified_node_that_fails_since_comes_before_those_that_do_not(self) -> None:
        doubtful = msgspec.structs.replace(PROOF, failures=1, reason="dns: no answer")
        found = standings(verified("a"), verified("z", doubtful))
        assert [(each.name, each.needs_attention) for each in found] == [("z", True), ("a", False)]

    def test_a_check_has_its_milliseconds_and_a_mark_if_it_failed(self) -> None:
        (_, old), (_, older) = (table.lines(standings(verified("a")), Look(), START + age) for age in (DAY, 2 * DAY))
        assert ("  2d" in old, "  3d" in older) == (True, True), "what was decided a while ago is older by now"
        head, bad, good = table.lines(standings(gated("b", failed()), verified("a")), Look(), START)
        assert head.split() == ["NODE", "PHASE", "ATTEMPT", "DNS", "API", "AGE", "WAITS", "FOR"]
        assert bad.split()[:6] == ["b", "backing-off", "1", "!10003", "31", "24h"]
        assert good.split() == ["a", "verified", "1", "12", "-", "24h"]

    def test_checks_come_in_the_order_of_the_worker(self) -> None:
        every = tuple(CheckResult(name, ok=True) for name in ("own", *reversed(CHECKS)))
        head, _ = table.lines(standings(verified("a", msgspec.structs.replace(PROOF, checks=every))), Look(), START)
        assert head.split()[3:-3] == [name.upper() for name in CHECKS]  # and no column that a kubelet made up

    def test_only_the_last_column_is_cut_and_in_a_pipe_nothing(self) -> None:
        long = gated("b", failed(reason="x" * 300))
        (_, cut), (_, whole) = (table.lines(standings(long), Look(width=width), START) for width in (90, None))
        assert len(cut) == 90
        assert cut.endswith("x…")
        assert "x" * 300 in whole

    def test_a_narrow_terminal_has_room_for_the_reason_before_checks_that_passed(self) -> None:
        lines = table.lines(standings(gated("b", failed())), Look(width=66), START)
        assert "API" not in lines[0]
        assert "!10003" in lines[1]
        assert "dns: exam" in lines[1]
        assert lines[-1].startswith("(not all checks are shown: the terminal is too narrow")
        assert len(table.lines(standings(gated("b", failed())), Look(width=200), START)) == 2
        assert all(len(line) <= 40 for line in table.lines(standings(gated("b", failed())), Look(width=40), START))

    def test_colours_are_for_terminals_and_change_no_width(self) -> None:
        plain, painted = (
            table.lines(standings(gated("b", failed())), Look(colour=colour), START) for colour in (False, True)
        )
        assert "\x1b" not in "".join(plain)
        assert f"{table.RED}!10003{table.PLAIN}" in painted[1]
        for colour in (table.RED, table.BOLD, table.PLAIN):
            painted = [line.replace(colour, "") for line in painted]
        assert [line.rstrip() for line in painted] == plain

    def test_while_an_attempt_runs_what_the_one_before_found_is_dim(self) -> None:
        node = gated("a", failed())
        painted = table.lines(standings(node, workers=(a_worker(node, 2),)), Look(colour=True), START)[1]
        assert f"{table.DIM}!10003{table.PLAIN}" in painted
        assert table.RED not in painted

    def test_wide_tells_more(self) -> None:
        node = gated("a", pool="spot", boot="0123456789")
        head, row = table.lines(standings(node, workers=(a_worker(node),)), Look(wide=True), START)
        assert "GATES" in head
        assert all(word in row.split() for word in ("node-ready/unverified:NoSchedule", "spot", "01234567", "worker-1"))

    def test_the_summary_counts(self) -> None:
        assert table.summary(standings(verified("a"), verified("b"), gated("c", failed()))) == (
            "3 nodes: 2 verified, 1 backing-off"
        )
        assert table.summary([]) == "0 nodes"


def test_data_for_scripts_has_what_is_documented() -> None:
    node = gated("a", failed(2), pool="spot")
    data = json.loads(msgspec.json.encode(told.told(standing(node, workers=(a_worker(node, 2),)), "kube-system")))
    assert data["phase"] == "backing-off"
    assert (data["gated"], data["labelled"], data["verified"], data["failures"]) == (True, False, False, 2)
    assert data["checks"] == [{"name": "dns", "ok": False, "ms": 10003}, {"name": "api", "ok": True, "ms": 31}]
    assert 1 < data["next"]["seconds"] < 3
    assert datetime.fromisoformat(data["next"]["at"]) > START
    assert data["worker"]["name"] == "worker-2"
    assert data["gates"] == ["node-ready/unverified:NoSchedule"]


class TestTheLiveView:
    def frame(self, count: int, **more: Any) -> Frame:  # noqa: ANN401  a Frame's
        return Frame(standings(*(verified(f"n-{number}") for number in range(count))), START, **more)

    def test_it_fits_and_tells_how_many_did_not(self) -> None:
        lines = screen.drawn(self.frame(5000), Look(width=60), 20)
        assert len(lines) <= 20
        assert "… and 4,987 more" in lines
        shown = sum("verified" in line for line in lines[1:])
        assert shown + 4987 == 5000
        assert all(len(line) <= 60 for line in lines)

    def test_what_fits_is_shown_whole(self) -> None:
        lines = screen.drawn(self.frame(3), Look(width=60), 20)
        assert not any("more" in line for line in lines)
        assert sum("verified" in line for line in lines[1:]) == 3

    def test_old_news_is_called_so(self) -> None:
        assert any(
            "since then" in line for line in screen.drawn(self.frame(1, trouble="since then: …"), Look(width=60), 9)
        )

    @pytest.mark.parametrize("height", range(1, 8))
    def test_a_terminal_too_low_for_it_is_not_overrun(self, height: int) -> None:
        assert len(screen.drawn(self.frame(9, notes=["a", "b"]), Look(width=20), height)) <= height

    def test_in_a_pipe_one_that_left_the_list_is_not_called_gone(self) -> None:
        stream = StringIO()
        pipe = screen.Pipe(stream)
        pipe.show(Frame(standings(gated("a"), gated("b")), START))
        pipe.show(Frame([], START, there={"a"}))
        assert [line.split(maxsplit=1)[1] for line in stream.getvalue().splitlines()[2:]] in (
            ["a  has nothing to prove any more", "b  gone"],
            ["b  gone", "a  has nothing to prove any more"],
        )

    @pytest.mark.parametrize("turns", range(4))
    def test_ctrl_c_counts_also_when_it_comes_together_with_news(self, turns: int) -> None:
        async def pressed() -> bool:
            view = Live(cast("Any", None), Installed(POLICY, "kube-system"), Notes())
            waiting = asyncio.create_task(view.news(5))
            await asyncio.sleep(0.01)
            view.ring()
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            return waiting.cancelled()

        assert asyncio.run(pressed())

    def test_ctrl_c_counts_also_when_there_is_no_time_to_wait(self) -> None:
        async def pressed() -> bool:
            view = Live(cast("Any", None), Installed(POLICY, "kube-system"), Notes())

            async def look() -> None:
                waiting.cancel()  # as the handler does it, in the middle of a step
                await view.news(0.01)

            waiting = asyncio.create_task(look())
            await asyncio.wait([waiting])
            return waiting.cancelled()

        assert asyncio.run(pressed())

    def test_a_watch_that_dies_is_no_lack_of_news(self) -> None:
        async def die() -> None:
            raise RuntimeError("a mistake of ours")

        async def watch() -> None:
            view = Live(cast("Any", None), Installed(POLICY, "kube-system"), Notes())
            caches = [SimpleNamespace(run=run) for run in (die, asyncio.Event().wait)]
            view._watches += [cast("Watch", SimpleNamespace(cache=cache)) for cache in caches]
            view.start()
            with pytest.raises(RuntimeError, match="a mistake of ours"):
                await view.news(0.3)
            await view.stop()
            assert all(task.done() for task in view._running), "the others ask no further"

        asyncio.run(watch())

    def test_that_removal_is_paused_is_said_for_as_long_as_it_is(self) -> None:
        picture = a_picture(book=Ledger(paused=True))
        assert picture.notes == ["removal is paused; `resume` ends that"]
        picture.ledger_changed(ledger.EMPTY)
        assert picture.notes == []


class TestTheStory:
    def told(
        self,
        node: Node,
        into: Installed | None = None,
        facts: story.Facts = NO_FACTS,
        **more: Any,  # noqa: ANN401  as a_picture's
    ) -> str:
        place = into or Installed(POLICY, "kube-system", slots=9)
        parts = story.story(standing(node, into=place, **more), place, facts)
        return "\n".join(f"{part.title}: {line}" for part in parts for line in part.lines)

    def test_of_a_node_that_failed(self) -> None:
        node = gated("a", failed(2, ago=0.5))
        report = Report((CheckResult("dns", ok=False, ms=10003, target="example.com", error="timed out after 10 s"),))
        text = self.told(node, workers=(a_worker(node, 2, state=State.FAILED, finished=True, report=report),))
        assert "Gate: Closed, by node-ready/unverified:NoSchedule" in text
        assert "Attempts: It failed twice in a row" in text
        assert "Checks of the last attempt: dns example.com  FAILED   10003 ms  timed out after 10 s" in text
        assert "Next: Attempt 3 begins in 2 s (at 2026-01-01T00:00:01Z)." in text
        assert "Removal: Never: nodeManagement.deleteFailedNodes is false." in text
        assert f"Look further: dns: {story.HINTS['dns']}" in text
        assert "Look further: kubectl logs --namespace=kube-system worker-2" in text

    def test_of_a_verified_node(self) -> None:
        text = self.told(verified("a"))
        assert "Gate: Open. The node bears the label node-ready/verified=true." in text
        assert "Next: Nothing, as long as it stays as it is." in text
        assert "Removal: Never" in text
        assert "Look further" not in text

    def test_of_removal_nothing_is_claimed_that_was_not_read(self) -> None:
        text = self.told(gated("a", failed()), into=installed.defaults("nowhere"))
        assert "Removal: Unknown: the configuration could not be read from here." in text
        assert "in a row it is given up" not in text

    def test_of_one_that_may_be_removed_has_the_numbers(self) -> None:
        text = self.told(gated("a", failed(5)), Installed(REMOVING, "kube-system", slots=9))
        assert "0 of 1 removals of nodes without a pool within 1 h are spent, and 1 of 1 node fail at once" in text

    def test_the_page_shows_one_with_all_its_parts(self) -> None:
        text = "\n".join(sample.explained())
        assert "The budget would allow it" in text
        assert "in a row it is given up" in text
        assert "Unknown" not in text

    def test_of_one_that_must_stay_has_the_reason(self) -> None:
        text = self.told(gated("a", failed(5)), Installed(REMOVING, "kube-system", slots=9), book=Ledger(paused=True))
        assert "It would have to stay: removal of all nodes is paused." in text

    def test_of_one_that_somebody_else_labelled_promises_no_attempt(self) -> None:
        adopted = verified(
            "n", Record(1, outcome=Outcome.PENDING, at=START, since=START, reason="labelled by someone else")
        )
        assert "Attempts: Not verified by us: labelled by someone else" in self.told(adopted)

    def test_events_come_newest_last(self) -> None:
        events = (story.Event(START, "Second", "b"), story.Event(START - DAY, "First", "a"))
        text = self.told(gated("a"), facts=story.Facts(events))
        assert text.index("First") < text.index("Second")

    @pytest.mark.parametrize(
        ("leader", "words"),
        [
            (Leader(), "No controller is at work: nobody holds the Lease."),
            (Leader("me", START - DAY), "No controller is at work: me last renewed its Lease 1 d ago."),
            (Leader("me", START - timedelta(seconds=2)), "The controller is at work: me renewed its Lease 2 s ago."),
        ],
    )
    def test_it_tells_whether_anybody_is_at_work(self, leader: Leader, words: str) -> None:
        assert words in self.told(gated("a"), facts=story.Facts(leader=leader))

    def test_there_is_a_hint_for_every_check(self) -> None:
        assert story.HINTS.keys() == set(CHECKS)


class TestAskingAgain:
    def test_the_patch_tests_what_was_seen_and_names_nothing_of_others(self) -> None:
        known = Known(verified("a", msgspec.structs.replace(PROOF, attempt=3)), "77")
        paths = [step["path"] for step in again.patch_of(known, POLICY, START)]
        assert paths == [
            "/metadata/uid",
            "/metadata/resourceVersion",
            "/metadata/labels/node-ready~1verified",
            "/metadata/annotations/node-ready~1verification",
        ]
        record = patches.decode(again.patch_of(known, POLICY, START)[-1]["value"])
        assert (record.attempt, record.failures, record.outcome) == (3, 0, Outcome.PENDING)

    @pytest.mark.parametrize("node", [verified("a"), gated("a", failed(9, ago=1)), Node("a", "uid-a")])
    def test_whatever_the_node_was_the_next_step_is_a_new_attempt(self, node: Node) -> None:
        asked = msgspec.structs.replace(node, labelled=False, record=again.record_of(node, START))
        assert standing(asked).begins == max(1, node.record.attempt) + 1

    @pytest.mark.parametrize(
        ("record", "passed"),
        [
            (Record(2, outcome=Outcome.PENDING), None),
            (PROOF, None),
            (msgspec.structs.replace(PROOF, attempt=3), True),
            (msgspec.structs.replace(failed(3), attempt=3), False),
            (Record(3, 1, Outcome.PASSED, reason="dns"), False),
        ],
    )
    def test_the_verdict_is_that_of_a_later_attempt(self, record: Record, passed: bool | None) -> None:  # noqa: FBT001  expected
        assert again.verdict(again.Asked("a", "uid-a", 2), verified("a", record)) is passed

    def test_a_node_that_is_gone_did_not_pass(self) -> None:
        assert again.verdict(again.Asked("a", "uid-a", 2), None) is False
        assert again.verdict(again.Asked("a", "other", 0), verified("a")) is False

    def test_only_a_worker_that_may_still_end_well_is_left_alone(self) -> None:
        node = gated("a")
        assert again.at_work(standing(node, workers=(a_worker(node, state=State.RUNNING),))) == 1
        assert again.at_work(standing(node, workers=(a_worker(node, state=State.FAILED),))) == 0
        assert again.at_work(standing(node)) == 0


class TestWhatIsInstalled:
    def a_map(self, chart: str = "kube-node-ready-0.1.0", **data: str) -> ConfigMap:
        return ConfigMap(
            Metadata("x", labels={"helm.sh/chart": chart}),
            data={key.replace("_yaml", ".yaml"): value for key, value in data.items()},
        )

    def test_the_controllers_own_configuration_decides(self) -> None:
        text = "reconciliation: {maxRetries: 9}\nnodeManagement: {nodeSelector: {a: b}}\nworker: {namespace: other}"
        found, note = installed.read([self.a_map(config_yaml=text)], "kube-system")
        assert (found.policy.max_failures, found.namespace, dict(found.selector), note) == (9, "other", {"a": "b"}, "")

    def test_daemonset_mode_is_known_by_its_variables(self) -> None:
        found, note = installed.read([self.a_map(MODE="once", TAINT_KEY="example.com/gate")], "kube-system")
        assert (found.mode, found.policy.gates[0].key, note) == (Mode.DAEMONSET, "example.com/gate", "")

    @pytest.mark.parametrize("mode", Mode)
    @pytest.mark.parametrize("values", [{}, {"nameOverride": "other"}])
    def test_it_is_found_as_the_chart_writes_it(self, mode: Mode, values: dict[str, str]) -> None:
        config = {"taintKey": "example.com/gate", "maxRetries": 7}
        maps = chart.render({"deploymentMode": mode.value, "config": config, **values}).of("ConfigMap")
        selected = [one for one in maps if one["metadata"]["labels"]["app.kubernetes.io/component"] in list(Mode)]
        found, note = installed.read(msgspec.convert(selected, list[ConfigMap]), "kube-system")
        assert (found.mode, found.policy.gates[0].key, note) == (mode, "example.com/gate", "")
        assert found.policy.max_failures == (7 if mode is Mode.CONTROLLER else 8), "the DaemonSet counts retries"

    def test_other_charts_have_controllers_too(self) -> None:
        text = "reconciliation: {maxRetries: 9}"
        found, note = installed.read([self.a_map(chart="cert-manager-1.0", config_yaml=text)], "kube-system")
        assert (found.policy.max_failures, "no configuration of kube-node-ready was found" in note) == (5, True)

    @pytest.mark.parametrize(
        ("maps", "note"),
        [
            ([], 'no configuration of kube-node-ready was found in the namespace "there"'),
            (["reconciliation: {maxRetrys: 9}"], "did you mean maxRetries?"),
        ],
    )
    def test_what_is_amiss_is_noted(self, maps: list[str], note: str) -> None:
        found, noted = installed.read([self.a_map(config_yaml=text) for text in maps], "there")
        assert note in noted
        assert (found.namespace, found.policy.max_failures) == ("there", 5)

    def named(self, name: str, managed_by: str = "", **data: str) -> ConfigMap:
        labels = {"helm.sh/chart": "kube-node-ready-0.1.0", "app.kubernetes.io/managed-by": managed_by}
        return ConfigMap(Metadata(name, labels=labels), data=data)

    @pytest.mark.parametrize("managed_by", ["", "Helm"])
    def test_of_several_none_is_guessed(self, managed_by: str) -> None:
        maps = [self.named(name, managed_by, MODE="once") for name in ("real", "a")]
        with pytest.raises(Mistake, match=r'found 2 .* in the namespace "there", expected one: ConfigMaps a, real\.'):
            installed.read(maps, "there")

    def test_the_one_that_helm_installed_is_used(self) -> None:
        forged = self.named("a", MODE="once", VERIFIED_LABEL="node-role.kubernetes.io/worker")
        real = self.named("real", "Helm", MODE="once", VERIFIED_LABEL="example.com/verified")
        found, note = installed.read([forged, real], "there")
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
        monkeypatch.setattr(sources, "FILE", str(file))
        data = {"MODE": "once", "TAINT_KEY": "example.com/gate", variable: str(file)}
        found, note = installed.read([self.named("real", **data)], "there")
        assert (found.policy.gates[0].key, note, opened) == ("example.com/gate", "", [])

    def test_every_variable_of_the_chart_is_read(self) -> None:
        values = {
            "deploymentMode": "daemonset",
            "daemonset": {"mode": "continuous"},
            "worker": {"config": {"payload": False}},
        }
        (found,) = chart.render(values).of("ConfigMap")
        assert found["data"].keys() <= installed._VARIABLES


class TestRights:
    @pytest.mark.parametrize(
        ("why", "sentence"),
        [
            (Refused(403, "Forbidden", "no"), 'you may not list pods in the namespace "a": ask for the verb "list" on'),
            (Refused(401, "Unauthorized", "no"), "the API server does not know you (401 Unauthorized)"),
            (Unreachable(0, "Unreachable", "connection refused"), "the API server does not answer: connection refused"),
            (AccessError("no kubeconfig"), "there is no way to Kubernetes: no kubeconfig"),
        ],
    )
    def test_each_trouble_is_a_sentence(self, why: KubeError, sentence: str) -> None:
        with pytest.raises(NoAccess) as refused, rights.asking("list", "pods", "a"):
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
    seen = standings(*nodes)
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
def test_who_asks_for_a_verified_node_does_not_get_one_that_nobody_verified(node: Node, code: int, words: str) -> None:
    asked = argparse.Namespace(until="verified", node=["a"])
    seen = standings(node)
    assert status.is_over(seen, "verified")
    assert status._verdict(seen, asked) == code
    assert status._unproved(seen, asked).startswith(words)


def test_a_gate_counts_for_whoever_names_the_node() -> None:
    known = [Known(gated("a"), "1", START, selected=False)]
    picture = Picture(Installed(POLICY, "kube-system")).put(known, (), ledger.EMPTY)
    seen = picture.standings(picture.known, START)
    assert (status.needs_attention(seen), status.needs_attention(seen, named=True)) == (0, 1)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(Mistake, match=r"there is no node nod-1 \(did you mean node-1\?\) and zzz; there are 2 nodes"):
        mistakes.check_names(["nod-1", "node-1", "zzz"], ["node-1", "node-2"])


@pytest.mark.parametrize(
    ("seconds", "span", "age"),
    [
        (0.2, "1 s", "0s"),
        (12, "12 s", "12s"),
        (119, "1 min 59 s", "119s"),
        (250, "4 min 10 s", "4m10s"),
        (7500, "2 h 5 min", "2h"),
        (86400 * 3, "3 d", "3d"),
        (-5, "0 s", "0s"),
    ],
)
def test_time_is_told_as_people_do(seconds: float, span: str, age: str) -> None:
    assert (words.span(timedelta(seconds=seconds)), words.age(timedelta(seconds=seconds))) == (span, age)


def test_names_are_ordered_as_people_count() -> None:
    assert sorted(["n-10", "n-9", "n", "a10b2", "a10b10", "10"], key=natural) == [
        "10",
        "a10b2",
        "a10b10",
        "n",
        "n-9",
        "n-10",
    ]


def test_at_rest_nothing_is_decided_anew_until_something_changes() -> None:
    picture = a_picture(verified("a"), gated("b"))
    first = {each.name: each for each in picture.standings(picture.known, START)}
    second = {each.name: each for each in picture.standings(picture.known, START + timedelta(seconds=1), DAY)}
    assert second["a"] is first["a"]
    assert second["b"] is not first["b"]
    picture.node_changed("a", None, Known(gated("a", failed()), "2"))
    changed = picture.standings(["a"], START + timedelta(seconds=1), DAY)
    assert changed[0].phase is not Phase.VERIFIED
