"""A release of the chart in a lab's cluster, installed by the lab's Helm and the commands of the README."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

import lab
from tests.support.chart import CHART, ROOT

README = CHART / "README.md"
NAME = "kube-node-ready"


class Release:
    def __init__(self, plane: lab.Plane, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self._plane = plane
        self._folder = folder
        self._values = folder / "values.yaml"

    def install(self, values: Mapping[str, Any]) -> str:
        """Returns the notes that Helm prints. Waits for nothing, as the README's command does."""
        self._values.write_text(yaml.safe_dump(dict(values)))
        return self._helm("install", NAME, CHART, f"--values={self._values}")

    def upgrade(self, values: Mapping[str, Any], *, chart: Path = CHART) -> str:
        """With these values on top of those it has. Returns the notes that Helm prints."""
        self._values.write_text(yaml.safe_dump(dict(values)))
        return self._helm("upgrade", NAME, chart, "--reset-then-reuse-values", f"--values={self._values}")

    def rollback(self) -> None:
        """To what was before the last upgrade."""
        self._helm("rollback", NAME)

    def manifest(self) -> str:
        """Everything that was made, as YAML."""
        return self._helm("get", "manifest", NAME)

    def uninstall(self) -> None:
        """By the first command that the README has for it."""
        self.run(self._documented("Uninstall")[0])

    def clean_up_as_documented(self) -> None:
        """By the others."""
        for command in self._documented("Uninstall")[1:]:
            self.run(command)

    def _documented(self, section: str) -> list[str]:
        """The commands of this section of the README."""
        text = README.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        return re.findall(r"(?m)^    (\S.*)$", text)

    def run(self, command: str) -> None:
        """Run a documented command for this release, in a shell with Helm, kubectl and access to the cluster."""
        command = command.replace("--namespace kube-system", f"--namespace {self.namespace}")
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False, env=self._around
        )
        # As the README says, and as the others must not.
        complains_of_other_nodes = command.startswith("kubectl taint ") and "not found" in done.stderr
        assert done.returncode == 0 or complains_of_other_nodes, f"{command}: {done.stderr}"

    def _helm(self, *words: object) -> str:
        command = [str(self._plane.programs.path("helm")), *map(str, words), f"--namespace={self.namespace}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._around)
        assert done.returncode == 0, f"helm {words[0]}: {done.stderr}"
        return done.stdout

    @property
    def _around(self) -> dict[str, str]:
        places = {self._plane.programs.path(program).parent for program in ("helm", "kubectl")}
        # What Helm keeps for itself belongs to the test, not to the user who runs it.
        homes = {f"HELM_{kind}_HOME": f"{self._folder}/{kind}" for kind in ("CACHE", "CONFIG", "DATA")}
        path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
        return {**self._plane.run.environment(), **homes, "PATH": path, "KUBECONFIG": str(self._plane.kubeconfig())}
