"""The cost and speed of the operator, compared with the control plane's own cost.

Each scenario runs on a new control plane with new processes. Nodes are simulated (KWOK runs the kubelets and the worker
pods, which take a second); everything shares this machine's cores, so a wall time is meaningful only relative to the
baseline, and only if `other_cpu_seconds` is small.

- floor: nodes, pods and releases, all at the same time, by the generator itself: what an ideal controller could reach
- burst: the same nodes at the same time, and the controller does the rest
- crowd: the same burst in a fleet of 5,000 verified nodes
- trickle: ten nodes per second
- outage: all nodes at the same time, and every worker fails until a minute after the first failure; removal is enabled
- churn: verified nodes, of which five per second are replaced for a minute; some new ones are deleted immediately
- idle: nodes verified long ago, each with a heartbeat every five minutes; the controller's cost per minute
"""

import argparse
import shlex

from bench import figures, report
from bench.scenarios import AGENT, SCENARIOS, SECONDS, Wanted
from lab import errors
from lab.progress import say

_CONTROLLER = f".venv/bin/{AGENT}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.operator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", choices=[*SCENARIOS, "all"])
    parser.add_argument("nodes", type=int, nargs="?", default=1000, help="number of nodes (1000)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"how long outage, churn and idle last ({SECONDS:g})"
    )
    parser.add_argument("--controller", default=_CONTROLLER, help=f"the command to measure ({_CONTROLLER})")
    parser.add_argument("--save", action="store_true", help=f"save the figures under {report.RESULTS}/")
    asked = parser.parse_args()
    for name, value in (("nodes", asked.nodes), ("seconds", asked.seconds)):
        if value < 1:
            parser.error(f"{name}: {value:g} is too few to measure; 1 or more can be")
    if asked.save and asked.seconds != SECONDS:
        parser.error(
            f"results that are kept last {SECONDS:g} s each, so that they compare; leave --seconds out, or --save"
        )
    wanted = Wanted(asked.nodes, shlex.split(asked.controller), asked.seconds)
    for name in SCENARIOS if asked.scenario == "all" else [asked.scenario]:
        say(f"{name}, {wanted.nodes} nodes")
        try:
            found = SCENARIOS[name](wanted)
        except (errors.LabError, OSError) as error:
            parser.exit(1, f"{name}: {error}\n")
        print(report.table(f"{name}, {wanted.nodes} nodes", found), flush=True)
        if asked.save and not figures.is_complete(found):
            parser.exit(1, f"{name}: not all nodes were released, so this is not kept; measure it again\n")
        if asked.save:
            say(f"kept in {report.save(name, wanted.nodes, found)}")


if __name__ == "__main__":
    main()
