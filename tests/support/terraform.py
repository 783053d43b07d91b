"""Run Terraform on a lab's cluster, with an agent that has every field."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import lab
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import reader
from kubernetes_daemonset.validation import validate
from lab import build, cleanup

NAME = "agent"
PASSWORD = "correct horse ${HOME}"  # noqa: S105
LOGINS = '{"auths":{"registry.example.com":{"auth":"bWU6aHVudGVyMg=="}}}'
# What Terraform, YAML or Unicode's normal forms could take for something else.
TEXT = 'cd ${HOME} $${HOME} %{if} %%{if}\t"é" e\u0301 \U0001f600 \u2028 \x1b \\ud83d \\${HOME}\n'
TEXTS = {"agent.conf": TEXT, "agent-conf": "1e3"}

_PROVIDER = ("alekc", "kubectl")
_VERSION = "2.1.3"
_SOMETHING_TO_DO = 2
_CONFIG = "terraform.rc"


def an_agent(namespace: str = "monitoring", **changes: Any) -> KubernetesDaemonSetStackInput:  # noqa: ANN401
    """One that needs every kind of object. What is given replaces a field of its spec."""
    rule = {"api_groups": [""], "resources": ["pods"], "verbs": ["get"]}
    spec = {
        "namespace": namespace,
        "create_namespace": True,
        "create_service_account": True,
        "config_maps": TEXTS,
        "rbac": {"cluster_rules": [rule], "namespace_rules": [rule]},
        "node_selector": {"pool": namespace},
        "container": a_container(),
    }
    target = {
        "apiVersion": "kubernetes.project-planton.org/v1",
        "kind": "KubernetesDaemonSet",
        "metadata": {"name": NAME, "annotations": {"note": TEXT}},
        "spec": spec | changes,
    }
    return _loaded({"target": target, "docker_config_json": LOGINS})


def a_small_agent() -> KubernetesDaemonSetStackInput:
    """One that is a DaemonSet and nothing else."""
    spec = {"namespace": "default", "container": {"app": {"image": {"repo": "registry.example.com/a", "tag": "1"}}}}
    kind = {"apiVersion": "kubernetes.project-planton.org/v1", "kind": "KubernetesDaemonSet"}
    return _loaded({**kind, "metadata": {"name": NAME}, "spec": spec})


def a_container(*, level: str = "info", password: str = PASSWORD) -> dict[str, Any]:
    variables = {"LEVEL": level, "OCTAL": "0o14", "NUMBER": "1e3", "NO": "no"}
    return {
        "app": {
            "image": {"repo": "lab.local/toolbox", "tag": "1"},
            "args": [TEXT],
            "env": {"variables": variables, "secrets": {"PASSWORD": password}},
            "volume_mounts": [{"name": "conf", "mount_path": "/conf", "config_map": {"name": "agent.conf"}}],
        }
    }


def _loaded(document: Mapping[str, Any]) -> KubernetesDaemonSetStackInput:
    (loaded,) = reader.load(yaml.safe_dump(dict(document), sort_keys=False).encode(), "agent.yaml")
    assert not validate.errors(validate.validate(loaded))
    return loaded.input


class Terraform:
    """A folder with a module, and what was said about it."""

    def __init__(self, plane: lab.Plane, folder: Path) -> None:
        self.output = ""
        self._module, self._mirror = folder / "module", folder / "mirror"
        self._module.mkdir()
        (folder / _CONFIG).write_text(f'provider_installation {{ filesystem_mirror {{ path = "{self._mirror}" }} }}\n')
        self._program = _program()
        self._environment = _environment(plane, folder)

    def init(self, files: Mapping[str, str]) -> None:
        self.write(files)
        # Where providers come from is Terraform's to say, and which machine this is.
        (host,) = re.findall(rf"provider\[(.+)/{'/'.join(_PROVIDER)}\]", self._run("providers").stdout)
        platform = json.loads(self._run("version", "-json").stdout)["platform"]
        location = self._mirror.joinpath(host, *_PROVIDER, _VERSION, platform)
        location.mkdir(parents=True)
        program = build.build(build.terraform()) / "terraform-provider-kubectl"
        (location / f"terraform-provider-kubectl_v{_VERSION}").symlink_to(program)
        self._run("init", "-input=false")

    def write(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            (self._module / name).write_text(content)

    def plan(self, *flags: str) -> dict[str, str]:
        """What would be done to which resources; empty if Terraform says that there is nothing to do."""
        code = self._run("plan", "-input=false", "-detailed-exitcode", "-out=plan", *flags, fine=(0, 2)).returncode
        planned = json.loads(self._call("show", "-json", "plan").stdout)  # which is for programs, and hides nothing
        actions = {one["name"]: "+".join(one["change"]["actions"]) for one in planned["resource_changes"]}
        found = {name: action for name, action in actions.items() if action != "no-op"}
        assert bool(found) == (code == _SOMETHING_TO_DO)
        return found

    def apply(self, *flags: str) -> None:
        self._run("apply", "-input=false", "-auto-approve", *flags)

    def refused(self, *flags: str) -> str:
        """What Terraform says to an apply that fails, without the frame that it draws around errors."""
        output = self._run("apply", "-input=false", "-auto-approve", *flags, fine=(1,)).stderr
        return " ".join(re.sub("[│╷╵]", " ", output).split())

    def destroy(self) -> None:
        self._run("destroy", "-input=false", "-auto-approve")

    def outputs(self) -> dict[str, str]:
        return {name: one["value"] for name, one in json.loads(self._run("output", "-json").stdout).items()}

    def _run(self, *words: str, fine: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        done = self._call(*words)
        self.output += done.stdout + done.stderr
        assert done.returncode in fine, f"terraform {words[0]}: {done.stdout}{done.stderr}"
        return done

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        where: dict[str, Any] = {"cwd": self._module, "env": self._environment}
        return subprocess.run([self._program, *words], capture_output=True, text=True, check=False, **where)


def _program() -> str:
    if found := shutil.which("terraform"):
        return found
    reason = "there is no `terraform` in PATH"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _environment(plane: lab.Plane, folder: Path) -> dict[str, str]:
    """A way to the cluster, and nothing of what the user's environment sets for Terraform or its provider."""
    kept = {
        name: value
        for name, value in plane.run.environment().items()
        if name == cleanup.MARK or not name.startswith(("TF_", "KUBE"))
    }
    return kept | {
        "CHECKPOINT_DISABLE": "1",
        "HOME": str(folder),  # where the provider keeps what it has learned of a cluster
        "KUBECONFIG": str(plane.kubeconfig()),
        "TF_CLI_CONFIG_FILE": str(folder / _CONFIG),
        "TF_CLI_ARGS": "-no-color",
    }
