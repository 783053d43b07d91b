"""Controller mode as the specification has it: names, values, worker pods, metrics, log lines and exit codes."""

import ast
import functools
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from kube_node_ready import log
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Outcome, VerificationRecord
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.check import Check, Evidence, Result
from kube_node_ready.checks.log_observer import LoggingObserver
from kube_node_ready.controller import transition_log
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.settings import agent as daemonset_settings
from kube_node_ready.settings import config
from kube_node_ready.settings import policy as settings
from kube_node_ready.verification.effects import Decision, OpenGate
from kube_node_ready.verification.model import Node, Phase, Snapshot, State, Worker
from kube_node_ready.worker import main as worker
from tests import specification
from tests.specification import DIFFERENT, objects
from tests.specification.objects import leaves, only_container, page, sorted_labels
from tests.support import configs
from tests.support.chart import Rendered
from tests.support.model_cluster import POLICY
from tests.support.shell import ROOT
from tests.unit.controller.test_metrics import Fleet

# --- names ---

NAMED: Final = [
    ("Deployment", "kube-node-ready-controller"),
    ("ServiceAccount", "kube-node-ready-controller"),
    ("ConfigMap", "kube-node-ready-controller"),
    ("ClusterRole", "kube-node-ready-controller"),
    ("ClusterRoleBinding", "kube-node-ready-controller"),
    ("ServiceAccount", "kube-node-ready-worker"),
]


@pytest.mark.parametrize(("kind", "name"), NAMED, ids=[" ".join(one) for one in NAMED])
def test_the_object_exists(kind: str, name: str) -> None:
    assert objects.controller().one(kind, name)["metadata"].get("namespace", "kube-system") == "kube-system"


def test_the_controller_is_a_deployment_of_one_replica_that_elects_a_leader() -> None:
    made = objects.controller()
    assert (made.workload["kind"], made.workload["spec"]["replicas"]) == ("Deployment", 1)
    assert made.config["leaderElection"]["enabled"] is True
    assert objects.daemonset().workload["kind"] == "DaemonSet"


def test_the_controllers_metrics_are_at_the_specified_port() -> None:
    made = objects.controller()
    assert {"name": "metrics", "containerPort": 8080, "protocol": "TCP"} in made.container["ports"]
    (port,) = made.one("Service", "kube-node-ready-controller-metrics")["spec"]["ports"]
    assert port["port"] == 8080


# --- pods ---

SECURE: Final = dict(re.findall(r"- (\w+): (.+?) *│", specification.text("architecture/pod-security.txt")))


@pytest.mark.parametrize("name", ["controller", "daemonset", "worker"])
def test_the_pod_is_as_secure_as_specified(name: str) -> None:
    pod = objects.pods()[name]
    both = pod["spec"]["securityContext"] | only_container(pod)["securityContext"]
    shown = {key: json.dumps(both[key]) for key in SECURE if key != "capabilities"}
    dropped = " ".join(both["capabilities"]["drop"])
    assert shown | {"capabilities": f"drop {dropped}"} == SECURE
    assert len(SECURE) == 5


REQUESTED: Final = {
    name: (int(memory), int(cpu))
    for name, memory, cpu in re.findall(
        r"\*\*(.+)\*\*: ~(\d+)Mi memory, ~(\d+)m CPU", specification.text("operator/resources.md")
    )
}
REQUESTING: Final[dict[str, str]] = {
    "Controller": "controller",
    "Worker pods": "worker",
    "During verification": "daemonset",
}


@pytest.mark.parametrize("title", REQUESTING)
def test_the_pod_requests_at_most_specified(title: str) -> None:
    requests = only_container(objects.pods()[REQUESTING[title]])["resources"]["requests"]
    memory, cpu = REQUESTED[title]
    assert requests["memory"] == f"{memory}Mi"
    assert int(requests["cpu"].removesuffix("m")) <= cpu


