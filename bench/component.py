"""The cost of `kubernetes-daemonset validate`, compared with that of the interpreter.

- one: a manifest per process, as in an editor or a hook; the baseline is `python -c pass`
- many: a directory of manifests in one process

Its bytecode is compiled in advance, as by pip. On a busy machine, CPU seconds are more meaningful than wall times.
"""

import argparse
import compileall
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes_daemonset
from bench import report
from kubernetes_daemonset.cli import offline
from lab.progress import say

_SOURCE = Path(kubernetes_daemonset.__file__).parent.parent
_COMMAND = (sys.executable, "-c", "from kubernetes_daemonset.cli.main import main; main()", "validate", "-f")
_FLOOR = (sys.executable, "-c", "pass")
_STARTER = "fluentd"
"""The largest starter manifest: RBAC rules, variables, a secret, mounts."""

Figures = dict[str, Any]


class Cost(NamedTuple):
    seconds: float
    cpu_seconds: float


def run_once(command: Sequence[str]) -> Cost:
    begun = time.monotonic()
    output = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=[output])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(time.monotonic() - begun, usage.ru_utime + usage.ru_stime)


def typical(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def one(folder: Path, rounds: int) -> Figures:
    file = write(folder, 1)[0]
    # Alternating, so that other load on the machine affects both.
    pairs = [(run_once(_FLOOR), run_once((*_COMMAND, str(file)))) for _ in range(rounds)]
    floor, validate = (typical(costs) for costs in zip(*pairs, strict=True))
    return {
        "floor": floor._asdict(),
        "validate": validate._asdict(),
        "validate_at_best": min(cost for _, cost in pairs)._asdict(),
        "times_the_floor": Cost(*(mine / least for mine, least in zip(validate, floor, strict=True)))._asdict(),
    }


def many(folder: Path, manifests: int) -> Figures:
    write(folder, manifests)
    return {f"{manifests}_manifests": run_once((*_COMMAND, str(folder)))._asdict()}


def write(folder: Path, manifests: int) -> list[Path]:
    """Write this many agents, each with its own name."""
    text = offline.starters()[_STARTER]
    files = [folder / f"{number}.yaml" for number in range(manifests)]
    for number, file in enumerate(files):
        file.write_text(text.replace(f"name: {_STARTER}\n", f"name: {_STARTER}-{number}\n"))
    return files


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.component", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "manifests", type=int, nargs="?", default=1000, help="number of manifests in the directory (1000)"
    )
    parser.add_argument("--rounds", type=int, default=20, help="number of validations of one manifest (20)")
    parser.add_argument("--save", action="store_true", help=f"save the figures under {report.RESULTS}/")
    asked = parser.parse_args()
    if min(asked.manifests, asked.rounds) < 1:
        parser.error("too few to measure; 1 or more can be")
    compileall.compile_dir(_SOURCE, quiet=1)
    with tempfile.TemporaryDirectory() as single, tempfile.TemporaryDirectory() as several:
        say(f"one manifest, {asked.rounds} times")
        figures = one(Path(single), asked.rounds)
        say(f"{asked.manifests} manifests")
        figures |= many(Path(several), asked.manifests)
    print(report.table("validate", figures), flush=True)
    if asked.save:
        say(f"kept in {report.save('validate', asked.manifests, figures, of='manifests')}")


if __name__ == "__main__":
    main()
