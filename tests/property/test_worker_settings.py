"""Whatever the worker reads, the result is an error message or a value, never a traceback."""

import json
import os
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import dns_client, report
from kube_node_ready.checks.check import CHECKS, Result
from kube_node_ready.checks.dns_client import MalformedError, Question, Reply
from kube_node_ready.checks.settings import Settings
from kube_node_ready.settings import worker
from kubekit.diagnostics import DiagnosticsError

QUESTION = Question("kubernetes.default.svc.cluster.local")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(sorted(worker.TABLE.fields.keys())) | st.text(max_size=20)
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABEL, min_size=1, max_size=8).map(".".join)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@example({"logging": {"level": []}})
def test_any_mapping_is_settings_or_a_list_of_errors(mapping: dict[str, object]) -> None:
    try:
        found = worker.parse(mapping, "here")
    except DiagnosticsError as error:
        reported = tuple(map(str, error.diagnostics))
    else:
        reported = ("not one",)
        assert 0 < found.check_timeout_seconds <= found.timeout_seconds <= 3600
        assert set(mapping) <= worker.TABLE.fields.keys()
    assert reported
    assert all(len(line) < 600 and line.isprintable() for line in reported)


@given(st.sampled_from(sorted(worker.TABLE.fields.keys() - {"logging"})), st.text(max_size=40))
def test_any_string_from_the_environment_is_a_value_or_one_error(key: str, value: str) -> None:
    errors = 0
    try:
        worker.parse({key: value}, "VARIABLE")
    except DiagnosticsError as error:
        errors = len(error.diagnostics)
    assert errors <= 1


@given(st.lists(NAMES, max_size=5))
def test_every_dns_name_is_accepted(names: list[str]) -> None:
    named = [name for name in names if not name.rpartition(".")[2].isdigit()]
    assert worker.parse({"dnsTestDomains": named}, "here").dns_test_domains == tuple(dict.fromkeys(named))


@given(st.integers(0, 59), st.integers(0, 59), st.integers(1, 999))
def test_durations_add_up(minutes: int, seconds: int, milliseconds: int) -> None:
    found = worker.parse({"timeoutSeconds": 3600, "checkTimeoutSeconds": f"{minutes}m{seconds}s{milliseconds}ms"}, "")
    assert found.check_timeout_seconds == pytest.approx(minutes * 60 + seconds + milliseconds / 1000)


@given(st.binary(max_size=300))
@example(b"")
def test_any_bytes_are_an_answer_or_malformed(data: bytes) -> None:
    try:
        found = dns_client.decode(data, QUESTION, 7)
    except MalformedError:
        return
    assert isinstance(found, Reply)


@given(st.binary(max_size=120), st.integers(0, 65_535), st.integers(0, 40))
def test_any_bytes_after_our_own_question_are_an_answer_or_malformed(tail: bytes, flags: int, answers: int) -> None:
    """Past the header and the question the decoder follows pointers and lengths that an enemy wrote."""
    head = struct.pack("!6H", 7, flags | 0x8000, 1, answers, 0, 0)
    try:
        found = dns_client.decode(head + dns_client.encode(QUESTION, 7)[12:] + tail, QUESTION, 7)
    except MalformedError:
        return
    assert len(found.addresses) <= answers


@given(NAMES, st.integers(0, 65_535))
def test_an_encoded_question_is_recognized_in_its_answer(name: str, number: int) -> None:
    question = Question(name)
    data = bytearray(dns_client.encode(question, number))
    data[2] |= 0x80
    assert dns_client.decode(bytes(data), question, number) == Reply(0, False, ())  # noqa: FBT003
    with pytest.raises(MalformedError):
        dns_client.decode(bytes(data), question, number ^ 1)


RESULTS = st.lists(
    st.builds(
        Result,
        st.sampled_from(CHECKS),
        st.text(max_size=300),
        st.sampled_from([Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE]),
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
    reported = {check["name"] for check in found["checks"] if not check["ok"]}
    assert reported == {result.name for result in results if not result.ok}


def test_random_bytes_of_a_real_packets_size_never_crash_the_decoder() -> None:
    for _ in range(2000):
        try:
            dns_client.decode(os.urandom(512), QUESTION, 7)
        except MalformedError:
            continue


def test_the_defaults_are_what_an_empty_mapping_gives() -> None:
    assert worker.parse({}, "here") == Settings()
