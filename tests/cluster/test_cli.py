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


def test_a_cluster_runs_until_down(cluster: Path) -> None:
    """It outlives the command that started it, is found by its name, and leaves nothing."""
    nodes = run_lab(
        "kubectl", "get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.taints[0].key}{end}"
    )
    assert nodes.stdout == "fake-0=node-ready/unverifiedfake-1=node-ready/unverified"
    assert re.search(rf"^{NAME} +up, 0 real nodes", run_lab("status").stdout, re.MULTILINE)
    assert run_lab("down").returncode == 0
    assert not traces(cluster)


@pytest.mark.usefixtures("cluster")
def test_kubectl_receives_all_following_arguments() -> None:
    """Options too, wherever they stand."""
    assert "fake-0" in run_lab("kubectl", "--request-timeout=20s", "get", "nodes").stdout
    assert "kubectl controls the Kubernetes cluster manager" in run_lab("kubectl", "--help").stdout


def test_a_cluster_whose_processes_died_is_reported_as_dead(cluster: Path) -> None:
    """As after a reboot of the machine; `down` still takes it away."""
    for pid in cleanup.processes(cluster):
        os.kill(pid, signal.SIGKILL)
    assert re.search(rf"^{NAME} +dead", run_lab("status").stdout, re.MULTILINE)
    assert run_lab("down").returncode == 0
    assert not traces(cluster)


def test_clean_keeps_a_running_cluster(cluster: Path) -> None:
    run_lab("clean")
    assert set(traces(cluster)) >= {"processes", "files"}


@pytest.mark.usefixtures("cluster")
def test_a_shell_has_kubectl_and_its_configuration(tmp_path: Path) -> None:
    asks = tmp_path / "shell"
    asks.write_text("#!/bin/sh\nkubectl get namespace kube-system -o name\n")
    asks.chmod(0o755)
    assert run_lab("shell", SHELL=str(asks)).stdout == "namespace/kube-system\n"


@pytest.mark.usefixtures("cluster")
def test_the_same_name_twice_is_rejected() -> None:
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
def test_a_usage_error_is_one_line(words: list[str], complaint: str) -> None:
    output = run_lab(*words)
    assert output.returncode == 1
    assert complaint in output.stderr
    assert "Traceback" not in output.stderr


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
def test_an_invalid_value_is_reported_in_one_line(words: list[str], complaint: str) -> None:
    output = run_lab("up", *words)
    assert output.returncode == 2
    assert complaint in output.stderr


def test_down_is_idempotent() -> None:
    output = run_lab("down")
    assert (output.returncode, output.stderr) == (0, f"lab: there is no cluster '{NAME}'\n")


@pytest.mark.alone
def test_runs_in_two_folders_are_independent(cluster: Path, tmp_path: Path) -> None:
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
def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", tmp_path], check=True)
    try:
        output = run_lab("up", "--nodes", "0", KUBE_NODE_READY_LAB_DIR=str(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert output.returncode == 1
    assert re.search(
        rf"^lab: {tmp_path} has [01] MiB free, and to run a cluster takes about 500 MiB: ", output.stderr, re.MULTILINE
    )
    assert "Traceback" not in output.stderr


@pytest.mark.usefixtures("as_root")
def test_real_nodes_without_root_are_rejected_in_one_line() -> None:
    """As someone else than root: a user namespace without a mapping."""
    output = run_lab("up", "--nodes", "1", prefix=("unshare", "--user"))
    assert output.returncode == 1
    assert output.stderr.startswith("lab: real nodes need root")
    assert output.stderr.count("\n") == 1


@pytest.mark.alone
@pytest.mark.usefixtures("as_root")
def test_without_root_there_are_simulated_nodes() -> None:
    """A complete run without root: up, status, down."""
    before = machine()["programs"]
    lab = f"{sys.executable} -m lab --name {NAME}"
    life = f"trap '{lab} down' EXIT; {lab} up; {lab} kubectl get nodes"
    output = subprocess.run(
        ["unshare", "--user", "sh", "-ec", life], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert output.returncode == 0, output.stderr
    assert "real nodes need root, so these are simulated" in output.stderr
    assert "fake-1" in output.stdout
    waiting.until("nothing of it runs", lambda: machine()["programs"] <= before, 180)
