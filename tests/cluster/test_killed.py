"""SIGKILL at every write, before and after it, and a new controller takes over: nothing is lost, nothing is doubled."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Event, Namespace
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import decode_record
from lab import simulated_nodes, waiting
from tests.support.builders import has_node, has_pods
from tests.support.controller_process import a_config, operating

PATIENCE = 180
AT_A_TIME = 4
MOMENTS = ("before", "after")
# The writes of each journey, in their order; a test below sees to it that the lists are complete.
PASSING = ("pod", "release", "status", "Verified", "drop")
FAILING = (
    "pod",
    "VerificationFailed",
    "status",
    "pod 2",
    "Verifying",
    "drop",
    "release",
    "status",
    "Verified",
    "drop 2",
)
REMOVING = (
    *("pod", "VerificationFailed", "VerificationExhausted", "status"),
    *("pod 2", "Verifying", "drop", "VerificationFailed", "status"),
    *("ledger", "Removing", "node"),
)


class Case:
    """One node with a gate of its own, one namespace, and a controller that cares for nothing else."""

    def __init__(self, plane: lab.Plane, folder: Path, name: str, verdict: lab.Verdict) -> None:
        self.plane = plane
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self.torn = False
        plane.client.create(Namespace(metadata=ObjectMeta(name=name)))
        gate = lab.Taint(f"example.com/{name}", value="true")
        label = {"case": name}
        self.nodes: simulated_nodes.SimulatedNodes = plane.simulated_nodes(
            1, prefix=name, verdict=verdict, taints=[gate], labels=label
        )
        self.node = self.nodes.names[0]
        self.config = a_config(
            name,
            nodeManagement={
                "taints": [{"key": gate.key, "effect": gate.effect}],
                "nodeSelector": label,
            },
        )

    def removes(self) -> None:
        """Its controller removes what fails twice."""
        self.config["nodeManagement"] |= {"deleteFailedNodes": True, "removal": {"maxFailingCount": 1}}
        self.config["reconciliation"]["maxRetries"] = 1
        self.config["reconciliation"]["exhaustedRetrySeconds"] = 5
        empty = "{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-node-ready-removals, namespace: %s}}"
        self.plane.apply(empty % self.name)

    def released(self) -> bool:
        node = self.plane.client.get(NodeObject, self.node)
        assert node.metadata
        assert node.spec
        keys = [taint.key for taint in node.spec.taints or []]
        labelled = (node.metadata.labels or {}).get("node-ready/verified") == "true"
        opened = f"example.com/{self.name}" not in keys
        self.torn |= labelled is not opened
        return labelled and opened

    def failed(self) -> bool:
        return "VerificationFailed" in self.events()

    def gone(self) -> bool:
        return not has_node(self.plane, self.node)

    def pods_ever(self) -> list[str]:
        """Every worker that was ever bound to its node, by the scheduler's own account."""
        found = self.plane.client.list(Event, namespace=self.name, fields={"reason": "Scheduled"})
        return sorted(str(event.involvedObject.name) for event in found)

    def events(self) -> list[str]:
        found = self.plane.client.list(Event, namespace="default", fields={"involvedObject.name": self.node})
        return sorted(str(event.reason) for event in found if event.reportingComponent == "kube-node-ready-controller")

    def attempts(self) -> int:
        node = self.plane.client.get(NodeObject, self.node)
        assert node.metadata
        return decode_record((node.metadata.annotations or {}).get(RECORD_ANNOTATION)).attempt

    def idle(self) -> bool:
        return not has_pods(self.plane, self.name)

    def until(self, what: str, condition: object) -> None:
        assert callable(condition)
        waiting.until(f"{self.name}: {what}", condition, PATIENCE, alive=self.plane.check)

    def kill_at(self, write: int, moment: str) -> None:
        """Run a controller that dies there, and wait for its death."""
        command = [sys.executable, "-m", "tests.support.killable_controller", f"--die-at={write}:{moment}"]
        with operating(self.folder, self.plane.kubeconfig(), self.config, command) as doomed:
            self.heal_when_failed(lambda: doomed.process.poll() is not None)
            assert doomed.process.returncode == -9

    def heal_when_failed(self, done: object) -> None:
        """A failing node passes once its failure was reported; so both attempts are walked through."""
        assert callable(done)
        healed = False

        def over() -> bool:
            nonlocal healed
            if not healed and "removes" not in self.name and self.failed():
                self.nodes.decide(lab.PASSES)
                healed = True
            return bool(done())

        self.until("it dies", over)


def walk(plane: lab.Plane, folder: Path, journey: str, write: int, moment: str) -> Case:
    """A journey interrupted at one write, and finished by another controller."""
    case = Case(plane, folder, f"{journey}-{write}-{moment}", lab.PASSES if journey == "passes" else lab.fails())
    if journey == "removes":
        case.removes()
    case.kill_at(write, moment)
    with operating(case.folder, plane.kubeconfig(), case.config):
        if journey == "removes":
            case.until("removed", case.gone)
        else:
            case.heal_when_failed(case.released)
            case.until("no worker is left", case.idle)
            case.until("reported", lambda: "Verified" in case.events())
    return case


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.mark.parametrize(
    ("journey", "writes"),
    [("passes", PASSING), ("fails", FAILING), ("removes", REMOVING)],
    ids=lambda value: str(value)[:7],
)
def test_a_killed_controller_loses_and_duplicates_nothing(
    plane: lab.Plane, folder: Path, journey: str, writes: tuple[str, ...]
) -> None:
    first, *others = itertools.product(range(1, len(writes) + 1), MOMENTS)
    # Alone: if threads teach msgspec the same type at a time, the interpreter crashes, and this one meets them all.
    cases = [walk(plane, folder, journey, *first)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        cases += pool.map(lambda place: walk(plane, folder, journey, *place), others)
    for case in cases:
        assert not case.torn, f"{case.name}: seen with its gate and the label, or with neither"
        pods = case.pods_ever()
        assert len(pods) == len(set(pods)), f"{case.name}: an attempt was made twice: {pods}"
        reported = case.events()
        assert len(reported) == len(set(reported)) or journey != "passes", f"{case.name}: reported twice: {reported}"
        if journey == "removes":
            # A controller that has not seen a failure itself wants to see one more.
            assert len(pods) in (2, 3), f"{case.name}: {pods}, {reported}"
            assert reported.count("Removing") == 1, f"{case.name}: {reported}"
        else:
            assert len(pods) == case.attempts(), f"{case.name}: {pods}, {reported}"
            # It must be healed only after its second failure.
            assert len(pods) == 1 if journey == "passes" else len(pods) >= 2, f"{case.name}: {pods}"
