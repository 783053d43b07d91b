"""The controller as a process of its own, as users run it, and what it leaves in the cluster."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

import lab
from lab import images, waiting
from tests.support.shell import ROOT

COMMAND = (str(Path(sys.executable).with_name("kube-node-ready-controller")),)
LINES_REPORTED = 60
QUICK = {"backoffSeconds": 0.2, "maxBackoffSeconds": 1, "exhaustedRetrySeconds": 2, "maxRetries": 3}


def a_config(namespace: str, **sections: Any) -> dict[str, Any]:  # noqa: ANN401  as in YAML
    """A quick controller on free ports. Sections given are merged into these."""
    repository, _, tag = images.TOOLBOX.rpartition(":")
    base: dict[str, Any] = {
        "worker": {
            "namespace": namespace,
            "serviceAccountName": "default",
            "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
            "timeoutSeconds": 120,
        },
        "reconciliation": dict(QUICK),
        "nodeManagement": {},
        "leaderElection": {"enabled": False},
        "metrics": {"port": 0},
        "health": {"port": 0},
        "kubernetes": {"qps": 0},
    }
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section} if isinstance(section, dict) else section
    return base


class Operator:
    """One controller process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def lines(self) -> list[dict[str, Any]]:
        text = self._log.read_text()
        whole = text[: text.rfind("\n") + 1]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def logged(self, msg: str, **fields: object) -> bool:
        return any(line["msg"] == msg and fields.items() <= line.items() for line in self.lines())

    def output(self) -> str:
        return self._log.read_text()

    def ask(self, path: str, *, server: int = -1) -> str:
        """What one of its servers answers; the last is the one for health."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.ports()[server]}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def ports(self) -> list[int]:
        """Return the ports that it listens on; the last is the one for health."""
        (ports,) = [line["ports"] for line in self.lines() if "ports" in line]
        return list(ports)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> int:
        """As a kubelet stops a pod."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextlib.contextmanager
def operating(
    folder: Path, kubeconfig: Path, config: dict[str, Any], command: Sequence[str] = COMMAND
) -> Iterator[Operator]:
    """A controller for as long as the block runs. It must still be there at the end, unless the test ended it."""
    number = len(list(folder.glob("controller-*.log")))
    file, log = folder / f"config-{number}.yaml", folder / f"controller-{number}.log"
    file.write_text(yaml.safe_dump(config))
    argv = [*command, f"--config={file}", f"--kubeconfig={kubeconfig}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    with log.open("wb") as output:
        process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    operator = Operator(process, log)
    try:
        waiting.until("it has started", lambda: operator.logged("Waiting for lease") or _up(operator), 180)
        yield operator
        assert process.returncode is not None or process.poll() is None, f"it died:\n{operator.output()}"
    except BaseException as why:
        why.add_note("\n".join((f"the end of {log.name}:", *operator.output().splitlines()[-LINES_REPORTED:])))
        raise
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in operator.output(), operator.output()


def _up(operator: Operator) -> bool:
    if operator.logged("Controller started"):
        return True
    code = operator.process.poll()
    assert code is None, f"exit code {code}:\n{operator.output()}"
    return False


def taints(*found: dict[str, str]) -> list[lab.Taint]:
    return [lab.Taint(taint["key"], taint["effect"], taint.get("value", "")) for taint in found]
