"""The verification record: what is written can be read, and nothing in it is trusted."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from kube_node_ready.api.record import Cause, Outcome, VerificationRecord, decode_record, encode_record
from kube_node_ready.api.report import CheckResult

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_record_round_trips() -> None:
    record = VerificationRecord(
        7,
        failures=3,
        outcome=Outcome.FAILED,
        at=AT,
        since=SINCE,
        boot="boot",
        cause=Cause.CHECKS,
        reason='"quoted" é',
        seconds=1.5,
        checks=(CheckResult("dns", ok=False, ms=3),),
    )
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    "annotation",
    [
        None,
        "",
        "}{",
        "null",
        "[]",
        '{"attempt":"1"}',
        '{"attempt":-1}',
        '{"attempt":1,"failures":2}',
        '{"attempt":1,"failures":-1}',
        '{"attempt":100000000}',
        '{"attempt":1,"outcome":"maybe"}',
        '{"attempt":1,"at":"2026-01-01T00:00:00"}',
        '{"attempt":1,"at":"yesterday"}',
        "[" * 10_000,
    ],
    ids=lambda annotation: str(annotation)[:40],
)
def test_an_invalid_record_is_an_empty_one(annotation: str | None) -> None:
    assert decode_record(annotation) == VerificationRecord()


def test_fields_of_a_later_version_are_ignored() -> None:
    assert decode_record('{"attempt":4,"new":{"x":1}}').attempt == 4


LONGEST = 10 * 366 * 86_400.0
"""Ten years, in seconds."""


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.5, 0.5),
        (-0.5, 0),
        (LONGEST, LONGEST),
        (LONGEST + 1, LONGEST),
        (float("inf"), 0),
        (float("-inf"), 0),
        (float("nan"), 0),
    ],
)
def test_a_duration_round_trips(seconds: float, written: float) -> None:
    assert decode_record(encode_record(VerificationRecord(1, seconds=seconds))) == VerificationRecord(
        1, seconds=written
    )


def checks(count: int = 1, ms: int = 0) -> tuple[CheckResult, ...]:
    return (CheckResult("dns", ok=True, ms=ms),) * count


@pytest.mark.parametrize(
    ("record", "possible"),
    [
        (VerificationRecord(10**7 - 1), True),
        (VerificationRecord(10**7), False),
        (VerificationRecord(10**7, outcome=Outcome.FAILED), False),
        (VerificationRecord(10**7, outcome=Outcome.PASSED), True),  # no attempt has to follow
        (VerificationRecord(10**7 + 1, outcome=Outcome.PASSED), False),
        (VerificationRecord(3, contested=3), True),
        (VerificationRecord(3, contested=4), False),
        (VerificationRecord(3, contested=-1), False),
        (VerificationRecord(3, seconds=LONGEST), True),
        (VerificationRecord(3, seconds=LONGEST + 1), False),
        (VerificationRecord(3, seconds=-0.5), False),
        (VerificationRecord(3, checks=checks(64)), True),
        (VerificationRecord(3, checks=checks(65)), False),
        (VerificationRecord(3, checks=checks(ms=86_400_000)), True),
        (VerificationRecord(3, checks=checks(ms=86_400_001)), False),
        (VerificationRecord(3, checks=checks(ms=-1)), False),
        (VerificationRecord(3, at=datetime(1970, 1, 1, tzinfo=UTC)), True),
        (VerificationRecord(3, at=datetime(1969, 12, 31, tzinfo=UTC)), False),
        (VerificationRecord(3, at=datetime(9000, 12, 31, tzinfo=UTC)), True),
        (VerificationRecord(3, at=datetime(9001, 1, 1, tzinfo=UTC)), False),
        (VerificationRecord(3, at=datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))), False),
        (VerificationRecord(3, failures=3, node_failures=3), True),
        (VerificationRecord(3, failures=4), False),
        (VerificationRecord(3, failures=-1), False),
        (VerificationRecord(3, failures=2, node_failures=3), False),
        (VerificationRecord(3, failures=2, node_failures=-1), False),
        (VerificationRecord(3, at=AT, since=SINCE), True),
        (VerificationRecord(3, at=datetime(2026, 1, 1), since=SINCE), False),  # noqa: DTZ001  the point
        (VerificationRecord(3, at=AT, since=datetime(2026, 1, 1)), False),  # noqa: DTZ001  the point
    ],
)
def test_impossible_records_are_empty_ones(record: VerificationRecord, possible: bool) -> None:  # noqa: FBT001  a table
    written = msgspec.json.encode(record).decode()  # as another client could: `encode` corrects durations
    assert decode_record(written) == (record if possible else VerificationRecord())


def test_an_annotation_is_read_up_to_its_longest() -> None:
    longest = '{"attempt":1}'.ljust(2**14)
    assert decode_record(longest) == VerificationRecord(1)
    assert decode_record(f"{longest} ") == VerificationRecord()


@pytest.mark.parametrize("text", ["\ud800", "\\ud800"], ids=["as it is", "escaped"])
def test_half_of_a_surrogate_pair_is_not_in_a_record(text: str) -> None:
    assert decode_record(f'{{"attempt":1,"reason":"{text}"}}') == VerificationRecord()


def test_every_text_of_a_record_can_be_printed() -> None:
    hostile = "\x1b[2J"
    check = CheckResult(hostile, ok=False, ms=1, target=hostile, error=hostile)
    record = VerificationRecord(2, reason=hostile, boot=hostile, checks=(check,))
    shown = CheckResult("[2J", ok=False, ms=1, target="[2J", error="[2J")
    assert decode_record(encode_record(record)) == VerificationRecord(2, reason="[2J", boot="[2J", checks=(shown,))


@pytest.mark.parametrize(("field", "longest"), [("reason", 4000), ("boot", 100)])
def test_long_texts_of_a_record_are_cut(field: str, longest: int) -> None:
    def read(length: int) -> str:
        text: str = getattr(decode_record(f'{{"attempt":1,"{field}":"{"x" * length}"}}'), field)
        return text

    assert read(longest) == "x" * longest
    assert read(longest + 1) == f"{'x' * (longest - 1)}…"


@pytest.mark.parametrize("cause", [Cause.NONE, Cause.CHECKS])
def test_a_failure_with_an_unprintable_reason_is_not_a_record(cause: Cause) -> None:
    record = VerificationRecord(2, failures=1, outcome=Outcome.PASSED, at=AT, reason="\u200b", cause=cause)
    assert decode_record(encode_record(record)) == VerificationRecord()


def test_a_passed_record_of_another_client_with_a_reason_and_no_cause_is_not_a_proof() -> None:
    """Our own have had both from the start. A proof has neither."""
    found = decode_record('{"attempt":2,"failures":1,"outcome":"passed","reason":"dns"}')
    assert found == VerificationRecord(2, failures=1, outcome=Outcome.PASSED, reason="dns", cause=Cause.STOPPED)
    assert not found.is_proof
    assert decode_record(encode_record(found)) == found


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.NONE])
def test_a_cause_is_kept(cause: Cause) -> None:
    record = VerificationRecord(2, outcome=Outcome.PASSED, reason="dns", cause=cause)
    assert decode_record(encode_record(record)) == record


def test_the_names_on_the_wire_never_change() -> None:
    record = VerificationRecord(2, failures=2, node_failures=1, during_outage=True)
    assert encode_record(record) == '{"attempt":2,"failures":2,"blamed":1,"in_crowd":true}'


@pytest.mark.parametrize("outcome", [Outcome.PENDING, Outcome.FAILED])
def test_other_records_can_have_a_reason_without_a_cause(outcome: Outcome) -> None:
    record = VerificationRecord(2, outcome=outcome, reason="the gate came back")
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("cause", list(Cause))
def test_only_a_passed_outcome_without_a_cause_is_a_proof(cause: Cause) -> None:
    assert VerificationRecord(1, outcome=Outcome.PASSED, cause=cause).is_proof is (cause is Cause.NONE)
    assert not VerificationRecord(1, outcome=Outcome.PENDING, cause=cause).is_proof
    assert not VerificationRecord(1, outcome=Outcome.FAILED, cause=cause).is_proof


@pytest.mark.parametrize(("contested", "is_contested"), [(0, False), (1, False), (2, True), (3, True)])
def test_the_second_undone_release_in_a_row_is_a_contest(contested: int, is_contested: bool) -> None:  # noqa: FBT001
    assert VerificationRecord(3, contested=contested).is_contested is is_contested


def test_a_record_that_is_nested_too_deeply_is_an_empty_one() -> None:
    assert decode_record('{"attempt":1,"x":' + "[" * 8_000 + "]" * 8_000 + "}") == VerificationRecord()


MANY = tuple(CheckResult("n" * 40, ok=False, target="t" * 100, error="é" * 200) for _ in range(64))
LARGE = [
    VerificationRecord(2, failures=1, outcome=Outcome.FAILED, at=AT, reason="\N{OK HAND SIGN}" * 8000, checks=MANY),
    VerificationRecord(2, failures=1, outcome=Outcome.FAILED, at=AT, reason='"' * 10_000),
]
"""Larger than the chart's admission policies allow."""


