"""Read the commands out of README.md and the pages in docs/, so that tests run what the reader would run."""

import re
from dataclasses import dataclass

from tests.support.shell import ROOT

README = "README.md"
GATE_AT_BIRTH = "docs/how-to/gate-at-birth.md"
INSTALL = "docs/how-to/install.md"
ROLLOUT = "docs/how-to/rollout.md"
TROUBLESHOOTING = "docs/how-to/troubleshooting.md"
TUTORIAL = "docs/tutorial/first-node.md"
UNINSTALL = "docs/how-to/uninstall.md"


@dataclass(frozen=True)
class Section:
    page: str
    prose: str
    commands: tuple[str, ...]
    """One string each. A line that is indented, or that closes a quoted text, belongs to the command above it."""

    def quoted(self, *words: str) -> tuple[str, ...]:
        """Return these words, which the section must contain."""
        for word in words:
            assert word in self.prose, f"{self.page} no longer contains {word!r} in this section"
        return words


def section(title: str, page: str, *, of: str = "") -> Section:
    """Return the text from the heading `title` to the next heading; without a title, the text above all headings."""
    return _sections(page, of)[title]


def titles(page: str, *, of: str) -> set[str]:
    """Return the headings below a heading."""
    return set(_sections(page, of)) - {""}


def _sections(page: str, of: str) -> dict[str, Section]:
    text = (ROOT / page).read_text()
    level = "### " if of else "## "
    text = _parts("## ", text)[of] if of else text
    return {title: _section(page, part) for title, part in _parts(level, text).items()}


def _parts(level: str, text: str) -> dict[str, str]:
    first, *others = re.split(rf"^{level}", text, flags=re.MULTILINE)
    return {"": first} | {title: part for title, _, part in (other.partition("\n") for other in others)}


def _section(page: str, part: str) -> Section:
    part = re.split(r"^### ", part, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    commands = [command for block in blocks for command in re.split(r"\n(?=\S)", block.strip())]
    prose = " ".join(re.sub(r"^```sh\n.*?^```$", "", part, flags=re.MULTILINE | re.DOTALL).split())
    return Section(page, prose, tuple(commands))
