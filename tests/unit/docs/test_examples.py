"""The examples, as far as they need no cluster. The chart's values are tested in tests/unit/chart/."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from kube_node_ready.checks import plan, settings
from kube_node_ready.settings import worker

EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = {"controller": EXAMPLES / "run-controller-local.sh", "worker": EXAMPLES / "run-worker-local.sh"}
# What the script started: its words, and of its environment what the worker reads.
STUB = """#!/bin/sh
[ "$1" = --version ] && echo "{name} 1.2.3" && exit
echo "{place}:" "$@"
echo "$KUBECONFIG $WORKER_CONFIG_PATH $NODE_NAME ${{KUBERNETES_SERVICE_HOST-unset}}"
"""


class Checkout:
    """The scripts and their configurations, beside programs that only tell how they were started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(EXAMPLES, folder / "examples")
        self.kubeconfig = folder / "a kubeconfig"
        self.kubeconfig.write_text("{}")

    def build(self, place: str) -> None:
        (self.folder / place).mkdir(parents=True)
        for role in SCRIPTS:
            program = self.folder / place / f"kube-node-ready-{role}"
            program.write_text(STUB.format(name=program.name, place=place))
            program.chmod(0o755)

    def run(self, role: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        known = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig)}
        script = self.folder / "examples" / SCRIPTS[role].name
        return subprocess.run(
            [script, *words], cwd="/", env=known | environ, capture_output=True, text=True, check=False
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    made.build(".venv/bin")
    return made


def test_the_workers_configuration_lists_every_key_with_its_default() -> None:
    found = yaml.safe_load((EXAMPLES / "worker-config.yaml").read_text())
    without_effect = {"maxRetries", "retryBackoff", "initialCheckTimeoutSeconds"}
    assert found.keys() == worker.TABLE.fields.keys() - without_effect
    environ = {worker.FILE_VARIABLE: str(EXAMPLES / "worker-config.yaml")}
    assert worker.load(environ) == settings.Settings()._replace(connectivity_port=plan.HEALTH_PORT)
    assert found["logging"].keys() == {"level", "format"}


@pytest.mark.parametrize("role", SCRIPTS)
def test_help_lists_the_variables(checkout: Checkout, role: str) -> None:
    for word in ("--help", "-h"):
        done = checkout.run(role, word)
        assert done.returncode == 0
        assert f"run-{role}-local.sh" in done.stdout
        assert {"KUBECONFIG", "CONFIG_FILE"} <= set(done.stdout.split())


@pytest.mark.parametrize("role", SCRIPTS)
def test_a_missing_kubeconfig_is_reported_with_the_searched_paths(checkout: Checkout, role: str) -> None:
    done = checkout.run(role, KUBECONFIG="")
    script = SCRIPTS[role].name
    usual = checkout.folder / ".kube" / "config"
    assert done.stderr == f"{script}: there is no kubeconfig {usual}; KUBECONFIG names another one\n"
    assert (done.returncode, done.stdout) == (3, "")
    usual.parent.mkdir()
    usual.write_text("{}")
    assert checkout.run(role, KUBECONFIG="").returncode == 0


@pytest.mark.parametrize("role", SCRIPTS)
def test_the_first_existing_kubeconfig_is_used(checkout: Checkout, role: str) -> None:
    done = checkout.run(role, KUBECONFIG=f"/nonexistent:{checkout.kubeconfig}:/other")
    assert done.returncode == 0
    assert str(checkout.kubeconfig) in done.stdout


@pytest.mark.parametrize("role", SCRIPTS)
def test_a_missing_program_is_reported_with_the_build_command(tmp_path: Path, role: str) -> None:
    done = Checkout(tmp_path).run(role)
    assert done.returncode == 1
    assert f"`make build-{role}` makes bin/kube-node-ready-{role}" in done.stderr


@pytest.mark.parametrize("role", SCRIPTS)
def test_a_missing_configuration_is_named(checkout: Checkout, role: str) -> None:
    done = checkout.run(role, CONFIG_FILE="/nonexistent/config.yaml")
    assert done.returncode == 2
    assert "there is no configuration /nonexistent/config.yaml" in done.stderr


@pytest.mark.parametrize("role", SCRIPTS)
def test_a_built_program_takes_precedence_over_the_checkout(checkout: Checkout, role: str) -> None:
    assert checkout.run(role).stdout.startswith(".venv/bin:")
    checkout.build("bin")
    done = checkout.run(role)
    assert done.stdout.startswith("bin:")
    assert f"kube-node-ready-{role} 1.2.3" in done.stderr


def test_the_controller_gets_its_configuration_and_further_flags(checkout: Checkout) -> None:
    own = checkout.folder / "examples" / "controller-config.yaml"
    output = checkout.run("controller", "--dry-run", "--log-format=json").stdout.splitlines()[0]
    assert output == (
        f".venv/bin: --config={own} --kubeconfig={checkout.kubeconfig} --log-format=console --dry-run --log-format=json"
    )
    assert f"--config={checkout.kubeconfig} " in checkout.run("controller", CONFIG_FILE=str(checkout.kubeconfig)).stdout


def test_the_placeholder_of_the_workers_image_is_warned_of(checkout: Checkout) -> None:
    warning = "warning: worker.image.repository is the placeholder registry.example/team/kube-node-ready"
    assert warning in checkout.run("controller").stderr
    chosen = {"KUBE_NODE_READY_WORKER_IMAGE_REPOSITORY": "registry.example/own"}
    assert warning not in checkout.run("controller", **chosen).stderr
    own = checkout.folder / "config.yaml"
    own.write_text("worker: {image: {repository: registry.example/own}}")
    assert warning not in checkout.run("controller", CONFIG_FILE=str(own)).stderr
    own.write_text("worker:\n  image:\n    repository: registry.example/team/kube-node-ready\n")
    assert warning in checkout.run("controller", CONFIG_FILE=str(own)).stderr


def test_the_worker_gets_a_name_and_runs_outside_a_pod(checkout: Checkout) -> None:
    own = checkout.folder / "examples" / "worker-config.yaml"
    started, environ = checkout.run("worker", KUBERNETES_SERVICE_HOST="10.96.0.1").stdout.splitlines()
    assert started == ".venv/bin: --dry-run"
    assert environ == f"{checkout.kubeconfig} {own} {os.uname().nodename} unset"
    assert " my-node " in checkout.run("worker", NODE_NAME="my-node").stdout
    refused = checkout.run("worker", "--no-such-flag")
    assert (refused.returncode, refused.stdout) == (2, "")
