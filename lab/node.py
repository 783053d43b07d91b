"""A real node: a kubelet, containerd and kube-proxy in namespaces of their own, connected to the run's bridge.

The node's first process holds its PID, mount and network namespaces. When it exits, the kernel ends all processes and
interfaces of the node, its mounts and containers. This is how a node is stopped, rebooted and removed.
"""

import contextlib
import json
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import Status
from lightkube.resources.core_v1 import Node as NodeObject

from lab import cleanup, network, node_files, pki, waiting
from lab.build import Programs
from lab.errors import LabError
from lab.faults import NAMESPACES, Facts, Faults, has_booted
from lab.network import Network
from lab.process import Process
from lab.runs import Run
from lab.taints import Taint

INIT = Path(__file__).with_name("node-init.sh")
_CNI_PROGRAMS = ("/usr/lib/cni", "/opt/cni/bin")
_BOOT_SECONDS = 60.0
_READY_SECONDS = 60.0

T = TypeVar("T")

# msgspec inspects a type when it first decodes it. If two threads do so simultaneously, the interpreter crashes, and
# nodes boot in parallel, each reading its Node and first receiving a not-found response.
for _kind in (NodeObject, Status):
    msgspec.json.decode(b"{}", type=_kind)


@dataclass(frozen=True)
class Surroundings:
    """The facts about its plane that a node needs."""

    run: Run
    network: Network
    programs: Programs
    authority: pki.Authority
    proxy: pki.Pair
    """The credentials of kube-proxy, the same on every node."""
    api_endpoint: tuple[str, int]
    client: Client

    @property
    def api_url(self) -> str:
        address, port = self.api_endpoint
        return f"https://{address}:{port}"


