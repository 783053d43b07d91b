"""Whatever the worker is told or sent, it answers with a sentence or a value, never with a traceback."""

import json
import os
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube_node_ready.checks import dnsquery, report, settings
from kube_node_ready.checks.dnsquery import MalformedError, Question, Reply
from kube_node_ready.checks.model import CHECKS, FAILED, NOT_JUDGED, PASSED, Result
from kube_node_ready.checks.settings import Settings, SettingsError

QUESTION = Question("kubernetes.default.svc.cluster.local")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(sorted(settings.NAMES)) | st.text(max_size=20)
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABEL, min_size=1, max_size=8).map(".".join)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@example({"logging": {"level": []}})
def test_any_mapping_is_settings_or_a_list_of_mistakes(mapping: dict[str, object]) -> None:
    try:
        found = settings.load(mapping, "here")
    except SettingsError as why:
        told = why.mistakes
    else:
        told = ("not one",)
        assert 0 < found.check_timeout_seconds <= found.timeout_seconds <= 3600
        assert set(mapping) <= settings.NAMES
    assert told
    assert all(len(mistake) < 600 and "\n" not in mistake for mistake in told)


@given(st.sampled_from(sorted(settings.NAMES - {"logging"})), st.text(max_size=40))
def test_any_string_from_the_environment_is_a_value_or_one_mistake(key: str, value: str) -> None:
    mistakes: tuple[str, ...] = ()
    try:
        settings.load({key: value}, "VARIABLE")
    except SettingsError as why:
        mistakes = why.mistakes
    assert len(mistakes) <= 1


@given(st.lists(NAMES, max_size=5))
def test_every_dns_name_is_accepted(names: list[str]) -> None:
    named = [name for name in names if not name.rpartition(".")[2].isdigit()]
    assert settings.load({"dnsTestDomains": named}, "here").dns_test_domains == tuple(dict.fromkeys(named))


@given(st.integers(0, 59), st.integers(0, 59), st.integers(1, 999))
def test_durations_add_up(minutes: int, seconds: int, milliseconds: int) -> None:
    found = settings.load({"timeoutSeconds": 3600, "checkTimeoutSeconds": f"{minutes}m{seconds}s{milliseconds}ms"}, "")
    assert found.check_timeout_seconds == pytest.approx(minutes * 60 + seconds + milliseconds / 1000)


@given(st.binary(max_size=300))
@example(b"")
def test_any_bytes_are_an_answer_or_malformed(data: bytes) -> None:
    try:
        found = dnsquery.decode(data, QUESTION, 7)
    except MalformedError:
        return
    assert isinstance(found, Reply)


@given(st.binary(max_size=120), st.integers(0, 65_535), st.integers(0, 40))
def test_any_bytes_after_our_own_question_are_an_answer_or_malformed(tail: bytes, flags: int, answers: int) -> None:
    """Past the header and the question the decoder follows pointers and lengths that an enemy wrote."""
    head = struct.pack("!6H", 7, flags | 0x8000, 1, answers, 0, 0)
    try:
        found = dnsquery.decode(head + dnsquery.encode(QUESTION, 7)[12:] + tail, QUESTION, 7)
    except MalformedError:
        return
    assert len(found.addresses) <= answers


@given(NAMES, st.integers(0, 65_535))
def test_an_encoded_question_is_recognised_in_its_answer(name: str, number: int) -> None:
    question = Question(name)
    data = bytearray(dnsquery.encode(question, number))
    data[2] |= 0x80
    assert dnsquery.decode(bytes(data), question, number) == Reply(0, False, ())  # noqa: FBT003
    with pytest.raises(MalformedError):
        dnsquery.decode(bytes(data), question, number ^ 1)


RESULTS = st.lists(
    st.builds(
        Result,
        st.sampled_from(CHECKS),
        st.text(max_size=300),
        st.sampled_from([PASSED, FAILED, NOT_JUDGED]),
        st.integers(0, 10**9),
        st.text(max_size=1000),
    ),
    max_size=150,
)


@given(st.text(max_size=300), RESULTS, st.text(max_size=5000))
def test_every_report_fits_and_names_every_failing_check(node: str, results: list[Result], error: str) -> None:
    data = report.encode(node, results, error)
    assert len(data) <= 4096
    found = json.loads(data)
    told = {check["name"] for check in found["checks"] if not check["ok"]}
    assert told == {result.name for result in results if not result.ok}


def test_random_bytes_of_a_real_packets_size_never_crash_the_decoder() -> None:
    for _ in range(2000):
        try:
            dnsquery.decode(os.urandom(512), QUESTION, 7)
        except MalformedError:
            continue


def test_the_defaults_are_what_an_empty_mapping_gives() -> None:
    assert settings.load({}, "here") == Settings()
