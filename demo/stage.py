"""The setup of `make run`: a cluster that stays, gated nodes of which one is broken, a workload, the operator."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import lab
from demo import image
from lab import Plane, images
from lab.process import Process
from lab.progress import say

GATE = lab.Taint("node-ready/unverified", value="true")
NAMESPACE = "kube-system"
WORKLOAD = "hello"
_RETRY_SECONDS = 20  # after healing the broken node, its release should not take minutes
CHART = image.CHECKOUT / "deploy" / "helm" / "kube-node-ready"
_CONTROLLER = Path(sys.executable).with_name("kube-node-ready-controller")


@dataclass(frozen=True)
class Nodes:
    """The nodes of the demo, by name."""

    sound: tuple[str, ...]
    broken: str


REAL = Nodes(("node-1", "node-2"), "node-3")
SIMULATED = Nodes(("node-0", "node-1"), "broken-0")


def with_real_nodes(cluster: str) -> Nodes:
    """Start three real nodes, and install the operator with its chart and image."""
    with _image() as archive, lab.plane(keep_as=cluster) as plane:
        say(f"starting three nodes that join with the taint {GATE.key}, one with broken DNS")
        nodes = plane.start_nodes(*REAL.sound, REAL.broken, taints=[GATE])
        nodes[-1].break_dns()
        plane.wait_for_dns()
        _start_workload(plane)
        say("giving the nodes the image, and installing the chart")
        plane.import_image(archive())
        _install(plane)
    return REAL


def with_simulated_nodes(cluster: str) -> Nodes:
    """Start three simulated nodes; the controller cannot run on them, so it is a local process."""
    with lab.plane(keep_as=cluster) as plane:
        say(f"starting three simulated nodes that join with the taint {GATE.key}, one with broken DNS")
        say("what their checks find, and how long they take, is made up")
        plane.simulated_nodes(2, prefix="node", verdict=lab.passes(_report(dns_error="")), taints=[GATE])
        no_answer = lab.fails(_report(dns_error="no answer from 10.96.0.10:53 by UDP within 10 s"))
        plane.simulated_nodes(1, prefix="broken", verdict=no_answer, taints=[GATE])
        _start_workload(plane)
        say("starting the controller")
        plane.kubectl("create", "serviceaccount", "kube-node-ready-worker", f"--namespace={NAMESPACE}")
        _start_controller(plane)
    return SIMULATED


@contextlib.contextmanager
def _image() -> Iterator[Callable[[], Path]]:
    """Build the image while the cluster starts."""
    say("building the image meanwhile (half a minute the first time)")
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(image.archive).result


def _start_workload(plane: Plane) -> None:
    """Start two pods that require different nodes and do not tolerate the gate."""
    say(f"starting a workload, Deployment {WORKLOAD}, whose two pods have to wait")
    labels = {"app": WORKLOAD}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": WORKLOAD, "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": WORKLOAD, "image": images.TOOLBOX, "imagePullPolicy": "Never"}],
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
                    "terminationGracePeriodSeconds": 0,
                },
            },
        },
    }
    plane.apply(json.dumps(manifest))


def _install(plane: Plane) -> None:
    words = ["install", "kube-node-ready", str(CHART), f"--namespace={NAMESPACE}", f"--kubeconfig={plane.kubeconfig()}"]
    words += [f"--set=image.repository={image.REPOSITORY}"]
    words += [f"--set=controller.config.reconciliation.exhaustedRetrySeconds={_RETRY_SECONDS}"]
    command = [str(plane.programs.path("helm")), *words]
    done = subprocess.run(command, env=plane.run.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise lab.LabError(f"helm {' '.join(words)}: {done.stderr.strip()}")


def _start_controller(plane: Plane) -> None:
    """Start the controller as a process that runs as long as the cluster; `down` stops it."""
    config = plane.run.folder / "controller.yaml"
    repository, _, tag = images.TOOLBOX.rpartition(":")
    worker = {"namespace": NAMESPACE, "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"}}
    retry = {"exhaustedRetrySeconds": _RETRY_SECONDS}
    config.write_text(
        json.dumps({"worker": worker, "reconciliation": retry, "metrics": {"port": 0}, "health": {"port": 0}})
    )
    _tell_the_command_line(plane, config.read_text())
    argv = [str(_CONTROLLER), f"--config={config}", f"--kubeconfig={plane.kubeconfig()}"]
    Process("controller", argv, plane.run.folder / "controller.log", plane.run.environment()).start()


def _tell_the_command_line(plane: Plane, config: str) -> None:
    """Create the ConfigMap of the chart, in which the command line looks for the configuration."""
    labels = {"app.kubernetes.io/name": "kube-node-ready", "app.kubernetes.io/component": "controller"}
    metadata = {"name": "kube-node-ready-controller", "namespace": NAMESPACE, "labels": labels}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": config}}
    plane.apply(json.dumps(config_map))


def _report(*, dns_error: str) -> str:
    """Return the termination message of a worker."""
    took = {"dns": 10_003 if dns_error else 4, "api": 12, "network": 3, "services": 9, "payload": 15, "clock": 11}
    dns = {"ok": not dns_error, "target": "kubernetes.default.svc.cluster.local", "error": dns_error}
    checks = [{"name": name, "ok": True, "ms": ms, **(dns if name == "dns" else {})} for name, ms in took.items()]
    return json.dumps({"v": 1, "checks": checks})
