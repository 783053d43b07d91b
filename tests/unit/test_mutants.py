"""The runner of `make mutants`: what it changes, and when it fails."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import accepted_mutants, core_mutants, report
from tests.mutants.operators import Mutant, mutants, mutated
from tests.support.shell import ROOT

SOURCE = '''
"""A docstring."""
LIMIT = 5

def f(x: int = 1, *, y: "str" = "name") -> bool:
    """Another."""
    if x <= LIMIT and not y:
        return any([g(a=x)], ("first", "a text for people"))
    return f"text {x}"

class C:
    @property
    def p(self) -> bool:
        return self.x or self.y
'''


def names(source: str) -> set[str]:
    return {mutant.name for mutant in mutants("m", source)}


def test_operators_constants_arguments_and_elements_are_changed() -> None:
    assert names(SOURCE) == {
        "m: 5 => 6",
        "m: 1 => 2",
        "m: 'name' => 'nameX'",
        "m.f: if x <= LIMIT and (not y) => True",
        "m.f: if x <= LIMIT and (not y) => False",
        "m.f: x <= LIMIT and (not y) => Or",
        "m.f: x <= LIMIT and (not y) without x <= LIMIT",
        "m.f: x <= LIMIT and (not y) without not y",
        "m.f: x <= LIMIT => Lt",
        "m.f: x <= LIMIT => Gt",
        "m.f: not y => y",
        "m.f: any([g(a=x)], ('first', 'a text for people')) => all",
        "m.f: [g(a=x)] without g(a=x)",
        "m.f: g() without a=x",
        "m.f: ('first', 'a text for people') without 'first'",
        "m.f: ('first', 'a text for people') without 'a text for people'",
        "m.f: 'first' => 'firstX'",
        "m.C.p: self.x or self.y => And",
        "m.C.p: self.x or self.y without self.x",
        "m.C.p: self.x or self.y without self.y",
    }


def test_every_mutant_differs_from_the_source_and_can_be_compiled() -> None:
    for mutant in mutants("m", SOURCE):
        tree = mutated(SOURCE, mutant)
        assert ast.dump(tree) != ast.dump(ast.parse(SOURCE)), mutant.name
        compile(tree, "m", "exec")


def test_equal_changes_have_different_names() -> None:
    assert names("x = 1 + 1") == {"m: 1 + 1 => Sub", "m: 1 => 2", "m: 1 => 2 (#2)"}


NESTED = """
class C:
    def outer(self):
        def inner(x=1):
            return x == 2
        return inner(3)
"""


def test_a_nested_function_is_measured_with_the_function_that_makes_it() -> None:
    found = {mutant.name: mutant.scope for mutant in mutants("m", NESTED)}
    assert found == {
        "m.C.outer: 1 => 2": "C.outer",
        "m.C.outer: x == 2 => NotEq": "C.outer",
        "m.C.outer: 2 => 3": "C.outer",
        "m.C.outer: 3 => 4": "C.outer",
    }


EVERY = [Mutant("m", f"m.f: {number}", "f", number, 0) for number in range(20)]


@pytest.mark.parametrize(
    ("alive", "accepted", "passed"),
    [
        ([], [], True),
        ([1], [], True),
        ([1, 2], [], False),
        ([1, 2], [1, 2], True),
        ([], [1], False),  # an accepted mutant that is killed
        ([], [99], False),  # and one that does not exist
    ],
)
def test_a_run_fails_below_95_percent_or_with_outdated_exceptions(
    alive: list[int],
    accepted: list[int],
    passed: bool,  # noqa: FBT001  a table
) -> None:
    living = {f"m.f: {number}" for number in alive}
    assert report(EVERY, living, {f"m.f: {number}": "reason" for number in accepted}) is passed


def test_a_module_with_many_survivors_is_not_hidden_by_the_others() -> None:
    other = [Mutant("n", f"n.f: {number}", "f", number, 0) for number in range(1000)]
    assert not report([*EVERY, *other], {"m.f: 1", "m.f: 2"}, {})


def test_exceptions_of_other_modules_are_not_outdated() -> None:
    assert report(EVERY, set(), {"other.f: 1": "reason"})


def test_accepted_mutants_exist() -> None:
    assert accepted_mutants().keys() <= {mutant.name for mutant in core_mutants()}


SURVIVORS = """
from tests.mutants.__main__ import Baseline, _survivors
from tests.mutants.operators import Mutant

mutant = Mutant("m", "m.f: 1 => 2", "f", 1, 0)
baseline = Baseline(seconds={{"test": 0.1}}, called={{"test": {{"m.f"}}}})
print([found.name for found in _survivors([mutant], baseline, 1, lambda mutant, tests: {passes})])
"""
CONTROL = """
import sys
from tests.mutants.__main__ import _Loop, _pytest

sys.exit(_pytest([sys.argv[1]], _Loop([], 1)))
"""
TESTS = """
runs = []

def test_runs_only_{times}():
    runs.append(1)
    assert len(runs) <= {times}
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, because the runner forks and waits for any child."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(("passes", "survives"), [("True", True), ("False", False), ("1 / 0", True)])
def test_an_exception_of_the_runner_kills_no_mutant(passes: str, survives: bool) -> None:  # noqa: FBT001  a table
    ran = run(SURVIVORS.format(passes=passes))
    assert ran.stdout.strip() == str(["m.f: 1 => 2"] if survives else [])
    assert ("could not run m.f: 1 => 2" in ran.stderr) == ("ZeroDivisionError" in ran.stderr) == (passes == "1 / 0")


@pytest.mark.parametrize(("times", "code"), [(1, 1), (2, 0)])
def test_tests_that_fail_when_repeated_stop_the_run(tmp_path: Path, times: int, code: int) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.format(times=times))
    ran = run(CONTROL, str(tmp_path / "test_it.py"))
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert ("the tests fail when they run a second time" in ran.stdout + ran.stderr) == bool(code)
