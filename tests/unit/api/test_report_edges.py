"""Reports and fingerprints at their edges."""

import hashlib
import json

import msgspec
import pytest

from kube_node_ready.api.report import CheckResult, Report, TargetResult, _result, _WireResult, printable, read
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification.fingerprint import fingerprint


def a_message(length: int) -> str:
    empty = json.dumps({"v": 1, "error": ""})
    return json.dumps({"v": 1, "error": "x" * (length - len(empty))})


def test_a_message_is_read_up_to_its_longest() -> None:
    assert read(a_message(8192)) is not None
    assert read(a_message(8193)) is None
    assert read("") is None


def test_deep_nesting_is_not_a_report() -> None:
    assert read('{"v":1,"x":' + "[" * 4000 + "]" * 4000 + "}") is None


def test_each_text_of_a_result_has_its_longest() -> None:
    result = _result(_WireResult("n" * 300, Verdict.PASSED, target="t" * 300, error="e" * 300), 2)
    assert [len(text) for text in (result.name, result.target, result.error)] == [40, 100, 200]


@pytest.mark.parametrize("ms", [float("inf"), float("-inf"), float("nan")])
def test_a_duration_that_is_not_a_number_is_none(ms: float) -> None:
    assert _result(_WireResult("dns", Verdict.PASSED, ms=ms), 2).ms == 0


def test_what_is_cut_off_before_spaces_are_joined_is_four_times_the_longest() -> None:
    # It bounds the work for a hostile text; the rest of such a text is not processed.
    assert printable(" " * 40 + "x", 10) == ""
    assert printable(" " * 39 + "x", 10) == "x"


def test_only_control_and_space_characters_become_spaces() -> None:
    assert printable("XYZ-CXZ") == "XYZ-CXZ"


@pytest.mark.parametrize(("text", "shown"), [("a  b", "a b"), (" a", "a"), ("a ", "a"), ("a b", "a b"), (" ", "")])
def test_spaces_stand_alone_and_between_words(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_text_that_fits_once_it_is_clean_is_not_cut() -> None:
    assert printable("xxxxx\n", 5) == "xxxxx"


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (TargetResult("dns", Verdict.FAILED, target="a", error="a: timeout"), "dns: a: timeout"),
        (TargetResult("dns", Verdict.FAILED, target="a", error="timeout"), "dns: a: timeout"),
        (TargetResult("dns", Verdict.FAILED, target="", error="timeout"), "dns: timeout"),
        (TargetResult("dns", Verdict.FAILED, target="a"), "dns: a: failed"),
        (TargetResult("dns", Verdict.FAILED), "dns: failed"),
    ],
)
def test_a_target_is_named_once(check: TargetResult, reason: str) -> None:
    assert Report((check,)).reason == reason


def test_a_fingerprint_is_short_and_depends_on_the_spec_alone() -> None:
    spec = {"volumes": [], "initContainers": [], "containers": [], "dnsPolicy": "Default"}
    expected = hashlib.blake2b(msgspec.json.encode(dict(sorted(spec.items()))), digest_size=16).hexdigest()
    assert fingerprint(spec) == fingerprint(dict(reversed(spec.items()))) == expected


@pytest.mark.parametrize(("one", "other"), [("x" * 21, "y" * 21), ("kube-api-acces-abcdef", "kube-api-acces-ghijkl")])
def test_volumes_with_names_as_long_as_the_tokens_are_not_tokens(one: str, other: str) -> None:
    assert fingerprint({"volumes": [{"name": one}]}) != fingerprint({"volumes": [{"name": other}]})


def test_a_skipped_check_keeps_its_reason_and_is_not_a_proof() -> None:
    entry = {"name": "matrix", "ok": True, "ms": 3, "notApplicable": True, "error": "not enough peers: 1 of 2"}
    found = read(json.dumps({"v": 1, "checks": [entry, {"name": "dns", "ok": True}]}))
    assert found
    matrix, dns = found.by_check
    assert (matrix.ok, matrix.applies, matrix.proves) == (True, False, False)
    assert matrix.error == "not enough peers: 1 of 2"
    assert dns.proves


def test_a_failure_is_never_skipped() -> None:
    entry = {"name": "matrix", "ok": False, "notApplicable": True, "error": "2 of 2 cannot be reached"}
    found = read(json.dumps({"v": 1, "checks": [entry]}))
    assert found
    assert found.by_check[0].applies
    assert found.checks[0].applies
    assert found.failed
    assert not found.checks[0].proves


