"""The part of the contract that needs a cluster; the rest of it is in tests/contract."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import lab
from lab import waiting
from tests.contract import cluster, golden
from tests.contract.golden import Facts
from tests.contract.programs import run
from tests.contract.shapes import prefixed, shape
from tests.support.agent_live import VALUES, a_world
from tests.support.chart_release import Release
from tests.support.controller_process import a_config, operating
from tests.support.removal import nodeclaims

GATE = {"key": "node-ready/unverified", "value": "true", "effect": "NoSchedule"}
PASSED = '{"v":1,"node":"n","checks":[{"name":"dns","ok":true,"ms":3,"target":"example.com"}]}'
FAILED = '{"v":1,"node":"n","checks":[{"name":"dns","ok":false,"ms":3,"target":"example.com","error":"timed out"}]}'
VERDICTS = {"good": lab.passes(PASSED), "bad": lab.fails(FAILED), "kept": lab.fails(FAILED), "hung": lab.HANGS}
CONTINUOUS = ("--mode=continuous", "--max-retries=1", "--check-interval=1s", "--failure-threshold=3")
PATIENCE = 180


class Cluster:
    """What kubectl shows of one test's nodes, and the programs for people in front of it."""

    def __init__(self, plane: lab.Plane, namespace: str) -> None:
        self._plane = plane
        self.namespace = namespace

    def get(self, *words: str) -> Any:  # noqa: ANN401  JSON
        return json.loads(self._plane.kubectl("get", "--output=json", *words))

    def events(self, *nodes: str) -> list[Any]:
        found = self.get("events", "--namespace=default")["items"]
        return [event for event in found if event["involvedObject"]["name"] in nodes]

    def has(self, reason: str, node: str) -> bool:
        """Whether there is such an Event."""
        return any(event["reason"] == reason for event in self.events(node))

    def shows(self, reason: str, node: str) -> bool:
        """Whether the condition gives this reason."""
        return cluster.condition(self.get("node", node)).get("reason") == reason

    def worker(self, node: str) -> Any:  # noqa: ANN401  JSON
        (pod,) = self.get("pods", f"--namespace={self.namespace}", f"--field-selector=spec.nodeName={node}")["items"]
        return pod

    def until(self, what: str, condition: Callable[[], object]) -> None:
        waiting.until(what, condition, PATIENCE, alive=self._plane.check)

    def run(self, program: str, *words: str) -> tuple[int, str]:
        done = run(program, *words, KUBECONFIG=str(self._plane.kubeconfig()))
        return done.returncode, done.stdout

    def check(self) -> Facts:
        """What the worker logs, with a kubeconfig instead of a pod's ServiceAccount."""
        access = {
            "NODE_NAME": "node-1",
            "KUBECONFIG": str(self._plane.kubeconfig()),
            "WORKER_CONFIG_PATH": "passing.yaml",
        }
        done = run("kube-node-ready-worker", **access)
        return {
            **cluster.log(map(json.loads, done.stdout.splitlines())),
            "exit code if all checks pass": str(done.returncode),
        }

    def ask(self, verb: str, *words: str) -> tuple[int, str]:
        return self.run("kube-node-ready", verb, f"--namespace={self.namespace}", *words)


@pytest.fixture
def mine(plane: lab.Plane, namespace: str) -> Iterator[Cluster]:
    yield Cluster(plane, namespace)
    plane.kubectl("delete", "nodes", f"--selector=contract={namespace}", "--wait=false")


def join(plane: lab.Plane, namespace: str, group: str, *, selected: bool = True) -> str:
    taint = lab.Taint(GATE["key"], GATE["effect"], GATE["value"])
    labels = {"contract": namespace} if selected else {}
    (name,) = plane.simulated_nodes(
        1, prefix=f"{namespace}-{group}", verdict=VERDICTS[group], taints=[taint], labels=labels
    ).names
    return name


