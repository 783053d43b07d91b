"""Read the report in a worker's termination message, without trusting it.

The exit code is the verdict. The report has the reasons. Anything that runs on the node could have written it, so it
might be long, unprintable or not JSON.
"""

import math

import msgspec
from msgspec import Struct

from kube_node_ready.api.verdict import Verdict
from kubekit.terminal import is_visible

_LONGEST_TEXT = 200
_LONGEST_MESSAGE = 8192
MOST_RESULTS = 64
MOST_MS = 86_400_000


class TargetResult(Struct, frozen=True):
    """The result of a check of one target, as the worker reported it."""

    name: str
    verdict: Verdict
    ms: int = 0
    target: str = ""
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict.ok

    @property
    def applies(self) -> bool:
        return self.verdict is not Verdict.NOT_APPLICABLE

    @property
    def proves(self) -> bool:
        return self.verdict is Verdict.PASSED


class CheckResult(Struct, frozen=True, omit_defaults=True):
    """The result of a check, as it is on record."""

    name: str
    ok: bool
    ms: int = 0
    target: str = ""
    error: str = ""
    applies: bool = True
    """False if there was nothing to check, such as too few peers; `error` has the reason then."""

    @property
    def proves(self) -> bool:
        return self.ok and self.applies


class Report(Struct, frozen=True):
    checks: tuple[TargetResult, ...] = ()
    error: str = ""

    @property
    def failed(self) -> tuple[TargetResult, ...]:
        return tuple(check for check in self.checks if not check.ok)

    @property
    def blames_node(self) -> bool:
        """Whether a failure counts against the node. A report without details does."""
        return not self.failed or any(check.verdict is Verdict.FAILED for check in self.failed)

    @property
    def by_check(self) -> tuple[CheckResult, ...]:
        """One result per check: it passed if all its targets did, with the duration of the slowest."""
        names = dict.fromkeys(check.name for check in self.checks)
        return tuple(self._whole(name) for name in names)

    @property
    def reason(self) -> str:
        """Why checks failed, causes before consequences."""
        if self.error:
            return self.error
        ordered = sorted(self.failed, key=lambda check: check.verdict is Verdict.INCONCLUSIVE)
        return "; ".join(_sentence(check) for check in ordered)

    def _whole(self, name: str) -> CheckResult:
        parts = [check for check in self.checks if check.name == name]
        ok, slowest = all(part.ok for part in parts), max(part.ms for part in parts)
        if any(part.applies for part in parts):
            return CheckResult(name, ok, slowest)
        return CheckResult(name, ok, slowest, error=parts[0].error, applies=False)


class _WireResult(Struct, frozen=True, rename="camel"):
    """Version 1 has no verdicts. Version 2 has the fields of version 1, too, for readers of that version."""

    name: str
    verdict: Verdict | None = None
    ok: bool | None = None
    ms: float = 0
    target: str = ""
    error: str = ""
    skipped: bool = False
    not_applicable: bool = False
    not_judged: bool = False


class _WireReport(Struct, frozen=True):
    v: int
    checks: list[_WireResult] = []
    error: str = ""


def read(message: str) -> Report | None:
    """Return the report, or None if it is invalid. Only details are lost then, not the verdict."""
    if not message or len(message) > _LONGEST_MESSAGE:
        return None
    try:
        wire = msgspec.json.decode(message.encode(errors="replace"), type=_WireReport)
        results = tuple(_result(result, wire.v) for result in wire.checks[:MOST_RESULTS])
    except (msgspec.DecodeError, RecursionError):
        return None
    return Report(results, printable(wire.error))


def printable(text: str, longest: int = _LONGEST_TEXT) -> str:
    """Return the text as one line without control characters or invisible ones, and not too long."""
    if len(text) <= longest and is_visible(text) and "  " not in text and text.strip() == text:
        return text  # the common case, which must be fast
    plain = "".join(letter if is_visible(letter) else " " for letter in text[: 4 * longest])
    words = " ".join(plain.split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def cleaned(check: CheckResult) -> CheckResult:
    """Return the result with printable texts."""
    name, target, error = _texts(check)
    return CheckResult(name, check.ok, check.ms, target, error, check.applies)


def _result(wire: _WireResult, version: int) -> TargetResult:
    ms = int(min(max(wire.ms, 0), MOST_MS)) if math.isfinite(wire.ms) else 0
    verdict = wire.verdict if version > 1 else _verdict_of_version_1(wire)
    if verdict is None:
        raise msgspec.ValidationError("a result without a verdict")
    name, target, error = _texts(wire)
    return TargetResult(name, verdict, ms, target, error)


def _texts(check: CheckResult | _WireResult) -> tuple[str, str, str]:
    return printable(check.name, 40), printable(check.target, 100), printable(check.error)


def _verdict_of_version_1(wire: _WireResult) -> Verdict | None:
    """In version 1, the first words of its error can be the only mark of an inconclusive result."""
    if wire.ok is None:
        return None
    if not wire.ok:
        is_judged = not (wire.not_judged or wire.error.startswith("not judged"))
        return Verdict.FAILED if is_judged else Verdict.INCONCLUSIVE
    if wire.not_applicable:
        return Verdict.NOT_APPLICABLE
    return Verdict.SKIPPED if wire.skipped else Verdict.PASSED


def _sentence(check: TargetResult) -> str:
    target = f"{check.target}: " if check.target and not check.error.startswith(check.target) else ""
    return f"{check.name}: {target}{check.error or 'failed'}"
