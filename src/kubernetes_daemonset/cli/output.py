"""What the command line prints: tables and colour on a terminal, plain lines in a pipe, JSON for machines."""

import difflib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from kubernetes_daemonset.changes import Change, essence
from kubernetes_daemonset.dump import to_yaml
from kubernetes_daemonset.mistakes import Mistake, Severity
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.rollout import Rollout
from kubernetes_daemonset.terminal import in_json, on_one_line

RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
CYAN: Final = "36"
BOLD: Final = "1"

_VERB_COLOUR: Final = {"create": GREEN, "change": YELLOW, "delete": RED, "unchanged": ""}
_SEVERITY_COLOUR: Final = {Severity.ERROR: RED, Severity.WARNING: YELLOW}
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BAR: Final = 16  # characters


def painted(text: str, colour: str, to: TextIO | None = None) -> str:
    stream = to or sys.stdout
    plain = not colour or not stream.isatty() or os.environ.get("NO_COLOR")
    return text if plain else f"\033[{colour}m{text}\033[0m"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [[on_one_line(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    written = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    return "\n".join([painted(written[0], BOLD), *written[1:]])


def mistake(one: Mistake, to: TextIO | None = None) -> str:
    word = painted(one.severity.value, _SEVERITY_COLOUR[one.severity], to)
    field = f"{painted(on_one_line(one.path), BOLD, to)}: " if one.path else ""
    return f"{on_one_line(str(one.place))}: {word}: {field}{on_one_line(one.text)}"


def mistakes_as_json(found: Iterable[Mistake]) -> list[Json]:
    return [
        {
            "severity": one.severity.value,
            "file": one.place.source,
            "line": one.place.line or None,  # what the command line says has none
            "column": one.place.column or None,
            "path": one.path,
            "message": one.text,
        }
        for one in found
    ]


def changes(planned: Iterable[Change]) -> str:
    rows = [(one.ref.kind, one.ref.namespace, one.ref.name, one.verb) for one in planned]
    lines = table(("KIND", "NAMESPACE", "NAME", "CHANGE"), rows).split("\n")
    paint = [painted(line, _VERB_COLOUR[row[3]]) for line, row in zip(lines[1:], rows, strict=True)]
    return "\n".join([lines[0], *paint])


def difference(change: Change) -> str:
    """A unified diff of one object as it is and as it would be; empty if nothing would change."""
    before, after = _shown(change.before), _shown(change.after)
    lines = difflib.unified_diff(
        before, after, f"{change.ref} (in the cluster)", f"{change.ref} (in the manifest)", lineterm=""
    )
    return "\n".join(painted(on_one_line(line), _line_colour(line)) for line in lines)


def as_json(value: object) -> str:
    return in_json(json.dumps(value, indent=2, ensure_ascii=False))


def shortened(text: str, width: int) -> str:
    """At most so wide, and if it is cut, then after a word."""
    if len(text) <= width:
        return text
    words, space, _ = text[: width - 1].rpartition(" ")
    return f"{words} …" if space else f"{text[: width - 1]}…"


class Progress:
    """A rollout on one line that is written over, or a line for each change where that cannot be."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = time.monotonic()
        self._last = ""
        self._live = sys.stderr.isatty()

    def __call__(self, state: Rollout, trouble: str) -> None:
        said = on_one_line(f"{self._name}: {state}{f'; {trouble}' if trouble else ''}")
        if self._live:
            filled = _BAR * state.certain // state.desired if state.desired else 0
            seconds = int(time.monotonic() - self._began)
            bar = f"[{'#' * filled}{'-' * (_BAR - filled)}] {seconds // 60}:{seconds % 60:02}"
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            sys.stderr.write(f"\r\033[2K{shortened(f'{bar} {said}', width - 1)}")
        elif said != self._last:
            sys.stderr.write(f"{said}\n")
        sys.stderr.flush()
        self._last = said

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\n")


def _shown(body: Json | None) -> list[str]:
    if body is None:
        return []
    shown = essence(body)
    if shown.get("kind") == "Secret":
        shown["data"] = {key: _masked(value) for key, value in sorted(shown.get("data", {}).items())}
        shown["metadata"].get("annotations", {}).pop(_LAST_APPLIED, None)  # kubectl keeps the whole Secret there
    return to_yaml(shown).split("\n")[:-1]


def _masked(value: str) -> str:
    """Shows that a secret changed, not what it is; the sum is salted anew each run, so that nobody can look it up."""
    return f"({hashlib.blake2b(value.encode(), digest_size=4, key=_SALT).hexdigest()})"


_SALT: Final = os.urandom(16)


def _line_colour(line: str) -> str:
    if line.startswith(("+++", "---")):
        return BOLD
    return {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1], "")
