"""Run all measurements in sequence and write the results page: `make bench`.

Each step is also a command of its own, which is printed when it begins. The newest result of each is kept under
bench/results/, the older ones are deleted, and docs/reference/performance.md with its plots is written again.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from bench import page
from bench.plan import STEPS, Step, told
from lab.progress import say

_BUSY_LOAD = 0.5


def chosen(names: Sequence[str]) -> list[Step]:
    return [step for step in STEPS if not names or step.name in names or step.scenario in names]


def run(steps: Sequence[Step]) -> list[str]:
    """Run the measurements, and return the names of those that failed."""
    failed: list[str] = []
    begun, left = time.monotonic(), sum(step.seconds for step in steps)
    for number, step in enumerate(steps, 1):
        say(f"{number} of {len(steps)}: {step.name}, about {told(step.seconds)}; in all about {told(left)} left")
        say(f"python -m {' '.join(step.command)}")
        if subprocess.run([sys.executable, "-m", *step.command], check=False).returncode:
            failed.append(step.name)
        left -= step.seconds
    say(f"it took {told(time.monotonic() - begun)}")
    return failed


def warn_if_busy() -> None:
    """Warn about other load on the machine, which makes wall times useless."""
    load, *_ = os.getloadavg()
    if load > _BUSY_LOAD:
        say(f"this machine is busy (load {load:.1f}): wait until it is quiet, or do not keep what comes out")


def main() -> None:
    names = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(
        prog="python -m bench.all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = ", ".join(dict.fromkeys([*names, *(step.scenario for step in STEPS)]))
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"only these, of {known}")
    parser.add_argument("--list", action="store_true", help="only list the measurements and their duration")
    asked = parser.parse_args()
    if unknown := [name for name in asked.steps if not chosen([name])]:
        parser.error(f"there is no step {unknown[0]!r}; there are {known}")
    steps = chosen(asked.steps)
    if asked.list:
        for step in steps:
            print(f"{told(step.seconds):>10}  python -m {' '.join(step.command)}")
        print(f"{told(sum(step.seconds for step in steps)):>10}  in all")
        return
    warn_if_busy()
    try:
        failed = run(steps)
    except KeyboardInterrupt:
        parser.exit(128 + signal.SIGINT, "interrupted; what was measured until now is kept under bench/results/\n")
    page.write()
    say(f"{page.PAGE} and its plots are written")
    if failed:
        parser.exit(1, f"not measured: {', '.join(failed)}; the reasons stand above\n")


if __name__ == "__main__":
    main()