def test_the_controllers_objects_have_not_changed(plane: lab.Plane, mine: Cluster, tmp_path: Path) -> None:
    config = a_config(
        mine.namespace,
        leaderElection={"enabled": True},
        nodeManagement={
            "taints": [GATE],
            "nodeSelector": {"contract": mine.namespace},
            "deleteFailedNodes": True,
            "removal": {"maxCount": 100, "maxPercent": 100, "maxFailingCount": 100},
        },
        reconciliation={"intervalSeconds": 1, "maxRetries": 1, "exhaustedRetrySeconds": 3600},
    )
    facts: dict[str, str] = {}
    with nodeclaims(plane) as claims, operating(tmp_path, plane.kubeconfig(), config) as controller:
        mine.until("it leads", lambda: "leader_election_status 1.0" in controller.ask("/metrics"))
        facts |= prefixed("metric", cluster.metrics(controller.ask("/metrics")))
        # It is selected only after it was paused: otherwise it could be removed before.
        kept = join(plane, mine.namespace, "kept", selected=False)
        codes = {"pause NODE": mine.ask("pause", kept)[0]}
        plane.kubectl("label", "node", kept, f"contract={mine.namespace}")
        # The claim is there before its node can fail; without one, the Node itself would be deleted.
        claims.make(f"{mine.namespace}-bad-0", by="status", finalizers=["karpenter.sh/termination"])
        good, hung, bad = (join(plane, mine.namespace, group) for group in ("good", "hung", "bad"))
        codes |= {"status of a gated node": mine.ask("status", hung)[0]}
        mine.until("the good node is verified", lambda: mine.has("Verified", good) and mine.shows("Verified", good))
        mine.until("the claim is deleted", lambda: mine.has("Removing", bad))
        mine.until("the paused node stays", lambda: mine.has("RemovalBlocked", kept))
        mine.until("both have failed", lambda: all(mine.shows("VerificationExhausted", node) for node in (bad, kept)))
        mine.until("a worker hangs", lambda: mine.worker(hung)["status"]["phase"] == "Running")
        for name, group in ((good, "good"), (bad, "bad"), (kept, "kept"), (hung, "hung")):
            facts |= prefixed(f"{group} node", cluster.node(mine.get("node", name)))
        facts |= cluster.events(mine.events(good, bad, kept, hung))
        facts |= prefixed("worker pod", cluster.worker_pod(mine.worker(hung)))
        removals = mine.get("configmap", f"--namespace={mine.namespace}", "kube-node-ready-removals")
        facts |= prefixed("removals", cluster.ledger(removals))
        lease = mine.get("leases", f"--namespace={mine.namespace}")["items"]
        facts["Lease"] = " ".join(found["metadata"]["name"] for found in lease)
        printed = json.loads(mine.ask("status", "--output=json", good, bad, kept, hung)[1])
        facts |= prefixed("status -o json", shape(printed))
        phases = {node["name"]: node["phase"] for node in printed}
        facts |= {"phase of a verified node": phases[good], "phase of a node with a worker": phases[hung]}
        as_yaml = yaml.safe_load(mine.ask("status", "--output=yaml", good, bad, kept, hung)[1])
        assert shape(as_yaml).keys() == shape(printed).keys()
        codes |= {
            "status of a verified node": mine.ask("status", good)[0],
            "status of no such node": mine.ask("status", "no-such-node")[0],
            "explain of a verified node": mine.ask("explain", good)[0],
            "explain of a failed node": mine.ask("explain", bad)[0],
            "pause": mine.ask("pause")[0],
            "resume": mine.ask("resume")[0],
            "resume NODE": mine.ask("resume", kept)[0],
            "pause of no such node": mine.ask("pause", "no-such-node")[0],
            "verify": mine.ask("verify", good)[0],
            "verify of no such node": mine.ask("verify", "no-such-node")[0],
            "status --until that is too late": mine.ask("status", "--until=settled", "--timeout=1s", hung)[0],
            "controller that is stopped": controller.stop(),
        }
        facts |= cluster.log(controller.lines())
        facts |= prefixed("worker", mine.check())
    facts |= prefixed("exit code of", {situation: str(code) for situation, code in codes.items()})
    golden.check("controller", facts)


def test_daemonset_modes_objects_have_not_changed(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    release = Release(plane, f"{prefix}-ns", VALUES)
    mine = Cluster(plane, release.namespace)
    release.install()
    try:
        with a_world(release, prefix, tmp_path) as world:
            world.join(GATE, labels={"contract": prefix})
            world.break_network()
            world.start(*CONTINUOUS)
            mine.until("it has failed", lambda: mine.shows("VerificationExhausted", world.name))
            failed = cluster.node(mine.get("node", world.name))
            world.heal_network()
            mine.until("it is verified", lambda: mine.shows("Verified", world.name))
            verified = cluster.node(mine.get("node", world.name))
            world.break_network()
            mine.until("its gate is closed again", lambda: mine.has("GateRestored", world.name))
            events = cluster.events(mine.events(world.name))
            served = cluster.metrics(world._runs[-1].ask("/metrics"))
            lines = cluster.log(world._runs[-1].lines())
            stopped = {"exit code of a pod that is stopped": str(world.stop())}
    finally:
        release.uninstall()
    nodes = {**prefixed("failed node", failed), **prefixed("verified node", verified)}
    golden.check("daemonset-mode", {**nodes, **events, **prefixed("metric", served), **lines, **stopped})


def test_the_components_objects_have_not_changed(mine: Cluster) -> None:
    here = ("--file=agent.yaml", f"--set=spec.namespace={mine.namespace}", "--set=spec.create_namespace=false")

    def does(verb: str, *words: str) -> tuple[int, str]:
        return mine.run("kubernetes-daemonset", verb, *here, *words)

    codes = {"diff before": does("diff")[0], "apply": does("apply", "--timeout=60s")[0], "diff after": does("diff")[0]}
    try:
        outputs = {kind: does("outputs", f"--output={kind}")[1] for kind in ("json", "yaml", "manifest")}
        made = mine.get("daemonset", f"--namespace={mine.namespace}", "agent", "--show-managed-fields")
    finally:
        codes["delete"] = does("delete", "--timeout=60s")[0]
    printed = json.loads(outputs["json"])
    assert yaml.safe_load(outputs["yaml"]) == printed
    status = yaml.safe_load(outputs["manifest"])["status"]
    facts = {**prefixed("outputs -o json", shape(printed)), **prefixed("outputs -o manifest status", shape(status))}
    facts["field managers"] = " ".join(sorted({entry["manager"] for entry in made["metadata"]["managedFields"]}))
    facts |= prefixed("exit code of", {verb: str(code) for verb, code in codes.items()})
    golden.check("component", facts)
