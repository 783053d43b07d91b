"""What a stolen token of the DaemonSet is good for: the admission policy of the chart, asked write by write."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from lightkube.resources.admissionregistration_v1 import ValidatingAdmissionPolicy
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.agent.api import MERGE_PATCH, Api
from kube_node_ready.kube.errors import Conflict, Rejected
from lab import waiting
from tests.support.agent_live import VALUES
from tests.support.chart_release import Release, api_of, apply
from tests.support.controller_process import taints
from tests.support.scenarios.agent import FOREIGN, GATE, LABEL

NAMESPACE = "admission-policy"
PATIENCE = 180
RECORD = "node-ready/verification"
Json = dict[str, Any]
Change = Callable[[Json], Json]


class Cast(NamedTuple):
    """Two nodes, a pod of the DaemonSet on the first, and its token in the wrong hands."""

    release: Release
    home: str
    other: str
    thief: Api


@pytest.fixture(scope="module")
def cast(plane: lab.Plane) -> Iterator[Cast]:
    release = Release(plane, NAMESPACE, VALUES)
    release.install()
    home, other = plane.simulated_nodes(2, prefix=NAMESPACE, taints=taints(GATE, FOREIGN)).names
    release.wait_for_policy(home)
    yield Cast(release, home, other, release.api(pod=release.put_pod(home)))
    release.uninstall()
    plane.kubectl("delete", "node", home, other)


def listed(node: Json, *without: str) -> list[Json]:
    return [taint for taint in node["spec"]["taints"] if taint["key"] not in without]


def of_taints(change: Callable[[Json], list[Json]]) -> Change:
    return lambda node: {"spec": {"taints": change(node)}}


def of_conditions(change: Callable[[Json], list[Json]]) -> Change:
    return lambda node: {"status": {"conditions": change(node)}}


def is_changed(change: Json) -> Change:
    return lambda _: change


def with_condition(kind: str, status: str, message: str = "", reason: str = "Stolen", *, count: int = 1) -> Change:
    """As a merge patch has it: the whole list."""

    def change(node: Json) -> list[Json]:
        others = [one for one in node["status"]["conditions"] if one["type"] != kind]
        return [*others, *[{"type": kind, "status": status, "reason": reason, "message": message}] * count]

    return of_conditions(change)


VERIFICATION: dict[str, Change] = {
    "the gate is opened": of_taints(lambda node: listed(node, GATE["key"])),
    "the gate gets another value": of_taints(lambda node: [*listed(node, GATE["key"]), {**GATE, "value": "again"}]),
    "the gate is closed harder": of_taints(lambda node: [*listed(node), {**GATE, "effect": "NoExecute"}]),
    "the label is set": is_changed({"metadata": {"labels": {LABEL: "true"}}}),
    "the record is written": is_changed({"metadata": {"annotations": {"node-ready/verification": "{}"}}}),
    "the condition is set": with_condition("NodeVerified", "True"),
    "the largest record is written": is_changed(
        {"metadata": {"annotations": {"node-ready/verification": "x" * 2**14}}}
    ),
    "the largest condition is set": with_condition("NodeVerified", "True", "x" * 2**15, "x" * 2**10),
}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}
ANYTHING_ELSE: dict[str, tuple[Change, str]] = {
    "a foreign taint goes": (of_taints(lambda node: listed(node, FOREIGN["key"])), "taints"),
    "a foreign taint changes": (
        of_taints(lambda node: [*listed(node, FOREIGN["key"]), {**FOREIGN, "value": "mine"}]),
        "taints",
    ),
    "a foreign taint comes": (
        of_taints(lambda node: [*listed(node), {"key": "node.kubernetes.io/mine", "effect": "NoExecute"}]),
        "taints",
    ),
    "it is cordoned": (is_changed({"spec": {"unschedulable": True}}), "spec"),
    "a label changes": (is_changed({"metadata": {"labels": {"topology.kubernetes.io/zone": "elsewhere"}}}), "labels"),
    "a label comes": (is_changed({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}), "labels"),
    "a label goes": (is_changed({"metadata": {"labels": {"kubernetes.io/arch": None}}}), "labels"),
    "an annotation comes": (is_changed({"metadata": {"annotations": {"a": "b"}}}), "annotations"),
    "an annotation goes": (
        is_changed({"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": None}}}),
        "annotations",
    ),
    "a finalizer comes": (is_changed({"metadata": {"finalizers": ["example.com/hold"]}}), "finalizers"),
    "an owner comes": (is_changed({"metadata": {"ownerReferences": [OWNER]}}), "ownerReferences"),
    "another condition changes": (with_condition("Ready", "Unknown"), "conditions"),
    "all other conditions go": (of_conditions(lambda _: []), "conditions"),
    "its capacity changes": (is_changed({"status": {"capacity": {"cpu": "1"}}}), "status"),
    "its addresses change": (is_changed({"status": {"addresses": []}}), "status"),
}


TOO_LARGE: dict[str, tuple[Change, str]] = {
    "the record leaves no room for annotations": (
        is_changed({"metadata": {"annotations": {RECORD: "x" * (2**14 + 1)}}}),
        "annotations",
    ),
    "the condition has a long message": (with_condition("NodeVerified", "True", "x" * (2**15 + 1)), "conditions"),
    "the condition has a long reason": (with_condition("NodeVerified", "True", reason="x" * 1025), "conditions"),
    "the condition has a long status": (with_condition("NodeVerified", "x" * 10), "conditions"),
    "the condition is there twice": (with_condition("NodeVerified", "True", count=2), "conditions"),
}
ANYTHING_ELSE |= TOO_LARGE


def refusal(plane: lab.Plane, api: Api, node: str, change: Change) -> str:
    """Why the change is refused; empty if it is not. It is not made: the API server decides as if it were."""

    def answer() -> list[str] | None:
        seen = plane.client.get(NodeObject, node).to_dict()
        patch = change(seen)
        version = {"resourceVersion": seen["metadata"]["resourceVersion"]}
        body = json.dumps({**patch, "metadata": {**patch.get("metadata", {}), **version}}, default=str)
        part = "/status" if "status" in patch else ""
        try:
            api.patch(f"/api/v1/nodes/{node}{part}?dryRun=All", body.encode(), MERGE_PATCH)
        except Rejected as why:
            return [why.message]
        except Conflict:  # the simulated kubelet wrote meanwhile
            return None
        return [""]

    (why,) = waiting.until("there is an answer", answer, PATIENCE, alive=plane.check)
    return why


@pytest.mark.parametrize("what", VERIFICATION)
def test_a_pod_can_verify_its_own_node(cast: Cast, what: str) -> None:
    assert refusal(cast.release.plane, cast.thief, cast.home, VERIFICATION[what]) == ""


@pytest.mark.parametrize("what", VERIFICATION)
def test_another_node_cannot_be_verified(cast: Cast, what: str) -> None:
    response = refusal(cast.release.plane, cast.thief, cast.other, VERIFICATION[what])
    name = cast.release.account
    assert response.endswith(
        f'a pod of {name} on node "{cast.home}" can write to that Node only, not to "{cast.other}"'
    ), response


@pytest.mark.parametrize("what", ANYTHING_ELSE)
def test_no_other_field_of_its_own_node_can_be_changed(cast: Cast, what: str) -> None:
    change, part = ANYTHING_ELSE[what]
    response = refusal(cast.release.plane, cast.thief, cast.home, change)
    assert f"a Node's {part}" in response, response


@pytest.mark.parametrize("what", VERIFICATION)
def test_a_token_without_a_node_can_write_to_no_node(cast: Cast, what: str) -> None:
    response = refusal(cast.release.plane, cast.release.api(), cast.home, VERIFICATION[what])
    assert response.endswith(f"this token of {cast.release.account} names no node, so it cannot write to Nodes"), (
        response
    )


def test_labels_cannot_be_changed_through_the_status(cast: Cast) -> None:
    both = {"metadata": {"labels": {"kubernetes.io/arch": "other"}}, "status": {}}
    assert "a Node's labels" in refusal(cast.release.plane, cast.thief, cast.home, is_changed(both))


def test_other_accounts_are_not_limited(cast: Cast) -> None:
    """The administrator, and another account with the very same rights."""
    plane, account = cast.release.plane, {"name": "another", "namespace": NAMESPACE}
    binding = {**cast.release.made.one("ClusterRoleBinding"), "metadata": {"name": f"{NAMESPACE}-another"}}
    subject = {"kind": "ServiceAccount", **account}
    apply(
        plane,
        [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, {**binding, "subjects": [subject]}],
    )
    another = cast.release.api("another")
    try:
        for api in (another, api_of(plane.kubeconfig())):
            for change in [*VERIFICATION.values(), ANYTHING_ELSE["it is cordoned"][0]]:
                waiting.until("it may", lambda: refusal(plane, api, cast.other, change) == "", PATIENCE)  # noqa: B023
    finally:
        plane.kubectl("delete", "clusterrolebinding", f"{NAMESPACE}-another")


def test_the_policy_compiles_without_warnings(cast: Cast) -> None:
    """The controller manager checks the types of the expressions, and says in the status what it makes of them."""
    client, name = cast.release.plane.client, cast.release.made.one("ValidatingAdmissionPolicy")["metadata"]["name"]

    def checked() -> ValidatingAdmissionPolicy | None:
        found = client.get(ValidatingAdmissionPolicy, name)
        return found if found.status and found.status.observedGeneration else None

    status = waiting.until("it is checked", checked, PATIENCE).status
    assert status
    assert status.typeChecking
    assert not status.typeChecking.expressionWarnings
