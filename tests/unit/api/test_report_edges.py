"""Reports and fingerprints at their edges."""

import hashlib
import json

import msgspec
import pytest

from kube_node_ready.verify.fingerprint import fingerprint
from kube_node_ready.verify.report import CheckResult, Report, _result, _WireResult, printable, read


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
    result = _result(_WireResult("n" * 300, ok=True, target="t" * 300, error="e" * 300))
    assert [len(text) for text in (result.name, result.target, result.error)] == [40, 100, 200]


@pytest.mark.parametrize("ms", [float("inf"), float("-inf"), float("nan")])
def test_a_duration_that_is_not_a_number_is_none(ms: float) -> None:
    assert _result(_WireResult("dns", ok=True, ms=ms)).ms == 0


def test_what_is_cut_off_before_spaces_are_joined_is_four_times_the_longest() -> None:
    # It bounds the work for a hostile text; the rest of such a text is never looked at.
    assert printable(" " * 40 + "x", 10) == ""
    assert printable(" " * 39 + "x", 10) == "x"


def test_only_control_and_space_characters_become_spaces() -> None:
    assert printable("XYZ-CXZ") == "XYZ-CXZ"


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (CheckResult("dns", ok=False, target="a", error="a: timeout"), "dns: a: timeout"),
        (CheckResult("dns", ok=False, target="a", error="timeout"), "dns: a: timeout"),
        (CheckResult("dns", ok=False, target="", error="timeout"), "dns: timeout"),
        (CheckResult("dns", ok=False, target="a"), "dns: a: failed"),
        (CheckResult("dns", ok=False), "dns: failed"),
    ],
)
def test_a_target_is_named_once(check: CheckResult, reason: str) -> None:
    assert Report((check,)).reason == reason


def test_a_fingerprint_is_short_and_depends_on_the_spec_alone() -> None:
    spec = {"volumes": [], "initContainers": [], "containers": [], "dnsPolicy": "Default"}
    expected = hashlib.blake2b(msgspec.json.encode(dict(sorted(spec.items()))), digest_size=16).hexdigest()
    assert fingerprint(spec) == fingerprint(dict(reversed(spec.items()))) == expected


@pytest.mark.parametrize(("one", "other"), [("x" * 21, "y" * 21), ("kube-api-acces-abcdef", "kube-api-acces-ghijkl")])
def test_volumes_with_names_as_long_as_the_tokens_are_not_tokens(one: str, other: str) -> None:
    assert fingerprint({"volumes": [{"name": one}]}) != fingerprint({"volumes": [{"name": other}]})
