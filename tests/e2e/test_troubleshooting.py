"""The commands of the how-to guides, run as a reader would: the chart installed, the released image, real nodes.

One node is sound; the other one's DNS is broken from the start. The commands come from the pages, and so do the words
that their output must contain.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node, Pod

import lab
from demo import image as release_image
from lab import network, waiting
from tests.support import pages
from tests.support.shell import ROOT

pytestmark = pytest.mark.timeout(600)
SOUND, BROKEN = "sound", "broken"
GATE = lab.Taint("node-ready/unverified", value="true")
SYSTEM = "kube-system"
PATIENCE = 180
TOLERATES_ALL = [{"operator": "Exists"}]
USUAL = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
"""What cluster DNS of most distributions tolerates, the taints of control planes aside."""


def question(title: str) -> pages.Section:
    return pages.section(title, pages.TROUBLESHOOTING, of="Questions")


def with_our_image(command: str) -> str:
    assert "registry.example/team/kube-node-ready" in command
    return command.replace("registry.example/team/kube-node-ready", release_image.REPOSITORY)


class Cluster:
    """A shell in front of the cluster, as its readers have one."""

    def __init__(self, plane: lab.Plane) -> None:
        self.plane = plane
        programs = plane.programs
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KUBE")},
            "PATH": f"{programs.path('kubectl').parent}:{programs.path('helm').parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(plane.kubeconfig()),
            "NO_PROXY": network.of(plane.run).api_address,
        }

    def run(self, command: str, node: str = "") -> str:
        """Return its output. A command can fail where its page documents it, but not with a usage error."""
        environment = {**self._environment, "NODE": node}
        words = ["bash", "-c", f"{command} 2>&1"]
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        usage = (
            "unknown flag",
            "unknown command",
            "syntax error",
            "error: there is no",
            "doesn't have a resource type",
        )
        assert not any(sign in done.stdout for sign in usage), f"{command}\n{done.stdout}"
        return done.stdout

    def install(self, command: str, *values: str) -> None:
        output = self.run(" ".join([with_our_image(command), *(f"--set {value}" for value in values)]))
        assert "STATUS: deployed" in output, output

    def upgrade(self, *values: str) -> None:
        """And wait until the new controller has taken the old one's place."""
        (restore,) = question("A permission is missing").commands[2:]
        output = self.run(" ".join([restore, *(f"--set {value}" for value in values)]))
        assert "has been upgraded" in output, output
        self.run(f"kubectl rollout status deployment/kube-node-ready-controller --namespace={SYSTEM} --timeout=120s")

    def until_output(self, command: str, words: tuple[str, ...], node: str = "") -> str:
        output = ""

        def shown() -> bool:
            nonlocal output
            output = self.run(command, node)
            return all(word in output for word in words)

        try:
            self.until(f"`{command}` shows {words}", shown)
        except lab.LabError as why:
            raise AssertionError(f"{why}; its last output:\n{output}") from why
        return output

    def until(self, what: str, condition: Callable[[], object]) -> None:
        waiting.until(what, condition, PATIENCE, alive=self.plane.check)

    def node(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.plane.client.get(Node, name).to_dict()
        return found

    def is_gated(self, name: str) -> bool:
        return any(taint["key"] == GATE.key for taint in self.node(name)["spec"].get("taints", []))

    def gate(self, name: str) -> None:
        """As if it had just joined. The label goes first: a gate that comes back on a verified node is opened."""
        self.plane.kubectl("label", "node", name, "node-ready/verified-")
        self.plane.kubectl("taint", "node", name, f"{GATE.key}=true:NoSchedule", "--overwrite")

    def labelled(self, name: str) -> bool:
        return "node-ready/verified" in self.node(name)["metadata"]["labels"]

    def attempt(self, name: str) -> int:
        record = self.node(name)["metadata"].get("annotations", {}).get("node-ready/verification", "{}")
        return int(json.loads(record).get("attempt", 0))

    def dns_tolerates(self, tolerations: list[dict[str, str]]) -> None:
        change = [{"op": "add", "path": "/spec/template/spec/tolerations", "value": tolerations}]
        patch = f"kubectl patch deployment coredns --namespace={SYSTEM} --type=json --patch='{json.dumps(change)}'"
        assert "patched" in self.run(patch)

    def dns_pods(self) -> list[Pod]:
        return list(self.plane.client.list(Pod, namespace=SYSTEM, labels={"k8s-app": "kube-dns"}))

    def scale_dns(self, replicas: int) -> None:
        scale = {"spec": {"replicas": replicas}}
        self.plane.client.patch(Deployment, "coredns", scale, namespace=SYSTEM)


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    """Two gated nodes that know the image, one of them broken."""
    with lab.plane() as plane:
        _, broken = plane.start_nodes(SOUND, BROKEN, taints=[GATE])
        plane.wait_for_dns()
        plane.import_image(release_image.archive())
        broken.break_dns()
        yield Cluster(plane)


@pytest.fixture(scope="module")
def cluster(bare: Cluster) -> Cluster:
    """With the controller, by the command of the page about installation."""
    # Only to be quicker: what fails here fails by timeouts, and fails often.
    quick = ("worker.checkTimeoutSeconds=5", "reconciliation.exhaustedRetrySeconds=5")
    (install,) = pages.section("Controller mode", pages.INSTALL).commands
    bare.install(install, *(f"controller.config.{value}" for value in quick))
    bare.until("the sound node is verified", lambda: bare.labelled(SOUND) and not bare.is_gated(SOUND))
    return bare


def test_the_tutorial_verifies_a_node(cluster: Cluster) -> None:
    rollout, taint, wait, describe = pages.section("On your cluster", pages.TUTORIAL).commands
    cluster.plane.kubectl("label", "node", SOUND, "node-ready/verified-")
    assert "successfully rolled out" in cluster.run(rollout)
    assert "tainted" in cluster.run(taint, SOUND)
    assert "condition met" in cluster.run(wait, SOUND)
    cluster.until_output(describe, ("NodeVerified", "Verified", "Taints:             <none>"), SOUND)


def test_a_dry_run_changes_nothing_until_it_is_turned_off(cluster: Cluster) -> None:
    taint, logs, turn_off = pages.section("1. Dry run", pages.ROLLOUT).commands
    cluster.upgrade("controller.config.dryRun=true")
    cluster.plane.kubectl("label", "node", SOUND, "node-ready/verified-")
    assert "tainted" in cluster.run(taint, SOUND)
    cluster.until_output(logs, ("Dry run", SOUND))
    assert cluster.is_gated(SOUND)
    assert "has been upgraded" in cluster.run(turn_off)
    cluster.until("the sound node is verified", lambda: cluster.labelled(SOUND) and not cluster.is_gated(SOUND))


ASKED: set[str] = set()


def asks(title: str) -> pytest.MarkDecorator:
    """The test covers the section with this heading."""
    ASKED.add(title)
    return pytest.mark.parametrize("about", [question(title)], ids=["page"])


@asks("Which nodes are gated, and why?")
def test_which_nodes_are_gated_and_why(cluster: Cluster, about: pages.Section) -> None:
    (command,) = about.commands
    output = cluster.until_output(command, (*about.quoted("TAINTS", "WHY", "attempt"), BROKEN, "dns: "))
    assert about.quoted(GATE.key)[0] in output
    assert SOUND not in output


@asks("What happened to one node?")
def test_what_happened_to_one_node(cluster: Cluster, about: pages.Section) -> None:
    describe, events = about.commands
    cluster.until_output(describe, about.quoted("NodeVerified", "VerificationFailed"), BROKEN)
    cluster.until_output(events, about.quoted("VerificationFailed"), BROKEN)
    cluster.until_output(events, about.quoted("Verified"), SOUND)


@asks("What did the worker find?")
def test_what_the_worker_found(cluster: Cluster, about: pages.Section) -> None:
    command, check = about.commands
    output = cluster.until_output(command, (*about.quoted("DNS check failed"), "Checks failed"), BROKEN)
    (failed,) = (json.loads(line) for line in output.splitlines() if "DNS check failed" in line)
    assert failed.keys() >= {"domain", "error", "duration"}
    cluster.until_output(command, ("No resources found",), SOUND)
    assert release_image.NAME in with_our_image(check), "the version that is built"
    output = cluster.until_output(with_our_image(check), ("CHECK", "/openapi/v2"), SOUND)
    assert re.search(r"^\d+ passed\s*$", output, re.MULTILINE), output
    output = cluster.until_output(with_our_image(check), ("CHECK", "/openapi/v2"), BROKEN)
    assert re.search(r"^dns +kubernetes\.default\.svc\.cluster\.local +failed", output, re.MULTILINE), output


@asks("Is the controller running, and which replica leads?")
def test_the_controller_runs_and_one_replica_leads(cluster: Cluster, about: pages.Section) -> None:
    pods, lease, logs = about.commands
    assert "1/1" in cluster.until_output(pods, ("Running",))
    (pod,) = (line.split()[0] for line in cluster.run(pods).splitlines() if "Running" in line)
    cluster.until_output(lease, (*about.quoted("HOLDER"), f"{pod}_"))
    cluster.until_output(logs, about.quoted("Controller started", "Waiting for lease"))


@asks("Verify a node again")
def test_a_node_is_verified_again(cluster: Cluster, about: pages.Section) -> None:
    label, annotate = about.commands
    before = cluster.attempt(SOUND)
    assert "unlabeled" in cluster.run(label, SOUND)
    cluster.until("it has a new proof", lambda: cluster.labelled(SOUND) and cluster.attempt(SOUND) > before)
    assert not cluster.is_gated(SOUND)
    cluster.until("the broken one failed some times", lambda: cluster.attempt(BROKEN) > 2)
    before = cluster.attempt(BROKEN)
    assert "annotated" in cluster.run(annotate, BROKEN)
    cluster.until("it counts from the start", lambda: 0 < cluster.attempt(BROKEN) < before)


@asks("What do the metrics show?")
def test_metrics_are_read_without_prometheus(cluster: Cluster, about: pages.Section) -> None:
    (command,) = about.commands
    reported = about.quoted("kube_node_ready_controller_nodes_failed", "kube_node_ready_check_failures_total")
    output = cluster.until_output(command, (*reported, "kube_node_ready_controller_nodes_verified 1.0"))
    by_check = {line.split()[0]: float(line.split()[1]) for line in output.splitlines() if line.startswith(reported[1])}
    assert by_check['kube_node_ready_check_failures_total{check="dns"}'] > 0


@asks("An image cannot be pulled")
def test_an_image_that_cannot_be_pulled_is_reported(cluster: Cluster, about: pages.Section) -> None:
    pods, events = about.commands
    cluster.upgrade("controller.config.worker.image.tag=missing")
    try:
        cluster.gate(SOUND)
        about.quoted("ErrImagePull", "ImagePullBackOff")
        cluster.until_output(events, ("ErrImagePull", f"{release_image.REPOSITORY}:missing"))
        cluster.until("the pods say so", lambda: {"ErrImagePull", "ImagePullBackOff"} & set(cluster.run(pods).split()))
        (why,) = question("Which nodes are gated, and why?").commands
        cluster.until_output(why, (SOUND, "ImagePullBackOff"))
    finally:
        cluster.upgrade("controller.config.worker.image.tag=")
    _, annotate = question("Verify a node again").commands
    cluster.run(annotate, SOUND)
    cluster.until("it passes again", lambda: cluster.labelled(SOUND))


@asks("A permission is missing")
def test_a_missing_permission_is_reported_and_restored(cluster: Cluster, about: pages.Section) -> None:
    ask, logs, _ = about.commands
    assert cluster.run(ask).split()[-1] == "yes"
    assert not cluster.run(logs)
    cluster.plane.kubectl("delete", "clusterrolebinding", "kube-node-ready-controller")
    cluster.until("the right is missing", lambda: cluster.run(ask).split()[-1] == "no")
    cluster.plane.kubectl("label", "node", SOUND, "node-ready/verified-")
    cluster.until_output(logs, ("cannot patch resource", "nodes"))
    cluster.upgrade()
    cluster.until("the right is back", lambda: cluster.run(ask).split()[-1] == "yes")
    cluster.until("it is verified after all", lambda: cluster.labelled(SOUND))


@asks("All nodes are new, and none passes")
def test_all_nodes_are_new_and_none_passes(cluster: Cluster, about: pages.Section) -> None:
    look, patch = about.commands
    cluster.scale_dns(0)
    cluster.dns_tolerates(USUAL)
    cluster.until("cluster DNS is gone", lambda: not cluster.dns_pods())
    cluster.gate(SOUND)
    cluster.gate(BROKEN)
    cluster.scale_dns(1)
    cluster.until_output(look, about.quoted("Pending"))
    (why,) = question("Which nodes are gated, and why?").commands
    cluster.until_output(why, (SOUND, "kube-system/kube-dns"))
    assert "patched" in cluster.run(patch)
    cluster.until_output(look, ("Running",))
    cluster.until("the sound node passes", lambda: cluster.labelled(SOUND) and not cluster.is_gated(SOUND))
    cluster.dns_tolerates(TOLERATES_ALL)
    cluster.plane.wait_for_dns()


@asks("Free all gated nodes by hand")
def test_gated_nodes_are_freed_by_hand(cluster: Cluster, about: pages.Section) -> None:
    (command,) = about.commands
    assert cluster.is_gated(BROKEN)
    free, gone = about.quoted("untainted", "not found")
    assert f"node/{BROKEN} {free}" in cluster.run(command)
    assert not cluster.is_gated(BROKEN)
    assert gone in cluster.run(command)
    assert not cluster.labelled(BROKEN)
    cluster.plane.nodes[BROKEN].heal()
    cluster.until("it is labelled when it passes", lambda: cluster.labelled(BROKEN))


def test_uninstalling_leaves_only_labels_and_annotations(cluster: Cluster) -> None:
    about = pages.section("", pages.UNINSTALL)
    uninstall, *others = about.commands
    cluster.plane.nodes[BROKEN].break_dns()
    before = cluster.attempt(BROKEN)
    cluster.gate(BROKEN)
    cluster.until("it fails, and leaves a worker", lambda: cluster.attempt(BROKEN) > before)
    assert "uninstalled" in cluster.run(uninstall)
    cluster.until("the controller is gone", lambda: all(_is_worker(pod) for pod in _ours(cluster)))
    assert "kube-node-ready-controller" in cluster.plane.kubectl("get", "leases", f"--namespace={SYSTEM}")
    # A gate that came back to a node with the label is a gate.
    cluster.plane.kubectl("taint", "node", SOUND, f"{GATE.key}=true:NoSchedule")
    for command in others:
        cluster.run(command)
    assert not _ours(cluster)
    assert not cluster.is_gated(BROKEN)
    assert not cluster.is_gated(SOUND)
    kinds = "leases,configmaps,serviceaccounts,roles,rolebindings,services"
    left = cluster.plane.kubectl("get", kinds, "--all-namespaces", "--output=name")
    left += cluster.plane.kubectl("get", "clusterroles,clusterrolebindings", "--output=name")
    assert "kube-node-ready" not in left
    assert cluster.labelled(SOUND)


@asks("In DaemonSet mode")
def test_in_daemonset_mode(bare: Cluster, cluster: Cluster, about: pages.Section) -> None:
    """After the controller was uninstalled: one of the two at a time."""
    assert not _ours(cluster)
    daemonset, pods, logs, check = about.commands
    cluster.gate(SOUND)
    cluster.gate(BROKEN)
    bare.install(pages.section("DaemonSet mode", pages.INSTALL).commands[0], "config.checkTimeout=3s")
    bare.until("the sound node is verified", lambda: bare.labelled(SOUND) and not bare.is_gated(SOUND))

    def desired() -> str:
        head, row = bare.until_output(daemonset, about.quoted("DESIRED")).splitlines()
        return dict(zip(head.split(), row.split(), strict=False))["DESIRED"]

    bare.until("one node lacks the label", lambda: desired() == "1")
    bare.until_output(pods, (BROKEN, "Running"))
    bare.until_output(logs, ("DNS check failed", "Verification failed"))
    bare.until_output(check, ("CHECK", "/openapi/v2", " passed, ", " failed"))
    bare.plane.nodes[BROKEN].heal()
    bare.until("the other one is verified", lambda: bare.labelled(BROKEN) and not bare.is_gated(BROKEN))
    bare.until("and its pod leaves", lambda: not _ours(bare))


def test_every_question_of_the_page_is_tested() -> None:
    assert pages.titles(pages.TROUBLESHOOTING, of="Questions") == ASKED


def _is_worker(pod: Pod) -> bool:
    assert pod.metadata
    return (pod.metadata.labels or {}).get("component") == "worker"


def _ours(cluster: Cluster) -> list[Pod]:
    return list(cluster.plane.client.list(Pod, namespace=SYSTEM, labels={"app": "kube-node-ready"}))
