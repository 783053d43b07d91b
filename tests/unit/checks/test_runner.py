"""The runner, and the report it ends in."""

import json
import threading
import time
from collections.abc import Callable, Mapping

import pytest

from kube_node_ready.api import report as reading
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import report
from kube_node_ready.checks.check import CHECKS, Check, CheckFailedError, Deadline, Evidence, InconclusiveError, Result
from kube_node_ready.checks.runner import Limits, Observer, Runner

FAILED, INCONCLUSIVE, PASSED = Verdict.FAILED, Verdict.INCONCLUSIVE, Verdict.PASSED


def a_job(target: str, prove: Callable[[Deadline], Evidence], name: str = "dns") -> Check:
    return Check(name, target, prove)


def passes(_deadline: Deadline) -> Evidence:
    return Evidence()


def raises(why: Exception) -> Callable[[Deadline], Evidence]:
    def prove(_deadline: Deadline) -> Evidence:
        raise why

    return prove


def run(*jobs: Check, each: float = 5, everything: float = 10) -> dict[str, Result]:
    return {result.target: result for result in Runner(Limits(each, everything), Observer()).run(jobs)}


class TestRunner:
    def test_equal_results_come_in_the_order_of_the_settings_whichever_ends_first(self) -> None:
        """So that a condition says the same thing of two attempts that failed in the same way."""
        second_ended = threading.Event()

        def first(_: Deadline) -> Evidence:
            second_ended.wait(5)
            raise CheckFailedError("no")

        def second(_: Deadline) -> Evidence:
            second_ended.set()
            raise CheckFailedError("no")

        assert list(run(a_job("first", first), a_job("second", second))) == ["first", "second"]

    def test_one_failure_hides_no_other_result(self) -> None:
        found = run(
            a_job("good", passes),
            a_job("bad", raises(CheckFailedError("no"))),
            a_job("open", raises(InconclusiveError("who knows"))),
            a_job("buggy", raises(ZeroDivisionError("by zero"))),
            a_job("late", raises(TimeoutError())),
        )
        verdicts = {target: (result.verdict, result.error) for target, result in found.items()}
        assert verdicts == {
            "good": (PASSED, ""),
            "bad": (FAILED, "no"),
            "open": (INCONCLUSIVE, "not judged: who knows"),
            "buggy": (FAILED, "check failed unexpectedly: ZeroDivisionError: by zero"),
            "late": (FAILED, "timed out after 5 s"),
        }

    def test_all_jobs_run_at_the_same_time(self) -> None:
        together = threading.Barrier(8)

        def meet(_deadline: Deadline) -> Evidence:
            together.wait(timeout=5)
            return Evidence()

        assert all(result.ok for result in run(*(a_job(str(number), meet) for number in range(8))).values())

    def test_a_hanging_job_is_abandoned_and_the_others_count(self) -> None:
        forever = threading.Event()
        found = run(a_job("stuck", lambda _: Evidence({"never": forever.wait(20)})), a_job("good", passes), each=1)
        forever.set()
        assert found["stuck"].error == "timed out after 1 s"
        assert found["stuck"].ms >= 1000
        assert found["good"].ok

    def test_all_jobs_end_by_the_overall_deadline(self) -> None:
        forever = threading.Event()
        begun = time.monotonic()
        found = run(a_job("stuck", lambda _: Evidence({"never": forever.wait(20)})), each=20, everything=0.2)
        forever.set()
        assert not found["stuck"].ok
        assert time.monotonic() - begun < 10

    def test_jobs_that_a_job_finds_are_run_in_its_place(self) -> None:
        more = (a_job("one", passes), a_job("two", raises(CheckFailedError("no"))))
        found = run(a_job("finder", lambda _: Evidence(follow_ups=more)))
        assert {target: result.ok for target, result in found.items()} == {"one": True, "two": False}

    def test_jobs_found_too_late_are_inconclusive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kube_node_ready.checks.runner.GRACE_SECONDS", 30)

        def find_late(_deadline: Deadline) -> Evidence:
            time.sleep(0.3)
            return Evidence(follow_ups=(a_job("late", passes),))

        found = run(a_job("finder", find_late), each=0.2, everything=0.2)
        assert found["late"].verdict == INCONCLUSIVE

    def test_a_stop_returns_the_results_so_far(self) -> None:
        forever, done = threading.Event(), threading.Event()

        class Watch(Observer):
            def ended(self, result: Result, facts: Mapping[str, object]) -> None:
                assert not facts
                if result.ok:
                    done.set()

        runner = Runner(Limits(20, 20), Watch())

        def stop_when_one_is_done() -> None:
            done.wait(5)
            runner.stop()

        threading.Thread(target=stop_when_one_is_done).start()
        jobs = [a_job("stuck", lambda _: Evidence({"never": forever.wait(20)})), a_job("good", passes)]
        found = {result.target: result for result in runner.run(jobs)}
        forever.set()
        assert found["stuck"].error == "stopped before it completed"
        assert found["good"].ok

    def test_causes_come_before_consequences_and_both_before_what_passed(self) -> None:
        found = run(
            a_job("fine", passes, "dns"),
            a_job("open", raises(InconclusiveError("who knows")), "network"),
            a_job("cause", raises(CheckFailedError("no")), "payload"),
            a_job("open too", raises(InconclusiveError("who knows")), "services"),
        )
        assert list(found) == ["cause", "open", "open too", "fine"]


