"""Print to a terminal or to a pipe, with colors where they are supported.

Everything from the cluster is printed by this module or `words.escaped`. A node's kubelet, or anyone who can write an
Event, must not be able to control the user's terminal. So lines are `rich.text.Text`, never markup, and what is not
printable is replaced.
"""

import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from kube_node_ready.cli.table import Style
from kubekit.terminal import has_colors, replaced

_PLAIN = Style()


def console(stream: TextIO) -> Console:
    """Styles are for terminals, and not for those that ask for none."""
    return Console(
        file=stream,
        color_system="auto" if has_colors(stream) else None,
        force_terminal=stream.isatty(),
        markup=False,
        emoji=False,
        highlight=False,
    )


def style(stream: TextIO, wanted: Style = _PLAIN) -> Style:
    """Truncated for people, complete for programs."""
    return replace(wanted, width=None if wanted.wide or not stream.isatty() else columns())


def columns() -> int:
    return shutil.get_terminal_size().columns


def rows() -> int:
    return shutil.get_terminal_size().lines


def safe(line: Text) -> Text:
    """Return the line with everything replaced that is not printable. Styles keep their places."""
    if line.plain.isprintable():
        return line
    shown = line.copy()
    shown.plain = replaced(line.plain)
    return shown


def rendered(lines: Iterable[Text], on: Console) -> str:
    """Return the lines as they are written to that console."""
    with on.capture() as captured:
        on.print(Text("\n").join(map(safe, lines)), soft_wrap=True, end="")
    return captured.get()


def out(lines: Iterable[Text]) -> None:
    if not sys.stdout.isatty():
        sys.stdout.writelines(f"{replaced(line.plain)}\n" for line in lines)
        return
    sys.stdout.write(f"{rendered(lines, console(sys.stdout))}\n")


def say(sentences: str) -> None:
    """Print a message for the user, one line per sentence, apart from the output that programs read."""
    sys.stdout.flush()
    sys.stderr.writelines(f"{replaced(sentence)}\n" for sentence in sentences.split("\n"))


def note(sentences: Iterable[str]) -> None:
    sys.stdout.flush()
    sys.stderr.writelines(f"note: {replaced(sentence)}\n" for sentence in sentences)
