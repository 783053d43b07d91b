"""Reading a worker's report: what is true in it is kept, and nothing in it is trusted."""

import json

import pytest

from kube_node_ready.api.report import CheckResult, Report, TargetResult, printable, read
from kube_node_ready.api.verdict import Verdict


def a_report(*checks: dict[str, object], **rest: object) -> str:
    return json.dumps({"v": 1, "checks": list(checks), **rest})


def test_a_report_round_trips() -> None:
    report = read(a_report({"name": "dns", "ok": False, "ms": 10003, "target": "google.com", "error": "timed out"}))
    assert report == Report((TargetResult("dns", Verdict.FAILED, ms=10003, target="google.com", error="timed out"),))
    assert report.reason == "dns: google.com: timed out"


def test_the_reason_names_every_target_that_failed_and_causes_come_first() -> None:
    report = read(
        a_report(
            {"name": "network", "ok": False, "error": "not judged: there is no DNS"},
            {"name": "dns", "ok": False, "target": "a.example", "error": "a.example: no such name"},
            {"name": "dns", "ok": True, "target": "b.example"},
            {"name": "api", "ok": False},
        )
    )
    assert report
    assert report.reason == "dns: a.example: no such name; api: failed; network: not judged: there is no DNS"


def test_a_check_passed_if_all_its_targets_did_and_took_as_long_as_the_slowest() -> None:
    report = read(
        a_report(
            {"name": "dns", "ok": True, "ms": 5},
            {"name": "dns", "ok": False, "ms": 2},
            {"name": "api", "ok": True, "ms": 9},
        )
    )
    assert report
    assert report.by_check == (CheckResult("dns", ok=False, ms=5), CheckResult("api", ok=True, ms=9))


def test_the_error_of_a_worker_that_could_not_check_is_the_reason() -> None:
    report = read(a_report(error="NODE_NAME is not set"))
    assert report
    assert report.reason == "NODE_NAME is not set"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "panic: runtime error",
        "{}",
        "null",
        "[]",
        '{"v":"one"}',
        '{"v":1,"checks":{}}',
        '{"v":1,"checks":[{"ok":true}]}',
        '{"v":1,"checks":[{"name":"dns","ok":"yes"}]}',
        '{"v":1,"checks":[{"name":"dns"}]}',
        '{"v":1,"checks":[{"name":"dns","verdict":"passed"}]}',
        '{"v":2,"checks":[{"name":"dns","ok":true}]}',
        '{"v":2,"checks":[{"name":"dns","ok":true,"verdict":"fine"}]}',
        '{"v":3,"checks":[{"name":"dns","ok":true}]}',
        '{"v":1,"checks":[{"name":"dns","ok":true,"ms":1e999}]}',
        '{"v":1,"checks":[{"name":"dns","ok":true}]',
        '{"v":1,"error":"\\ud800"}',
        "\ud800",
        "[" * 4096,
        '{"v":1,"x":' * 700,
        a_report(error="x" * 9000),
    ],
    ids=lambda message: ascii(message)[:40],
)
def test_an_invalid_report_is_none(message: str) -> None:
    assert read(message) is None


@pytest.mark.parametrize(("ms", "kept"), [(-5, 0), (1e300, 86_400_000), (0.9, 0), (12.7, 12)])
def test_a_duration_is_between_nothing_and_a_day(ms: float, kept: int) -> None:
    report = read(a_report({"name": "dns", "ok": True, "ms": ms}))
    assert report
    assert report.checks[0].ms == kept


def test_a_report_has_a_maximum_size() -> None:
    report = read(a_report(*[{"name": f"c{n}", "ok": False} for n in range(200)]))
    assert report
    assert len(report.checks) == 64


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\r\n", "two lines"),
        ("\x1b[2J\x1b]0;title\x07red", "[2J ]0;title red"),
        ("\u202egnp.exe", "gnp.exe"),
        ("zero\u200bwidth", "zero width"),
        ("hangul\u3164filler, braille\u2800blank", "hangul filler, braille blank"),
        ("a \t  b", "a b"),
        ("Übergrößenträger 東京", "Übergrößenträger 東京"),
    ],
)
def test_text_is_one_line_without_control_characters(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_long_text_is_marked_as_truncated() -> None:
    assert printable("x" * 300, 10) == "xxxxxxxxx…"
    assert printable("x" * 10, 10) == "x" * 10
