"""Run Karpenter with its KWOK provider, which creates NodeClaims and simulated nodes for pending pods.

The provider creates only Node objects; the lab's own simulation makes them Ready and runs their pods.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from lightkube import Client
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition

from lab import addons, build, runs, simulated_stages, waiting
from lab.errors import LabError
from lab.process import Process
from lab.simulated_nodes import Stage
from lab.simulated_stages import Verdict

_START_SECONDS = 30.0


def definitions() -> Mapping[str, dict[str, Any]]:
    """Return Karpenter's CustomResourceDefinitions by name, from its Go module, which is downloaded but not built."""
    found: dict[str, dict[str, Any]] = {}
    for folder, module in build.karpenter().files.items():
        for file in sorted((_module(module) / folder).glob("*.yaml")):
            definition = yaml.safe_load(file.read_text())
            found[definition["metadata"]["name"]] = definition
    return found


def install(client: Client, *wanted: Mapping[str, Any]) -> None:
    """Install these definitions and wait until they are served."""
    for definition in wanted:
        addons.apply(client, json.dumps(definition))
    names = [definition["metadata"]["name"] for definition in wanted]
    waiting.until(f"the API serves {names}", lambda: all(_established(client, name) for name in names), _START_SECONDS)


class Karpenter:
    """One running Karpenter."""

    def __init__(self, run: runs.Run, client: Client, kubeconfig: Path, ports: list[int]) -> None:
        self._client = client
        metrics, health = ports
        program = build.build(build.karpenter()) / "karpenter"
        environment = run.environment() | {
            "KUBECONFIG": str(kubeconfig),
            "SYSTEM_NAMESPACE": "kube-system",
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": str(metrics),
            "HEALTH_PROBE_PORT": str(health),
        }
        self.process = Process("karpenter", [str(program)], run.folder / "karpenter.log", environment)

    def start(self) -> None:
        install(self._client, *definitions().values())
        self.process.start()

    def decide(self, pool: str, verdict: Verdict) -> None:
        """Set the verdict of pods on the nodes of a NodePool."""
        for stage in simulated_stages.of_pool(pool, verdict):
            self._client.apply(Stage.from_dict(stage), field_manager=addons.FIELD_MANAGER, force=True)


def _module(name: str) -> Path:
    """Return the module's directory in Go's cache, in the version that the lab builds; downloaded if needed."""
    go = shutil.which("go")
    if go is None:
        raise LabError(f"Go is needed to fetch {name}, and there is no `go` in PATH: install it")
    command = [go, "mod", "download", "-json", name]
    done = subprocess.run(command, cwd=build.karpenter().module, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{name} could not be fetched: {done.stderr.strip() or done.stdout.strip()}")
    return Path(json.loads(done.stdout)["Dir"])


def _established(client: Client, name: str) -> bool:
    status = client.get(CustomResourceDefinition, name).status
    conditions = status.conditions or [] if status else []
    return any(condition.type == "Established" and condition.status == "True" for condition in conditions)
