"""`python -m lab`, as a person uses it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import cleanup, command_hint, runs, waiting
from tests.support.shell import NAME, ROOT, kept_cluster, kept_folder, machine, run_lab, traces, wait_gone


@pytest.fixture
def cluster() -> Iterator[Path]:
    """A cluster that stays, with simulated nodes."""
    taint = "node-ready/unverified=yes:NoSchedule"
    with kept_cluster("--nodes", "0", "--fake", "2", "--taint", taint) as started:
        assert started.returncode == 0, started.stderr
        yield kept_folder()


def test_a_cluster_stays_until_it_is_taken_down(cluster: Path) -> None:
    """It outlives the command that started it, is found by its name, and leaves nothing."""
    nodes = run_lab(
        "kubectl", "get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.taints[0].key}{end}"
    )
    assert nodes.stdout == "fake-0=node-ready/unverifiedfake-1=node-ready/unverified"
    assert re.search(rf"^{NAME} +up, 0 real nodes", run_lab("status").stdout, re.MULTILINE)
    assert run_lab("down").returncode == 0
    assert not traces(cluster)


@pytest.mark.usefixtures("cluster")
def test_kubectl_gets_all_that_follows_it() -> None:
    """Options too, wherever they stand."""
    assert "fake-0" in run_lab("kubectl", "--request-timeout=20s", "get", "nodes").stdout
    assert "kubectl controls the Kubernetes cluster manager" in run_lab("kubectl", "--help").stdout


def test_a_cluster_whose_processes_died_is_called_dead(cluster: Path) -> None:
    """As after a reboot of the machine; `down` still takes it away."""
    for pid in cleanup.processes(cluster):
        os.kill(pid, signal.SIGKILL)
    assert re.search(rf"^{NAME} +dead", run_lab("status").stdout, re.MULTILINE)
    assert run_lab("down").returncode == 0
    assert not traces(cluster)


def test_clean_spares_a_cluster_that_is_to_stay(cluster: Path) -> None:
    run_lab("clean")
    assert set(traces(cluster)) >= {"processes", "files"}


@pytest.mark.usefixtures("cluster")
def test_a_shell_has_kubectl_and_its_configuration(tmp_path: Path) -> None:
    asks = tmp_path / "shell"
    asks.write_text("#!/bin/sh\nkubectl get namespace kube-system -o name\n")
    asks.chmod(0o755)
    assert run_lab("shell", SHELL=str(asks)).stdout == "namespace/kube-system\n"


@pytest.mark.usefixtures("cluster")
def test_the_same_name_twice_is_refused() -> None:
    again = run_lab("up", "--nodes", "0")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert f"cluster '{NAME}' is up already" in again.stderr


@pytest.mark.alone
def test_an_interrupted_up_leaves_nothing() -> None:
    before = {run.folder for run in runs.existing()}
    command = [sys.executable, "-m", "lab", "--name", NAME, "up", "--nodes", "0", "--fake", "1"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as up:
        while not (fresh := {run.folder for run in runs.existing()} - before):
            assert up.poll() is None
        up.send_signal(signal.SIGTERM)
        assert up.wait(120) == 128 + signal.SIGTERM
    wait_gone(fresh.pop())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["kubectl", "get", "nodes"],
            f"there is no cluster '{NAME}'; `{command_hint.lab(f'--name {NAME} up')}` starts one",
        ),
        (["up", "--kubernetes", "1.99.9"], "no Kubernetes '1.99.9'"),
        (["heal", "nobody"], "there is no cluster '"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",  # the complaints name this process
)
def test_a_mistake_gets_one_sentence(words: list[str], complaint: str) -> None:
    said = run_lab(*words)
    assert said.returncode == 1
    assert complaint in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--taint", "node-ready/unverified"], "expected a taint such as key:NoSchedule or key=value:NoExecute"),
        (["--taint", "not a key:NoSchedule"], "'not a key' is invalid; expected a taint key such as gate"),
        (["--taint", "key:Never"], "'Never' is invalid; expected NoSchedule"),
        (["--nodes", "-1"], "--nodes"),
        (["--fake", "many"], "'many' is invalid; expected a number of nodes, 0 or more"),
    ],
)
def test_a_bad_value_gets_one_sentence(words: list[str], complaint: str) -> None:
    said = run_lab("up", *words)
    assert said.returncode == 2
    assert complaint in said.stderr


def test_down_twice_is_as_good_as_once() -> None:
    said = run_lab("down")
    assert (said.returncode, said.stderr) == (0, f"lab: there is no cluster '{NAME}'\n")


@pytest.mark.alone
def test_runs_under_two_folders_spare_each_other(cluster: Path, tmp_path: Path) -> None:
    """Each has a slot 0, and must not take the other's for its own."""
    elsewhere = str(tmp_path)
    try:
        up = run_lab("up", "--nodes", "0", KUBE_NODE_READY_LAB_DIR=elsewhere)
        assert up.returncode == 0, up.stderr
    finally:
        run_lab("down", KUBE_NODE_READY_LAB_DIR=elsewhere)
    assert "fake-0" in run_lab("kubectl", "get", "nodes").stdout
    assert set(traces(cluster)) >= {"processes", "files"}


@pytest.mark.usefixtures("as_root")
def test_a_full_disk_gets_one_sentence(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", tmp_path], check=True)
    try:
        said = run_lab("up", "--nodes", "0", KUBE_NODE_READY_LAB_DIR=str(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert said.returncode == 1
    assert re.search(
        rf"^lab: {tmp_path} has [01] MiB free, and to run a cluster takes about 500 MiB: ", said.stderr, re.MULTILINE
    )
    assert "Traceback" not in said.stderr


@pytest.mark.usefixtures("as_root")
def test_real_nodes_without_root_are_refused_in_one_sentence() -> None:
    """As someone else than root: a user namespace without a mapping."""
    said = run_lab("up", "--nodes", "1", prefix=("unshare", "--user"))
    assert said.returncode == 1
    assert said.stderr.startswith("lab: real nodes need root")
    assert said.stderr.count("\n") == 1


@pytest.mark.alone
@pytest.mark.usefixtures("as_root")
def test_without_root_there_are_simulated_nodes() -> None:
    """A whole life without root: up, looked at, down."""
    before = machine()["programs"]
    lab = f"{sys.executable} -m lab --name {NAME}"
    life = f"trap '{lab} down' EXIT; {lab} up; {lab} kubectl get nodes"
    said = subprocess.run(
        ["unshare", "--user", "sh", "-ec", life], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert "real nodes need root, so these are simulated" in said.stderr
    assert "fake-1" in said.stdout
    waiting.until("nothing of it runs", lambda: machine()["programs"] <= before, 180)
