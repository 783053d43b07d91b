"""What the controller's token can write to Nodes, and to its ConfigMap, Lease and Events: the chart's policies.

Every attack is tried on a release with the policies, where it must be rejected, and on one without them, where it must
succeed. So a rejection is known to come from the policies alone.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from lightkube.resources.admissionregistration_v1 import ValidatingAdmissionPolicy

import lab
from kube_node_ready.agent.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from lab import waiting
from tests.attacks.stolen import (
    FOREIGN,
    GATE,
    LABEL,
    PATIENCE,
    Json,
    Request,
    Scene,
    a_stolen_token,
    denied,
    sets,
    sets_condition,
    sets_label,
    sets_taints,
    without,
)

LIMITED, STRICT, UNLIMITED = "token-limited", "token-strict", "token-unlimited"
LEDGER = "kube-node-ready-removals"
LEASES = "/apis/coordination.k8s.io/v1"
RECORD = "node-ready/verification"
MOST_RECORD, MOST_MESSAGE, MOST_REASON = 2**14, 2**15, 2**10
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-2222-3333-4444-555555555555"}
ADDRESS = {"type": "InternalIP", "address": "192.0.2.1"}


def config(**sections: Any) -> Json:  # noqa: ANN401  as in YAML
    return {"controller": {"config": sections}}


EVERYTHING_ON = config(nodeManagement={"deleteFailedNodes": True}, reconciliation={"reverifyIntervalSeconds": 60})


def delete_node(kind: str) -> Request:
    return lambda scene: scene.delete(f"/api/v1/nodes/{getattr(scene, kind)}")


def cordon(kind: str, *, on: bool = True) -> Request:
    return lambda scene: scene.patch(getattr(scene, kind), {"spec": {"unschedulable": on}})


def sets_record(text: str) -> Request:
    return sets({"metadata": {"annotations": {RECORD: text}}})


def verified_condition(**changes: str) -> Json:
    return {"type": "NodeVerified", "status": "True", **changes}


def adds_conditions(count: int) -> Request:
    """As a JSON Patch: a strategic merge patch merges conditions of the same type."""
    patch = [{"op": "add", "path": "/status/conditions/-", "value": verified_condition()}] * count

    def request(scene: Scene) -> None:
        scene.token.patch(f"/api/v1/nodes/{scene.gated}/status?dryRun=All", json.dumps(patch).encode(), JSON_PATCH)

    return request


def other_effect(taints: list[Json]) -> list[Json]:
    return [*taints, {"key": GATE["key"], "effect": "NoExecute"}]


ATTACKS: Mapping[str, tuple[Request, str]] = {
    "a foreign label is added": (sets_label("example.com/mine", "a"), "labels"),
    "a role is added": (sets_label("node-role.kubernetes.io/control-plane", ""), "labels"),
    "a restricted label is added": (sets_label("node-restriction.kubernetes.io/tenant", "payments"), "labels"),
    "a label is removed": (sets_label("kubernetes.io/arch", None), "labels"),
    "a label is changed": (sets_label("kubernetes.io/arch", "other"), "labels"),
    "a label is changed with the status": (
        sets({"metadata": {"labels": {"kubernetes.io/arch": "other"}}, "status": {}}),
        "labels",
    ),
    "our label gets another value": (sets_label(LABEL, "other"), f"label {LABEL}"),
    "a foreign annotation is added": (sets({"metadata": {"annotations": {"a": "b"}}}), "annotations"),
    "removal is paused": (sets({"metadata": {"annotations": {"node-ready/pause-removal": "true"}}}), "annotations"),
    "a finalizer is added": (sets({"metadata": {"finalizers": ["example.com/hold"]}}), "finalizers"),
    "an owner that does not exist is added": (sets({"metadata": {"ownerReferences": [OWNER]}}), "ownerReferences"),
    "a foreign taint is removed": (sets_taints(lambda there: without(there, FOREIGN["key"])), "taints"),
    "a foreign taint is added": (
        sets_taints(lambda there: [*there, {"key": "example.com/other", "effect": "NoExecute"}]),
        "taints",
    ),
    "a foreign taint is changed": (
        sets_taints(lambda there: [*without(there, FOREIGN["key"]), {**FOREIGN, "value": "b"}]),
        "taints",
    ),
    "the gate evicts pods": (sets_taints(other_effect), "taints"),
    "the gate gets another value": (
        sets_taints(lambda there: [{**GATE, "value": "b"}, *without(there, GATE["key"])]),
        "gate",
    ),
    "a verified node is cordoned": (cordon("verified"), "cordon"),
    "addresses are changed": (sets({"status": {"addresses": [ADDRESS]}}), "status"),
    "the kubelet's port is changed": (
        sets({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}}),
        "status",
    ),
    "the capacity is changed": (sets({"status": {"capacity": {"cpu": "1"}}}), "status"),
    "another condition is changed": (sets_condition({"type": "Ready", "status": "False"}), "conditions"),
    "another condition is added": (sets_condition({"type": "Mine", "status": "True"}), "conditions"),
    "another condition is removed": (sets_condition({"type": "Ready", "$patch": "delete"}), "conditions"),
    "a verified node is deleted": (delete_node("verified"), "delete gated Nodes only"),
    "the record leaves no room for annotations": (sets_record("x" * (MOST_RECORD + 1)), "annotations"),
    "the record does so in fewer characters": (sets_record("é" * (MOST_RECORD // 2 + 1)), "annotations"),
    "our condition has a long message": (
        sets_condition(verified_condition(message="x" * (MOST_MESSAGE + 1))),
        "32 KiB",
    ),
    "our condition has a long reason": (sets_condition(verified_condition(reason="x" * (MOST_REASON + 1))), "1 KiB"),
    "our condition has a long status": (sets_condition(verified_condition(status="x" * 10)), "conditions"),
    "our condition is there twice": (adds_conditions(2), "one condition NodeVerified"),
}
# What only a controller does that removes nodes or verifies them again.
UNCONFIGURED: Mapping[str, tuple[Request, str]] = {
    "a gated node is deleted": (delete_node("gated"), "cannot delete Nodes"),
    "a gated node is cordoned": (cordon("gated"), "spec"),
    "a gate is closed": (sets_taints(lambda there: [*there, GATE], verified=True), "gate"),
    "our label is removed": (
        lambda scene: scene.patch(scene.verified, {"metadata": {"labels": {LABEL: None}}}),
        f"label {LABEL}",
    ),
}
UNSELECTED: Mapping[str, Request] = {
    "it is released": lambda scene: scene.patch(scene.unselected, {"spec": {"taints": None}}),
    "it is labeled": lambda scene: scene.patch(scene.unselected, {"metadata": {"labels": {LABEL: "true"}}}),
    "it is deleted": delete_node("unselected"),
}
VERIFICATION: Mapping[str, Request] = {
    "the gate is opened": sets_taints(lambda there: without(there, GATE["key"])),
    "our label is set": sets_label(LABEL, "true"),
    "the record is written": sets({"metadata": {"annotations": {RECORD: "{}"}}}),
    "the condition is set": sets_condition({"type": "NodeVerified", "status": "True"}),
    "record and condition are written together": sets(
        {
            "metadata": {"annotations": {RECORD: "{}"}},
            "status": {"conditions": [{"type": "NodeVerified", "status": "True"}]},
        },
        STRATEGIC_PATCH,
    ),
    "the largest record is written": sets_record("x" * MOST_RECORD),
    "the largest condition is set": sets_condition(
        verified_condition(message="x" * MOST_MESSAGE, reason="x" * MOST_REASON)
    ),
    "nothing is changed": sets({}),
}


def named(kind: str, name: str, api: str = "v1") -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}}


def creates(resource: str, body: Json, namespace: str = "", api: str = "/api/v1") -> Request:
    return lambda scene: scene.create(resource, body, namespace, api)


def an_event(name: str, **changes: Any) -> Json:  # noqa: ANN401  as in JSON
    subject = {"apiVersion": "v1", "kind": "Node", "name": "a"}
    source = {"component": "kube-node-ready-controller"}
    return {**named("Event", name), "involvedObject": subject, "source": source, "reason": "Tried", **changes}


def a_lease(name: str) -> Json:
    return named("Lease", name, "coordination.k8s.io/v1")


def change_root_certificate(scene: Scene) -> None:
    path = f"/api/v1/namespaces/{scene.namespace}/configmaps/kube-root-ca.crt?dryRun=All"
    scene.token.patch(path, b'{"data": {"ca.crt": "mine"}}', MERGE_PATCH)


POD = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default"}
STATE_ATTACKS: Mapping[str, tuple[Request, str]] = {
    "a ConfigMap of another name": (creates("configmaps", named("ConfigMap", "coredns")), f"ConfigMap {LEDGER}"),
    "the ledger in another namespace": (
        creates("configmaps", named("ConfigMap", LEDGER), "default"),
        f"ConfigMap {LEDGER}",
    ),
    "a Lease of another name": (creates("leases", a_lease("kube-scheduler-2"), api=LEASES), "Lease"),
    "our Lease in another namespace": (
        lambda scene: scene.create("leases", a_lease(scene.release.account), "default", LEASES),
        "Lease",
    ),
    "an Event about a pod": (creates("events", an_event("node-ready.a", involvedObject=POD), "default"), "Events"),
    "an Event of another component": (
        creates("events", an_event("node-ready.a", source={"component": "kubelet"}), "default"),
        "Events",
    ),
    "an Event of another name": (creates("events", an_event("a.b"), "default"), "Events"),
    "the root certificate is deleted": (
        lambda scene: scene.delete(f"/api/v1/namespaces/{scene.namespace}/configmaps/kube-root-ca.crt"),
        "cannot delete ConfigMaps",
    ),
    "the root certificate is changed": (change_root_certificate, f"ConfigMap {LEDGER}"),
}
STATE: Mapping[str, Request] = {
    "the ledger": creates("configmaps", named("ConfigMap", LEDGER)),
    "the Lease": lambda scene: scene.create("leases", a_lease(scene.release.account), api=LEASES),
    "an Event": creates("events", an_event("node-ready.a"), "default"),
}


@pytest.fixture(scope="module")
def limited(plane: lab.Plane) -> Iterator[Scene]:
    """A controller that is configured to remove nodes and to verify them again."""
    with a_stolen_token(plane, LIMITED, EVERYTHING_ON, policy=True) as scene:
        yield scene


@pytest.fixture(scope="module")
def strict(plane: lab.Plane) -> Iterator[Scene]:
    """A controller with the defaults, for some nodes only."""
    values = config(nodeManagement={"nodeSelector": {"case": STRICT}})
    with a_stolen_token(plane, STRICT, values, policy=True) as scene:
        yield scene


@pytest.fixture(scope="module")
def unlimited(plane: lab.Plane) -> Iterator[Scene]:
    with a_stolen_token(plane, UNLIMITED, EVERYTHING_ON, policy=False) as scene:
        yield scene


@pytest.mark.parametrize("attack", ATTACKS)
def test_only_verification_fields_of_a_node_can_be_written(limited: Scene, attack: str) -> None:
    request, part = ATTACKS[attack]
    denied(limited.rejection(request), part)


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "a verified node is deleted"])
def test_the_same_holds_with_the_default_values(strict: Scene, attack: str) -> None:
    denied(strict.rejection(ATTACKS[attack][0]), "")


@pytest.mark.parametrize("attack", UNCONFIGURED)
def test_what_is_not_configured_is_rejected(strict: Scene, attack: str) -> None:
    request, part = UNCONFIGURED[attack]
    denied(strict.rejection(request), part)


@pytest.mark.parametrize("attack", UNCONFIGURED)
def test_what_is_configured_is_allowed(limited: Scene, attack: str) -> None:
    assert limited.rejection(UNCONFIGURED[attack][0]) == ""


@pytest.mark.parametrize("attack", UNSELECTED)
def test_nodes_that_are_not_selected_cannot_be_written_to(strict: Scene, attack: str) -> None:
    denied(strict.rejection(UNSELECTED[attack]), "nodeManagement.nodeSelector")


@pytest.mark.parametrize("attack", STATE_ATTACKS)
def test_other_objects_cannot_be_written(limited: Scene, attack: str) -> None:
    request, part = STATE_ATTACKS[attack]
    denied(limited.rejection(request), part)


ALL = {
    **{name: request for name, (request, _) in {**ATTACKS, **UNCONFIGURED, **STATE_ATTACKS}.items()},
    **UNSELECTED,
}


@pytest.mark.parametrize("attack", ALL)
def test_without_the_policies_the_same_attack_succeeds(unlimited: Scene, attack: str) -> None:
    assert unlimited.rejection(ALL[attack]) == ""


@pytest.mark.parametrize("change", VERIFICATION)
def test_verification_is_allowed(limited: Scene, strict: Scene, change: str) -> None:
    assert [scene.rejection(VERIFICATION[change]) for scene in (limited, strict)] == ["", ""]


@pytest.mark.parametrize("what", STATE)
def test_the_controllers_own_objects_are_allowed(limited: Scene, what: str) -> None:
    assert limited.rejection(STATE[what]) == ""


def test_a_cordoned_node_cannot_be_uncordoned(limited: Scene, unlimited: Scene) -> None:
    for scene in (limited, unlimited):
        scene.release.plane.kubectl("cordon", scene.gated)
    try:
        denied(limited.rejection(cordon("gated", on=False)), "cannot uncordon")
        assert unlimited.rejection(cordon("gated", on=False)) == ""
    finally:
        for scene in (limited, unlimited):
            scene.release.plane.kubectl("uncordon", scene.gated)


def test_a_large_node_does_not_exceed_the_cost_limit_of_expressions(limited: Scene) -> None:
    plane, name = limited.release.plane, f"{LIMITED}-full"
    labels = {f"example.com/label-{number}": "x" * 63 for number in range(100)}
    annotations = {f"example.com/annotation-{number}": "x" * 4096 for number in range(4)}
    taints = [{"key": f"example.com/taint-{number}", "value": "x" * 63, "effect": "NoExecute"} for number in range(50)]
    images = [{"names": [f"example.com/{'x' * 100}:{number}"], "sizeBytes": 1} for number in range(50)]
    conditions = [{"type": f"Condition{number}", "status": "True", "message": "x" * 500} for number in range(30)]
    node = named("Node", name)
    node["metadata"] |= {"labels": labels, "annotations": annotations}
    node["spec"] = {"taints": [*taints, GATE]}
    plane.kubectl("create", "--filename=-", standard_input=json.dumps(node))
    status = {"status": {"images": images, "conditions": conditions}}
    plane.kubectl("patch", "node", name, "--subresource=status", f"--patch={json.dumps(status)}")
    try:
        full = limited._replace(gated=name)
        assert {change: full.rejection(request) for change, request in VERIFICATION.items()} == dict.fromkeys(
            VERIFICATION, ""
        )
        denied(full.rejection(sets_label("example.com/label-1", "a")), "labels")
        denied(full.rejection(sets_taints(lambda there: without(there, "example.com/taint-49"))), "taints")
        denied(full.rejection(sets({"metadata": {"annotations": {"example.com/annotation-1": "a"}}})), "annotations")
    finally:
        plane.kubectl("delete", "node", name)


def test_oversized_objects_of_other_clients_do_not_stop_verification(limited: Scene) -> None:
    """A kubelet can write the record and the conditions of its own Node."""
    plane, name = limited.release.plane, f"{LIMITED}-swollen"
    node = named("Node", name)
    node["metadata"]["annotations"] = {RECORD: "x" * 200_000}
    node["spec"] = {"taints": [GATE]}
    plane.kubectl("create", "--filename=-", standard_input=json.dumps(node))
    conditions = [verified_condition(message=str(number) * 40_000) for number in range(3)]
    status = json.dumps({"status": {"conditions": conditions}})
    plane.kubectl(
        "patch", "node", name, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin", standard_input=status
    )
    try:
        swollen = limited._replace(gated=name)
        assert {change: swollen.rejection(request) for change, request in VERIFICATION.items()} == dict.fromkeys(
            VERIFICATION, ""
        )
        assert swollen.rejection(cordon("gated")) == ""
        denied(swollen.rejection(sets_record("x" * (MOST_RECORD + 1))), "annotations")
        denied(swollen.rejection(adds_conditions(1)), "one condition NodeVerified")
    finally:
        plane.kubectl("delete", "node", name)


def test_other_accounts_are_not_limited(limited: Scene) -> None:
    plane = limited.release.plane
    plane.kubectl("label", "node", "--dry-run=server", limited.gated, "example.com/mine=a")
    plane.kubectl("delete", "node", "--dry-run=server", limited.verified)


@pytest.mark.parametrize("part", ["pods", "nodes", "state"])
def test_the_policies_have_no_type_check_warnings(limited: Scene, part: str) -> None:
    client, name = limited.release.plane.client, f"{LIMITED}-kube-node-ready-controller-{part}"

    def checked() -> ValidatingAdmissionPolicy | None:
        found = client.get(ValidatingAdmissionPolicy, name)
        return found if found.status and found.status.observedGeneration else None

    status = waiting.until("the controller manager has checked the types", checked, PATIENCE).status
    assert status
    assert status.typeChecking
    assert not status.typeChecking.expressionWarnings