class Node(Faults):
    """One node of a plane. Its faults are in `lab.faults`: `node.break_dns()`."""

    def __init__(
        self, around: Surroundings, name: str, ordinal: int, taints: Sequence[Taint], labels: Mapping[str, str]
    ) -> None:
        super().__init__(folder_of(around.run, name))
        self.name = name
        self._cable = around.network.cable(ordinal)
        self.address = around.network.node_address(ordinal)
        self.pods = ""
        """The network of this node's pods, after the controller manager has assigned it."""
        self._routes: dict[str, str] = {}
        self._around = around
        self._taints = taints
        self._labels = labels
        self.processes: dict[str, Process] = {}
        """The running processes: `init`, `containerd`, `kubelet`, `kube-proxy`."""

    def start(self, images: Sequence[Path]) -> None:
        """Boot with these images and register. Returns when the network of the node's pods is known."""
        self._write_files()
        self._boot()
        for archive in images:
            self.import_image(archive)
        self._join()
        self.pods = self._await("it registers", self._pod_network)

    def wait_ready(self) -> None:
        """Configure the network of the node's pods, like a CNI agent, and wait until the node is Ready."""
        # Written in place: containerd 1.6 notices writes to files, but not renames.
        (self.folder / "cni" / "10-lab.conflist").write_text(node_files.cni(self.pods))
        self._await("it is Ready", self._is_ready)

    def stop(self) -> None:
        """Power off and remove the cgroups, as on any machine: a kubelet that finds old ones takes half a minute."""
        (self.folder / "facts.json").unlink(missing_ok=True)
        for process in reversed(self.processes.values()):
            process.stop()
        for group in self._cgroups():
            cleanup.remove_cgroup(group)

    def reboot(self) -> None:
        """Power off and on: containers, network and everything under /run are gone, /var stays, the boot id is new."""
        boot = self._boot_id()
        self.stop()
        self._boot()
        self._join()
        self._await("it reports its reboot", lambda: self._boot_id() != boot)
        self.wait_ready()

    def check(self) -> None:
        for process in self.processes.values():
            process.check()

    def route(self, pods: str, via: str) -> None:
        """Add a route to another node's pods, which is restored after every reboot."""
        self._routes[pods] = via
        if self.is_on:
            self.run("ip", "route", "replace", pods, "via", via)

    @property
    def is_on(self) -> bool:
        return any(process.running for process in self.processes.values())

    def kill(self) -> None:
        """Power off unexpectedly: processes that wait for the node find it dead."""
        for process in self.processes.values():
            process.kill()

    def _signal(self, number: signal.Signals) -> None:
        super()._signal(number)
        if number is signal.SIGCONT:
            for process in self.processes.values():
                process.resume()

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "cni").mkdir()
        for folder in ("lib/containerd", "lib/kubelet", "lib/cni", "log/pods", "log/containers", "tmp"):
            (self.folder / "var" / folder).mkdir(parents=True)
        (self.folder / "var" / "run").symlink_to("/run")
        around, trusted = self._around, self._around.authority.certificate
        shutil.copyfile(trusted, self.folder / "ca.crt")
        pair = around.authority.sign(
            f"node-{self.name}", f"system:node:{self.name}", groups=["system:nodes"], hosts=[self.name, self.address]
        )
        shutil.copyfile(pair.certificate, self.folder / "kubelet.crt")
        shutil.copyfile(pair.key, self.folder / "kubelet.key")
        pki.kubeconfig(self.folder / "kubelet.kubeconfig", around.api_url, trusted, pair)
        pki.kubeconfig(self.folder / "kube-proxy.kubeconfig", around.api_url, trusted, around.proxy)
        taints = [taint.as_dict() for taint in self._taints]
        proxy = node_files.kube_proxy(self.name, around.network.pods)
        (self.folder / "kubelet.json").write_text(json.dumps(node_files.kubelet(f"/{self._cgroup}", taints)))
        (self.folder / "kube-proxy.json").write_text(json.dumps(proxy))
        (self.folder / "containerd.toml").write_text(node_files.containerd(_cni_programs()))
        (self.folder / "resolv.conf").write_text(f"nameserver {network.DNS_SERVICE}\n")

    @property
    def _cgroup(self) -> str:
        return f"{cleanup.cgroup_name(self._around.run.folder)}/{self.name}"

    def _cgroups(self) -> list[Path]:
        return [hierarchy / self._cgroup for hierarchy in cleanup.cgroup_hierarchies()]

    def _boot(self) -> None:
        """Start the node up to a running containerd."""
        for group in self._cgroups():
            group.mkdir(parents=True)
        programs = self._around.programs
        kubernetes, tools = programs.path("kubelet").parent, programs.path("toolbox").parent
        script = ["sh", str(INIT), str(self.folder), str(kubernetes), str(tools), self.name]
        fresh = ["unshare", "--fork", "--kill-child", "--mount-proc", "--propagation=private", *NAMESPACES]
        init = self._launch("init", script, through=fresh)
        self.write_facts(Facts(init.pid, self._cable, *self._around.api_endpoint))
        waiting.until(f"node {self.name} boots", lambda: has_booted(init.pid), _BOOT_SECONDS, alive=init.check)
        self._plug_in(init.pid)
        for pods, via in self._routes.items():
            self.route(pods, via)
        self._launch("containerd", ["containerd", "--config=/mnt/node/containerd.toml"])
        self._await("containerd answers", lambda: self.run("ctr", "version"))

    def _plug_in(self, pid: int) -> None:
        with contextlib.suppress(LabError):
            network.ip("link", "delete", self._cable)  # of an earlier boot; the kernel removes it, but not immediately
        network.ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        network.ip("link", "set", self._cable, "master", self._around.network.bridge, "up")
        commands = f"""
            ip link set lo up
            ip address add {self.address}/24 dev eth0
            ip link set eth0 up
            ip link add nowhere type bridge
            ip link set nowhere up
            ip route add default dev nowhere src {self.address}
            sysctl -qw net.ipv4.ip_forward=1
        """
        self.run("sh", "-ec", commands)

    def _join(self) -> None:
        labels = ",".join(f"{key}={value}" for key, value in self._labels.items())
        kubelet = [
            "/mnt/kubernetes/kubelet",
            "--config=/mnt/node/kubelet.json",
            "--kubeconfig=/mnt/node/kubelet.kubeconfig",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            f"--node-labels={labels}",
        ]
        self._launch("kubelet", kubelet)
        self._launch("kube-proxy", ["/mnt/kubernetes/kube-proxy", "--config=/mnt/node/kube-proxy.json"])

    def _launch(self, program: str, argv: Sequence[str], *, through: Sequence[str] = ()) -> Process:
        """Start a program in the node's namespaces, or in those that `through` creates."""
        enter = through or ["nsenter", f"--target={self.facts.pid}", *NAMESPACES, "--"]
        log, environment = self.folder / f"{program}.log", self._around.run.environment()
        process = Process(f"{program} of node {self.name}", argv, log, environment, through=enter)
        process.start()
        self.processes[program] = process
        return process

    def _await(self, what: str, answer: Callable[[], T | None]) -> T:
        return waiting.until(f"node {self.name}: {what}", answer, _READY_SECONDS, alive=self.check)

    def _object(self) -> NodeObject:
        return self._around.client.get(NodeObject, self.name)

    def _pod_network(self) -> str | None:
        with contextlib.suppress(ApiError):
            spec = self._object().spec
            return spec.podCIDR if spec else None
        return None

    def _is_ready(self) -> bool:
        status = self._object().status
        conditions = status.conditions or [] if status else []
        return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)

    def _boot_id(self) -> str:
        status = self._object().status
        return status.nodeInfo.bootID if status and status.nodeInfo else ""


def folder_of(run: Run, name: str) -> Path:
    return run.folder / "nodes" / name


def _cni_programs() -> str:
    for folder in _CNI_PROGRAMS:
        if (Path(folder) / "ptp").exists():
            return folder
    raise LabError(f"no CNI plugins in {' or '.join(_CNI_PROGRAMS)}; `make setup` installs what the lab needs")
