"""Connections that are to exhaust the controller by its metrics and health ports.

Any pod that reaches the ports can open connections, without credentials. The controller has few files to spare here, as
with a soft limit of 1,024 in a large cluster.
"""

import contextlib
import http.client
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.controller_process import Operator, operating
from tests.support.shell import ROOT
from tests.support.site import Site

FILES = 128
CONNECTIONS = 4000
PROBES = 5
PROBE_SECONDS = 1.0
"""Less than the chart's `timeoutSeconds` (5 and 3), so that a connection that the kernel dropped once is noticed."""
KUBELET = "127.0.0.2"
"""The kubelet connects from an address of its own. From that of the attack, a slow probe gives way to newcomers."""
MOST_CPU = 0.25
"""Of one core, in a machine that other tests share. The unfixed server took all of one."""


def test_liveness_is_answered_and_nodes_are_verified_under_trickling_connections(site: Site, tmp_path: Path) -> None:
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        resource.prlimit(operator.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        with attack(operator):
            began, spent = time.monotonic(), cpu_seconds(operator)
            answers = [probe(operator) for _ in range(PROBES)]
            assert answers == ["ok\n"] * PROBES
            nodes = site.join(3)
            site.until("new nodes are verified", lambda: site.released(*nodes.names), 60)
            while time.monotonic() - began < 10:  # long enough for a figure
                time.sleep(0.1)
            share = (cpu_seconds(operator) - spent) / (time.monotonic() - began)
            assert probe(operator) == "ok\n"
            assert open_files(operator) < FILES
        assert share < MOST_CPU, f"{share:.0%} of a core"
        assert "Too many open files" not in operator.output()
        assert "kube_node_ready_controller_healthy 1.0" in operator.ask("/metrics", server=0)


@contextlib.contextmanager
def attack(operator: Operator) -> Iterator[None]:
    """Trickling connections to both ports for as long as the block runs."""
    argv = [sys.executable, "-m", "tests.attacks.trickle", str(CONNECTIONS), *map(str, operator.ports())]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"attacking\n"
            yield
            assert process.poll() is None, "the attack ended early"
        finally:
            process.kill()


def probe(operator: Operator) -> str:
    """A liveness probe as the kubelet makes it; what went wrong, if it fails."""
    time.sleep(0.5)
    began = time.monotonic()
    port = operator.ports()[-1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=(KUBELET, 0))
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException) as error:
        return repr(error)
    finally:
        connection.close()
    took = time.monotonic() - began
    return answer if took < PROBE_SECONDS else f"took {took:.1f} s"


def cpu_seconds(operator: Operator) -> float:
    fields = Path(f"/proc/{operator.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files(operator: Operator) -> int:
    return len(list(Path(f"/proc/{operator.process.pid}/fd").iterdir()))
