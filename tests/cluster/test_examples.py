"""The examples against a real control plane with simulated nodes."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Node, ServiceAccount

import lab
from lab import karpenter, network, waiting
from tests.support.shell import ROOT

GATE = lab.Taint("node-ready/unverified", value="true")
PATIENCE = 180


class Checkout:
    """The examples beside the programs of these tests, and a shell in front of the cluster."""

    def __init__(self, plane: lab.Plane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
        (folder / "deploy").symlink_to(ROOT / "deploy")

    @property
    def environment(self) -> dict[str, str]:
        programs = self.plane.programs
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("KUBE")},
            "PATH": f"{programs.path('kubectl').parent}:{programs.path('helm').parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.plane.kubeconfig()),
            "NO_PROXY": network.of(self.plane.run).api_address,
        }

    def run(self, script: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "examples" / script), *words]
        return subprocess.run(command, env=self.environment | environ, capture_output=True, text=True, check=False)

    def shell(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-ec", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    with lab.plane() as plane:
        yield Checkout(plane, tmp_path_factory.mktemp("checkout"))


def is_open(plane: lab.Plane, name: str) -> bool:
    node = plane.client.get(Node, name)
    assert node.metadata
    assert node.spec
    gated = any(taint.key == GATE.key for taint in node.spec.taints or [])
    return not gated and (node.metadata.labels or {}).get("node-ready/verified") == "true"


def test_the_commands_of_the_labs_page_verify_nodes(checkout: Checkout) -> None:
    """Except for the two that start a cluster and a shell in it, which are here already; and with other ports."""
    page = (ROOT / "docs" / "how-to" / "lab.md").read_text().partition("## Watch the controller")[2]
    block = re.search(r"(?:^    .+\n)+", page, re.MULTILINE)
    assert block
    start, shell, *commands = [line.strip() for line in block[0].splitlines()]
    assert "-m lab --name demo up " in start
    assert shell.endswith("-m lab --name demo shell")
    checkout.plane.simulated_nodes(1, prefix="of-the-page", taints=[GATE])
    script = "\n".join([*commands[:-1], f"exec {commands[-1]} --metrics-bind-address=0 --health-probe-bind-address=:0"])
    process = subprocess.Popen(
        ["sh", "-ec", script],
        cwd=checkout.folder,
        env=checkout.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def alive() -> None:
        checkout.plane.check()
        assert process.poll() is None, "the controller ended"

    try:
        verified = lambda: is_open(checkout.plane, "of-the-page-0")  # noqa: E731  it is short
        waiting.until("the node is verified", verified, PATIENCE, alive=alive)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_the_controller_runs_on_this_machine_and_verifies_nodes(checkout: Checkout, tmp_path: Path) -> None:
    """As its `--help` documents, rights included, and with the example's configuration."""
    plane = checkout.plane
    plane.simulated_nodes(2, prefix="sound", taints=[GATE])
    plane.simulated_nodes(1, prefix="broken", taints=[GATE], verdict=lab.fails("no route"))
    help_text = checkout.run("run-controller-local.sh", "--help").stdout
    command = re.search(r"^  (helm template .*\\\n.*)$", help_text, re.MULTILINE)
    assert command
    checkout.shell(command[1])
    plane.client.get(ServiceAccount, "kube-node-ready-worker", namespace="kube-system")  # it is there
    log = tmp_path / "log"
    flags = ["--metrics-bind-address=0", "--health-probe-bind-address=:0"]
    script = checkout.folder / "examples" / "run-controller-local.sh"
    with log.open("wb") as output:
        process = subprocess.Popen([script, *flags], env=checkout.environment, stdout=output, stderr=output)

    def alive() -> None:
        plane.check()
        assert process.poll() is None, log.read_text()

    try:
        both = lambda: is_open(plane, "sound-0") and is_open(plane, "sound-1")  # noqa: E731  it is short
        waiting.until("the sound nodes are verified", both, PATIENCE, alive=alive)
        waiting.until(
            "the failure is reported", lambda: "Verification failed" in log.read_text(), PATIENCE, alive=alive
        )
        assert not is_open(plane, "broken-0")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    lines = log.read_text().splitlines()
    assert "kube-node-ready-controller" in lines[0]
    assert str(plane.kubeconfig()) in lines[0]
    assert any("INFO  Node verified  node=sound-0" in line for line in lines)


def test_the_worker_runs_on_this_machine_and_checks_the_cluster(checkout: Checkout, tmp_path: Path) -> None:
    """Simulated nodes have no cluster DNS: by the example's configuration that is a failure, and reported as one."""
    done = checkout.run("run-worker-local.sh", NODE_NAME="my-node")
    assert done.returncode == 1, done.stderr
    (failed,) = (line for line in done.stdout.splitlines() if "check failed" in line)
    assert "ERROR Service check failed" in failed
    assert "service=kube-system/kube-dns" in failed
    assert "ERROR Checks failed  node=my-node" in done.stdout
    assert "INFO  API check passed" in done.stdout
    config = tmp_path / "worker-config.yaml"
    config.write_text("services: [default/kubernetes]\n")
    done = checkout.run("run-worker-local.sh", NODE_NAME="my-node", CONFIG_FILE=str(config))
    assert done.returncode == 0, done.stdout
    assert "WARN  Checks passed, some skipped  node=my-node" in done.stdout
    assert "INFO  Network check skipped  address=kube-system/kube-dns" in done.stdout


def test_karpenter_takes_the_node_pool(checkout: Checkout) -> None:
    """By its real CustomResourceDefinitions. Misspelled fields would be rejected."""
    karpenter.install(checkout.plane.client, karpenter.definitions()["nodepools.karpenter.sh"])
    example = ROOT / "examples" / "karpenter-example.yaml"
    apply = "kubectl apply --server-side --validate=strict --dry-run=server --filename"
    assert checkout.shell(f"{apply}={example}") == "nodepool.karpenter.sh/default serverside-applied (server dry run)\n"
    odd = checkout.folder / "odd.yaml"
    odd.write_text(example.read_text().replace("startupTaints:", "startupTaint:"))
    with pytest.raises(AssertionError, match="startupTaint"):
        checkout.shell(f"{apply}={odd}")
