"""What differs from the specification deliberately (`specification.DIFFERENT`), one test for each difference.

A difference that is gone fails here, and its row should go too.
"""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kube_node_ready import entrypoints
from kube_node_ready.agent.model import RunChecks
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import VerificationRecord
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import dns, plan
from kube_node_ready.checks.check import Check, Deadline, Evidence, PodIdentity
from kube_node_ready.checks.runner import Limits, Observer, Runner
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.controller import runtime
from kube_node_ready.controller.karpenter import ClaimLookupFailed
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.settings import agent as settings
from kube_node_ready.settings import images
from kube_node_ready.verification import patches
from kube_node_ready.verification.decide import decide
from kube_node_ready.verification.model import Node, Phase, Snapshot
from kube_node_ready.verification.worker_pod import worker_name
from kubernetes_daemonset.render import naming
from tests import specification
from tests.specification import DIFFERENT, objects
from tests.specification.objects import only_container
from tests.support import chart, configs
from tests.support.chart import Rendered
from tests.support.check_servers import LOOPBACK, FakeApi
from tests.support.manifests.builders import warnings
from tests.support.model_cluster import POLICY, START
from tests.support.shell import ROOT
from tests.unit.agent.test_decide import CONTINUOUS, FAILS, MINUTE, a_round, look, memory, verified
from tests.unit.controller.test_karpenter import CLAIMS, Server, a_node, found
from tests.unit.controller.test_metrics import Fleet

COMPONENT: Final = ROOT / "src" / "kubernetes_daemonset"


@pytest.mark.parametrize("subject", DIFFERENT)
def test_every_difference_quotes_the_specification_and_has_a_test(subject: str) -> None:
    difference = DIFFERENT[subject]
    assert difference.theirs in specification.text(difference.fragment)
    assert f"test_{subject.replace(' ', '_')}" in globals()


PAGES: Final = ("how-to/upgrading.md", "daemonset/migration.md")


@pytest.mark.parametrize("subject", DIFFERENT)
def test_users_can_read_of_every_difference(subject: str) -> None:
    pages = [(ROOT / "docs" / page).read_text() for page in PAGES]
    assert any(f"\n| {DIFFERENT[subject].row}" in page for page in pages)


def manifest(name: str) -> Any:  # noqa: ANN401  YAML
    return specification.tree(f"daemonset/{name}.yaml")


def rights_of_the_manifests() -> set[str]:
    _, role, _ = yaml.safe_load_all(specification.text("daemonset/rbac.yaml"))
    return {f"* {resource}" for rule in role["rules"] for resource in rule["resources"]}


def test_default_mode() -> None:
    assert chart.render().workload["kind"] == "Deployment"


def test_image_tag() -> None:
    version = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())["appVersion"]
    assert objects.daemonset().container["image"] == f"kube-node-ready:{version}"


def test_selector() -> None:
    assert "app" not in objects.daemonset().workload["spec"]["selector"]["matchLabels"]
    assert objects.daemonset().pod["metadata"]["labels"]["app"] == "kube-node-ready"


def test_affinity() -> None:
    affinity = objects.daemonset().pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": POLICY.label, "operator": "NotIn", "values": [POLICY.label_value]}]}


@pytest.mark.parametrize("name", ["controller", "daemonset", "worker"])
def test_cpu_limit(name: str) -> None:
    assert [*only_container(objects.pods()[name])["resources"]["limits"]] == ["memory"]


def test_public_names() -> None:
    internal, _, public = manifest("configmap")["data"]["DNS_TEST_DOMAINS"].partition(",")
    assert objects.daemonset().variables["DNS_TEST_DOMAINS"] == internal
    assert objects.controller().config["worker"]["dnsTestDomains"] == [internal]
    assert public == "google.com"


def test_rights() -> None:
    held = objects.daemonset().rights("kube-node-ready")
    assert "list" not in held["* nodes"].split()
    assert held["default endpointslices"] == held["kube-system endpointslices"] == "list"
    assert not [what for what in held if re.search(r" (services|endpoints)$", what)]


def test_connectivity_matrix() -> None:
    """That nodes are not held without peers is shown in test_daemonset.py."""
    assert "* pods" not in rights_of_the_manifests()
    made = objects.daemonset(config={"enableConnectivityMatrix": True})
    assert made.rights("kube-node-ready")["kube-system pods"] == "list"
    made.one("DaemonSet", "kube-node-ready-responder")


def test_own_pod() -> None:
    """What a pod without the right reports is shown in tests/unit/agent/test_main.py."""
    assert "* pods" not in rights_of_the_manifests()
    cluster = ("--kube-version=1.29.9", f"--api-versions={chart.A_CLUSTER}", "--namespace=kube-system")
    done = chart.run("template", "kube-node-ready", chart.CHART, "--set=deploymentMode=daemonset", *cluster)
    old = Rendered(one for one in yaml.safe_load_all(done.stdout) if one)
    assert old.rights("kube-node-ready")["kube-system pods"] == "get"
    assert "kube-system pods" not in objects.daemonset().rights("kube-node-ready")


