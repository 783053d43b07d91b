"""Breaking one node's network on purpose, as real networks break, and healing it.

A fault is in force until it is healed, or until the `with` block it was made for ends:

    with node.break_dns():
        ...

Packets are dropped where the node's pods' packets enter the node, before any address is rewritten; so the pods of this
node suffer and nobody else's do, and the kubelet stays content: a node that is Ready and useless.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from lab import network

_FROM_PODS = ("!", "-i", "eth0")
_LARGEST_PACKET_THAT_PASSES = 1400


@dataclass(frozen=True)
class Fault:
    """Something broken. Healing twice does no harm."""

    heal: Callable[[], None]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _why: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.heal()


class Facts(msgspec.Struct, frozen=True):
    """What must be known of a running node to break it. In a file, so that any process can break and heal it."""

    pid: int
    cable: str
    api_address: str
    api_port: int


class Faults:
    """What can be broken on one running node, whoever started it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def facts(self) -> Facts:
        return msgspec.json.decode((self.folder / "facts.json").read_bytes(), type=Facts)

    def write_facts(self, facts: Facts) -> None:
        (self.folder / "facts.json").write_bytes(msgspec.json.encode(facts))

    def break_dns(self) -> Fault:
        """The node's pods get no answer from any DNS server."""
        return self._drop("dns", *(("PREROUTING", *_FROM_PODS, "-p", kind, "--dport", "53") for kind in ("udp", "tcp")))

    def break_api(self) -> Fault:
        """The node's pods cannot reach the API server, neither by its Service nor directly."""
        tcp = ("PREROUTING", *_FROM_PODS, "-p", "tcp")
        directly = ("-d", self.facts.api_address, "--dport", str(self.facts.api_port))
        return self._drop("api", (*tcp, "-d", network.API_SERVICE), (*tcp, *directly))

    def drop_mtu(self) -> Fault:
        """Large packets to and from the node's pods vanish without a word, as in a tunnel with a smaller MTU."""
        large = ("-m", "length", "--length", f"{_LARGEST_PACKET_THAT_PASSES + 1}:65535")
        # Only what is forwarded: the node's own connections to the API server pass.
        return self._drop("mtu", ("FORWARD", *large), table="mangle")

    def cut(self) -> Fault:
        """Pull the node's cable."""
        cable = self.facts.cable
        network.ip("link", "set", cable, "down")
        return Fault(lambda: network.ip("link", "set", cable, "up"))

    def freeze(self) -> Fault:
        """Stop every process of the node in its tracks; connections stay open and nothing answers."""
        self._signal("STOP")
        return Fault(lambda: self._signal("CONT"))

    def heal(self) -> None:
        """End every fault of this node."""
        self._signal("CONT")
        network.ip("link", "set", self.facts.cable, "up")
        for table, fault in (("raw", "dns"), ("raw", "api"), ("mangle", "mtu")):
            self._forget(table, fault)

    def run(self, *command: str) -> str:
        """Run a command as someone logged in on the node would, and return what it prints."""
        return network.run_tool(
            "nsenter", f"--target={self.facts.pid}", "--mount", "--net", "--uts", "--ipc", "--", *command
        )

    def _drop(self, name: str, *matches: tuple[str, ...], table: str = "raw") -> Fault:
        for chain, *match in matches:
            self._iptables(table, "-I", chain, *match, "-m", "comment", "--comment", f"lab-{name}", "-j", "DROP")
        return Fault(lambda: self._forget(table, name))

    def _forget(self, table: str, name: str) -> None:
        """Remove the rules with this name, found by their comment, however often they were made."""
        for rule in self._iptables(table, "-S").splitlines():
            if f"lab-{name}" in rule.split():
                self._iptables(table, "-D", *rule.split()[1:])

    def _iptables(self, table: str, *arguments: str) -> str:
        return self.run("iptables", "--wait", "--table", table, *arguments)

    def _signal(self, name: str) -> None:
        """To every process of the node and of its pods, but for the node's first, which only waits."""
        network.run_tool("nsenter", f"--target={self.facts.pid}", "--pid", "--", "sh", "-c", f"kill -{name} -1")
