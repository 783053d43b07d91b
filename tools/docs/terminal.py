"""Draw docs/images/make-run.svg, the picture in README.md, from a recorded terminal session.

`python -m tools.docs.terminal` records the session again: it runs the program of `make run` in a terminal, keeps the
final screen in docs/images/make-run.ansi, and removes the cluster. It needs root and the lab, and takes a minute.
"""

import os
import pty
import re
import subprocess
import sys
from html import escape
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRANSCRIPT = ROOT / "docs" / "images" / "make-run.ansi"
PICTURE = "docs/images/make-run.svg"
_COMMAND = "make run"
_CLUSTER = "picture"
_COLUMNS, _ROWS = 118, 60
_CHARACTER, _LINE, _SIZE, _MARGIN, _BAR = 7.8, 18, 13, 16, 34
_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\n|\r)|([^\x1b\n\r])")
_OTHER_SCREEN = re.compile(r"\x1b\[\?1049h.*?\x1b\[\?1049l", re.DOTALL)
_COLORS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "36": "#76e3ea", "2": "#8b949e"}
_TEXT, _BACKGROUND, _BORDER = "#e6edf3", "#0d1117", "#30363d"
Cell = tuple[str, str]
"""A character and its style: the parameters of the SGR sequences in effect, such as `1;32`."""


def svg() -> str:
    """Return the picture of the recorded session."""
    rows = [cells(f"\x1b[1m$ {_COMMAND}"), *(cells(line) for line in TRANSCRIPT.read_text().splitlines())]
    width = round(_MARGIN * 2 + _COLUMNS * _CHARACTER)
    height = _BAR + len(rows) * _LINE + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{_SIZE}">',
        f"<title>{escape(_COMMAND)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACKGROUND}" stroke="{_BORDER}"/>',
        *(f'<circle cx="{_MARGIN + 6 + at * 18}" cy="17" r="5" fill="{_BORDER}"/>' for at in range(3)),
        *(_drawn(row, _BAR + (at + 1) * _LINE - 5) for at, row in enumerate(rows) if row),
        "</g></svg>",
    ]
    return "\n".join(lines) + "\n"


def cells(line: str) -> list[Cell]:
    (row,) = screen(line)
    return row


def screen(output: str) -> list[list[Cell]]:
    """Return the rows that a terminal shows after this output. Alternate screens leave nothing behind."""
    rows: list[list[Cell]] = [[]]
    at, column, style = 0, 0, ""
    for parameters, command, control, character in _TOKEN.findall(_OTHER_SCREEN.sub("", output)):
        if character:
            row = rows[at]
            row.extend([(" ", "")] * (column - len(row)))
            row[column : column + 1] = [(character, style)]
            column += 1
        elif control == "\n":
            at, column = at + 1, 0
            rows.extend([[]] * (at == len(rows)))
        elif control == "\r":
            column = 0
        elif command == "m":
            style = "" if parameters in ("", "0") else ";".join(filter(None, (style, parameters)))
        elif command == "A":
            at = max(0, at - int(parameters or 1))
        elif command == "K":
            rows[at] = [] if parameters == "2" else rows[at][:column]
        elif command == "J":
            rows[at:] = [rows[at][:column]]
    while len(rows) > 1 and not rows[-1]:
        rows.pop()
    return rows


def _drawn(row: list[Cell], y: int) -> str:
    """Each run of one style at its column, so that the font's own width does not matter."""
    parts, column = [], 0
    for style, run in groupby(row, key=lambda cell: cell[1]):
        text = "".join(character for character, _ in run)
        if text.strip():
            indent = len(text) - len(text.lstrip())
            x, length = _MARGIN + (column + indent) * _CHARACTER, len(text.strip()) * _CHARACTER
            parts.append(
                f'<tspan x="{x:.1f}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"{_attributes(style)}>'
                f"{escape(text.strip())}</tspan>"
            )
        column += len(text)
    return f'<text y="{y}" fill="{_TEXT}" xml:space="preserve">{"".join(parts)}</text>'


def _attributes(style: str) -> str:
    codes = style.split(";")
    color = next((_COLORS[code] for code in reversed(codes) if code in _COLORS), "")
    return (f' fill="{color}"' if color else "") + (' font-weight="bold"' if "1" in codes else "")


def record() -> None:
    """Run the demonstration in a terminal of fixed size, and keep what it shows at the end."""
    demo = [sys.executable, "-m", "demo", "--name", _CLUSTER]
    try:
        output = _in_a_terminal(demo)
    finally:
        subprocess.run([sys.executable, "-m", "lab", "--name", _CLUSTER, "down"], cwd=ROOT, check=False)  # noqa: S603
    rows = [_encoded(row) for row in screen(output)]
    end = max(at for at, row in enumerate(rows) if not row)  # what follows are commands with this cluster's name
    TRANSCRIPT.write_text("\n".join(rows[:end]) + "\n")


def _in_a_terminal(command: list[str]) -> str:
    os.environ |= {"COLUMNS": str(_COLUMNS), "LINES": str(_ROWS), "TERM": "xterm-256color"}
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    os.chdir(ROOT)
    output: list[bytes] = []

    def keep(terminal: int) -> bytes:
        output.append(os.read(terminal, 65536))
        return output[-1]

    status = pty.spawn(["sh", "-c", f'stty cols {_COLUMNS} rows {_ROWS}; exec "$@"', "sh", *command], keep)
    if status:
        sys.exit(f"{' '.join(command)} failed with status {status}")
    return b"".join(output).decode().replace("\r\n", "\n")


def _encoded(row: list[Cell]) -> str:
    """Return the row as text with SGR sequences, without spaces at its end."""
    runs = [(style, "".join(text for text, _ in run)) for style, run in groupby(row, key=lambda cell: cell[1])]
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for style, text in runs).rstrip()


if __name__ == "__main__":
    record()
