"""`kube-node-ready --dry-run` without a cluster: the real program in its own network, with or without DNS.

It checks what needs no cluster, skips the rest, prints a summary, and exits with 0, 1, or 4 if nothing could run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready.exit_codes import ExitCode
from tests.support.shell import ROOT

SERVER = "127.0.0.53"
KNOWN, UNKNOWN = "known.example", "unknown.example"
DEFAULT = "kubernetes.default.svc.cluster.local"
# In namespaces of its own: the resolver's file, one network interface, and a DNS server on the usual port.
ENTER = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec")
PREPARE = """
ip link set lo up
mount --bind "$0" /etc/resolv.conf
exec "$@"
"""
PROGRAM = """
import contextlib, socket, struct, sys, threading
from tests.support.check_servers import dns_reply

ADDRESSES = {
    b"\\x05known\\x07example\\x00": "127.0.0.1",
    b"\\x08registry\\x04prod\\x00": "127.0.0.1",
    b"\\x08registry\\x04prod\\x03svc\\x07cluster\\x05local\\x00": "127.0.0.2",  # a Service of the namespace prod
}

def serve(server):
    while True:
        query, asker = server.recvfrom(4096)
        address = ADDRESSES.get(query[12:query.index(b"\\x00", 12) + 1])
        is_ipv4 = query[-4:-2] == b"\\x00\\x01"
        found = [address] if address and is_ipv4 else []
        server.sendto(dns_reply(query, *found, code=0 if address else 3), asker)

if sys.argv[1]:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], 53))
    threading.Thread(target=serve, args=(server,), daemon=True).start()
target = socket.create_server(("127.0.0.1", 8443))
sys.argv[1:] = sys.argv[2:]
from kube_node_ready.entrypoints import main
main()
"""


def execute(folder: Path, *flags: str, lines: str, server: str, **variables: str) -> subprocess.CompletedProcess[str]:
    file = folder / "resolv.conf"
    file.write_text(f"{lines}\n")
    argv = [*ENTER, PREPARE, str(file), sys.executable, "-c", PROGRAM, server, "--dry-run", *flags]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    environ = inherited | {"HOME": str(folder), "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(argv, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


class Run:
    """A dry run on a machine whose /etc/resolv.conf has these lines; a DNS server is at this address, if any."""

    def __init__(
        self, folder: Path, *flags: str, lines: str = f"nameserver {SERVER}", server: str = SERVER, **variables: str
    ) -> None:
        done = execute(folder, *flags, lines=lines, server=server, **variables)
        self.exit_code, self.output, self.error = done.returncode, done.stdout, done.stderr
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]

    def one(self, msg: str) -> dict[str, Any]:
        (found,) = [line for line in self.lines if line["msg"] == msg]
        return found

    def all(self, msg: str, key: str) -> list[str]:
        return [line[key] for line in self.lines if line["msg"] == msg]

    @property
    def summary(self) -> dict[str, Any]:
        line = self.one("Dry run completed")
        return {key: line[key] for key in line.keys() - {"level", "timestamp", "msg"}}


def test_by_default_this_machines_resolver_is_checked_and_the_cluster_is_skipped(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert (run.exit_code, run.error) == (ExitCode.OK, "")
    assert run.all("DNS check passed", "domain") == ["this machine's resolver"]
    assert run.one("DNS check passed")["server"] == SERVER
    assert run.all("DNS check skipped", "domain") == [DEFAULT]
    assert run.one("API check skipped")["reason"] == "no ServiceAccount and no kubeconfig was found"
    assert run.summary == {"passed": 1, "failed": 0, "skipped": 8, "exit_code": ExitCode.OK}
    assert run.one("Dry run: no changes made")["would"] == "leave the gate closed: a skipped check proves nothing"


def test_configured_names_and_targets_are_checked(tmp_path: Path) -> None:
    run = Run(tmp_path, f"--dns-test-domains={KNOWN}", "--network-targets=127.0.0.1:8443")
    assert run.exit_code == ExitCode.OK, run.output
    assert sorted(run.all("DNS check passed", "domain")) == [KNOWN, "this machine's resolver"]
    assert run.all("Network check passed", "address") == ["127.0.0.1:8443"]
    assert run.summary["passed"] == 3


def test_a_service_in_a_namespace_does_not_answer_for_a_target_of_that_name(tmp_path: Path) -> None:
    """A tenant names a namespace `prod` and a Service `registry`. Resolvers in pods would search for these first."""
    lines = f"nameserver {SERVER}\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5"
    run = Run(tmp_path, "--dns-test-domains=registry.prod", "--network-targets=registry.prod:8443", lines=lines)
    assert run.exit_code == ExitCode.OK, run.output
    assert run.all("Network check passed", "address") == ["registry.prod:8443"]
    (addresses,) = [
        line["addresses"] for line in run.lines if line.get("domain") == "registry.prod" and "addresses" in line
    ]
    assert addresses == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("flag", "check"),
    [(f"--dns-test-domains={UNKNOWN}", "dns"), ("--network-targets=127.0.0.1:1", "network")],
    ids=["name", "target"],
)
def test_a_check_that_fails_is_exit_code_1(tmp_path: Path, flag: str, check: str) -> None:
    run = Run(tmp_path, flag)
    assert (run.exit_code, run.error) == (ExitCode.FAILED, "")
    assert (run.summary["failed"], run.summary["failed_checks"]) == (1, [check])


def test_a_resolver_that_does_not_answer_is_exit_code_1(tmp_path: Path) -> None:
    run = Run(tmp_path, "--check-timeout=1s", server="")
    assert run.exit_code == ExitCode.FAILED
    assert run.one("DNS check failed")["domain"] == "this machine's resolver"
    assert SERVER in run.one("DNS check failed")["error"]


def test_the_second_server_is_queried_if_the_first_does_not_respond(tmp_path: Path) -> None:
    run = Run(tmp_path, lines=f"nameserver 127.0.0.54\nnameserver {SERVER}")
    assert run.exit_code == ExitCode.OK, run.output
    assert run.one("DNS check passed")["server"] == SERVER


def test_without_runnable_checks_it_exits_with_4_and_claims_no_pass(tmp_path: Path) -> None:
    run = Run(tmp_path, lines="# no server", server="")
    assert (run.exit_code, run.error) == (ExitCode.NOT_PROVED, "")
    assert run.summary == {"passed": 0, "failed": 0, "skipped": 9, "exit_code": ExitCode.NOT_PROVED}
    assert run.one("All checks skipped")["level"] == "warn"
    assert "All checks passed" not in run.output
    assert "Checks passed" not in run.output


@pytest.mark.parametrize("paths", ["/nonexistent/kubeconfig", "/nonexistent/kubeconfig:/nonexistent/another"])
def test_a_kubeconfig_variable_that_names_a_missing_file_is_one_warning(tmp_path: Path, paths: str) -> None:
    run = Run(tmp_path, KUBECONFIG=paths)
    assert (run.exit_code, run.error) == (ExitCode.OK, "")
    assert run.one("Kubeconfig not found")["path"] == paths
    assert run.one("API check skipped")["reason"] == f"KUBECONFIG: {paths} does not exist"


def test_the_summary_is_the_last_console_line(tmp_path: Path) -> None:
    done = execute(tmp_path, "--log-format=console", lines=f"nameserver {SERVER}", server=SERVER)
    assert done.returncode == ExitCode.OK
    assert done.stdout.splitlines()[-1].endswith("INFO  Dry run completed  passed=1 failed=0 skipped=8 exit_code=0")
