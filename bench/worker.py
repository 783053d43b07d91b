"""The cost of one worker run: CPU seconds, peak memory, time.

It is measured twice: as a process on this machine, with a real API server and a real CoreDNS in a pod, and compiled
bytecode as in an image; and as a pod on a real node, with the released image.
"""

import argparse
import compileall
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from lightkube.resources.core_v1 import Pod

import kube_node_ready
import lab
from bench import real_node, report
from demo import image
from lab.progress import say

_NODE = "node"
_SOURCE = Path(kube_node_ready.__file__).parent.parent
_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: worker}
rules:
  - {apiGroups: [""], resources: [services], verbs: [get]}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: worker}
subjects: [{kind: ServiceAccount, name: default, namespace: default}]
"""
# The path of the mounted ServiceAccount is the same in every pod, so the command has no option for it.
_COMMAND = """\
import os, sys
from kube_node_ready.worker import main as worker
code = worker.work(os.environ, folder=sys.argv[1])
sys.stdout.write(open("/proc/self/status").read())
sys.stdout.flush()
os._exit(code)
"""


class Cost(NamedTuple):
    cpu_ms: float
    peak_mib: float
    ms: float


@contextmanager
def cluster() -> Iterator[lab.Plane]:
    with lab.plane() as plane:
        say("a real node with CoreDNS, and the image")
        plane.node(_NODE)
        plane.wait_for_dns()
        plane.apply(_RIGHTS)
        plane.import_image(image.archive())
        yield plane


def service_account(plane: lab.Plane) -> Path:
    folder = plane.run.folder / "service-account"
    folder.mkdir()
    kubeconfig = yaml.safe_load(plane.kubeconfig("default/default").read_text())
    (folder / "token").write_text(kubeconfig["users"][0]["user"]["token"])
    (folder / "ca.crt").write_bytes(plane.authority.certificate.read_bytes())
    return folder


def environment(plane: lab.Plane) -> dict[str, str]:
    """Return the worker's variables, with a name that this machine can resolve, unlike the cluster's names."""
    (dns,) = plane.client.list(Pod, namespace="kube-system", labels={"k8s-app": "kube-dns"})
    assert dns.status
    settings = {"dnsTestDomains": ["localhost", dns.status.podIP]}
    host, port = plane.api_endpoint
    return {
        "NODE_NAME": _NODE,
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(settings),
        "TERMINATION_LOG": str(plane.run.folder / "termination-log"),
        "PYTHONPATH": str(_SOURCE),
    }


def run_once(folder: Path, environ: dict[str, str], log: Path) -> Cost:
    argv = [sys.executable, "-S", "-c", _COMMAND, str(folder)]
    begun = time.monotonic()
    output = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    pid = os.posix_spawn(sys.executable, argv, environ, file_actions=[output])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"the worker failed:\n{log.read_text()}")
    elapsed = time.monotonic() - begun
    # The peak of wait4 would include that of this process, which spawned it.
    peak = next(line.split()[1] for line in log.read_text().splitlines() if line.startswith("VmHWM:"))
    return Cost((usage.ru_utime + usage.ru_stime) * 1000, int(peak) / 1024, elapsed * 1000)


def processes(plane: lab.Plane, rounds: int) -> list[Cost]:
    folder, environ, log = service_account(plane), environment(plane), plane.run.folder / "worker.log"
    run_once(folder, environ, log)
    return [run_once(folder, environ, log) for _ in range(rounds)]


def figures(costs: Sequence[Cost], pods: Sequence[real_node.Run], sizes: dict[str, float]) -> dict[str, Any]:
    return {
        "rounds": len(costs),
        "image": sizes,
        "as_a_process": {
            "cpu_milliseconds": spread([cost.cpu_ms for cost in costs]),
            "peak_mebibytes": spread([cost.peak_mib for cost in costs]),
            "milliseconds_from_start_to_end": spread([cost.ms for cost in costs]),
        },
        "as_a_pod_on_a_real_node": {
            "seconds_from_creation_to_verdict": spread([pod.created_to_verdict for pod in pods]),
            "seconds_from_creation_until_it_is_seen": spread([pod.created_to_verdict_seen for pod in pods]),
            "seconds_from_container_start_to_verdict": spread([pod.start_to_verdict for pod in pods]),
            "cpu_milliseconds_by_its_cgroup": spread([pod.cpu_ms for pod in pods]),
            "peak_mebibytes_by_its_cgroup": spread([pod.peak_mib for pod in pods]),
        },
    }


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Return the distribution, or None if a value is unknown: the others alone would not be comparable."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return {"best": min(known), "median": statistics.median(known), "worst": max(known)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.worker", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", type=int, nargs="?", default=20, help="how many runs of each kind (20)")
    parser.add_argument("--save", action="store_true", help=f"save the figures under {report.RESULTS}/")
    asked = parser.parse_args()
    if asked.rounds < 1:
        parser.error(f"rounds: {asked.rounds} is too few to measure; 1 or more can be")
    compileall.compile_dir(_SOURCE, quiet=1)
    try:
        with cluster() as plane:
            costs = processes(plane, asked.rounds)
            say(f"{asked.rounds} worker pods, one after the other")
            pods = real_node.runs(plane, plane.nodes[_NODE], asked.rounds)
    except (lab.LabError, OSError) as error:
        parser.exit(1, f"the worker: {error}\n")
    found = figures(costs, pods, real_node.image_sizes(image.archive()))
    print(report.table(f"the worker, {asked.rounds} runs of each kind", found))
    if asked.save:
        say(f"kept in {report.save('worker', 1, found)}")


if __name__ == "__main__":
    main()
