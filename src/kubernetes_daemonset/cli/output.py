"""Output of the command line: tables and color on a terminal, plain lines in a pipe, JSON for programs."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from kubekit.diagnostics import Diagnostic, Severity, truncate
from kubekit.terminal import can_redraw, has_colors, in_json, on_one_line
from kubernetes_daemonset.cli import line_diff
from kubernetes_daemonset.deploy.plan import Change, comparable
from kubernetes_daemonset.deploy.rollout import Rollout
from kubernetes_daemonset.manifest.dump import to_yaml
from kubernetes_daemonset.types import Json

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
CYAN: Final = "36"
BOLD: Final = "1"

_VERB_COLOR: Final = {"create": GREEN, "change": YELLOW, "delete": RED, "unchanged": ""}
_SEVERITY_COLOR: Final = {Severity.ERROR: RED, Severity.WARNING: YELLOW}
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BAR: Final = 16  # characters
_LONGEST_PATH: Final = 400  # of a diagnostic; the key of a map can have 253 characters
_LONGEST_MESSAGE: Final = 2_000


def colorize(text: str, color: str, to: TextIO | None = None) -> str:
    return f"\033[{color}m{text}\033[0m" if color and has_colors(to or sys.stdout) else text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return aligned columns, also of characters that take two cells of a terminal. Nothing is truncated."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - only tables need it

    lines = [[on_one_line(cell) for cell in line] for line in (head, *rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(head))]
    written = [
        "  ".join(set_cell_size(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([colorize(written[0], BOLD), *written[1:]])


def format_diagnostic(diagnostic: Diagnostic, to: TextIO | None = None) -> str:
    word = colorize(diagnostic.severity.value, _SEVERITY_COLOR[diagnostic.severity], to)
    path, message = truncate(diagnostic.path, _LONGEST_PATH), truncate(diagnostic.message, _LONGEST_MESSAGE)
    field = f"{colorize(on_one_line(path), BOLD, to)}: " if path else ""
    return f"{on_one_line(str(diagnostic.location))}: {word}: {field}{on_one_line(message)}"


def diagnostics_as_json(diagnostics: Iterable[Diagnostic]) -> list[Json]:
    return [
        {
            "severity": diagnostic.severity.value,
            "file": diagnostic.location.source,
            "line": diagnostic.location.line or None,  # a value of the command line has none
            "column": diagnostic.location.column or None,
            "path": truncate(diagnostic.path, _LONGEST_PATH),
            "message": truncate(diagnostic.message, _LONGEST_MESSAGE),
        }
        for diagnostic in diagnostics
    ]


def changes(planned: Iterable[Change]) -> str:
    rows = [(change.ref.kind, change.ref.namespace, change.ref.name, change.verb) for change in planned]
    lines = table(("KIND", "NAMESPACE", "NAME", "CHANGE"), rows).split("\n")
    paint = [colorize(line, _VERB_COLOR[row[3]]) for line, row in zip(lines[1:], rows, strict=True)]
    return "\n".join([lines[0], *paint])


def difference(change: Change) -> str:
    """Return a unified diff of one object; empty if nothing would change."""
    if change.verb == "unchanged":
        return ""
    old_name, new_name = f"{change.ref} (in the cluster)", f"{change.ref} (in the manifest)"
    lines = line_diff.unified(_shown(change.before), _shown(change.after), old_name, new_name)
    return "\n".join(colorize(on_one_line(line), _line_color(line)) for line in lines)


def as_json(value: object) -> str:
    return in_json(json.dumps(value, indent=2, ensure_ascii=False))


class Progress:
    """Shows a rollout as a bar on a terminal, or on a line per change without one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = ""
        self._bar: Bar | None = None

    def __call__(self, state: Rollout, problem: str) -> None:
        line = on_one_line(f"{self._name}: {state}{f'; {problem}' if problem else ''}")
        if can_redraw(sys.stderr):
            self._bar = self._bar or _started_bar()
            self._bar.update(self._bar.task_ids[0], completed=state.certain, total=state.desired, description=line)
        elif line != self._last:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        self._last = line

    def end(self) -> None:
        if self._bar:
            self._bar.stop()


def _started_bar() -> "Bar":
    """Return a bar, the time, and a line that is cut at the terminal's width."""
    from rich import progress  # noqa: PLC0415 - only rollouts on a terminal need it
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.table import Column  # noqa: PLC0415 - as above

    text = progress.TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
    )
    bar = progress.Progress(
        progress.BarColumn(bar_width=_BAR),
        progress.TimeElapsedColumn(),
        text,
        console=Console(stderr=True, highlight=False),
        expand=True,
    )
    bar.add_task("")
    bar.start()
    bar.console.show_cursor()  # a signal can end the process before `stop`
    return bar


def _shown(body: Json | None) -> list[str]:
    if body is None:
        return []
    shown = comparable(body)
    if shown.get("kind") == "Secret":
        shown["data"] = {key: _masked(value) for key, value in sorted(shown.get("data", {}).items())}
        # Tools keep the whole Secret there, also encoded. Those of the manifest are also on its other objects.
        annotations = shown["metadata"].get("annotations", {})
        annotations.pop(_LAST_APPLIED, None)
        annotations |= {key: _masked(text) for key, text in annotations.items()}
    return to_yaml(shown).split("\n")[:-1]


def _masked(value: str) -> str:
    """Return a hash that shows only whether a secret changes. A new salt in each run prevents lookups."""
    return f"({hashlib.blake2b(value.encode(), digest_size=4, key=_SALT).hexdigest()})"


_SALT: Final = os.urandom(16)


def _line_color(line: str) -> str:
    if line.startswith(("+++", "---")):
        return BOLD
    return {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1], "")
