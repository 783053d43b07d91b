"""The network of a run: addresses derived from its slot, and the bridge of its nodes.

    10.89.SLOT.0/24        the nodes' network; .1 is the bridge, where the API server listens
    10.(128+4·SLOT)…/14    the pods' network, a /27 per node: room for 8,192 nodes, real or simulated
    10.96.0.0/16           Services, the same in every run: these addresses are valid only inside a node

Pods are routed, not masqueraded: every node has routes to every other node's pods, and so has this machine. No route
leads further: a node's default route ends in a bridge without ports, so no test can send a packet off this machine.
"""

import hashlib
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.cleanup import bridge_name
from lab.errors import LabError
from lab.runs import SLOTS, Run, gateway

SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
NODE_POD_BITS = 27
_FIRST_PORT = 21000
_PORTS_A_RUN = 50
_PORT_BLOCKS = 7  # below the kernel's ephemeral ports


@dataclass(frozen=True)
class Network:
    """One run's addresses."""

    folder: Path
    slot: int

    @property
    def bridge(self) -> str:
        return bridge_name(self.folder)

    @property
    def gateway(self) -> str:
        return gateway(self.slot)

    @property
    def api_address(self) -> str:
        """The address of the API server: the bridge, which nodes can reach, or the loopback without root."""
        return self.gateway if is_root() else "127.0.0.1"

    @property
    def pods(self) -> str:
        return f"10.{128 + 4 * self.slot}.0.0/14"

    def node_address(self, ordinal: int) -> str:
        return f"10.89.{self.slot}.{10 + ordinal}"

    def cable(self, ordinal: int) -> str:
        """Return the name of the host end of a node's veth pair."""
        return f"{self.bridge}-{ordinal}"

    @property
    def port_range(self) -> range:
        # Runs under other directories, such as another user's, use the same slots, but most likely another block.
        block = int(hashlib.sha256(str(self.folder.parent).encode()).hexdigest(), 16) % _PORT_BLOCKS
        first = _FIRST_PORT + _PORTS_A_RUN * (SLOTS * block + self.slot)
        return range(first, first + _PORTS_A_RUN)

    def ports(self, count: int) -> list[int]:
        """Return free ports in the run's own range."""
        mine = self.port_range
        free = [port for port in mine if _is_free(port)]
        if len(free) < count:
            raise LabError(f"of the ports {mine[0]} to {mine[-1]} only {len(free)} are free; {count} are needed")
        return free[:count]


def of(run: Run) -> Network:
    return Network(run.folder, run.slot)


def is_root() -> bool:
    return os.geteuid() == 0


def require_root() -> None:
    if not is_root():
        raise LabError("real nodes need root, for their namespaces and containers; simulated nodes do not")


def make_bridge(network: Network) -> None:
    ip("link", "add", network.bridge, "type", "bridge")
    ip("address", "add", f"{network.gateway}/24", "dev", network.bridge)
    ip("link", "set", network.bridge, "up")


def ip(*arguments: str) -> None:
    run_tool("ip", *arguments)


def run_tool(*command: str, marks: Mapping[str, str] | None = None) -> str:
    """Run a system tool; if it fails, its output is the error."""
    environment = {**os.environ, **(marks or {})}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LabError(f"{command[0]} is not installed; `make setup` installs what the lab needs") from error
    if done.returncode:
        output = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise LabError(f"`{' '.join(command)}` failed: {output}")
    return done.stdout


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("0.0.0.0", port))  # noqa: S104  only to ask whether anyone has it; nothing listens
        except OSError:
            return False
    return True
