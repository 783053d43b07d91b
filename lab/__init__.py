"""A real Kubernetes on one machine, for tests, demonstrations and benchmarks.

    import lab

    with lab.plane() as plane:                       # etcd, apiserver, controller manager, scheduler: seconds
        node = plane.node("a", taints=[lab.Taint("node-ready/unverified")])    # a real kubelet and containerd
        with node.break_dns():                       # … whose pods get no DNS, until the block ends
            ...
        plane.fake_nodes(1000, verdict=lab.fails("dns: timed out"))            # simulated nodes, chosen ends

`python -m lab --help` is the same from a shell.
"""

from lab.errors import ComponentDiedError, LabError, NotReadyInTimeError
from lab.fake_stages import HANGS, PASSES, Verdict, fails, never_starts, passes
from lab.node import Node
from lab.plane import Plane, plane
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
