"""A control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, as real as they come.

Use it through `lab.plane()`; the package's docstring shows what a plane can do.
"""

import contextlib
import http
import itertools
import json
import re
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import httpx2
from lightkube import Client, KubeConfig
from lightkube.models.authentication_v1 import BoundObjectReference, TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ServiceAccount, ServiceAccountToken

from lab import addons, audit, build, components, images, network, pki, runs, waiting
from lab.errors import ComponentDiedError, LabError
from lab.fake import FakeNodes, Simulation
from lab.fake_stages import PASSES, Verdict
from lab.karpenter import Karpenter
from lab.node import Node, Surroundings
from lab.process import Process
from lab.taints import Taint

ADMIN_KUBECONFIG = "admin.kubeconfig"
_START_SECONDS = 60.0
_TOKEN_SECONDS = 24 * 3600
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class Plane:
    """One running control plane, its nodes, and the means to look at it and to break it."""

    def __init__(
        self, run: runs.Run, programs: build.Programs, version: str, apiserver_flags: Sequence[str] = ()
    ) -> None:
        self.run = run
        self.version = version
        self.programs = programs
        self.network = network.of(run)
        self.nodes: dict[str, Node] = {}
        self._ordinals = itertools.count(1)
        self._imported: list[Path] = []
        self._apiserver_flags = apiserver_flags
        self._ports = components.Ports(*self.network.ports(5))
        self.authority = pki.Authority(run.folder / "pki")
        self.api_endpoint = (self.network.api_address, self._ports.api)
        self.url = f"https://{self.network.api_address}:{self._ports.api}"
        (run.folder / "programs.json").write_text(json.dumps([str(folder) for folder in programs.folders]))
        self.audit = audit.AuditLog(run.folder / "audit.log")
        self.etcd, self.apiserver, self.controller_manager, self.scheduler = self._components()

    def start(self) -> None:
        """Return when the API answers and the controllers work."""
        if network.is_root():
            network.make_bridge(self.network)
        self.etcd.start()
        self.apiserver.start()
        self.wait_for_api()
        self.controller_manager.start()
        self.scheduler.start()
        waiting.until("the controllers work", self._controllers_work, _START_SECONDS, alive=self.check)

    def wait_for_api(self) -> None:
        """Until the API server answers; call it after `apiserver.start()`."""
        waiting.until("kube-apiserver is ready", self._api_answers, _START_SECONDS, alive=self.check)

    def stop(self) -> None:
        """End every program. What else there is goes with the run."""
        self.client.close()
        for node in self.nodes.values():
            node.stop()
        for process in self._processes():
            process.stop()

    def check(self) -> None:
        """Raise if a program of the plane or of a node has died."""
        for process in self._processes():
            process.check()
        for node in self.nodes.values():
            node.check()

    @cached_property
    def client(self) -> Client:
        """Cluster-admin's client."""
        # The machine's proxies are not the way to the lab.
        return Client(KubeConfig.from_file(self.kubeconfig()), timeout=httpx2.Timeout(30), trust_env=False)

    def kubeconfig(self, service_account: str | None = None, *, pod: str | None = None) -> Path:
        """A kubeconfig file for cluster-admin or for a ServiceAccount, `namespace/name`.

        With `pod`, a pod that runs as that ServiceAccount, the token is bound to it as a kubelet's would be, and so
        carries the name of the pod's node.
        """
        if service_account is None:
            return self.run.folder / ADMIN_KUBECONFIG
        namespace, _, name = service_account.partition("/")
        if not namespace or not name:
            raise LabError(f"{service_account!r} is no ServiceAccount; it looks like namespace/name")
        bound = BoundObjectReference(apiVersion="v1", kind="Pod", name=pod) if pod else None
        asked = TokenRequestSpec(audiences=[], expirationSeconds=_TOKEN_SECONDS, boundObjectRef=bound)
        request = self.client.create(ServiceAccountToken(metadata=ObjectMeta(), spec=asked), name, namespace=namespace)
        assert request.status
        assert request.status.token
        file = "-".join(filter(None, [namespace, name, pod])) + ".kubeconfig"
        return pki.kubeconfig(self.run.folder / file, self.url, self.authority.certificate, request.status.token)

    def kubelet_kubeconfig(self, node: str) -> Path:
        """A kubeconfig file with the credentials of a node's kubelet: user `system:node:NODE`, group `system:nodes`.

        The node need not exist: a kubelet registers it with these credentials. They are as limited as a real kubelet's,
        by the Node authorizer and the NodeRestriction admission plugin. The node's name can have up to 52 characters: a
        certificate's common name has no more than 64.
        """
        pair = self.authority.sign(f"kubelet-of-{node}", f"system:node:{node}", groups=["system:nodes"])
        path = self.run.folder / f"kubelet-of-{node}.kubeconfig"
        return pki.kubeconfig(path, self.url, self.authority.certificate, pair)

    def kubectl(self, *arguments: str, standard_input: str | None = None) -> str:
        """Run kubectl as cluster-admin; what it complains of is the error."""
        command = [str(self.programs.path("kubectl")), f"--kubeconfig={self.kubeconfig()}", *arguments]
        environment = self.run.environment()
        done = subprocess.run(
            command, env=environment, input=standard_input, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, manifest: str) -> None:
        """Make the cluster hold the objects of a YAML text."""
        addons.apply(self.client, manifest)

    def node(self, name: str, *, taints: Sequence[Taint] = (), labels: Mapping[str, str] | None = None) -> Node:
        """A real node, Ready. The first one brings cluster DNS along, which takes a moment more: see `wait_for_dns`."""
        (node,) = self.start_nodes(name, taints=taints, labels=labels)
        return node

    def start_nodes(
        self, *names: str, taints: Sequence[Taint] = (), labels: Mapping[str, str] | None = None
    ) -> list[Node]:
        """Several real nodes, booted at the same time."""
        network.require_root()
        if odd := [name for name in names if not _NODE_NAME.fullmatch(name)]:
            raise LabError(f"{odd[0]!r} cannot be a node's name: lower-case letters, digits, dashes and dots can")
        if taken := [name for at, name in enumerate(names) if name in self.nodes or name in names[:at]]:
            raise LabError(f"there is a node {taken[0]!r} already")
        if not self.nodes:
            addons.apply_dns(self.client)
        fresh = [Node(self._surroundings, name, next(self._ordinals), taints, labels or {}) for name in names]
        try:
            self._boot(fresh)
            for node in fresh:
                self._connect(node)
                self.nodes[node.name] = node
            for node in fresh:
                node.wait_ready()
        except BaseException:
            for node in fresh:
                self.nodes.pop(node.name, None)
                node.stop()
            raise
        return fresh

    def _boot(self, fresh: Sequence[Node]) -> None:
        """All at once. If one cannot, or somebody presses Ctrl-C, the others need not finish first."""
        images = self.images()
        with ThreadPoolExecutor() as pool:
            try:
                list(pool.map(lambda node: node.start(images), fresh))
            except BaseException:
                for node in fresh:
                    node.kill()
                raise

    def wait_for_dns(self) -> None:
        """Until every CoreDNS pod is ready."""
        waiting.until(
            "cluster DNS is ready", lambda: addons.dns_is_ready(self.client), _START_SECONDS, alive=self.check
        )

    def images(self) -> list[Path]:
        """What every node is born with."""
        toolbox, coredns = self.run.folder / "toolbox.tar", self.run.folder / "coredns.tar"
        if not coredns.exists():
            path = self.programs.path
            images.write(toolbox, images.TOOLBOX, {"/toolbox": path("toolbox")}, ["/toolbox", "pause"])
            images.write(coredns, images.COREDNS, {"/coredns": path("coredns")}, ["/coredns"])
        return [toolbox, coredns, *self._imported]

    def import_image(self, archive: Path) -> None:
        """Make an image known to every node, also to those that are yet to come; so the archive has to stay."""
        self._imported.append(archive)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.import_image(archive), self.nodes.values()))

    def fake_nodes(
        self,
        count: int,
        *,
        prefix: str = "fake",
        verdict: Verdict = PASSES,
        taints: Sequence[Taint] = (),
        labels: Mapping[str, str] | None = None,
    ) -> FakeNodes:
        """Simulated nodes `prefix-0`, `prefix-1`, … on which every pod that ends at all ends with the verdict."""
        return self._simulation.nodes(count, prefix, verdict, taints, labels or {})

    @property
    def simulated_kubelets(self) -> Process:
        """What keeps simulated nodes Ready and their leases fresh. Their pods are somebody else's."""
        return self._simulation.processes[0]

    def karpenter(self) -> Karpenter:
        """Karpenter with its KWOK provider, at work. To build it takes minutes, once."""
        return self._karpenter

    @cached_property
    def _karpenter(self) -> Karpenter:
        for process in self._simulation.processes:
            process.check()
        karpenter = Karpenter(self.run, self.client, self.kubeconfig(), self.network.ports(2))
        karpenter.start()
        return karpenter

    @cached_property
    def _simulation(self) -> Simulation:
        simulation = Simulation(self.run, self.programs, self.client, self.kubeconfig(), self.version)
        simulation.start()
        return simulation

    @cached_property
    def _surroundings(self) -> Surroundings:
        proxy = self.authority.sign("kube-proxy", "system:kube-proxy")
        return Surroundings(
            self.run, self.network, self.programs, self.authority, proxy, self.api_endpoint, self.client
        )

    def _connect(self, newcomer: Node) -> None:
        """Tell this machine and every node the way to a new node's pods, and the new node the way to theirs."""
        network.ip("route", "replace", newcomer.pods, "via", newcomer.address)
        for node in self.nodes.values():
            node.route(newcomer.pods, newcomer.address)
            newcomer.route(node.pods, node.address)

    def _processes(self) -> list[Process]:
        simulation: Simulation | None = self.__dict__.get("_simulation")
        karpenter: Karpenter | None = self.__dict__.get("_karpenter")
        return [
            *(self.etcd, self.apiserver, self.controller_manager, self.scheduler),
            *(simulation.processes if simulation else ()),
            *((karpenter.process,) if karpenter else ()),
        ]

    def _components(self) -> tuple[Process, Process, Process, Process]:
        folder, sign = self.run.folder, self.authority.sign
        hosts = [self.network.api_address, network.API_SERVICE, "localhost", "kubernetes.default.svc.cluster.local"]
        hosts += ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        credentials = components.Credentials(
            authority=self.authority.pair,
            api=sign("apiserver", "kube-apiserver", hosts=hosts),
            kubelet_client=sign("kubelet-client", "lab:kubelet-client", groups=["system:masters"]),
            service_accounts=self.authority.signing_key("service-accounts"),
        )
        self._kubeconfig("admin", groups=["system:masters"])
        (folder / "audit-policy.json").write_text(json.dumps(audit.POLICY))
        controllers, scheduling = "kube-controller-manager", "kube-scheduler"
        api = components.apiserver(folder, self.network, self._ports, credentials, self._apiserver_flags)
        manager = self._kubeconfig(controllers)
        return (
            self._process("etcd", components.etcd(folder, self._ports)),
            self._process("kube-apiserver", api),
            self._process(controllers, components.controller_manager(manager, self.network, self._ports, credentials)),
            self._process(scheduling, components.scheduler(self._kubeconfig(scheduling), self._ports)),
        )

    def _kubeconfig(self, name: str, groups: Sequence[str] = ()) -> Path:
        pair = self.authority.sign(name, f"system:{name}", groups=groups)
        return pki.kubeconfig(self.run.folder / f"{name}.kubeconfig", self.url, self.authority.certificate, pair)

    def _process(self, name: str, flags: Sequence[str]) -> Process:
        argv = [str(self.programs.path(name)), *flags]
        return Process(name, argv, self.run.folder / f"{name}.log", self.run.environment())

    def _api_answers(self) -> bool:
        trusting = ssl.create_default_context(cafile=self.authority.certificate)
        directly = urllib.request.ProxyHandler({})
        opener = urllib.request.build_opener(directly, urllib.request.HTTPSHandler(context=trusting))
        with opener.open(f"{self.url}/readyz", timeout=5) as answer:
            return bool(answer.status == http.HTTPStatus.OK)

    def _controllers_work(self) -> bool:
        """The controller manager makes a `default` ServiceAccount; without it no pod can be created."""
        return bool(self.client.get(ServiceAccount, "default", namespace="default"))


@contextlib.contextmanager
def plane(
    version: str = build.KUBERNETES_VERSION, *, apiserver_flags: Sequence[str] = (), keep_as: str | None = None
) -> Iterator[Plane]:
    """A plane for as long as the block runs. However the block or the process ends, nothing of it remains.

    With `keep_as`, a plane whose block ends well stays under that name until `python -m lab down` takes it away.
    """
    programs = build.programs(version)
    ownership = runs.claim()
    try:
        started = Plane(ownership.run, programs, version, apiserver_flags)
        try:
            started.start()
            yield started
            started.check()
        except BaseException as why:
            _add_deaths(why, started)
            started.stop()
            raise
        if keep_as is None:
            started.stop()
        else:
            ownership.run.keep(keep_as)
    finally:
        ownership.release()


def _add_deaths(why: BaseException, of: Plane) -> None:
    """A test that fails because a component died should say so."""
    if not isinstance(why, ComponentDiedError):
        try:
            of.check()
        except ComponentDiedError as death:
            why.add_note(str(death))