def test_a_worker_runs_on_its_node_and_tolerates_the_gate() -> None:
    spec = objects.worker()["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    (gate,) = specification.tree("operator/values-controller.yaml")["controller"]["config"]["nodeManagement"]["taints"]
    assert {"key": gate["key"], "operator": "Exists", "effect": gate["effect"]} in spec["tolerations"]


EXITS: Final = {
    "passed": (ExitCode.OK, 0),
    "failed": (ExitCode.FAILED, 1),
    "configuration": (ExitCode.INVALID, 2),
    "no access": (ExitCode.NO_ACCESS, 3),
    "unexpected": (ExitCode.UNEXPECTED, 10),
}


@pytest.mark.parametrize("name", EXITS)
def test_the_worker_exits_with_the_code(name: str) -> None:
    code, number = EXITS[name]
    assert code == number
    assert re.search(rf"^  {number}\s+\w", worker._HELP, re.MULTILINE)


# --- values ---

GIVEN: Final = leaves(specification.tree("operator/values-controller.yaml")["controller"]["config"])


def as_specified() -> Rendered:
    return objects.controller(**specification.tree("operator/values-controller.yaml"))


@pytest.mark.parametrize("path", GIVEN)
def test_the_value_reaches_the_configuration(path: str) -> None:
    assert leaves(as_specified().config)[path] == GIVEN[path]


EXCUSED: Final = {
    "worker.dnsTestDomains": "public names",
    "worker.image.repository": "worker image",
    "worker.image.tag": "worker image",
}


@pytest.mark.parametrize("path", [path for path in GIVEN if path not in EXCUSED])
def test_the_value_is_the_default(path: str) -> None:
    assert leaves(objects.controller().config)[path] == GIVEN[path]


@pytest.mark.parametrize("path", EXCUSED)
def test_only_different_values_are_excepted(path: str) -> None:
    assert EXCUSED[path] in DIFFERENT
    assert leaves(objects.controller().config).get(path) != GIVEN[path]


def test_the_values_load() -> None:
    loaded = configs.load(as_specified().file)
    assert loaded.warnings == ()
    assert loaded.worker.image.reference == "ghcr.io/imunhatep/kube-node-ready:latest"
    assert settings.policy(loaded).gates == POLICY.gates
    assert settings.policy(loaded).max_failures == 5


SHORT: Final[dict[str, tuple[Callable[[config.Config], object], Callable[[daemonset_settings.Settings], object]]]] = {
    "taintKey": (lambda read: read.node_management.taints[0].key, lambda read: read.taint_key),
    "taintValue": (lambda read: read.node_management.taints[0].value, lambda read: read.taint_value),
    "taintEffect": (lambda read: read.node_management.taints[0].effect, lambda read: read.taint_effect),
    "dnsTestDomains": (lambda read: read.worker.checks["dnsTestDomains"], lambda read: [*read.checks.dns_test_domains]),
    "maxRetries": (lambda read: read.reconciliation.max_retries, lambda read: read.max_retries),
    "retryBackoff": (lambda read: read.reconciliation.retry_backoff, lambda read: read.retry_backoff),
    "initialTimeout": (
        lambda read: f"{read.worker.timeout_seconds}s",
        lambda read: f"{read.checks.timeout_seconds:g}s",
    ),
}
BLOCKS: Final = ("operator/values-taint.yaml", "operator/values-dns.yaml", "operator/values-retries.yaml")
KEYS: Final = [(block, key) for block in BLOCKS for key in specification.tree(block)["config"]]


@pytest.mark.parametrize(("block", "key"), KEYS, ids=[key for _, key in KEYS])
def test_the_short_form_is_understood_in_both_modes(block: str, key: str) -> None:
    values = specification.tree(block)
    of_controller, of_daemonset = SHORT[key]
    assert of_controller(configs.load(objects.controller(**values).file)) == values["config"][key]
    variables = {"NODE_NAME": "node-1", **objects.daemonset(**values).variables}
    assert of_daemonset(daemonset_settings.load({}, variables, files=False)) == values["config"][key]


def test_every_key_of_the_short_form_is_tested() -> None:
    assert [key for _, key in KEYS] == [*SHORT]


# --- metrics ---

SAMPLES: Final = dict(
    line.rsplit(" ", 1)
    for line in specification.text("operator/metrics-controller.txt").splitlines()
    if line and line[0] != "#"
)


def shown() -> dict[str, float]:
    """The page of a controller like the one in the samples."""
    gate = (Taint("node-ready/unverified", "NoSchedule"),)
    passed, failed = (
        VerificationRecord(1, outcome=Outcome.PASSED, seconds=45.2),
        VerificationRecord(3, 3, Outcome.FAILED),
    )
    nodes = [Node("node-1", "1", labelled=True, record=passed), Node("node-2", "2", taints=gate, record=failed)]
    running = [Worker(f"worker-{n}", f"{n}", "x", number=1, state=State.RUNNING) for n in range(2)]
    metrics = Metrics(POLICY)
    metrics.export_state(Fleet(nodes, running), per_node=True)
    for _ in range(148):
        metrics.on_decision(None, passed_worker())
    metrics.verifications.labels("success").inc(2)
    metrics.verifications.labels("failed").inc(3)
    return page(metrics.registry)


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_series_exists(sample: str) -> None:
    assert shown()[sorted_labels(sample)] == float(SAMPLES[sample])


def test_all_samples_are_compared() -> None:
    assert len(SAMPLES) == 10


# --- log ---

NOW: Final = datetime(2024, 1, 23, 10, tzinfo=UTC)
GATED: Final = Node("node-1", objects.NODE.uid, taints=(Taint("node-ready/unverified", "NoSchedule"),))
OPENED: Final = OpenGate(GATED, VerificationRecord(1))


def passed_worker() -> Decision:
    record = VerificationRecord(1, outcome=Outcome.PASSED)
    created = NOW - timedelta(seconds=45.2)
    finished = Worker("worker", "uid", GATED.uid, number=1, created=created, state=State.PASSED)
    return Decision(Phase.VERIFIED, "", (OpenGate(GATED, record),), verdict=finished)


def passed_dns() -> None:
    facts = {"addresses": ["10.96.0.1"]}
    LoggingObserver().ended(Result("dns", "kubernetes.default.svc.cluster.local", Verdict.PASSED, 123), facts)


SAID: Final[dict[str, Callable[[], object]]] = {
    "Node added to queue": lambda: transition_log.node_queued(None, GATED, POLICY),
    "Creating worker pod": lambda: transition_log.worker_starting(GATED, 1),
    "Worker completed successfully": lambda: transition_log.phase_changed(
        None, Snapshot(NOW, GATED), passed_worker(), POLICY
    ),
    "Node verified": lambda: transition_log.effect_applied(
        OpenGate(GATED, VerificationRecord(1)), passed_worker(), POLICY
    ),
    "Starting DNS check": lambda: LoggingObserver().started(
        Check("dns", "kubernetes.default.svc.cluster.local", lambda _: Evidence())
    ),
    "DNS check passed": passed_dns,
}
VARIABLE: Final = {"timestamp", "pod"}
"""The time, and DIFFERENT["pod name"]."""
LINES: Final = {
    line["msg"]: line
    for name in ("operator/log-controller.jsonl", "operator/log-worker.jsonl")
    for line in map(json.loads, specification.text(name).splitlines())
}


@pytest.fixture
def _json_lines() -> Iterator[None]:
    log.configure()
    yield
    log.configure()


@pytest.mark.usefixtures("_json_lines")
@pytest.mark.parametrize("message", SAID)
def test_the_line_is_logged(message: str, capsys: pytest.CaptureFixture[str]) -> None:
    SAID[message]()
    line = json.loads(capsys.readouterr().out)
    expected = LINES[message]
    assert expected.keys() <= line.keys()
    assert {key: line[key] for key in expected if key not in VARIABLE} == {
        key: value for key, value in expected.items() if key not in VARIABLE
    }


@functools.cache
def calls_of_log() -> dict[str, set[str]]:
    """The fields of every log line of the operator that has a constant text, and no level but the default."""
    found = {}
    for file in (ROOT / "src" / "kube_node_ready").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("log", "log.log") and call.args:
                fields = {keyword.arg or "" for keyword in call.keywords}
                message = call.args[0]
                if isinstance(message, ast.Constant) and "level" not in fields:
                    found[str(message.value)] = fields
    return found


CONSTANT: Final[dict[str, Any]] = {
    message: set(re.findall(r"(\w+)=", fields))
    for message, fields in re.findall(r"INFO (.+?)  (.+)\n", specification.text("operator/log-karpenter.txt"))
} | {message: LINES[message].keys() - {"level", "msg"} for message in LINES.keys() - SAID.keys()}


@pytest.mark.parametrize("message", sorted(CONSTANT))
def test_the_line_is_in_the_source(message: str) -> None:
    assert calls_of_log()[message] >= CONSTANT[message]


def test_the_page_lists_the_line_with_its_fields() -> None:
    page = (ROOT / "docs" / "reference" / "operator.md").read_text()
    rows = dict(re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE))
    specified = {message: line.keys() - {"level", "msg", "timestamp", "pod"} for message, line in LINES.items()}
    for message, fields in {**specified, **CONSTANT}.items():
        assert fields - {"pod"} <= {*re.findall(r"`(\w+)`", rows[message])}, message


