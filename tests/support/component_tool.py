"""The kubernetes-daemonset command as its users run it, in front of a cluster."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import lab
from lab import network

Json = dict[str, Any]

COMMAND = (sys.executable, "-c", "from kubernetes_daemonset.cli.main import main; main()")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Tool:
    """Runs the command in a folder of its own, with a kubeconfig of the plane."""

    plane: lab.Plane
    folder: Path
    kubeconfig: Path

    def write(self, name: str, *manifests: Json) -> Path:
        file = self.folder / name
        file.write_text(yaml.safe_dump_all(manifests))
        return file

    def run(self, *words: str | Path) -> Ran:
        done = subprocess.run(
            [*COMMAND, *map(str, words)],
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=self.environment,
            text=True,
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def does(self, *words: str | Path) -> str:
        """Runs the command, which succeeds. Returns what it printed."""
        ran = self.run(*words)
        assert ran.code == 0, ran.err
        return ran.out

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
        return kept | {"KUBECONFIG": str(self.kubeconfig), "NO_PROXY": network.of(self.plane.run).api_address}

    def live(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """An object as the server has it; None if it is not there."""
        where = ["--namespace", namespace] if namespace else []
        text = self.plane.kubectl("get", kind, name, *where, "--output", "json", "--ignore-not-found")
        found: Json | None = json.loads(text) if text.strip() else None
        return found

    def versions(self, namespace: str) -> dict[str, str]:
        """Everything of ours in a namespace, and its version: whatever is written changes one of them."""
        text = self.plane.kubectl(
            "get", "daemonsets,configmaps,secrets,serviceaccounts,roles,rolebindings", "-n", namespace, "-o", "json"
        )
        items = json.loads(text)["items"]
        return {f"{one['kind']}/{one['metadata']['name']}": _spec_version(one) for one in items}


def _spec_version(one: Json) -> str:
    """A DaemonSet's status changes by itself, its generation with its spec alone."""
    metadata = one["metadata"]
    return str(metadata["generation"] if "generation" in metadata else metadata["resourceVersion"])
