"""`python -m lab`, as a person uses it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import runs
from tests.cluster.test_leaving import ROOT, traces, wait_gone

NAME = "test-cli"


def run_lab(*words: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*prefix, sys.executable, "-m", "lab", "--name", NAME, *words]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.fixture
def cluster() -> Iterator[Path]:
    """A cluster that stays, with simulated nodes."""
    started = run_lab("up", "--nodes", "0", "--fake", "2", "--taint", "node-ready/unverified=yes:NoSchedule")
    assert started.returncode == 0, started.stderr
    run = runs.kept(NAME)
    assert run
    yield run.folder
    run_lab("down")


def test_a_cluster_stays_until_it_is_taken_down(cluster: Path) -> None:
    """It outlives the command that started it, is found by its name, and leaves nothing."""
    nodes = run_lab(
        "kubectl", "get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.taints[0].key}{end}"
    )
    assert nodes.stdout == "fake-0=node-ready/unverifiedfake-1=node-ready/unverified"
    assert f"{NAME}     up, 0 real nodes" in run_lab("status").stdout
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


def test_an_interrupted_up_leaves_nothing() -> None:
    before = {run.folder for run in runs.existing()}
    command = [sys.executable, "-m", "lab", "--name", NAME, "up", "--nodes", "0", "--fake", "1"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as up:
        while not (fresh := {run.folder for run in runs.existing()} - before):
            assert up.poll() is None
        up.send_signal(signal.SIGTERM)
        assert up.wait(30) == 128 + signal.SIGTERM
    wait_gone(fresh.pop())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["kubectl", "get", "nodes"], "there is no cluster 'test-cli'; `.venv/bin/python -m lab up` starts one"),
        (["down"], "there is no cluster 'test-cli'"),
        (["up", "--kubernetes", "1.99.9"], "no Kubernetes '1.99.9'"),
        (["heal", "nobody"], "there is no cluster 'test-cli'"),
    ],
)
def test_a_mistake_gets_one_sentence(words: list[str], complaint: str) -> None:
    said = run_lab(*words)
    assert said.returncode == 1
    assert complaint in said.stderr
    assert "Traceback" not in said.stderr


def test_a_bad_taint_gets_one_sentence() -> None:
    said = run_lab("up", "--taint", "node-ready/unverified")
    assert said.returncode == 2
    assert "a taint looks like key:NoSchedule or key=value:NoExecute" in said.stderr


@pytest.mark.usefixtures("as_root")
def test_real_nodes_without_root_are_refused_in_one_sentence() -> None:
    """As someone else than root: a user namespace without a mapping."""
    said = run_lab("up", "--nodes", "1", prefix=("unshare", "--user"))
    assert said.returncode == 1
    assert said.stderr.startswith("lab: real nodes need root")
    assert said.stderr.count("\n") == 1


@pytest.mark.usefixtures("as_root")
def test_without_root_there_are_simulated_nodes() -> None:
    """A whole life without root: up, looked at, down."""
    nobody = ("unshare", "--user")
    try:
        said = run_lab("up", prefix=nobody)
        assert said.returncode == 0, said.stderr
        assert "real nodes need root, so these are simulated" in said.stderr
        assert "fake-1" in run_lab("kubectl", "get", "nodes", prefix=nobody).stdout
    finally:
        assert run_lab("down", prefix=nobody).returncode == 0
