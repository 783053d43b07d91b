"""The worker on real nodes: it passes on a sound one, and on a broken one exactly the right checks fail."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from lightkube.models.core_v1 import (
    Capabilities,
    ConfigMapProjection,
    Container,
    EnvVar,
    KeyToPath,
    ProjectedVolumeSource,
    SeccompProfile,
    SecretProjection,
    SecurityContext,
    Volume,
    VolumeMount,
    VolumeProjection,
)
from lightkube.resources.core_v1 import Pod

import lab
from demo import image as release_image
from lab import network, waiting
from tests.e2e.conftest import WORKERS, Probed
from tests.support.builders import a_pod, wait_ended
from tests.support.check_servers import denying_server

ALL = {"dns", "api", "network", "services", "payload", "clock"}
COUNTED = re.compile(r"\d+ of \d+ queries lost")
SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Verdict:
    exit_code: int
    message: str
    checks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> set[str]:
        return {check["name"] for check in self.checks if not check["ok"]}

    @property
    def causes(self) -> set[str]:
        """Those that failed for a reason of their own."""
        failed = (check for check in self.checks if not check["ok"])
        return {check["name"] for check in failed if check["verdict"] == "failed"}

    @property
    def first_error(self) -> str:
        """What a person reads first."""
        first = self.checks[0]
        return f"{first['name']}: {first['target']}: {first['error']}"

    def error(self, name: str, target: str) -> str:
        (found,) = [check for check in self.checks if (check["name"], check["target"]) == (name, target)]
        return str(found["error"])


@pytest.fixture
def on_first(workers: str, first: Probed) -> Iterator[lab.Node]:
    assert workers
    yield first.node
    first.node.heal()


def run_worker(
    plane: lab.Plane,
    node: lab.Node,
    settings: dict[str, Any] | None = None,
    *,
    account: str = "worker",
    attempt: int = 1,
    **spec: object,
) -> Verdict:
    """One run of the worker in a hardened pod, as the controller makes it for this attempt."""
    extras: dict[str, Any] = dict(spec)
    config = json.dumps({"checkTimeoutSeconds": 5} | (settings or {}))
    environment = {"NODE_NAME": node.name, "POD_NAMESPACE": WORKERS, "KUBE_NODE_READY_WORKER_CONFIG": config}
    environment["POD_NAME"] = f"run-{attempt}"
    container = Container(
        name="worker",
        image=release_image.NAME,
        imagePullPolicy="Never",
        command=[release_image.WORKER],
        env=[EnvVar(name=name, value=value) for name, value in environment.items()],
        volumeMounts=extras.pop("mounts", None),
        securityContext=SecurityContext(
            allowPrivilegeEscalation=False,
            capabilities=Capabilities(drop=["ALL"]),
            readOnlyRootFilesystem=True,
            runAsNonRoot=True,
            seccompProfile=SeccompProfile(type="RuntimeDefault"),
        ),
    )
    pod = a_pod("run", WORKERS, node=node.name, containers=[container], serviceAccountName=account, **extras)
    created = plane.client.create(pod)
    try:
        status = wait_ended(plane, created)
    finally:
        plane.client.delete(Pod, "run", namespace=WORKERS, grace_period=0)
        waiting.until("the pod is gone", lambda: not list(plane.client.list(Pod, namespace=WORKERS)), 180)
    assert status.containerStatuses
    state = status.containerStatuses[0].state
    assert state
    assert state.terminated, status
    message = state.terminated.message or ""
    report = json.loads(message)
    assert report["v"] == 2
    assert report["node"] == node.name
    return Verdict(state.terminated.exitCode, message, report["checks"])


def test_every_check_passes_on_a_healthy_node(plane: lab.Plane, on_first: lab.Node) -> None:
    verdict = run_worker(plane, on_first)
    assert verdict.exit_code == 0, verdict.message
    assert {check["name"] for check in verdict.checks} == ALL
    assert not verdict.failed
    dns_servers = [check for check in verdict.checks if check["target"].endswith(":53")]
    assert len(dns_servers) == 1


def test_without_dns_only_the_dns_checks_fail(plane: lab.Plane, on_first: lab.Node) -> None:
    with on_first.break_dns():
        verdict = run_worker(plane, on_first)
    assert verdict.exit_code == 1
    assert verdict.failed == {"dns", "network"}, verdict.message
    assert verdict.first_error.startswith("dns: kubernetes.default.svc.cluster.local: ")
    assert "no answer from" in verdict.first_error
    assert run_worker(plane, on_first).exit_code == 0


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_node_that_loses_thirty_percent_of_its_dns_queries_fails_and_the_loss_is_counted(
    plane: lab.Plane, on_first: lab.Node, attempt: int
) -> None:
    """The resolver of libc repeats what is lost, so one look-up passed at the first attempt."""
    with on_first.lose_dns(0.3):
        verdict = run_worker(plane, on_first, attempt=attempt)
    assert verdict.exit_code == 1
    assert verdict.failed == {"dns", "network"}, verdict.message
    assert COUNTED.search(verdict.first_error), verdict.message


@pytest.mark.parametrize("attempt", [1, 2])
def test_intermittent_nxdomain_fails_the_node_and_is_counted(
    plane: lab.Plane, on_first: lab.Node, attempt: int
) -> None:
    with (
        denying_server(on_first.facts.api_address) as port,
        on_first.redirect_dns(0.5, on_first.facts.api_address, port),
    ):
        verdict = run_worker(plane, on_first, attempt=attempt)
    assert verdict.exit_code == 1
    assert verdict.failed == {"dns"}, verdict.message
    assert "queries answered NXDOMAIN" in verdict.message or "resolves only sometimes" in verdict.message


def test_without_the_api_its_checks_fail_and_dependent_checks_are_inconclusive(
    plane: lab.Plane, on_first: lab.Node
) -> None:
    with on_first.break_api():
        verdict = run_worker(plane, on_first)
    assert verdict.exit_code == 1
    assert verdict.failed == ALL - {"dns"}, verdict.message
    assert verdict.causes == {"api", "network"}
    assert verdict.first_error.startswith(f"api: {network.API_SERVICE}:443: no TCP connection")
    assert run_worker(plane, on_first).exit_code == 0


def test_an_mtu_black_hole_fails_the_payload_check_of_that_node_only(
    plane: lab.Plane, on_first: lab.Node, second: Probed
) -> None:
    """The API server must not be kept waiting for a node that does not receive its answer."""
    with on_first.drop_mtu():
        verdict = run_worker(plane, on_first)
        assert run_worker(plane, second.node).exit_code == 0
    assert verdict.exit_code == 1
    assert verdict.causes == {"payload"}, verdict.message
    assert {"dns", "api", "clock"}.isdisjoint(verdict.failed)
    assert "large packets might be lost on the way (MTU)" in verdict.first_error
    assert run_worker(plane, on_first).exit_code == 0


def test_one_dead_dns_server_among_several_is_detected(plane: lab.Plane, on_first: lab.Node) -> None:
    (server,) = plane.client.list(Pod, namespace="kube-system", labels={"k8s-app": "kube-dns"})
    alive = server.status
    assert alive
    plane.apply(TWO_DNS_SERVERS.replace("ALIVE", alive.podIP or "").replace("DEAD", "192.0.2.53"))
    verdict = run_worker(plane, on_first, {"dnsService": f"{WORKERS}/two-servers"})
    assert verdict.exit_code == 1
    assert verdict.failed == {"network"}
    assert verdict.first_error.startswith("network: 192.0.2.53:53: ")
    assert [check["ok"] for check in verdict.checks if check["target"] == f"{alive.podIP}:53"] == [True]


def test_a_token_the_api_server_does_not_know_fails_the_api_check(plane: lab.Plane, on_first: lab.Node) -> None:
    forged = Volume(
        name="forged",
        projected=ProjectedVolumeSource(
            sources=[
                VolumeProjection(secret=SecretProjection(name="forged-token")),
                VolumeProjection(
                    configMap=ConfigMapProjection(
                        name="kube-root-ca.crt", items=[KeyToPath(key="ca.crt", path="ca.crt")]
                    )
                ),
            ]
        ),
    )
    mounts = [VolumeMount(name="forged", mountPath=SERVICE_ACCOUNT_FOLDER)]
    verdict = run_worker(plane, on_first, automountServiceAccountToken=False, volumes=[forged], mounts=mounts)
    assert verdict.exit_code == 1
    assert verdict.failed == {"api", "network", "services", "payload"}
    assert not verdict.causes, "a ServiceAccount that was deleted is not the node's fault"
    assert verdict.first_error.endswith("the API server rejects the credentials (401)")


def test_a_missing_right_is_named(plane: lab.Plane, on_first: lab.Node) -> None:
    verdict = run_worker(plane, on_first, account="powerless")
    assert verdict.exit_code == 1
    assert verdict.failed == {"services", "network"}, verdict.message
    assert not verdict.causes, "a missing RoleBinding is not the node's fault"
    assert "permission to get services in namespace kube-system is missing" in verdict.error(
        "services", "kube-system/kube-dns"
    )
    assert "system:serviceaccount:workers:powerless" in verdict.message


def test_a_pod_without_a_token_cannot_connect_to_kubernetes(plane: lab.Plane, on_first: lab.Node) -> None:
    verdict = run_worker(plane, on_first, automountServiceAccountToken=False)
    assert verdict.exit_code == 3
    error = json.loads(verdict.message)["error"]
    assert error.startswith("cannot read ")
    assert "/token: " in error


TWO_DNS_SERVERS = f"""
apiVersion: v1
kind: Service
metadata: {{name: two-servers, namespace: {WORKERS}}}
spec:
  ports: [{{name: dns, port: 53, protocol: UDP}}, {{name: dns-tcp, port: 53, protocol: TCP}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: two-servers
  namespace: {WORKERS}
  labels: {{kubernetes.io/service-name: two-servers}}
addressType: IPv4
endpoints:
  - {{addresses: [ALIVE]}}
  - {{addresses: [DEAD], conditions: {{ready: true}}}}
  - {{addresses: [192.0.2.54], conditions: {{ready: false}}}}
ports: [{{name: dns, port: 53, protocol: UDP}}, {{name: dns-tcp, port: 53, protocol: TCP}}]
"""
