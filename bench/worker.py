"""What one run of the worker costs: CPU seconds, peak memory, time.

usage: python -m bench.worker [ROUNDS]

The worker runs on this machine against a real API server, and asks a real CoreDNS in a pod. Its bytecode is compiled
beforehand, as in an image.
"""

import compileall
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml
from lightkube.resources.core_v1 import Pod

import kube_node_ready
import lab
from lab.progress import say

_SOURCE = Path(kube_node_ready.__file__).parent
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
# The mounted ServiceAccount's place is the same in every pod, so the command has no option for it.
_COMMAND = """\
import os, sys
from kube_node_ready import worker
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
        say("a real node with CoreDNS")
        plane.node("node")
        plane.wait_for_dns()
        plane.apply(_RIGHTS)
        yield plane


def service_account(plane: lab.Plane) -> Path:
    folder = plane.run.folder / "service-account"
    folder.mkdir()
    kubeconfig = yaml.safe_load(plane.kubeconfig("default/default").read_text())
    (folder / "token").write_text(kubeconfig["users"][0]["user"]["token"])
    (folder / "ca.crt").write_bytes(plane.authority.certificate.read_bytes())
    return folder


def environment(plane: lab.Plane) -> dict[str, str]:
    """The resolver of this machine does not know the cluster's names, so it is asked for one that it knows."""
    (dns,) = plane.client.list(Pod, namespace="kube-system", labels={"k8s-app": "kube-dns"})
    assert dns.status
    settings = {"dnsTestDomains": ["localhost", dns.status.podIP]}
    host, port = plane.api_endpoint
    return {
        "NODE_NAME": "node",
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(settings),
        "TERMINATION_LOG": str(plane.run.folder / "termination-log"),
        "PYTHONPATH": str(_SOURCE.parent),
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
    # wait4's own figure of the peak would include ours, from which the process was spawned.
    peak = next(line.split()[1] for line in log.read_text().splitlines() if line.startswith("VmHWM:"))
    return Cost((usage.ru_utime + usage.ru_stime) * 1000, int(peak) / 1024, elapsed * 1000)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    compileall.compile_dir(_SOURCE, quiet=1)
    with cluster() as plane:
        folder, environ, log = service_account(plane), environment(plane), plane.run.folder / "worker.log"
        run_once(folder, environ, log)
        costs = [run_once(folder, environ, log) for _ in range(rounds)]
    print(f"{'one run of the worker, of ' + str(rounds):<32} {'best':>7} {'median':>7} {'worst':>7}")
    for what, column in (("CPU, ms", 0), ("peak memory, MiB", 1), ("from start to end, ms", 2)):
        values = [cost[column] for cost in costs]
        print(f"{what:<32} {min(values):>7.1f} {statistics.median(values):>7.1f} {max(values):>7.1f}")


if __name__ == "__main__":
    main()
