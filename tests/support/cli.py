"""The everyday command line as a process of its own, in front of one test's own site."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.shell import ROOT
from tests.support.site import Site

PROGRAM = Path(sys.executable).with_name("kube-node-ready")
LONGEST_SECONDS = 90
INSTALLED = "kube-node-ready-controller"


class Console:
    """`ask("status", "node-1")`, with the rights of a kubeconfig and the site's namespace."""

    def __init__(self, site: Site, kubeconfig: Path | None = None) -> None:
        self.site = site
        self.kubeconfig = kubeconfig or site.plane.kubeconfig()

    def command(self, verb: str, *words: str) -> list[str]:
        return [str(PROGRAM), verb, f"--namespace={self.site.namespace}", f"--kubeconfig={self.kubeconfig}", *words]

    def ask(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        done = run(*self.command(verb, *words))
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def status(self, *names: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.ask("status", *names, "--output=json").stdout)
        return found

    def phase(self, name: str) -> str:
        (node,) = self.status(name)
        return str(node["phase"])

    @contextlib.contextmanager
    def watching(self, errors: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
        """`status`, at the other end of a pipe; what it notes goes into that file. It ends with the block."""
        command = self.command("status", *words)
        with (
            errors.open("wb") as sink,
            subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=sink, text=True) as process,
        ):
            try:
                yield process
            finally:
                process.kill()


def install(site: Site, config: dict[str, Any]) -> None:
    """As the chart does it, as far as the configuration goes."""
    labels = {"app.kubernetes.io/component": "controller", "app.kubernetes.io/name": "kube-node-ready"}
    metadata = {"name": INSTALLED, "namespace": site.namespace, "labels": labels}
    data = {"config.yaml": yaml.safe_dump(config)}
    site.plane.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=ROOT,
        env={**environment(), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
