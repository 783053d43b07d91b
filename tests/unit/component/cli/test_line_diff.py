"""A unified diff that is right, and compares only what is worth the time."""

import difflib
import random
from unittest.mock import Mock

import pytest

from kubernetes_daemonset.cli import line_diff
from kubernetes_daemonset.cli.line_diff import unified


def applied(before: list[str], diff: list[str]) -> list[str]:
    """What the hunks of a diff make of the lines."""
    result, at = [], 0
    for line in diff[2:]:
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            first = int(start) - (length != "0")
            result += before[at:first]
            at = first
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert line[1:] == before[at]
            result += [line[1:]] * line.startswith(" ")
            at += 1
    return result + before[at:]


@pytest.mark.parametrize("seed", range(30))
def test_the_hunks_lead_from_one_to_the_other(seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311
    before = [str(choose.randrange(10)) for _ in range(choose.randrange(40))]
    after = [line for line in before if choose.random() > 0.1]
    after.insert(choose.randrange(len(after) + 1), "new")
    diff = list(unified(before, after, "a", "b"))
    assert diff[:2] == ["--- a", "+++ b"]
    assert applied(before, diff) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], ["a", "b"]),
        (["a", "b"], []),
        (["a"], ["b"]),
        (list("abcdefghijklmn"), list("abcdXfghijklYn")),
        (list("abcdefgh"), list("abcdefghi")),
        (list("abcdefgh"), list("bcdefgh")),
    ],
)
def test_it_is_what_difflib_writes(before: list[str], after: list[str]) -> None:
    assert list(unified(before, after, "a", "b")) == list(difflib.unified_diff(before, after, "a", "b", lineterm=""))


def test_equal_lines_have_no_diff() -> None:
    assert list(unified(["a"], ["a"], "a", "b")) == []


def test_many_equal_lines_around_a_change_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [str(number % 110) for number in range(100_000)]
    compare = Mock(wraps=line_diff._opcodes)
    monkeypatch.setattr(line_diff, "_opcodes", compare)
    diff = list(unified([*lines, "old", *lines], [*lines, "new", *lines], "a", "b"))
    compare.assert_called_once_with(["old"], ["new"])
    assert diff[2:] == ["@@ -99998,7 +99998,7 @@", " 7", " 8", " 9", "-old", "+new", " 0", " 1", " 2"]


@pytest.mark.parametrize(("length", "replaced"), [(498, False), (499, True), (100_000, True)])
def test_a_long_middle_is_shown_as_replaced(length: int, *, replaced: bool) -> None:
    """To compare it would find the equal lines."""
    lines = [str(number % 110) for number in range(length)]
    before, after = ["old", *lines, "old"], ["new", *lines, "new"]
    diff = list(unified(before, after, "a", "b"))
    assert sum(line.startswith("-") for line in diff[3:]) == (len(before) if replaced else 2)
    assert applied(before, diff) == after
