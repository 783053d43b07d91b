"""The verification record: what is known of a node's attempts, as JSON in an annotation of the Node.

The node's kubelet can write the annotation, so a record is decoded without trusting it. What it is believed for is
decided elsewhere: it is memory, not evidence.
"""

import math
from datetime import datetime, timedelta
from enum import StrEnum, auto

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kube_node_ready.api.report import MOST_MS, MOST_RESULTS, CheckResult, cleaned, printable

MAX_BOOT_LENGTH = 100
MAX_ATTEMPTS = 10**7
CONTEST_THRESHOLD = 2
"""This many undone releases in a row are a contest. One can be intended: removing the label requests a new proof."""

MAX_REASON_LENGTH = 4000

_MAX_BYTES = 2**14
"""Of a record. The chart's admission policies reject a larger one, and a condition's message of more than 32 KiB."""
_SHORT_REASON_LENGTH = 1000
_MAX_SECONDS = 10 * 366 * 86_400.0
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


class Outcome(StrEnum):
    PENDING = auto()
    PASSED = auto()
    FAILED = auto()


class Cause(StrEnum):
    """Why an attempt failed. Only some causes count against the node."""

    NONE = ""
    CHECKS = auto()
    NOT_JUDGED = "not-judged"
    LATE = auto()
    NOT_STARTED = "not-started"
    STOPPED = auto()
    REFUSED = auto()
    MISCONFIGURED = auto()
    NOT_RELEASED = "not-released"
    NOT_RECORDED = "not-recorded"

    @property
    def blames_node(self) -> bool:
        """Whether the node is at fault. A missing image or a rejected pod would affect a new node, too."""
        return self in (Cause.CHECKS, Cause.LATE)


class VerificationRecord(Struct, frozen=True, omit_defaults=True):
    """The verification record: what is known of a node's attempts. It is stored on the Node, and survives restarts."""

    attempt: int = 0
    """The number of the last attempt whose verdict is known. It only grows."""
    failures: int = 0
    """Failures in a row, including the last attempt. A verified node has some if it failed since."""
    outcome: Outcome = Outcome.PENDING
    at: datetime | None = None
    since: datetime | None = None
    """When the outcome last changed; the condition's lastTransitionTime."""
    boot: str = ""
    """The boot in which the node passed: a proof does not outlive a reboot."""
    cause: Cause = Cause.NONE
    """Why the last attempt failed; none if it passed."""
    node_failures: int = field(default=0, name="blamed")
    """Failures in a row that count against the node."""
    during_outage: bool = field(default=False, name="in_crowd")
    """Whether so many nodes were failing that the cluster might have been at fault."""
    reason: str = ""
    seconds: float = 0
    checks: tuple[CheckResult, ...] = ()
    contested: int = 0
    """How often in a row another client undid the release soon after it."""

    @property
    def is_proof(self) -> bool:
        """Whether the last attempt passed, and not only one before it."""
        return self.outcome is Outcome.PASSED and self.cause is Cause.NONE

    @property
    def is_contested(self) -> bool:
        """Whether another client keeps undoing the release."""
        return self.contested >= CONTEST_THRESHOLD


def encode_record(record: VerificationRecord) -> str:
    """Return JSON that `decode_record` accepts, if necessary with a shorter reason and without results of checks."""
    encoded = msgspec.json.encode(replace(record, seconds=_possible_seconds(record.seconds)))
    if len(encoded) > _MAX_BYTES:
        return encode_record(replace(record, reason=printable(record.reason, _SHORT_REASON_LENGTH), checks=()))
    return encoded.decode()


def decode_record(annotation: str | None) -> VerificationRecord:
    """Return the record, or an empty one if there is none or it is invalid.

    The node's kubelet can write this annotation. All numbers and times of the result are safe to calculate with, and
    all texts are safe to print.
    """
    if annotation is None or len(annotation) > _MAX_BYTES:
        return VerificationRecord()
    try:
        encoded = annotation.encode()
        if len(encoded) > _MAX_BYTES:
            return VerificationRecord()
        record = msgspec.json.decode(encoded, type=VerificationRecord)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):  # the last of a lone surrogate
        return VerificationRecord()
    return _cleaned(record) if _is_possible(record) else VerificationRecord()


def _is_possible(record: VerificationRecord) -> bool:
    # The next attempt must be valid, too, or its verdict would be lost. After a proof there need not be one.
    room = 0 if record.outcome is Outcome.PASSED else 1
    return (
        0 <= record.failures <= record.attempt <= MAX_ATTEMPTS - room
        and 0 <= record.node_failures <= record.failures
        and 0 <= record.contested <= record.attempt
        and 0 <= record.seconds <= _MAX_SECONDS
        and all(time is None or _is_possible_time(time) for time in (record.at, record.since))
        and len(record.checks) <= MOST_RESULTS
        and all(0 <= check.ms <= MOST_MS for check in record.checks)
    )


def _is_possible_time(time: datetime) -> bool:
    """Whether the time is in UTC, and safe to calculate with."""
    return _FIRST_YEAR <= time.year <= _LAST_YEAR and time.utcoffset() == timedelta()


def _possible_seconds(seconds: float) -> float:
    """Clocks can be wrong by decades."""
    return min(max(seconds, 0), _MAX_SECONDS) if math.isfinite(seconds) else 0


def _cleaned(record: VerificationRecord) -> VerificationRecord:
    reason, boot = printable(record.reason, MAX_REASON_LENGTH), printable(record.boot, MAX_BOOT_LENGTH)
    if record.reason and not reason:  # a failure without a reason that can be shown
        return VerificationRecord()
    return replace(record, reason=reason, boot=boot, cause=_cause(record), checks=tuple(map(cleaned, record.checks)))


def _cause(record: VerificationRecord) -> Cause:
    """Return the cause. A passed record with a reason and no cause is another client's, and has never been a proof."""
    is_unexplained = record.outcome is Outcome.PASSED and record.reason and record.cause is Cause.NONE
    return Cause.STOPPED if is_unexplained else record.cause
