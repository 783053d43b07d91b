"""A unified diff of lines in bounded time.

`difflib` compares each line with all equal ones. An object in a cluster can have a million lines, most of them equal,
that another manager added. So it only compares what is between the equal beginning and the equal end of both
texts, and a long middle is not compared but shown as replaced.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Final, Literal

_MOST_COMPARED: Final = 500  # lines; the time grows with their cube where lines repeat
_CONTEXT: Final = 3

Opcode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def unified(before: Sequence[str], after: Sequence[str], old_name: str, new_name: str) -> Iterator[str]:
    """Yield the lines of a unified diff; none if nothing differs."""
    if before == after:
        return
    yield f"--- {old_name}"
    yield f"+++ {new_name}"
    for group in _Trimmed(before, after).get_grouped_opcodes(_CONTEXT):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@"
        for tag, *old, new_from, new_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[slice(*old)])
            else:
                yield from (f"-{line}" for line in before[slice(*old)])
                yield from (f"+{line}" for line in after[new_from:new_to])


class _Trimmed(SequenceMatcher[str]):
    """Compares only what is between the equal beginning and the equal end."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__()
        self._old, self._new = before, after
        self._start = _equal(before, after)
        self._end = _equal(before[self._start :][::-1], after[self._start :][::-1])

    def get_opcodes(self) -> list[Opcode]:
        old, new, start = len(self._old) - self._end, len(self._new) - self._end, self._start
        middle: list[Opcode] = [
            (tag, start + a, start + b, start + c, start + d)
            for tag, a, b, c, d in _opcodes(self._old[start:old], self._new[start:new])
        ]
        head: list[Opcode] = [("equal", 0, start, 0, start)] if start else []
        tail: list[Opcode] = [("equal", old, len(self._old), new, len(self._new))] if self._end else []
        return [*head, *middle, *tail]


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines at the beginning are equal."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode]:
    if max(len(old), len(new)) <= _MOST_COMPARED:
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [("replace", 0, len(old), 0, len(new))]


def _range(start: int, end: int) -> str:
    """Return the lines of a hunk as `diff -u` writes them; that of an empty one is the line before it."""
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"
