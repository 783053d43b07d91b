"""Mutation testing of the decision core: does some fast test fail for every small change to it?

One process runs the tests once and notes the functions that each of them calls. It is forked for each mutant of a
function, replaces that function's code, and runs the tests that call it, the fastest first, until one fails. Mutants of
code that runs on import are imported by processes that have not imported the core yet. A mutant that no test notices
has survived, and so has one that cannot be run. Without any mutant, the tests must pass in the same two ways.
"""

import argparse
import ast
import importlib
import importlib.util
import os
import resource
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

import msgspec
import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.operators import Mutant, mutants, mutated

_SOURCE = Path("src/kube_node_ready")
_API = [_SOURCE / f"api/{module}.py" for module in ("record", "report", "verdict")]
_CORE = {path.stem: path for path in sorted([*_SOURCE.glob("verification/*.py"), *_API])}
_TESTS = ("verification/test_*.py", "api/test_record.py", "api/test_report*.py", "api/test_verdict.py")
_ACCEPTED = Path(__file__).with_name("accepted.toml")
_LEAST_KILLED = 95
_MOST_CPU_SECONDS = 120
_RUNNER_FAILED = 2
_OURS = ("kube_node_ready", "tests", "conftest", "__main__")


class Baseline(msgspec.Struct):
    """What the unmodified core does."""

    seconds: dict[str, float] = {}
    called: dict[str, set[str]] = {}
    """Functions of the core, by test."""
    imported: list[str] = []

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those that can notice it, the fastest first. What runs on import can concern every test."""
        function = f"{mutant.module}.{mutant.scope}"
        tests = (test for test, called in self.called.items() if not mutant.scope or function in called)
        return sorted(tests, key=self.seconds.__getitem__)


@dataclass
class _Loop:
    """A pytest plugin: runs the tests as they are, then against each mutant of a function."""

    mutants: Sequence[Mutant]
    processes: int
    baseline: Baseline = field(default_factory=Baseline)
    alive: list[str] = field(default_factory=list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for item in items.values():
            self._measure(item)
        if not session.testsfailed:
            self._check_control(items)
            alive = _survivors(
                self.mutants,
                self.baseline,
                self.processes,
                lambda mutant, tests: _passes_in_place(mutant, tests, items),
            )
            self.alive += [mutant.name for mutant in alive]
        return True

    def _check_control(self, items: Mapping[str, pytest.Item]) -> None:
        """Run all tests again, as for a mutant but with unmodified code, or each could count as killed."""
        fastest = sorted(items, key=self.baseline.seconds.__getitem__)
        pid = os.fork()
        if not pid:
            _exit_with(lambda: _passes_unmodified(self.mutants, [items[test] for test in fastest]))
        if os.waitpid(pid, 0)[1]:
            pytest.exit("the tests fail when they run a second time without any mutant; see above", returncode=1)

    def _measure(self, item: pytest.Item) -> None:
        core = {str(path.resolve()): module for module, path in _CORE.items()}
        called: set[str] = set()

        def enter(frame: FrameType, _: str, __: object) -> None:
            code = frame.f_code
            if module := core.get(code.co_filename):
                called.add(f"{module}.{code.co_qualname}")

        began = time.perf_counter()
        sys.settrace(enter)
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.settrace(None)
        self.baseline.seconds[item.nodeid] = time.perf_counter() - began
        self.baseline.called[item.nodeid] = called


def _passes_in_place(mutant: Mutant, tests: Sequence[str], items: Mapping[str, pytest.Item]) -> bool:
    _replace(mutant.module, mutant.scope, mutated(_source(mutant.module), mutant))
    return _failure(map(items.__getitem__, tests)) is None


def _passes_unmodified(chosen: Sequence[Mutant], items: Iterable[pytest.Item]) -> bool:
    for module, scope in dict.fromkeys((mutant.module, mutant.scope) for mutant in chosen):
        _replace(module, scope, ast.parse(_source(module)))
    failure = _failure(items)
    if failure:
        print(failure.nodeid, failure.longreprtext, sep="\n", file=sys.stderr, flush=True)
    return failure is None


def _replace(module: str, scope: str, tree: ast.Module) -> None:
    """Replace the code of a function that is imported already."""
    code = compile(tree, module, "exec")
    owner: Any = importlib.import_module(_dotted(module))
    *classes, name = scope.split(".")
    for part in classes:
        owner = getattr(owner, part)
    found: Any = vars(owner)[name]
    function: Any = found.fget if isinstance(found, property) else found
    function.__code__ = next(part for part in _parts(code) if part.co_qualname == scope)


def _failure(items: Iterable[pytest.Item]) -> pytest.TestReport | None:
    for item in items:
        item._initrequest()  # type: ignore[attr-defined]  # it ran before
        for report in runtestprotocol(item, nextitem=None, log=False):
            if report.failed:
                return report
    return None


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


@dataclass
class _Ordering:
    tests: Sequence[str]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # A mutant can change the id of a parametrized test. That is not a failure, so such a test runs last.
        order = {test: number for number, test in enumerate(self.tests)}
        items.sort(key=lambda item: order.get(item.nodeid, len(order)))


@dataclass
class _MutatedImport(MetaPathFinder, Loader):
    """Makes one module of the core import as its mutant."""

    mutant: Mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        return importlib.util.spec_from_loader(name, self) if name == _dotted(self.mutant.module) else None

    def exec_module(self, module: ModuleType) -> None:
        code = compile(mutated(_source(self.mutant.module), self.mutant), self.mutant.module, "exec")
        exec(code, module.__dict__)  # noqa: S102


def _pytest(files: Sequence[str], plugin: object) -> int:
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
    # Plugins are imported before pytest starts, once for all mutants. pytest warns about that, and warnings are errors.
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*quiet, *files], plugins=[plugin]))


def _source(module: str) -> str:
    return _CORE[module].read_text()


def _dotted(module: str) -> str:
    return ".".join(_CORE[module].relative_to("src").with_suffix("").parts)


def _of_functions(chosen: Sequence[Mutant], processes: int) -> tuple[Baseline, list[str]]:
    """In a process of its own, so that this one never imports the core."""
    read, write = os.pipe()
    if not os.fork():
        os.close(read)
        loop = _Loop(chosen, processes)
        files = [str(path) for tests in _TESTS for path in sorted(Path("tests/unit").glob(tests))]
        code = _pytest(files, loop)
        loop.baseline.imported = [name for name in sys.modules if not name.startswith(_OURS)]
        with os.fdopen(write, "wb") as pipe:
            pipe.write(msgspec.json.encode((loop.baseline, loop.alive)) if code == 0 else b"")
        os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.wait()
    if not answer:
        sys.exit("mutants: the tests fail without any mutant; see above")
    return msgspec.json.decode(answer, type=tuple[Baseline, list[str]])


def _passes_on_import(mutant: Mutant | None, tests: Sequence[str]) -> bool:
    if mutant:
        sys.meta_path.insert(0, _MutatedImport(mutant))
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    code = _pytest(list(files), _Ordering(tests))
    if code == pytest.ExitCode.INTERNAL_ERROR:
        raise RuntimeError("pytest failed itself, not a test")
    return code == 0


def _survivors(
    chosen: Sequence[Mutant], baseline: Baseline, processes: int, passes: Callable[[Mutant, Sequence[str]], bool]
) -> Iterator[Mutant]:
    running: dict[int, Mutant] = {}
    waiting = list(reversed(chosen))
    while waiting or running:
        while waiting and len(running) < processes:
            mutant = waiting.pop()
            tests = baseline.tests_of(mutant)
            if not tests:
                yield mutant
            elif pid := os.fork():
                running[pid] = mutant
            else:
                _exit_with(lambda: passes(mutant, tests), name=mutant.name)  # noqa: B023  called immediately
        if running:
            pid, status = os.wait()
            mutant = running.pop(pid)
            if status == 0 or os.waitstatus_to_exitcode(status) == _RUNNER_FAILED:
                yield mutant


def _exit_with(passes: Callable[[], bool], name: str = "") -> NoReturn:
    """End this forked process. An exception of the runner is not a test that fails, so it does not kill the mutant."""
    code, stderr = _RUNNER_FAILED, os.dup(2)
    try:
        if name:
            _be_quiet_and_brief()
        code = 0 if passes() else 1
    except BaseException:  # noqa: BLE001  a child that returned would run the mutants a second time
        os.dup2(stderr, 2)
        print(f"mutants: could not run {name or 'the control'}", file=sys.stderr)
        traceback.print_exc()
    finally:
        os._exit(code)


def _be_quiet_and_brief() -> None:
    # CPU time, and not the clock's: on a busy machine a slow run would count as a mutant that was noticed.
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_SECONDS, _MOST_CPU_SECONDS))
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _check_control(baseline: Baseline) -> None:
    """Without a mutant the tests pass on import, too: otherwise every mutant there would count as killed."""
    pid = os.fork()
    if not pid:
        _exit_with(lambda: _passes_on_import(None, list(baseline.seconds)))
    if os.waitpid(pid, 0)[1]:
        sys.exit("mutants: on import, the tests fail without any mutant; see above")


def survivors(every: Sequence[Mutant], processes: int) -> list[str]:
    baseline, alive = _of_functions([mutant for mutant in every if mutant.scope], processes)
    for name in baseline.imported:  # once, for all the processes that are forked from here
        with suppress(ImportError, ValueError):  # not every name is that of a module that can be imported again
            importlib.import_module(name)
    on_import = [mutant for mutant in every if not mutant.scope]
    with tempfile.TemporaryDirectory() as compiled, _bytecode_in(compiled):
        _check_control(baseline)
        return alive + [mutant.name for mutant in _survivors(on_import, baseline, processes, _passes_on_import)]


@contextmanager
def _bytecode_in(folder: str) -> Iterator[None]:
    """The control run compiles the tests once for all mutants, even if the environment forbids files of bytecode.

    A mutant is compiled by its own loader, which writes none.
    """
    before = sys.pycache_prefix, sys.dont_write_bytecode
    sys.pycache_prefix, sys.dont_write_bytecode = folder, False
    try:
        yield
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = before


def accepted_mutants() -> Mapping[str, str]:
    entries = tomllib.loads(_ACCEPTED.read_text())["accepted"]
    return {entry["mutant"]: entry["reason"] for entry in entries}


def core_mutants(paths: Iterable[Path] = _CORE.values()) -> list[Mutant]:
    return [mutant for path in paths for mutant in mutants(path.stem, path.read_text())]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules of the core, such as removal_budget; all by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    paths = [path for module, path in _CORE.items() if not args.modules or module in args.modules]
    if missing := set(args.modules) - _CORE.keys():
        parser.error(f"no such module of the core: {', '.join(sorted(missing))}")
    every = core_mutants(paths)
    began = time.monotonic()
    passed = report(every, set(survivors(every, args.processes)), accepted_mutants())
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if passed else 1


def report(every: Sequence[Mutant], alive: set[str], accepted: Mapping[str, str]) -> bool:
    """Print the result. It is good enough if few survive in each module, and each accepted mutant is one of them."""
    modules = Counter(mutant.module for mutant in every)
    unexplained = [mutant for mutant in every if mutant.name in alive and mutant.name not in accepted]
    living = Counter(mutant.module for mutant in unexplained)
    known = {mutant.name for mutant in every}
    outdated = [name for name in accepted if _module(name) in modules and name not in alive]
    for mutant in unexplained:
        print(f"survived: {mutant.name}")
    for name in outdated:
        print(f"accepted.toml: {name!r} {'is killed' if name in known else 'does not exist'}; remove it")
    for module, count in modules.items():
        print(f"{module:14}{count:5} mutants {living[module]:4} survive {_killed(count, living[module]):6.1f} % killed")
    explained = len(alive.intersection(accepted))
    killed = _killed(len(every) - explained, len(unexplained))
    print(
        f"{len(every)} mutants, {explained} accepted, {killed:.1f} % of the others killed; "
        f"expected {_LEAST_KILLED} % in every module"
    )
    worst = min((_killed(count, living[module]) for module, count in modules.items()), default=100)
    return worst >= _LEAST_KILLED and not outdated


def _killed(count: int, alive: int) -> float:
    return 100 - 100 * alive / count if count else 100


def _module(name: str) -> str:
    return name.partition(":")[0].partition(".")[0]


if __name__ == "__main__":
    sys.exit(main())
