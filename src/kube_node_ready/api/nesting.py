"""Decode JSON of any depth, although decoders are recursive.

What is read of Kubernetes objects is nested a few levels deep. But `metadata.managedFields` comes with them, and the
API server stores thousands of levels there: a kubelet can write them to its Node, and an account that can patch pods to
these. A decoder that raises RecursionError for one object would stop everything that lists or watches such objects. So
what is nested more deeply than anything that is read is decoded as null.

The worker starts on every node, so regular expressions are imported only where they are needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

MAX_LEVELS = 100
# All up to the next bracket, and that bracket. Brackets in strings do not count, nor do empty pairs, which are the
# leaves of managedFields. The quantifiers are possessive, so that text without an end takes no more than linear time.
_STEP = rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+"|\{\}|\[\])*+[{}\[\]]'


def tolerant(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """As `decode`, but without a limit on the depth."""

    def decoded(data: bytes) -> T:
        try:
            return decode(data)
        except RecursionError:
            return decode(flattened(bytes(data)))

    return decoded


def flattened(data: bytes) -> bytes:
    """The same JSON, with null in the place of all values that are nested more than `MAX_LEVELS` deep.

    Malformed JSON remains malformed.
    """
    import re  # noqa: PLC0415

    step = re.compile(_STEP, re.DOTALL).match
    kept: list[bytes] = []
    level = at = start = 0
    while deeper := step(data, at):
        at = deeper.end()
        if data[at - 1] in b"{[":
            level += 1
            if level == MAX_LEVELS + 1:
                kept += [data[start : at - 1], b"null"]
        else:
            if level == MAX_LEVELS + 1:
                start = at
            level -= 1
    if level <= MAX_LEVELS:
        kept.append(data[start:])
    return b"".join(kept)
