"""What is wrong with a configuration: every mistake at once, each with its field, its value and what would be right."""

from collections.abc import Iterable

from msgspec import Struct

_LONGEST_SHOWN = 80
_MOST_SHOWN = 100


class Mistake(Struct, frozen=True):
    path: str
    reason: str
    where: str = ""

    def __str__(self) -> str:
        subject = f"{shown(self.path)}: " if self.path else ""
        return f"{subject}{self.reason}{f' [{self.where}]' if self.where else ''}"


class ConfigError(ValueError):
    """The configuration cannot be used. The text is for whoever wrote it; `mistakes` are the same, one by one."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(str(self.mistakes[0]))
        else:
            lines = "".join(f"\n  - {mistake}" for mistake in self.mistakes[:_MOST_SHOWN])
            lines += "\n  - …" if len(self.mistakes) > _MOST_SHOWN else ""
            super().__init__(f"{len(self.mistakes)} mistakes in the configuration:{lines}")


def shown(text: str) -> str:
    """The text on one line, as it was written if that is harmless."""
    short = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return short if short and short.isprintable() and " " not in short else repr(short)


def within(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key
