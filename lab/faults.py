"""Break the network of one node in realistic ways, and heal it.

A fault lasts until it is healed, or until its `with` block ends:

    with node.break_dns():
        ...

Packets are dropped where the node's pods' packets enter the node, before any address is rewritten; so the pods of this
node are affected and no others, and the kubelet keeps working: the node is Ready, but unusable. (Pods on the node's
own network are not affected, like the kubelet.)
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from lab import cleanup, network
from lab.errors import LabError

NAMESPACES = ("--mount", "--net", "--pid", "--uts", "--ipc")
_FROM_PODS = ("!", "-i", "eth0")
_SOME_DNS_QUERIES = ("-p", "udp", "--dport", "53", "-m", "statistic", "--mode", "random", "--probability")
_LARGEST_PACKET_THAT_PASSES = 1400


@dataclass(frozen=True)
class Fault:
    """A fault. Healing it is idempotent."""

    heal: Callable[[], None]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _why: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.heal()


class Facts(msgspec.Struct, frozen=True):
    """The facts about a running node that faults need. Stored in a file, so that any process can break and heal it."""

    pid: int
    cable: str
    api_address: str
    api_port: int


class Faults:
    """Operations on one running node, whichever process started it; most of them break it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def facts(self) -> Facts:
        """The facts of a running node. A stale PID can belong to another process, which must not be affected."""
        with contextlib.suppress(OSError):
            facts = msgspec.json.decode((self.folder / "facts.json").read_bytes(), type=Facts)
            here = Path("/proc/self/ns/pid").readlink()
            if has_booted(facts.pid) and Path(f"/proc/{facts.pid}/ns/pid").readlink() != here:
                return facts
        raise LabError(f"node {self.folder.name} is off")

    def write_facts(self, facts: Facts) -> None:
        (self.folder / "facts.json").write_bytes(msgspec.json.encode(facts))

    def break_dns(self) -> Fault:
        """Drop all DNS traffic of the node's pods."""
        return self._drop("dns", *(("PREROUTING", *_FROM_PODS, "-p", kind, "--dport", "53") for kind in ("udp", "tcp")))

    def lose_dns(self, share: float = 0.3) -> Fault:
        """Drop this share of the UDP DNS queries of the node's pods, at random."""
        return self._drop("loss", ("PREROUTING", *_FROM_PODS, *_SOME_DNS_QUERIES, str(share)))

    def redirect_dns(self, share: float, address: str, port: int) -> Fault:
        """Redirect this share of the UDP DNS queries of the node's pods to another server, at random."""
        name = "redirection"
        rule = ("PREROUTING", *_FROM_PODS, *_SOME_DNS_QUERIES, str(share), "-m", "comment", "--comment", f"lab-{name}")
        self._iptables("nat", "-I", *rule, "-j", "DNAT", "--to-destination", f"{address}:{port}")
        return Fault(lambda: self._forget("nat", name))

    def break_api(self) -> Fault:
        """Block the API server for the node's pods, both its Service and its address."""
        tcp = ("PREROUTING", *_FROM_PODS, "-p", "tcp")
        directly = ("-d", self.facts.api_address, "--dport", str(self.facts.api_port))
        return self._drop("api", (*tcp, "-d", network.API_SERVICE), (*tcp, *directly))

    def drop_mtu(self) -> Fault:
        """Drop large packets to and from the node's pods silently, like a tunnel with a smaller MTU."""
        large = ("-m", "length", "--length", f"{_LARGEST_PACKET_THAT_PASSES + 1}:65535")
        # Only forwarded packets: the node's own connections to the API server are not affected.
        return self._drop("mtu", ("FORWARD", *large), table="mangle")

    def stall_registry(self, port: int) -> Fault:
        """Drop connections to a registry on this port of the node itself: pulls of its images take half a minute."""
        return self._drop("registry", ("OUTPUT", "-p", "tcp", "-d", "127.0.0.1", "--dport", str(port)))

    def cut(self) -> Fault:
        """Disconnect the node from the network."""
        cable = self.facts.cable
        network.ip("link", "set", cable, "down")
        return Fault(lambda: network.ip("link", "set", cable, "up"))

    def freeze(self) -> Fault:
        """Stop every process of the node; connections stay open without responses."""
        self._signal(signal.SIGSTOP)
        return Fault(lambda: self._signal(signal.SIGCONT))

    def heal(self) -> None:
        """End every fault of this node."""
        self._signal(signal.SIGCONT)
        network.ip("link", "set", self.facts.cable, "up")
        for table, fault in (
            ("raw", "dns"),
            ("raw", "loss"),
            ("raw", "api"),
            ("raw", "registry"),
            ("nat", "redirection"),
            ("mangle", "mtu"),
        ):
            self._forget(table, fault)

    def run(self, *command: str) -> str:
        """Run a command on the node and return its output."""
        # In the node's pid namespace too, and marked as the run's, so that nothing outlives the node.
        enter = ["nsenter", f"--target={self.facts.pid}", *NAMESPACES, "--"]
        return network.run_tool(*enter, *command, marks={cleanup.MARK: str(self._run_folder)})

    def import_image(self, archive: Path) -> None:
        """Import an image from an OCI archive on the node."""
        copy = self.folder / "image.tar"
        shutil.copyfile(archive, copy)
        try:
            self.run("ctr", "--namespace", "k8s.io", "images", "import", "/mnt/node/image.tar")
        finally:
            copy.unlink()

    def _drop(self, name: str, *matches: tuple[str, ...], table: str = "raw") -> Fault:
        for chain, *match in matches:
            self._iptables(table, "-I", chain, *match, "-m", "comment", "--comment", f"lab-{name}", "-j", "DROP")
        return Fault(lambda: self._forget(table, name))

    def _forget(self, table: str, name: str) -> None:
        """Remove all rules with this name, which are found by their comment."""
        for rule in self._iptables(table, "-S").splitlines():
            if f"lab-{name}" in rule.split():
                self._iptables(table, "-D", *rule.split()[1:])

    def _iptables(self, table: str, *arguments: str) -> str:
        return self.run("iptables", "--wait", "--table", table, *arguments)

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the node and its pods, except the node's first one, which only waits."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def _run_folder(self) -> Path:
        return self.folder.parent.parent

    def _processes(self) -> Iterator[int]:
        """Yield the PIDs of the node, never -1: those in its PID namespace, and those in the cgroups of its pods."""
        first = self.facts.pid
        namespace = Path(f"/proc/{first}/ns/pid").readlink()
        cgroup = f"/{cleanup.cgroup_name(self._run_folder)}/{self.folder.name}/"
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                own = (entry / "ns" / "pid").readlink() == namespace or cgroup in (entry / "cgroup").read_text()
                if own and int(entry.name) != first:
                    yield int(entry.name)


def has_booted(pid: int) -> bool:
    """Return whether this is a node's first process and has completed its setup (see node-init.sh)."""
    return Path(f"/proc/{pid}/root", "run", "booted").exists()