def test_all_lines_are_compared() -> None:
    assert len(LINES) == 7
    assert sorted({*SAID, *CONSTANT} - LINES.keys()) == [
        "Found NodeClaim for failed node, deleting NodeClaim instead",
        "Successfully deleted NodeClaim, node should be terminated by Karpenter",
    ]


# --- Karpenter ---


def test_the_node_pools_taint_is_the_gate() -> None:
    (taint,) = specification.tree("operator/nodepool.yaml")["spec"]["template"]["spec"]["taints"]
    assert POLICY.is_gate(Taint(taint["key"], taint["effect"], taint["value"]))


# --- network ---


def test_the_network_policy_admits_what_is_specified() -> None:
    ports = dict(re.findall(r"- Allow (.+) \(port (\d+)\)", specification.text("architecture/network-policy.txt")))
    prometheus = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    policy = {"enabled": True, "metricsFrom": prometheus}
    spec = objects.controller(networkPolicy=policy).one("NetworkPolicy", "kube-node-ready-controller")["spec"]
    (metrics,) = (rule for rule in spec["ingress"] if rule.get("from") == prometheus)
    assert [port["port"] for port in metrics["ports"]] == [int(ports["metrics scraping"])]
    allowed = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
    assert int(ports["Kubernetes API"]) in allowed
    (rule,) = objects.daemonset(networkPolicy=policy).one("NetworkPolicy")["spec"]["ingress"]
    assert rule["from"] == prometheus
    assert [port["port"] for port in rule["ports"]] == [int(ports["metrics scraping"])]
