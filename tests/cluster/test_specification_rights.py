"""The ClusterRole of the specification is sufficient: it grants `endpoints`, and not `endpointslices`.

Its text is applied verbatim to a real API server, and used by a worker and by DaemonSet mode.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lab
from kube_node_ready.checks import kubeconfig, services
from kube_node_ready.checks.check import CheckFailedError, Deadline
from lab import waiting
from tests import specification
from tests.support.agent_live import command
from tests.support.chart_release import apply, reviews, token_of
from tests.support.controller_process import taints
from tests.support.ports import unused_port
from tests.support.scenarios.agent import GATE, LABEL

RIGHTS = specification.text("daemonset/rbac.yaml")
ACCOUNT = "kube-system/kube-node-ready"
USER = "system:serviceaccount:kube-system:kube-node-ready"
POWERLESS = "kube-system/default"
FALLBACK = "EndpointSlices forbidden, reading Endpoints"
RULE = 'apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list"]'
PATIENCE = 180
_WORKER = """
import os, sys
from kube_node_ready.worker import main as worker
sys.exit(worker.work(os.environ, folder=sys.argv[1]))
"""


@pytest.fixture(scope="module")
def granted(plane: lab.Plane) -> Iterator[lab.Plane]:
    plane.kubectl("apply", "--filename=-", standard_input=RIGHTS)
    with reviews(plane, USER) as allow:
        waiting.until("the rights hold", lambda: allow("list", "endpoints", "default"), PATIENCE, alive=plane.check)
        assert not allow("list", "endpointslices.discovery.k8s.io", "default")
    yield plane
    plane.kubectl("delete", "--filename=-", standard_input=RIGHTS)


@pytest.fixture
def service(plane: lab.Plane, namespace: str) -> str:
    """A Service with two ready endpoints and one that is not; its EndpointSlice is the mirror of its Endpoints."""
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
        {"name": "metrics", "port": 9153, "protocol": "TCP"},
    ]
    subset = {
        "addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}],
        "notReadyAddresses": [{"ip": "192.0.2.3"}],
        "ports": ports,
    }
    metadata = {"name": "names", "namespace": namespace}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]},
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    plane.kubectl("apply", "--filename=-", standard_input=listed)
    found = ("get", "endpointslices", f"--namespace={namespace}", "--output=name")
    waiting.until("it is mirrored", lambda: plane.kubectl(*found), PATIENCE, alive=plane.check)
    return f"{namespace}/names"


def mounted(plane: lab.Plane, folder: Path, account: str, *, pod: str | None = None) -> Path:
    """What a kubelet mounts into the pod."""
    made = folder / "serviceaccount"
    made.mkdir()
    (made / "token").write_text(token_of(plane.kubeconfig(account, pod=pod)))
    (made / "ca.crt").write_bytes(plane.authority.certificate.read_bytes())
    return made


def environment(plane: lab.Plane, *checked: str, **more: str) -> dict[str, str]:
    """Two Services, so that two checks need the fallback at the same time."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    host, port = plane.api_endpoint
    config = {"services": list(checked), "dnsService": "", "dnsTestDomains": ["localhost"]}
    return inherited | {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(config),
        "TERMINATION_LOG": os.devnull,
        **more,
    }


def test_endpoints_and_endpoint_slices_give_the_same_result(granted: lab.Plane, service: str) -> None:
    by_slices = services.endpoints_of(kubeconfig.load(granted.kubeconfig()), service)(Deadline(30))
    by_endpoints = services.endpoints_of(kubeconfig.load(granted.kubeconfig(ACCOUNT)), service)(Deadline(30))
    assert sorted(by_slices) == sorted(by_endpoints)
    assert [endpoint.address for endpoint in sorted(by_endpoints)] == ["192.0.2.1", "192.0.2.2"]


def test_without_either_right_the_rule_to_add_is_named(granted: lab.Plane, service: str, namespace: str) -> None:
    lookup = services.endpoints_of(kubeconfig.load(granted.kubeconfig(POWERLESS)), service)
    with pytest.raises(CheckFailedError) as refused:
        lookup(Deadline(30))
    assert 'add the RBAC rule apiGroups: [""], resources: ["services"], verbs: ["get"]' in str(refused.value)
    with only_services(granted, namespace):
        lookup = services.endpoints_of(kubeconfig.load(granted.kubeconfig(POWERLESS)), service)
        with pytest.raises(CheckFailedError) as refused:
            lookup(Deadline(30))
    assert f"add the RBAC rule {RULE}" in str(refused.value)
    assert f"in namespace {namespace}" in str(refused.value)