@pytest.mark.parametrize("record", LARGE)
def test_no_record_is_larger_than_the_admission_policies_allow(record: VerificationRecord) -> None:
    text = encode_record(record)
    assert len(text.encode()) <= 2**14
    read = decode_record(text)
    assert (read.attempt, read.failures, read.outcome, read.reason[:9]) == (2, 1, Outcome.FAILED, record.reason[:9])


def test_an_oversized_record_is_an_empty_one() -> None:
    record = VerificationRecord(2, failures=1, outcome=Outcome.FAILED, reason="dns")
    largest = encode_record(record).ljust(2**14)
    assert decode_record(largest) == record
    assert decode_record(f"{largest} ") == VerificationRecord()
    assert decode_record(largest.replace("dns", "dné").rstrip().ljust(2**14)) == VerificationRecord(), "in bytes"


def test_the_names_of_fields_are_those_of_earlier_versions() -> None:
    record = VerificationRecord(2, failures=1, outcome=Outcome.FAILED, node_failures=1, during_outage=True)
    assert msgspec.json.decode(encode_record(record)) == {
        "attempt": 2,
        "failures": 1,
        "outcome": "failed",
        "blamed": 1,
        "in_crowd": True,
    }


def test_causes_have_the_values_that_are_on_record() -> None:
    """Records that an earlier controller wrote have them."""
    assert {cause.value for cause in Cause} == {
        "",
        "checks",
        "not-judged",
        "late",
        "not-started",
        "stopped",
        "refused",
        "misconfigured",
        "not-released",
        "not-recorded",
    }
