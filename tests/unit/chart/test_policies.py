"""The Helm chart's limits on the controller: its admission policies, and a namespace of the workers' own."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_node_ready.api.contract import CONDITION, RECORD_ANNOTATION, EventReason
from kube_node_ready.controller import executor, resources
from kube_node_ready.settings import policy
from kube_node_ready.verification import events
from kube_node_ready.verification.effects import EmitEvent
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import probe_pod, worker_pod
from tests.support import chart, configs
from tests.support.chart import POLICIES, render
from tests.support.chart_sets import POWERFUL, SETS

CONTROLLER, WORKER, WORKERS = "kube-node-ready-controller", "kube-node-ready-worker", "kube-node-ready-workers"
DAEMONSET: Mapping[str, Any] = {"deploymentMode": "daemonset"}


def of_config(**sections: Any) -> dict[str, Any]:  # noqa: ANN401  as in YAML
    return {"controller": {"config": sections}}


# What the controller can write


LIMITS = ("-nodes", "-pods", "-state")


@pytest.mark.parametrize("part", LIMITS)
def test_the_controllers_writes_are_limited_and_no_other_accounts(part: str) -> None:
    spec = chart.policy(part, {"controller": {"serviceAccount": {"create": False, "name": "mine"}}}, namespace="ns")
    assert spec["failurePolicy"] == "Fail"
    assert [one["expression"] for one in spec["matchConditions"]] == [
        'request.userInfo.username == "system:serviceaccount:ns:mine"'
    ]
    assert "namespaceSelector" not in spec["matchConstraints"], "in every namespace"
    assert all(one["reason"] == "Forbidden" and one["message"] for one in spec["validations"])


@pytest.mark.parametrize("part", LIMITS)
@pytest.mark.parametrize(
    "values", [{}, *(SETS[name] for name in ("all of the controller", POWERFUL, "little of the controller"))]
)
def test_the_limits_use_only_variables_that_they_define(part: str, values: Mapping[str, Any]) -> None:
    spec = chart.policy(part, values)
    expressions = [one["expression"] for one in [*spec["validations"], *spec["variables"]]]
    expressions += [one["messageExpression"] for one in spec["validations"] if "messageExpression" in one]
    used = set(re.findall(r"variables\.(\w+)", " ".join(expressions)))
    assert used <= {one["name"] for one in spec["variables"]}


def test_the_limits_can_be_left_out_without_the_policy_about_worker_pods() -> None:
    made = render({"admissionPolicy": {"restrictController": False}}, apis=[POLICIES])
    names = {one["metadata"]["name"] for one in made.of("ValidatingAdmissionPolicy")}
    assert names == {WORKERS, f"{WORKERS}-exec"}


def test_the_limits_are_about_what_the_controller_writes() -> None:
    """Names that the chart repeats and the code defines."""
    nodes, state = (json.dumps(chart.policy(f"-{part}")["validations"]) for part in ("nodes", "state"))
    assert f'[\\"{RECORD_ANNOTATION}\\"]' in nodes
    assert f'[\\"{CONDITION}\\"]' in nodes
    assert f'\\"{resources.LEDGER}\\"' in state
    assert f"'{executor.COMPONENT}'" in state
    event = events.event_object(
        EmitEvent(Node("a", "uid"), EventReason.VERIFYING, "so", 1), datetime.now(UTC), executor.COMPONENT, "me"
    )
    assert event["metadata"]["name"].startswith("node-ready.")
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["kind"] == "Node"
    assert "'node-ready.'" in state


def test_names_of_workers_and_probes_are_those_that_the_policy_allows() -> None:
    spec = chart.policy("-pods")
    (named,) = re.findall(r"name\.matches\('(.+?)'\)$", spec["validations"][1]["expression"])
    (probe,) = (
        re.findall(r"matches\('(.+?)'\)", one["expression"]) for one in spec["variables"] if one["name"] == "isProbe"
    )
    node, template = Node("a", "01234567-89ab-cdef-0123-456789abcdef"), policy.template(configs.load(render().file))
    for attempt in (1, 99_999_999):
        assert re.search(named, worker_pod(node, attempt, template)["metadata"]["name"])
    assert re.search(probe[0], probe_pod(node, template)["metadata"]["generateName"] + "x7k2p")


def test_every_gate_can_be_opened_and_only_the_first_be_closed() -> None:
    gates = [{"key": "a/one", "value": "b", "effect": "NoSchedule"}, {"key": "a/two", "effect": "NoExecute"}]
    values = of_config(nodeManagement={"taints": gates}, reconciliation={"reverifyIntervalSeconds": 60})
    of = {one["message"]: one["expression"] for one in chart.policy("-nodes", values)["validations"]}
    opened = of["of a Node's taints, the controller can change the gate only"]
    for gate in gates:
        assert f'(item.key == "{gate["key"]}" && item.effect == "{gate["effect"]}")' in opened
    closed = of["the controller can close a Node's gate only as configured"]
    assert '"a/one"' in closed
    assert '"a/two"' not in closed


def test_images_of_the_policy_are_those_of_the_workers() -> None:
    digest = f"sha256:{'0' * 64}"
    for image in ({"tag": "1.2.3"}, {"digest": digest}, {"repository": "a.example/b", "tag": "c"}):
        values = {"image": image, **of_config(worker={"initContainers": [{"name": "first", "image": "b:1"}]})}
        (images,) = (one for one in chart.policy("-pods", values)["variables"] if one["name"] == "images")
        template = policy.template(configs.load(render(values).file))
        assert json.loads(images["expression"]) == {"worker": template.image, "first": "b:1"}


def test_additional_images_are_exact_unless_they_end_with_a_star() -> None:
    values = {"admissionPolicy": {"additionalWorkerImages": ["mirror.example/a:*", "b.example/c:1"]}}
    (other,) = (one for one in chart.policy("-pods", values)["variables"] if one["name"] == "otherImages")
    allowed = 'container.image.startsWith("mirror.example/a:") || container.image == "b.example/c:1"'
    assert allowed in other["expression"]


# The workers' namespace


def test_a_namespace_of_the_workers_own_enforces_the_restricted_standard() -> None:
    made = render({"worker": {"namespace": "workers", "createNamespace": True}})
    namespace = made.one("Namespace", "workers")["metadata"]
    for mode in ("enforce", "warn", "audit"):
        assert namespace["labels"][f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert namespace["labels"][f"pod-security.kubernetes.io/{mode}-version"] == "latest"
    assert namespace["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert made.config["worker"]["namespace"] == "workers"
    assert made.config["leaderElection"]["namespace"] == "kube-system"
    made.one("ServiceAccount", WORKER, "workers")
    made.one("Role", CONTROLLER, "workers")


def test_no_namespace_is_created_unless_asked_for() -> None:
    assert not render({"worker": {"namespace": "workers"}}).of("Namespace")
    assert not render({**DAEMONSET, "worker": {"namespace": "workers", "createNamespace": True}}).of("Namespace")


def test_the_workers_namespace_of_the_configuration_wins() -> None:
    values = {"worker": {"namespace": "short"}, **of_config(worker={"namespace": "long"})}
    assert render(values).config["worker"]["namespace"] == "long"


@pytest.mark.parametrize("name", ["", "ns", "kube-system", "default"])
def test_a_namespace_that_holds_other_things_is_not_created(name: str) -> None:
    said = chart.refusal({"worker": {"namespace": name, "createNamespace": True}}, namespace="ns")
    assert f"worker.createNamespace: namespace {name or 'ns'} is not dedicated to workers" in said