def results(
    count: int, verdict: Verdict, *, name: str = "dns", error: str = "", target: str = "target"
) -> list[Result]:
    return [Result(name, f"{target}-{number}", verdict, number, error) for number in range(count)]


def decoded(found: list[Result], node: str = "node", error: str = "") -> dict[str, object]:
    data = report.encode(node, found, error)
    assert len(data) <= 4096
    parsed: dict[str, object] = json.loads(data)
    return parsed


class TestReport:
    def test_a_report_is_complete_if_it_fits(self) -> None:
        found = [Result("dns", "a", FAILED, 12, "no"), Result("api", "b", PASSED, 3)]
        assert decoded(found) == {
            "v": 2,
            "node": "node",
            "checks": [
                {"name": "dns", "verdict": "failed", "ok": False, "ms": 12, "target": "a", "error": "no"},
                {"name": "api", "verdict": "passed", "ok": True, "ms": 3, "target": "b"},
            ],
        }

    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_readers_of_version_1_find_its_fields(self, verdict: Verdict) -> None:
        (check,) = json.loads(report.encode("node", [Result("dns", "a", verdict, 1)]))["checks"]
        assert check["ok"] is verdict.ok
        marks = {"skipped": "skipped", "notApplicable": "not-applicable", "notJudged": "inconclusive"}
        assert {mark for mark in marks if check.get(mark)} == {mark for mark in marks if marks[mark] == verdict}

    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_every_verdict_is_read_back(self, verdict: Verdict) -> None:
        found = reading.read(report.encode("node", [Result("dns", "a", verdict, 1)]).decode())
        assert found
        assert [check.verdict for check in found.checks] == [verdict]

    def test_long_errors_are_shortened_first(self) -> None:
        found = decoded(results(10, FAILED, error="x" * 1000) + results(10, PASSED))
        checks = found["checks"]
        assert isinstance(checks, list)
        assert len(checks) == 20
        assert checks[0]["error"].endswith("x…")

    def test_then_passing_targets_share_an_entry(self) -> None:
        checks = decoded(results(5, FAILED, error="why") + results(100, PASSED, target="t" * 50))["checks"]
        assert isinstance(checks, list)
        assert [check["ok"] for check in checks] == [False] * 5 + [True]
        assert checks[-1]["target"].endswith("-0 and 99 more")
        assert checks[-1]["ms"] == 99

    def test_characters_that_json_escapes_leave_room_for_all_checks(self) -> None:
        """The kubelet cuts a longer report. It cannot be read then, and a node is blamed for what was not judged."""
        verdicts = (INCONCLUSIVE, PASSED)
        found = [Result(name, "\0" * 300, verdict, 10**8, "\x1b" * 300) for verdict in verdicts for name in CHECKS]
        checks = decoded(found, node="\0" * 300, error="\0" * 300)["checks"]
        assert isinstance(checks, list)
        assert [check["name"] for check in checks if not check["ok"] and check["notJudged"]] == list(CHECKS)

    def test_failing_checks_are_always_named(self) -> None:
        found = [
            one for name in ("dns", "network", "services") for one in results(100, FAILED, name=name, error="é" * 90)
        ]
        checks = decoded(found)["checks"]
        assert isinstance(checks, list)
        assert {check["name"] for check in checks} == {"dns", "network", "services"}

    @pytest.mark.parametrize("count", range(1, 60))
    def test_it_fits_with_any_number_of_targets(self, count: int) -> None:
        decoded(results(count, FAILED, error="x" * 40))

    def test_an_error_without_checks_is_a_report_too(self) -> None:
        assert decoded([], error="no token") == {"v": 2, "node": "node", "checks": [], "error": "no token"}

    @pytest.mark.parametrize("text", ["\0" * 5000, "\ud800" * 5000, "😀" * 5000])
    def test_any_text_fits_and_is_valid_json(self, text: str) -> None:
        found = [Result(name, text, FAILED, 10**9, text) for name in ("dns", "api", "network", "services", "payload")]
        decoded(found, node=text, error=text)
