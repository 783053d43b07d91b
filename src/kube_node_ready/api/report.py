"""What a worker wrote into its termination message, read with suspicion.

The verdict is the exit code's. The report gives reasons, and anyone who can run something on the node could have
written it: so nothing in it is trusted to be short, printable or even JSON.
"""

import math
import unicodedata

import msgspec
from msgspec import Struct

_LONGEST_TEXT = 200
_LONGEST_MESSAGE = 8192
MOST_RESULTS = 64
MOST_MS = 86_400_000


class CheckResult(Struct, frozen=True, omit_defaults=True):
    name: str
    ok: bool
    ms: int = 0
    target: str = ""
    error: str = ""


class Report(Struct, frozen=True):
    checks: tuple[CheckResult, ...] = ()
    error: str = ""

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if not check.ok)

    @property
    def by_check(self) -> tuple[CheckResult, ...]:
        """One result a check: it passed if all its targets did, and took as long as its slowest."""
        names = dict.fromkeys(check.name for check in self.checks)
        return tuple(self._whole(name) for name in names)

    @property
    def reason(self) -> str:
        """What went wrong, the cause before its consequences."""
        if self.error:
            return self.error
        ordered = sorted(self.failed, key=lambda check: check.error.startswith("not judged"))
        return "; ".join(_sentence(check) for check in ordered)

    def _whole(self, name: str) -> CheckResult:
        parts = [check for check in self.checks if check.name == name]
        return CheckResult(name, all(part.ok for part in parts), max(part.ms for part in parts))


class _WireResult(Struct, frozen=True):
    name: str
    ok: bool
    ms: float = 0
    target: str = ""
    error: str = ""


class _WireReport(Struct, frozen=True):
    v: int
    checks: list[_WireResult] = []
    error: str = ""


def read(message: str) -> Report | None:
    """None if this is no report. A report that cannot be read costs the details, never the verdict."""
    if not message or len(message) > _LONGEST_MESSAGE:
        return None
    try:
        wire = msgspec.json.decode(message.encode(errors="replace"), type=_WireReport)
    except (msgspec.DecodeError, RecursionError):
        return None
    return Report(tuple(_result(result) for result in wire.checks[:MOST_RESULTS]), printable(wire.error))


def printable(text: str, longest: int = _LONGEST_TEXT) -> str:
    """One line, without anything that could command a terminal, and not too long."""
    if len(text) <= longest and text.isprintable() and "  " not in text and text.strip() == text:
        return text  # as nearly all are, and thousands are read at a time
    plain = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text[: 4 * longest])
    words = " ".join(plain.split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def cleaned(check: CheckResult) -> CheckResult:
    """Its texts fit to be printed."""
    name, target, error = printable(check.name, 40), printable(check.target, 100), printable(check.error)
    return CheckResult(name, check.ok, check.ms, target, error)


def _result(wire: _WireResult) -> CheckResult:
    ms = int(min(max(wire.ms, 0), MOST_MS)) if math.isfinite(wire.ms) else 0
    return cleaned(CheckResult(wire.name, wire.ok, ms, wire.target, wire.error))


def _sentence(check: CheckResult) -> str:
    target = f"{check.target}: " if check.target and not check.error.startswith(check.target) else ""
    return f"{check.name}: {target}{check.error or 'failed'}"
