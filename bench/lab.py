"""The cost of the lab itself: the baseline of every figure measured on it.

usage: python -m bench.lab [ROUNDS]
"""

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from lightkube.resources.core_v1 import Pod

import lab
from lab import images, network, waiting
from lab.progress import say

Figures = dict[str, list[float]]
_FAKE_NODES = 200


@contextmanager
def timed(figures: Figures, what: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    figures[what].append(time.monotonic() - begun)


def measure(figures: Figures) -> None:
    begun = time.monotonic()
    with lab.plane() as plane:
        figures["control plane up"].append(time.monotonic() - begun)
        if network.is_root():
            measure_real_nodes(plane, figures)
        with timed(figures, f"{_FAKE_NODES} simulated nodes registered"):
            nodes = plane.simulated_nodes(_FAKE_NODES)
        with timed(figures, f"{_FAKE_NODES} pods on them from creation to success"):
            run_everywhere(plane, nodes.names)
        ending = time.monotonic()
    figures["all of it taken away"].append(time.monotonic() - ending)


def measure_real_nodes(plane: lab.Plane, figures: Figures) -> None:
    with timed(figures, "first real node Ready"):
        plane.node("first")
    with timed(figures, "cluster DNS ready after that"):
        plane.wait_for_dns()
    with timed(figures, "two more real nodes Ready"):
        plane.start_nodes("second", "third")


def run_everywhere(plane: lab.Plane, names: tuple[str, ...]) -> None:
    for name in names:
        plane.apply(
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default}}, spec: {{"
            f"restartPolicy: Never, nodeName: {name}, containers: [{{name: worker, image: '{images.TOOLBOX}'}}]}}}}"
        )

    def all_succeeded() -> bool:
        done = plane.client.list(Pod, namespace="default", fields={"status.phase": "Succeeded"})
        return sum(1 for _ in done) == len(names)

    waiting.until("the pods succeed", all_succeeded, 300, alive=plane.check)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    figures: Figures = defaultdict(list)
    for number in range(1, rounds + 1):
        say(f"round {number} of {rounds}")
        measure(figures)
    print(f"{'seconds, of ' + str(rounds) + ' rounds':<52} {'median':>7} {'worst':>7}")
    for what, seconds in figures.items():
        print(f"{what:<52} {statistics.median(seconds):>7.1f} {max(seconds):>7.1f}")


if __name__ == "__main__":
    main()
