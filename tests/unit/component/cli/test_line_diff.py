"""A unified diff that is right, and takes no longer than its lines."""

import difflib
import random
import time

import pytest

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


def test_many_equal_lines_around_a_change_are_not_compared() -> None:
    lines = [str(number % 110) for number in range(100_000)]
    began = time.monotonic()
    diff = list(unified([*lines, "old", *lines], [*lines, "new", *lines], "a", "b"))
    assert time.monotonic() - began < 2
    assert diff[2:] == ["@@ -99998,7 +99998,7 @@", " 7", " 8", " 9", "-old", "+new", " 0", " 1", " 2"]


def test_a_long_middle_is_shown_as_replaced() -> None:
    lines = [str(number % 110) for number in range(100_000)]
    before, after = ["old", *lines, "old"], ["new", *lines, "new"]
    began = time.monotonic()
    diff = list(unified(before, after, "a", "b"))
    assert time.monotonic() - began < 2
    assert applied(before, diff) == after