def test_foreign_taints() -> None:
    foreign = Taint("example.com/other", "NoSchedule")
    gate = Taint("node-ready/unverified", "NoSchedule")
    patch = patches.open_gate(Node("node-1", "uid", taints=(foreign, gate)), VerificationRecord(1), POLICY)
    assert [step["path"] for step in patch if step["op"] == "remove"] == ["/spec/taints/1"]


IN_A_POD: Final = """
import sys
from kube_node_ready import entrypoints
from kube_node_ready.checks import access

access.in_pod.__defaults__ = (sys.argv.pop(1),)  # the folder that the kubelet mounts
entrypoints.main()
"""


def test_nslookup(tmp_path: Path) -> None:
    """What `kubectl exec POD -- /kube-node-ready check` runs."""
    assert DIFFERENT["nslookup"].theirs in specification.text("daemonset/verification-fails.sh")
    with FakeApi(tmp_path).running() as api:
        (tmp_path / "token").write_text("the-token")
        (tmp_path / "ca.crt").write_bytes(api.authority.certificate.read_bytes())
        config = {"dnsTestDomains": ["localhost"], "dnsService": "", "services": ["default/kubernetes"]}
        environ = {
            "KUBERNETES_SERVICE_HOST": LOOPBACK,
            "KUBERNETES_SERVICE_PORT": str(api.port),
            "NODE_NAME": "node-1",
            "POD_NAMESPACE": "kube-system",
            "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(config),
        }
        argv = [sys.executable, "-c", IN_A_POD, str(tmp_path), "check"]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)
    results = dict(re.findall(r"^([a-z]+) .*?(passed|failed|skipped)", done.stdout, re.MULTILINE))
    assert results == dict.fromkeys(("dns", "api", "network", "services", "payload", "clock"), "passed")
    assert done.returncode == 0


def test_worker_image() -> None:
    own = objects.controller().container["image"]
    given = configs.load(objects.controller(**specification.tree("operator/values-controller.yaml")).file)
    assert list(images.warnings(given.worker.image, own))
    assert only_container(objects.worker())["image"] == own


def test_published_image() -> None:
    assert "A published image" in (ROOT / "CHANGELOG.md").read_text().partition("### Not here yet")[2]
    assert "No image is published yet" in chart.notes()


@pytest.mark.parametrize(
    ("own", "reason"),
    [("a.example/kube-node-ready:1", "differs from the controller's image"), ("", "is the image of the Go version")],
    ids=["own image known", "own image unknown"],
)
def test_the_controller_warns_of_the_worker_image_at_its_start(
    own: str, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(_config: object) -> int:
        return 0

    monkeypatch.setattr(runtime, "run", run)
    monkeypatch.setenv(images.VARIABLE, own)
    file = specification.FOLDER / "operator" / "values-controller.yaml"
    with pytest.raises(SystemExit) as ended:
        entrypoints.controller([f"--config={file}"])
    assert ended.value.code == 0
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["level"], line["msg"]) == ("warn", "Unexpected worker image configured")
    assert reason in line["reason"]


def test_node_pool() -> None:
    (ours,) = yaml.safe_load_all((ROOT / "examples" / "karpenter-example.yaml").read_text())
    theirs = specification.tree("operator/nodepool.yaml")
    assert ours["spec"]["template"]["spec"]["startupTaints"] == theirs["spec"]["template"]["spec"]["taints"]
    assert (theirs["apiVersion"], ours["apiVersion"]) == ("karpenter.sh/v1beta1", "karpenter.sh/v1")


def test_pod_name() -> None:
    made = objects.worker()["metadata"]
    assert made["name"] == worker_name(objects.NODE.uid, 1) == f"node-ready-worker-{objects.NODE.uid}-1"
    assert made["labels"]["node"] == "node-1"


def test_retry_attempts() -> None:
    metrics = Metrics(POLICY)
    metrics.export_state(Fleet(), per_node=True)
    kinds = {family.name: family.type for family in metrics.registry.collect()}
    assert kinds["kube_node_ready_retry_attempts_total"] == "gauge"
    assert kinds["kube_node_ready_verification_retries"] == "counter"


def test_right_to_create_pods() -> None:
    held = objects.controller().rights("kube-node-ready-controller")
    assert [what for what, verbs in held.items() if what.endswith(" pods") and "create" in verbs] == [
        "kube-system pods"
    ]


