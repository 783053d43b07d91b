"""The commands that README.md tells people to run, read out of README.md itself."""

import re
from dataclasses import dataclass
from pathlib import Path

_TEXT = (Path(__file__).parents[1] / "README.md").read_text()


@dataclass(frozen=True)
class Section:
    prose: str
    commands: tuple[str, ...]
    """One string each. A line that is indented, or that closes a quoted text, belongs to the command above it."""

    def told(self, *words: str) -> tuple[str, ...]:
        """These words, which the text must have."""
        for word in words:
            assert word in self.prose, f"README.md no longer speaks of {word!r} here"
        return words


def section(title: str, *, of: str = "") -> Section:
    """What stands under a heading `title`, up to the next heading."""
    return _sections(of)[title]


def titles(*, of: str) -> set[str]:
    """The headings under a heading."""
    return set(_sections(of)) - {""}


def _sections(of: str) -> dict[str, Section]:
    level = "### " if of else "## "
    text = _parts("## ", _TEXT)[of] if of else _TEXT
    return {title: _section(part) for title, part in _parts(level, text).items()}


def _parts(level: str, text: str) -> dict[str, str]:
    first, *others = re.split(rf"^{level}", text, flags=re.MULTILINE)
    return {"": first} | {title: part for title, _, part in (other.partition("\n") for other in others)}


def _section(part: str) -> Section:
    part = re.split(r"^### ", part, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    commands = [command for block in blocks for command in re.split(r"\n(?=\S)", block.strip())]
    prose = " ".join(re.sub(r"^```sh\n.*?^```$", "", part, flags=re.MULTILINE | re.DOTALL).split())
    return Section(prose, tuple(commands))