def test_a_check_applies_if_one_of_its_targets_does() -> None:
    inapplicable = TargetResult("matrix", Verdict.NOT_APPLICABLE, error="not enough peers")
    passed = TargetResult("matrix", Verdict.PASSED)
    on_record = CheckResult("matrix", ok=True, error="not enough peers", applies=False)
    assert Report((inapplicable, passed)).by_check == (CheckResult("matrix", ok=True),)
    assert Report((inapplicable, inapplicable)).by_check == (on_record,)


def test_a_failed_check_applies_even_if_another_target_does_not() -> None:
    inapplicable = TargetResult("matrix", Verdict.NOT_APPLICABLE, error="not enough peers")
    failed = TargetResult("matrix", Verdict.FAILED, error="2 of 2 cannot be reached")
    assert Report((inapplicable, failed)).by_check == (CheckResult("matrix", ok=False),)


@pytest.mark.parametrize(
    ("entries", "blames"),
    [
        ([], True),
        ([{"ok": False}], True),
        ([{"ok": False, "notJudged": True}], False),
        ([{"ok": False, "error": "not judged: no DNS"}], False),
        ([{"ok": False, "notJudged": True}, {"ok": False}], True),
        ([{"ok": False, "notJudged": True}, {"ok": True}], False),
        ([{"ok": True, "notJudged": True}], True),
    ],
)
def test_in_version_1_a_failure_that_is_judged_blames_the_node(entries: list[dict[str, object]], blames: bool) -> None:  # noqa: FBT001
    found = read(json.dumps({"v": 1, "checks": [{"name": "dns"} | entry for entry in entries]}))
    assert found
    assert found.blames_node is blames


def test_a_passed_check_is_conclusive() -> None:
    found = read('{"v":1,"checks":[{"name":"dns","ok":true,"notJudged":true,"error":"not judged: x"}]}')
    assert found
    assert found.checks[0].verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("verdicts", "blames"),
    [
        ([], True),
        ([Verdict.FAILED], True),
        ([Verdict.INCONCLUSIVE], False),
        ([Verdict.INCONCLUSIVE, Verdict.FAILED], True),
        ([Verdict.INCONCLUSIVE, Verdict.PASSED], False),
        ([Verdict.SKIPPED], True),
        ([Verdict.NOT_APPLICABLE], True),
    ],
)
def test_in_version_2_the_verdict_decides_whether_the_node_is_blamed(verdicts: list[Verdict], blames: bool) -> None:  # noqa: FBT001
    found = read(json.dumps({"v": 2, "checks": [{"name": "dns", "verdict": verdict} for verdict in verdicts]}))
    assert found
    assert found.blames_node is blames


@pytest.mark.parametrize("verdict", list(Verdict))
def test_in_version_2_nothing_but_the_verdict_decides(verdict: Verdict) -> None:
    for ok in (True, False):
        others = {"ok": ok, "skipped": True, "notJudged": True, "notApplicable": True, "error": "not judged: x"}
        found = read(json.dumps({"v": 2, "checks": [{"name": "dns", "verdict": verdict} | others]}))
        assert found
        assert found.checks == (TargetResult("dns", verdict, error="not judged: x"),)


@pytest.mark.parametrize(
    ("entry", "verdict"),
    [
        ({"ok": True}, Verdict.PASSED),
        ({"ok": True, "skipped": True}, Verdict.SKIPPED),
        ({"ok": True, "notApplicable": True}, Verdict.NOT_APPLICABLE),
        ({"ok": False}, Verdict.FAILED),
        ({"ok": False, "skipped": True}, Verdict.FAILED),
        ({"ok": False, "notJudged": True}, Verdict.INCONCLUSIVE),
        ({"ok": False, "error": "not judged: no DNS"}, Verdict.INCONCLUSIVE),
        ({"ok": True, "verdict": "failed"}, Verdict.PASSED),
    ],
)
def test_version_1_is_read_by_its_fields(entry: dict[str, object], verdict: Verdict) -> None:
    found = read(json.dumps({"v": 1, "checks": [{"name": "dns"} | entry]}))
    assert found
    assert found.checks[0].verdict is verdict


@pytest.mark.parametrize(
    ("verdict", "ok", "applies", "proves"),
    [
        (Verdict.PASSED, True, True, True),
        (Verdict.FAILED, False, True, False),
        (Verdict.SKIPPED, True, True, False),
        (Verdict.INCONCLUSIVE, False, True, False),
        (Verdict.NOT_APPLICABLE, True, False, False),
    ],
)
def test_what_a_verdict_means(verdict: Verdict, ok: bool, applies: bool, proves: bool) -> None:  # noqa: FBT001  a table
    result = TargetResult("dns", verdict)
    assert (result.ok, result.applies, result.proves) == (ok, applies, proves)
