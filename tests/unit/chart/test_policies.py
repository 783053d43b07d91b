"""The Helm chart's admission policies, and a namespace of the workers' own."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_node_ready.api.contract import CONDITION, RECORD_ANNOTATION, WORKER_SELECTOR, EventReason
from kube_node_ready.controller import executor, resources
from kube_node_ready.settings import policy
from kube_node_ready.verification import events
from kube_node_ready.verification.effects import EmitEvent
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import probe_pod, worker_pod
from tests.support import chart, configs
from tests.support.chart import A_CLUSTER, POLICIES, Object, render
from tests.support.chart_sets import POWERFUL, SETS
from tests.support.chart_values import CONTROLLER, ONCE, WORKER, controller_config, nested, off, on

WORKERS = "kube-node-ready-workers"


def config_sections(**sections: Any) -> dict[str, Any]:  # noqa: ANN401  as in YAML
    return {"controller": {"config": sections}}


# Where there are policies


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
@pytest.mark.parametrize(
    ("wish", "apis", "is_there"),
    [
        ("auto", [POLICIES], True),
        ("auto", [A_CLUSTER], False),
        ("auto", [], True),
        (True, [], True),
        (True, [POLICIES], True),
        (False, [POLICIES], False),
    ],
)
def test_the_admission_policy_is_rendered_where_it_is_supported(
    *, mode: Mapping[str, Any], wish: object, apis: list[str], is_there: bool
) -> None:
    made = render({**mode, "admissionPolicy": {"enabled": wish}}, apis=apis)
    kinds = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert made.kinds & kinds == (kinds if is_there else set())


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_without_a_cluster_the_policies_are_rendered_unless_disabled(mode: Mapping[str, Any]) -> None:
    """A GitOps tool that runs `helm template` must not leave them out silently."""
    assert render(mode, apis=[]).of("ValidatingAdmissionPolicy")
    assert not render({**mode, "admissionPolicy": {"enabled": False}}, apis=[]).of("ValidatingAdmissionPolicy")


# What a pod of the DaemonSet can write


def test_a_pod_of_the_daemonset_can_write_to_its_own_node_only() -> None:
    values = {**ONCE, "config": {"taintKey": "a/gate", "verifiedLabel": "a/label"}}
    made = render(values, apis=[POLICIES], namespace="ns")
    policy, binding = made.one("ValidatingAdmissionPolicy"), made.one("ValidatingAdmissionPolicyBinding")
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    spec = policy["spec"]
    assert spec["failurePolicy"] == "Fail"
    assert [one["expression"] for one in spec["matchConditions"]] == [
        'request.userInfo.username == "system:serviceaccount:ns:kube-node-ready"'
    ]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["nodes", "nodes/status"], ["UPDATE"])
    own, *rest = (one["expression"] for one in spec["validations"])
    assert own == "variables.home != '' && request.name == variables.home"
    may = " ".join(rest)
    for word in ("a/gate", "a/label", RECORD_ANNOTATION, CONDITION):
        assert f'"{word}"' in may
    known = {one["name"] for one in spec["variables"]}
    assert set(re.findall(r"variables\.(\w+)", may)) <= known


# What the controller can write


LIMITS = ("-nodes", "-pods", "-state")


@pytest.mark.parametrize("part", LIMITS)
def test_only_the_controllers_writes_are_limited(part: str) -> None:
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


def test_the_limits_can_be_disabled_without_the_worker_policy() -> None:
    made = render({"admissionPolicy": {"restrictController": False}}, apis=[POLICIES])
    names = {one["metadata"]["name"] for one in made.of("ValidatingAdmissionPolicy")}
    assert names == {WORKERS, f"{WORKERS}-exec"}


def test_the_limits_allow_the_names_that_the_controller_writes() -> None:
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


def test_every_gate_can_be_opened_and_only_the_first_closed() -> None:
    gates = [{"key": "a/one", "value": "b", "effect": "NoSchedule"}, {"key": "a/two", "effect": "NoExecute"}]
    values = config_sections(nodeManagement={"taints": gates}, reconciliation={"reverifyIntervalSeconds": 60})
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
        values = {"image": image, **config_sections(worker={"initContainers": [{"name": "first", "image": "b:1"}]})}
        (images,) = (one for one in chart.policy("-pods", values)["variables"] if one["name"] == "images")
        template = policy.template(configs.load(render(values).file))
        assert json.loads(images["expression"]) == {"worker": template.image, "first": "b:1"}


def test_additional_images_are_exact_unless_they_end_with_a_star() -> None:
    values = {"admissionPolicy": {"additionalWorkerImages": ["mirror.example/a:*", "b.example/c:1"]}}
    (other,) = (one for one in chart.policy("-pods", values)["variables"] if one["name"] == "otherImages")
    allowed = 'container.image.startsWith("mirror.example/a:") || container.image == "b.example/c:1"'
    assert allowed in other["expression"]


# Worker pods


def worker_policy(values: Mapping[str, Any] | None = None, **how: Any) -> Object:  # noqa: ANN401  as for render
    """The spec of the policy that protects worker pods."""
    return chart.policy("-workers", values, **how)


def test_only_the_controller_creates_worker_pods() -> None:
    spec = worker_policy()
    create = spec["validations"][0]
    user = f"system:serviceaccount:kube-system:{CONTROLLER}"
    assert create == {
        "expression": f"request.operation != 'CREATE' || request.userInfo.username in [\"{user}\"]",
        "message": f"only {user} can create worker pods in namespace kube-system",
        "reason": "Forbidden",
    }
    assert spec["failurePolicy"] == "Fail"
    assert all(one["reason"] == "Forbidden" and one["message"] for one in spec["validations"])


def test_the_worker_policy_covers_writes_to_pods_but_not_to_their_status() -> None:
    rules = worker_policy()["matchConstraints"]["resourceRules"]
    assert [(rule["resources"], rule["operations"]) for rule in rules] == [
        (["pods"], ["CREATE", "UPDATE"]),
        (["pods/ephemeralcontainers", "pods/resize"], ["UPDATE"]),
    ]


def test_the_worker_policy_recognizes_workers_as_the_controller_does() -> None:
    """By the name and the labels that the controller gives them, both before and after an update."""
    (condition,) = worker_policy()["matchConditions"]
    pod = worker_pod(Node("a", "uid"), 1, policy.template(configs.load(render().file)))["metadata"]
    for of in ("object", "oldObject"):
        (prefix,) = re.findall(rf"\b{of}\.metadata\.name\.startsWith\('(.+?)'\)", condition["expression"])
        assert pod["name"].startswith(prefix)
        labels = re.findall(
            rf"\b{of}\.metadata\.\?labels\['(.+?)'\]\.orValue\(''\) == '(.+?)'", condition["expression"]
        )
        assert labels == [tuple(part.split("=")) for part in WORKER_SELECTOR.split(",")]
        assert dict(labels).items() <= pod["labels"].items()


def test_the_worker_policy_uses_only_variables_that_it_defines() -> None:
    spec = worker_policy()
    used = set(re.findall(r"variables\.(\w+)", " ".join(one["expression"] for one in spec["validations"])))
    assert used == {one["name"] for one in spec["variables"]}


@pytest.mark.parametrize(
    ("values", "namespace", "account"),
    [
        ({}, "ns", CONTROLLER),
        (controller_config("worker.namespace", "workers"), "workers", CONTROLLER),
        (nested("controller.serviceAccount", {"create": False, "name": "mine"}), "ns", "mine"),
        ({"fullnameOverride": "other"}, "ns", "other-controller"),
        (on("controller.config.dryRun"), "ns", CONTROLLER),
        (off("rbac.create"), "ns", CONTROLLER),
    ],
)
def test_the_worker_policy_applies_to_the_workers_namespace_and_the_controllers_account(
    values: Mapping[str, Any], namespace: str, account: str
) -> None:
    spec = worker_policy(values, namespace="ns")
    selector = spec["matchConstraints"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    message = f"only system:serviceaccount:ns:{account} can create worker pods in namespace {namespace}"
    assert spec["validations"][0]["message"] == message
    assert render(values, namespace="ns").pod["spec"]["serviceAccountName"] == account


def test_further_users_can_be_allowed_to_create_worker_pods() -> None:
    others = ["system:serviceaccount:b:b-controller", "quotes ' \" and \\, <é>"]
    create = worker_policy({"admissionPolicy": {"additionalWorkerCreators": others}})["validations"][0]
    users = [f"system:serviceaccount:kube-system:{CONTROLLER}", *others]
    assert json.loads(create["expression"].partition(" in ")[2]) == users
    assert create["message"] == f"only {', '.join(users)} can create worker pods in namespace kube-system"


def test_the_policies_of_both_modes_and_of_several_releases_have_different_names() -> None:
    def names(values: Mapping[str, Any], release: str) -> list[str]:
        made = render(values, name=release, apis=[POLICIES])
        return [one["metadata"]["name"] for one in made.of("ValidatingAdmissionPolicy")]

    assert sorted(names({}, "kube-node-ready")) == [
        f"{CONTROLLER}-nodes",
        f"{CONTROLLER}-pods",
        f"{CONTROLLER}-state",
        WORKERS,
        f"{WORKERS}-exec",
    ]
    every = [
        name for values in ({}, ONCE) for release in ("kube-node-ready", "other") for name in names(values, release)
    ]
    assert len(set(every)) == len(every) == 12


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


def test_no_namespace_is_created_by_default() -> None:
    assert not render({"worker": {"namespace": "workers"}}).of("Namespace")
    assert not render({**ONCE, "worker": {"namespace": "workers", "createNamespace": True}}).of("Namespace")


def test_the_workers_namespace_of_the_configuration_takes_precedence() -> None:
    values = {"worker": {"namespace": "short"}, **config_sections(worker={"namespace": "long"})}
    assert render(values).config["worker"]["namespace"] == "long"


@pytest.mark.parametrize("name", ["", "ns", "kube-system", "default"])
def test_a_namespace_that_is_not_the_workers_own_is_not_created(name: str) -> None:
    message = chart.refusal({"worker": {"namespace": name, "createNamespace": True}}, namespace="ns")
    assert f"worker.createNamespace: namespace {name or 'ns'} is not dedicated to workers" in message
