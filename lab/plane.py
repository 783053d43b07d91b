"""A control plane: the real etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Use it through `lab.plane()`; the docstring of the package has an example.
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
from lab.karpenter import Karpenter
from lab.node import Node, Surroundings
from lab.process import Process
from lab.simulated_nodes import SimulatedNodes, Simulation
from lab.simulated_stages import PASSES, Verdict
from lab.taints import Taint

ADMIN_KUBECONFIG = "admin.kubeconfig"
_START_SECONDS = 60.0
_TOKEN_SECONDS = 24 * 3600
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class Plane:
    """One running control plane and its nodes, with methods to inspect and break it."""

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
        """Start all components. Returns when the API server is ready and the controllers are running."""
        if network.is_root():
            network.make_bridge(self.network)
        self.etcd.start()
        self.apiserver.start()
        self.wait_for_api()
        self.controller_manager.start()
        self.scheduler.start()
        waiting.until("the controllers work", self._controllers_work, _START_SECONDS, alive=self.check)

    def wait_for_api(self) -> None:
        """Wait until the API server is ready; call it after `apiserver.start()`."""
        waiting.until("kube-apiserver is ready", self._api_answers, _START_SECONDS, alive=self.check)

    def stop(self) -> None:
        """Stop all programs. Everything else is removed with the run."""
        self.client.close()
        for node in self.nodes.values():
            node.stop()
        for process in self._processes():
            process.stop()

    def check(self) -> None:
        """Raise an error if a program of the plane or of a node has exited."""
        for process in self._processes():
            process.check()
        for node in self.nodes.values():
            node.check()

    @cached_property
    def client(self) -> Client:
        """The client of cluster-admin."""
        # Proxies of the machine are not used for the lab.
        return Client(KubeConfig.from_file(self.kubeconfig()), timeout=httpx2.Timeout(30), trust_env=False)

    def kubeconfig(self, service_account: str | None = None, *, pod: str | None = None) -> Path:
        """Write a kubeconfig for cluster-admin or for a ServiceAccount, `namespace/name`.

        With `pod`, a pod that runs as that ServiceAccount, the token is bound to it like a kubelet's, and therefore
        contains the name of the pod's node.
        """
        if service_account is None:
            return self.run.folder / ADMIN_KUBECONFIG
        namespace, _, name = service_account.partition("/")
        if not namespace or not name:
            raise LabError(f"{service_account!r} is invalid; expected a ServiceAccount as namespace/name")
        bound = BoundObjectReference(apiVersion="v1", kind="Pod", name=pod) if pod else None
        asked = TokenRequestSpec(audiences=[], expirationSeconds=_TOKEN_SECONDS, boundObjectRef=bound)
        request = self.client.create(ServiceAccountToken(metadata=ObjectMeta(), spec=asked), name, namespace=namespace)
        assert request.status
        assert request.status.token
        file = "-".join(filter(None, [namespace, name, pod])) + ".kubeconfig"
        return pki.kubeconfig(self.run.folder / file, self.url, self.authority.certificate, request.status.token)

    def kubelet_kubeconfig(self, node: str) -> Path:
        """Write a kubeconfig with the credentials of a node's kubelet: user `system:node:NODE`, group `system:nodes`.

        The node need not exist: a kubelet registers it with these credentials. They are as limited as a real kubelet's,
        by the Node authorizer and the NodeRestriction admission plugin. The node's name can have up to 52 characters: a
        certificate's common name has no more than 64.
        """
        pair = self.authority.sign(f"kubelet-of-{node}", f"system:node:{node}", groups=["system:nodes"])
        path = self.run.folder / f"kubelet-of-{node}.kubeconfig"
        return pki.kubeconfig(path, self.url, self.authority.certificate, pair)

    def kubectl(self, *arguments: str, standard_input: str | None = None) -> str:
        """Run kubectl as cluster-admin; its error output is the error."""
        command = [str(self.programs.path("kubectl")), f"--kubeconfig={self.kubeconfig()}", *arguments]
        environment = self.run.environment()
        done = subprocess.run(
            command, env=environment, input=standard_input, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, manifest: str) -> None:
        """Apply the objects of a YAML text."""
        addons.apply(self.client, manifest)

    def node(self, name: str, *, taints: Sequence[Taint] = (), labels: Mapping[str, str] | None = None) -> Node:
        """Start a real node and wait until it is Ready. The first one also installs cluster DNS: see `wait_for_dns`."""
        (node,) = self.start_nodes(name, taints=taints, labels=labels)
        return node

    def start_nodes(
        self, *names: str, taints: Sequence[Taint] = (), labels: Mapping[str, str] | None = None
    ) -> list[Node]:
        """Start several real nodes in parallel."""
        network.require_root()
        if odd := [name for name in names if not _NODE_NAME.fullmatch(name)]:
            raise LabError(
                f"{odd[0]!r} is invalid; expected a node name of lowercase letters, digits, hyphens and dots"
            )
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
        """Boot the nodes in parallel. If one fails, or on Ctrl-C, the others are not waited for."""
        images = self.images()
        with ThreadPoolExecutor() as pool:
            try:
                list(pool.map(lambda node: node.start(images), fresh))
            except BaseException:
                for node in fresh:
                    node.kill()
                raise

    def wait_for_dns(self) -> None:
        """Wait until every CoreDNS pod is ready."""
        waiting.until(
            "cluster DNS is ready", lambda: addons.dns_is_ready(self.client), _START_SECONDS, alive=self.check
        )

    def images(self) -> list[Path]:
        """Return the archives of the images that every node starts with."""
        toolbox, coredns = self.run.folder / "toolbox.tar", self.run.folder / "coredns.tar"
        if not coredns.exists():
            path = self.programs.path
            images.write(toolbox, images.TOOLBOX, {"/toolbox": path("toolbox")}, ["/toolbox", "pause"])
            images.write(coredns, images.COREDNS, {"/coredns": path("coredns")}, ["/coredns"])
        return [toolbox, coredns, *self._imported]

    def import_image(self, archive: Path) -> None:
        """Import an image on every node, including future ones, so the archive must be kept."""
        self._imported.append(archive)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.import_image(archive), self.nodes.values()))

    def simulated_nodes(
        self,
        count: int,
        *,
        prefix: str = "fake",
        verdict: Verdict = PASSES,
        taints: Sequence[Taint] = (),
        labels: Mapping[str, str] | None = None,
    ) -> SimulatedNodes:
        """Create simulated nodes `prefix-0`, `prefix-1`, … on which every pod that ends has the verdict."""
        return self._simulation.nodes(count, prefix, verdict, taints, labels or {})

    @property
    def simulated_kubelets(self) -> Process:
        """The process that keeps simulated nodes Ready and renews their leases. It does not run their pods."""
        return self._simulation.processes[0]

    def karpenter(self) -> Karpenter:
        """Start Karpenter with its KWOK provider. The first build takes minutes."""
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
        """Add routes to a new node's pods on this machine and every node, and routes to theirs on the new node."""
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
        """Return whether the controller manager has created the `default` ServiceAccount, which every pod needs."""
        return bool(self.client.get(ServiceAccount, "default", namespace="default"))


@contextlib.contextmanager
def plane(
    version: str = build.KUBERNETES_VERSION, *, apiserver_flags: Sequence[str] = (), keep_as: str | None = None
) -> Iterator[Plane]:
    """Run a plane while the block runs. However the block or the process ends, nothing of it remains.

    With `keep_as`, a plane whose block succeeds is kept under that name until `python -m lab down` removes it.
    """
    programs = build.programs(version)
    ownership = runs.claim()
    try:
        started = Plane(ownership.run, programs, version, apiserver_flags)
        try:
            started.start()
            yield started
            started.check()
        except BaseException as error:
            _add_deaths(error, started)
            started.stop()
            raise
        if keep_as is None:
            started.stop()
        else:
            ownership.run.keep(keep_as)
    finally:
        ownership.release()


def _add_deaths(error: BaseException, of: Plane) -> None:
    """Add the exit of a component to the error of a test that fails because of it."""
    if not isinstance(error, ComponentDiedError):
        try:
            of.check()
        except ComponentDiedError as death:
            error.add_note(str(death))