def test_language() -> None:
    assert not (ROOT / "go.mod").exists()
    assert re.search("^test: ", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_order_of_checks() -> None:
    """Each of these checks waits for the other one."""
    meeting = threading.Barrier(2)

    def meets(_deadline: Deadline) -> Evidence:
        meeting.wait(10)
        return Evidence()

    results = Runner(Limits(5, 5), Observer()).run([Check(name, "", meets) for name in ("dns", "api")])
    assert [result.verdict for result in results] == [Verdict.PASSED] * 2


def test_service_monitor() -> None:
    made = objects.controller(controller={"metrics": {"serviceMonitor": {"enabled": True}}})
    assert "ServiceMonitor" in made.kinds
    assert "PodMonitor" in objects.daemonset(daemonset={"metrics": {"podMonitor": {"enabled": True}}}).kinds


def test_egress() -> None:
    policy = {"enabled": True}
    (checking,) = objects.daemonset(networkPolicy=policy).of("NetworkPolicy")
    assert checking["spec"]["egress"] == [{}]
    workers = objects.controller(networkPolicy=policy).one("NetworkPolicy", "kube-node-ready-worker")
    assert workers["spec"]["egress"] == [{}]


def test_addresses() -> None:
    checks = settings.load(
        {}, {"NODE_NAME": "a", **specification.tree("daemonset/settings-thorough.yaml")}, files=False
    )
    (check,) = (check for check in plan.without_cluster(checks.checks, "") if check.target == "1.1.1.1")
    assert check.run.func is dns.answers  # type: ignore[attr-defined]


def test_taint_value() -> None:
    assert POLICY.is_gate(Taint("node-ready/unverified", "NoSchedule", "another"))
    assert not POLICY.is_gate(Taint("node-ready/unverified", "NoExecute", "true"))


def test_existing_nodes() -> None:
    assert decide(Snapshot(START, Node("node-1", "uid")), POLICY).phase is Phase.IGNORED


def test_helm_version() -> None:
    assert "Helm 3.14 or later." in (chart.CHART / "README.md").read_text()


def test_removal() -> None:
    limits = objects.controller().config["nodeManagement"]["removal"]
    assert (limits["maxCount"], limits["windowSeconds"], limits["maxFailingCount"]) == (1, 3600, 2)


def test_node_claims() -> None:
    server = Server()
    assert found(server, a_node()) is None
    del server.answers[CLAIMS]
    with pytest.raises(ClaimLookupFailed):
        found(server, a_node())


def test_later_rounds() -> None:
    """How often is shown in tests/unit/agent/test_decide.py."""
    (run,) = look(verified(), memory(a_round()), CONTINUOUS, after=MINUTE).effects
    assert run == RunChecks(omit=("services", "matrix")), "and payload, if the Node is large"


def test_api_faults() -> None:
    failures = [a_round(FAILS, api_reachable=reachable) for reachable in (False, True)]
    assert [memory(*[failure] * 9).streak for failure in failures] == [0, 9]


def test_responders() -> None:
    responder = objects.daemonset(config={"enableConnectivityMatrix": True}).one(
        "DaemonSet", "kube-node-ready-responder"
    )
    tolerated = responder["spec"]["template"]["spec"].get("tolerations", [])
    assert "node-ready/unverified" not in [toleration.get("key") for toleration in tolerated]


def test_api_calls(tmp_path: Path) -> None:
    """Without the one that reads the Node, and the three writes."""
    with FakeApi(tmp_path).running() as api:
        Runner(Limits(1, 1), Observer()).run(plan.in_pod(CheckSettings(), api.access, PodIdentity("a", "kube-system")))
        assert len(api.asked) == 6
    assert "takes seven requests to the API server" in (ROOT / "docs" / "ARCHITECTURE_DAEMONSET.md").read_text()


def test_pulumi_module() -> None:
    assert (COMPONENT / "backends" / "pulumi.py").is_file()
    assert not [*COMPONENT.rglob("*.go")]


def test_stubs() -> None:
    protos = sorted((COMPONENT / "api" / "v1").glob("*.proto"))
    assert [file.stem for file in (COMPONENT / "api" / "v1").glob("*_pb2.py")]
    assert all(file.with_name(f"{file.stem}_pb2.py").is_file() for file in protos)


def test_proto_path() -> None:
    (path,) = re.findall("`(.+)`", specification.text("component/spec-file.md"))
    package = path.removeprefix("apis/").removesuffix("/spec.proto").replace("/", ".")
    assert not (ROOT / path).exists()
    assert f"\npackage {package};\n" in (COMPONENT / "api" / "v1" / "spec.proto").read_text()


def test_required_agents() -> None:
    (warning,) = warnings({"spec.require_on_new_nodes": True})
    assert "kube-node-ready does not wait for required agents yet" in warning.message
    operator = ROOT / "src" / "kube_node_ready"
    assert not [file for file in operator.rglob("*.py") if naming.REQUIRED in file.read_text()]


def test_technical_docs() -> None:
    assert not (ROOT / "docs" / "daemonset" / "docs").exists()
    assert (ROOT / "docs" / "daemonset" / "reference.md").is_file()
