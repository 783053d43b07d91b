"""A real Kubernetes on one machine, for tests, demonstrations and benchmarks.

    import lab

    with lab.plane() as plane:                       # etcd, apiserver, controller manager, scheduler: seconds
        node = plane.node("a", taints=[lab.Taint("node-ready/unverified")])    # a real kubelet and containerd
        with node.break_dns():                       # its pods have no DNS until the block ends
            ...
        plane.simulated_nodes(1000, verdict=lab.fails("dns: timed out"))            # simulated nodes with a verdict

`python -m lab --help` offers the same from a shell.
"""

from lab.errors import ComponentDiedError, LabError, NotReadyInTimeError
from lab.node import Node
from lab.plane import Plane, plane
from lab.simulated_stages import HANGS, PASSES, Verdict, fails, never_starts, passes
from lab.taints import Taint

__all__ = [
    "HANGS",
    "PASSES",
    "ComponentDiedError",
    "LabError",
    "Node",
    "NotReadyInTimeError",
    "Plane",
    "Taint",
    "Verdict",
    "fails",
    "never_starts",
    "passes",
    "plane",
]
