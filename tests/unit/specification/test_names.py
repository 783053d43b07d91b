"""The names, files and commands of the specification: a promise that breaks fails here by its name.

What is particular to one mode or product is in test_controller.py, test_daemonset.py and test_component.py, what is
deliberately different in test_differences.py. What needs a cluster is in tests/cluster and tests/e2e.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from kube_node_ready.agent import flags
from kube_node_ready.settings import agent as daemonset_settings
from kube_node_ready.verification.model import Phase
from release import build_info
from tests import specification
from tests.specification import DIFFERENT, Command, objects
from tests.support import chart
from tests.support.manifests import builders
from tests.support.model_cluster import POLICY
from tests.support.shell import ROOT

# --- fragments ---


def test_every_fragment_is_used() -> None:
    tests = "".join(
        file.read_text() for file in [*ROOT.glob("tests/support/**/*.py"), *ROOT.glob("tests/**/test_*.py")]
    )
    fragments = [str(file.relative_to(specification.FOLDER)) for file in specification.FOLDER.rglob("*.*")]
    texts = [name for name in fragments if not name.endswith((".py", ".pyc", ".sh"))]
    different = {difference.fragment for difference in DIFFERENT.values()}
    assert len(texts) > 30
    assert [name for name in texts if f'"{name}"' not in tests and name not in different] == []


# --- files ---

FILES: Final = dict(re.findall(r"\[([^\]]+)\]\(([^)]+)\)", specification.text("operator/files.md")))


def test_five_files_are_named() -> None:
    assert len(FILES) == 5


@pytest.mark.parametrize("path", FILES.values())
def test_the_file_exists(path: str) -> None:
    assert (ROOT / path).is_file()


# --- commands ---

PLAIN: Final = re.compile(
    r"kubectl (get|describe) (nodes?|events)( <node-name>)?( --show-labels| -w| -o yaml| -o json| -n <namespace>)*"
    r"|kubectl describe daemonset <name> -n <namespace>"
    r"|grep Taints|jq \.spec\.taints"
)
"""Commands without a name of ours."""
EXCUSED: Final = {
    "kubectl exec -n kube-system <pod-name> -- nslookup kubernetes.default.svc.cluster.local": "nslookup",
    DIFFERENT["right to create pods"].theirs: "right to create pods",
    DIFFERENT["language"].theirs: "language",
}
SELECTED: Final = {
    "app=kube-node-ready": {"controller", "daemonset", "worker"},
    "app.kubernetes.io/name=kube-node-ready": {"controller", "daemonset", "worker"},
    "app.kubernetes.io/component=controller": {"controller"},
    "app.kubernetes.io/component=worker": {"worker"},
}
"""Which pods the selectors of the commands are there for."""


def check_selector(selector: str) -> None:
    key, _, value = selector.partition("=")
    found = {name for name, pod in objects.pods().items() if pod["metadata"]["labels"].get(key) == value}
    assert found == SELECTED[selector]


def check_component_selector(selector: str) -> None:
    key, _, value = selector.partition("=")
    assert builders.pod()["metadata"]["labels"][key] == value


def check_namespace_of_pods() -> None:
    assert objects.worker()["metadata"]["namespace"] == "kube-system"
    assert objects.daemonset().workload["metadata"]["namespace"] == "kube-system"


def check_workload(kind: str, name: str) -> None:
    rendered = objects.controller() if kind == "deployment" else objects.daemonset()
    found = rendered.one({"deployment": "Deployment", "ds": "DaemonSet"}[kind])["metadata"]
    assert (found["name"], found["namespace"]) == (name, "kube-system")


def check_label(key: str) -> None:
    assert key == POLICY.label == daemonset_settings.Settings().verified_label
    assert objects.controller().config["nodeManagement"]["verifiedLabel"]["key"] == key


def check_label_and_value(key: str, value: str) -> None:
    check_label(key)
    assert value == POLICY.label_value


def check_field_of_the_daemonset(word: str) -> None:
    assert f"\n      {word}:" in yaml.dump(objects.daemonset().workload)


def check_word_of_a_failure(word: str) -> None:
    assert word in Phase.FAILED
    assert "Verification failed" in (ROOT / "src" / "kube_node_ready" / "controller" / "transition_log.py").read_text()


def check_account(verb: str, resource: str, namespace: str, account: str) -> None:
    made = objects.controller()
    assert made.one("ServiceAccount", account)["metadata"]["namespace"] == namespace
    assert verb in made.rights(account)[f"* {resource}"].split()


def check_install(release: str, path: str, more: str) -> None:
    if "--dry-run" in more:  # as it is written: it asks no cluster
        done = chart.run("install", release, ROOT / path, *more.split())
        assert done.returncode == 0, done.stderr
    words = [word for word in more.split() if word not in ("--create-namespace", "--dry-run", "--debug")]
    done = chart.run("template", release, ROOT / path, f"--api-versions={chart.A_CLUSTER}", *words)
    assert done.returncode == 0, done.stderr
    kind = "DaemonSet" if "deploymentMode=daemonset" in words else "Deployment"
    assert f"kind: {kind}\n" in done.stdout


def check_lint(path: str) -> None:
    done = chart.run("lint", ROOT / path)
    assert done.returncode == 0, done.stdout


MADE: Final = {
    "build-all": "python -m release executables\n",
    "build": "python -m release executables kube-node-ready\n",
    "build-controller": "python -m release executables kube-node-ready-controller\n",
    "build-worker": "python -m release executables kube-node-ready-worker\n",
    "docker-build": "scripts/docker-build\n",
}


def check_make(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert MADE[target] in done.stdout


ENGINE: Final = """#!/bin/sh
[ "$1" = info ] || echo "$@"
"""
"""A container engine that only prints what it is asked to build."""


def check_versioned_make(target: str) -> None:
    check_make(target)
    if target != "docker-build":
        assert build_info.of_checkout(ROOT, {"VERSION": "1.0.0"}).version == "1.0.0"
        return
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder) / "docker"
        engine.write_text(ENGINE)
        engine.chmod(0o755)
        environ = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        words = ["make", target, "VERSION=1.0.0"]
        done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--build-arg VERSION=1.0.0 " in done.stdout
    assert " --tag kube-node-ready:1.0.0 " in done.stdout


def check_example(variable: str, path: str) -> None:
    assert os.access(ROOT / path, os.X_OK)
    done = subprocess.run([ROOT / path, "--help"], capture_output=True, text=True, check=True)
    assert f"  {variable} " in done.stdout


def check_version(program: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert program in known
    done = subprocess.run(
        [Path(sys.executable).with_name(program), "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{program} ")


def check_dry_run(words: str) -> None:
    loaded = daemonset_settings.load(flags.parse(words.split()).flags, {}, files=False)
    assert loaded.dry_run
    assert loaded.checks.log_format == "console"
    assert loaded.checks.log_level == ("debug" if "debug" in words else "info")


def check_image(arguments: str, name: str) -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    for argument in re.findall(r"--build-arg (\w+)=", arguments):
        assert f"\nARG {argument}\n" in recipe
    assert yaml.safe_load((chart.CHART / "values.yaml").read_text())["image"]["repository"] == name


CHECKS: Final[dict[str, Callable[..., None]]] = {
    r"kubectl (?:get pods|logs) -n kube-system -l (\S+)(?: -w| -o wide| --tail=100)?": check_selector,
    r"kubectl logs -n <namespace> -l (\S+) --all-containers": check_component_selector,
    r"kubectl get pods -n kube-system -w": check_namespace_of_pods,
    r"kubectl (?:describe|delete) pod -n kube-system <worker-pod-name>": check_namespace_of_pods,
    r"kubectl (?:get|describe) (deployment) -n kube-system (\S+)": check_workload,
    r"kubectl get (ds) (?:-n kube-system )?(kube-\S+)(?: -n kube-system)? -o yaml": check_workload,
    r"kubectl get nodes -L (\S+)": check_label,
    r"kubectl label node <node-name> (\S+)-": check_label,
    r"kubectl label node <node-name> (\S+)=(\S+)": check_label_and_value,
    r"grep -A 10 (\w+)": check_field_of_the_daemonset,
    r"grep -i (failed)": check_word_of_a_failure,
    r"grep (verified)": lambda word: check_label(f"node-ready/{word}"),
    r"kubectl auth can-i (list) (nodes) --as=system:serviceaccount:(\S+):(\S+)": check_account,
    r"helm install (\S+) (\S+)(.*)": check_install,
    r"helm lint (\S+)": check_lint,
    r"make ([\w-]+)": check_make,
    r"VERSION=1\.0\.0 make ([\w-]+)": check_versioned_make,
    r"make ([\w-]+) VERSION=1\.0\.0": check_versioned_make,
    r"(CONFIG_FILE|NODE_NAME)=\S+ (\./examples/\S+)": check_example,
    r"(\./examples/\S+)": lambda path: check_example("KUBECONFIG", path),
    r"\./bin/(\S+) --version": check_version,
    r"\./bin/kube-node-ready (--dry-run.*)": check_dry_run,
    r"podman build (.+) -t (\S+):1\.0\.0 \.": check_image,
}
ALL: Final = specification.commands()
COMMANDS: Final = {
    str(command): command for command in ALL if command.line not in EXCUSED and not PLAIN.fullmatch(command.line)
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_command_works(command: Command) -> None:
    """As far as that needs no cluster: what it names exists."""
    ((found, check),) = (
        (found, check) for pattern, check in CHECKS.items() if (found := re.fullmatch(pattern, command.line))
    )
    check(*found.groups())


def test_every_command_is_tested() -> None:
    lines = [line for file in specification.FOLDER.rglob("*.sh") for line in file.read_text().splitlines()]
    begun = [line for line in lines if re.match(r"[^#\s]", line)]
    first_stages = [command for command in ALL if command.words[0] not in ("grep", "jq")]
    assert len(first_stages) == len(begun) > 60


def test_every_check_of_a_command_is_used() -> None:
    lines = [command.line for command in COMMANDS.values()]
    assert [pattern for pattern in CHECKS if not any(re.fullmatch(pattern, line) for line in lines)] == []
    assert EXCUSED.keys() <= {command.line for command in ALL}
    assert set(EXCUSED.values()) <= DIFFERENT.keys()