def test_a_worker_passes_and_logs_the_fallback_once(granted: lab.Plane, service: str, tmp_path: Path) -> None:
    folder = mounted(granted, tmp_path, ACCOUNT)
    variables = environment(granted, "default/kubernetes", service, NODE_NAME="a")
    argv = [sys.executable, "-c", _WORKER, str(folder)]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(FALLBACK) == 1, done.stdout
    (line,) = [json.loads(line) for line in done.stdout.splitlines() if FALLBACK in line]
    assert (line["level"], line["rule"]) == ("warn", RULE)


def test_daemonset_mode_verifies_its_node_and_logs_the_fallback_once(
    granted: lab.Plane, service: str, prefix: str, tmp_path: Path
) -> None:
    with agent(granted, prefix, tmp_path, service, "--mode=continuous", "--check-interval=1s") as log:
        before = reads_of_endpoints(granted)
        waiting.until("a later round", lambda: reads_of_endpoints(granted) > before, PATIENCE)
        assert log.read_text().count(FALLBACK) == 1


def test_the_connectivity_matrix_does_not_hold_the_node(
    granted: lab.Plane, service: str, prefix: str, tmp_path: Path
) -> None:
    """With the specification's own settings, but for a port that is free here, and names outside the cluster."""
    given = specification.tree("daemonset/configmap.yaml")["data"] | specification.tree(
        "daemonset/settings-thorough.yaml"
    )
    variables = given | {"DNS_TEST_DOMAINS": "localhost", "METRICS_PORT": str(unused_port())}
    with agent(granted, prefix, tmp_path, service, **variables) as log:
        (line,) = [json.loads(line) for line in log.read_text().splitlines() if "Connectivity check skipped" in line]
    assert line["rule"] == 'apiGroups: [""], resources: ["pods"], verbs: ["list"]'


@contextmanager
def agent(plane: lab.Plane, prefix: str, folder: Path, service: str, *flags: str, **variables: str) -> Iterator[Path]:
    """DaemonSet mode that has verified its node and still runs; yields its log."""
    (node,) = plane.simulated_nodes(1, prefix=prefix, taints=taints(GATE)).names
    container = {"name": "agent", "image": "example.com/agent"}
    metadata = {"name": f"agent-{prefix}"[:63].rstrip("-"), "namespace": "kube-system"}
    spec = {"nodeName": node, "serviceAccountName": "kube-node-ready", "containers": [container]}
    apply(plane, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    mount = mounted(plane, folder, ACCOUNT, pod=metadata["name"])
    variables = {"METRICS_PORT": "0", **variables, "NODE_NAME": node, "POD_NAMESPACE": "kube-system"}
    log = folder / "log"
    argv = command(mount, *flags)
    environ = environment(plane, "default/kubernetes", service, **variables)
    try:
        with log.open("w") as output, subprocess.Popen(argv, env=environ, stdout=output, text=True) as process:
            try:

                def alive() -> None:
                    plane.check()
                    assert process.poll() is None, log.read_text()

                waiting.until("verified", lambda: is_open(plane, node), PATIENCE, alive=alive)
                yield log
                assert process.poll() is None
            finally:
                process.terminate()
    finally:
        plane.kubectl("delete", "node", node)


def reads_of_endpoints(plane: lab.Plane) -> int:
    return plane.audit.calls().count(agent="kube-node-ready-worker", verb="get", resource="endpoints", code=200)


def is_open(plane: lab.Plane, node: str) -> bool:
    found = json.loads(plane.kubectl("get", "node", node, "--output=json"))
    keys = [taint["key"] for taint in found["spec"].get("taints", [])]
    return GATE["key"] not in keys and found["metadata"]["labels"].get(LABEL) == "true"


@contextmanager
def only_services(plane: lab.Plane, namespace: str) -> Iterator[None]:
    """For a while, the powerless account has the right to get Services, and no other."""
    within, account = f"--namespace={namespace}", POWERLESS.replace("/", ":")
    plane.kubectl("create", "role", "services", "--verb=get", "--resource=services", within)
    plane.kubectl("create", "rolebinding", "services", "--role=services", f"--serviceaccount={account}", within)
    try:
        with reviews(plane, f"system:serviceaccount:{account}") as allow:
            waiting.until("the right holds", lambda: allow("get", "services", namespace), PATIENCE)
        yield
    finally:
        plane.kubectl("delete", "role,rolebinding", "services", within)
