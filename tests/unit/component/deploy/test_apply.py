"""A deployment in front of a server that a test plays: whose objects are whose, what is tried, what is waited for."""

import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
import yaml

from kubernetes_daemonset.deploy import apply
from kubernetes_daemonset.deploy.api_client import Cluster, ClusterError, Unreachable
from kubernetes_daemonset.deploy.plan import Plan, Ref
from tests.support.manifests.builders import NAMESPACE, loaded, rendered

Json = dict[str, Any]
Answer = Callable[[httpx2.Request], httpx2.Response | None]

TERRAFORM = "kubernetes-daemonset-terraform"


def a_cluster(*answers: Answer) -> Cluster:
    """Who has an answer first, answers; an apply is answered with what is applied, anything else is not there."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        return next(found for answer in (*answers, _usual) if (found := answer(request)) is not None)

    return Cluster(httpx2.Client(transport=httpx2.MockTransport(handle), base_url="https://cluster.test"))


def _usual(request: httpx2.Request) -> httpx2.Response:
    if request.method == "PATCH":
        return httpx2.Response(200, json=yaml.safe_load(request.content))
    if request.url.path.endswith("selfsubjectaccessreviews"):
        return httpx2.Response(201, json={"status": {"allowed": True}})
    if request.method == "GET" and "labelSelector" in request.url.params:
        return httpx2.Response(200, json={"items": [], "metadata": {}})
    return refusal(404, "NotFound", "not found")


def refusal(code: int, reason: str, message: str, *causes: Json) -> httpx2.Response:
    return httpx2.Response(code, json={"reason": reason, "message": message, "details": {"causes": list(causes)}})


def to(method: str, path: str, answer: httpx2.Response) -> Answer:
    return lambda asked: answer if asked.method == method and asked.url.path.startswith(path) else None


def a_plan(cluster: Cluster, *, create_namespace: bool = True, adopt: bool = False) -> Plan:
    desired = loaded({"spec.create_namespace": create_namespace})
    request = apply.ApplyRequest(desired.manifest, rendered({"spec.create_namespace": create_namespace}), adopt=adopt)
    (planned,) = apply.plans(cluster, [request])
    return planned


def made_by(*managers: str) -> httpx2.Response:
    """The agent's DaemonSet, as each of them applied it."""
    (live,) = rendered({})
    return httpx2.Response(200, json=applied(live, *managers))


def applied(live: Json, *managers: str) -> Json:
    fields: Json = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in live["metadata"]["labels"]}}}
    status = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}}
    managed = [*({"manager": one, "operation": "Apply", "fieldsV1": fields} for one in managers), status]
    return live | {"metadata": live["metadata"] | {"uid": "1", "managedFields": managed}}


DAEMON_SET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/agent"
IN_DEFAULT = "/apis/apps/v1/namespaces/default/daemonsets/"


@pytest.mark.parametrize("tool", [TERRAFORM, "pulumi-kubernetes-1f2e3d", "kubectl-client-side-apply"])
def test_objects_of_the_same_manifest_by_another_tool_are_not_taken_over(tool: str) -> None:
    theirs = a_cluster(to("GET", DAEMON_SET, made_by(tool)))
    with pytest.raises(apply.ApplyRejected) as refused:
        a_plan(theirs, create_namespace=False)
    (reason,) = refused.value.reasons
    expected = f"is managed by {tool}; deploy it with that tool, or use --adopt to take it over"
    assert reason == f"DaemonSet {NAMESPACE}/agent: {expected}"
    assert a_plan(theirs, create_namespace=False, adopt=True).objects


def test_our_objects_are_applied_again_despite_other_managers() -> None:
    for makers in (["kubernetes-daemonset"], ["kubernetes-daemonset", TERRAFORM]):
        assert a_plan(a_cluster(to("GET", DAEMON_SET, made_by(*makers))), create_namespace=False).objects


def test_only_objects_without_other_managers_are_pruned() -> None:
    a, b, c, _ = rendered({"spec.config_maps": dict.fromkeys("abc", "")})
    ours, both, theirs = ["kubernetes-daemonset"], ["kubernetes-daemonset", TERRAFORM], [TERRAFORM]
    items = [applied(a, *ours), applied(b, *both), applied(c, *theirs)]
    listed = httpx2.Response(200, json={"items": items, "metadata": {}})
    planned = a_plan(a_cluster(to("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps", listed)), create_namespace=False)
    assert [str(one.ref) for one in planned.changes if one.after is None] == [f"ConfigMap {NAMESPACE}/a"]
    assert planned.warnings == (f"kept ConfigMap {NAMESPACE}/b, which is also managed by {TERRAFORM}",)


def test_an_invalid_object_is_rejected_before_its_namespace_is_created() -> None:
    """Under the name that the manifest gives it."""
    cause = {"field": "spec.template", "message": "odd"}
    wrong = refusal(422, "Invalid", f'DaemonSet.apps "{NAMESPACE}-agent" is invalid: spec.template: odd', cause)
    with pytest.raises(apply.ApplyRejected) as refused:
        a_plan(a_cluster(to("PATCH", IN_DEFAULT, wrong)))
    (reason,) = refused.value.reasons
    assert reason == f'DaemonSet {NAMESPACE}/agent: DaemonSet.apps "agent" is invalid: spec.template: odd'


@pytest.mark.parametrize(
    "theirs",
    [
        refusal(403, "Forbidden", "exceeded quota"),
        refusal(422, "Invalid", "ValidatingAdmissionPolicy 'p' denied request", {"message": "no"}),
        refusal(400, "BadRequest", 'admission webhook "w" denied the request'),
    ],
)
def test_a_rejection_in_the_stand_in_namespace_is_a_warning(theirs: httpx2.Response) -> None:
    planned = a_plan(a_cluster(to("PATCH", IN_DEFAULT, theirs)))
    (doubt,) = planned.warnings
    assert doubt == (
        f"DaemonSet {NAMESPACE}/agent: Namespace {NAMESPACE} does not exist yet; in default it would be rejected: "
        f"{theirs.json()['message']}"
    )
    assert [one["kind"] for one in planned.objects] == ["Namespace", "DaemonSet"]


def test_permissions_in_a_missing_namespace_are_checked() -> None:
    asked: list[Json] = []

    def judge(request: httpx2.Request) -> httpx2.Response | None:
        if not request.url.path.endswith("selfsubjectaccessreviews"):
            return None
        asked.append(json.loads(request.content)["spec"]["resourceAttributes"])
        return httpx2.Response(201, json={"status": {"allowed": asked[-1]["verb"] != "patch"}})

    with pytest.raises(apply.ApplyRejected) as refused:
        a_plan(a_cluster(judge))
    (reason,) = refused.value.reasons
    assert reason.startswith(f"DaemonSet {NAMESPACE}/agent: you are not allowed to patch daemonsets in {NAMESPACE}")
    assert asked[0] == {
        "verb": "create", "group": "apps", "resource": "daemonsets", "namespace": NAMESPACE, "name": "agent"
    }  # fmt: skip


def test_a_namespace_of_another_tool_is_neither_changed_nor_deleted() -> None:
    (namespace, _) = rendered({"spec.create_namespace": True})
    labels: Json = {"f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}}}}
    namespace["metadata"] |= {"uid": "1", "managedFields": [{"manager": TERRAFORM, "fieldsV1": labels}]}
    there = a_cluster(to("GET", f"/api/v1/namespaces/{NAMESPACE}", httpx2.Response(200, json=namespace)))
    with pytest.raises(ClusterError, match="is not managed by kubernetes-daemonset"):
        apply.our_namespace(there, NAMESPACE)
    written = a_plan(a_cluster(lambda asked: _only_namespace(asked, namespace)))
    assert [one["kind"] for one in written.objects] == ["DaemonSet"]


def _only_namespace(asked: httpx2.Request, namespace: Json) -> httpx2.Response | None:
    return httpx2.Response(200, json=namespace) if asked.url.path == f"/api/v1/namespaces/{NAMESPACE}" else None


def test_every_character_round_trips() -> None:
    """The server reads an apply as YAML, in which JSON's pairs of surrogates are none."""
    body = rendered({"spec.config_maps": {"text": 'é \U0001f600 \u2028 \x7f \x85 \x1b "\\ud83d" \n\t'}})[0]
    sent: list[str] = []
    a_cluster(lambda asked: sent.append(asked.content.decode())).apply(body)
    assert sent[0].isascii()
    assert yaml.safe_load(sent[0]) == body


def rolled_out() -> httpx2.Response:
    status = {"observedGeneration": 1, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1}
    (live,) = rendered({})
    live["metadata"] |= {"generation": 1, "uid": "1"}
    return httpx2.Response(200, json=live | {"status": status})


def _no_answer(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("Connection refused")


def _in_trouble(code: int) -> Callable[[httpx2.Request], httpx2.Response]:
    return lambda _: refusal(code, "Trouble", "in trouble")


TROUBLE = {
    "nobody answers": _no_answer,
    "a proxy answers": lambda _: httpx2.Response(503, text="<html>no upstream</html>"),
    **{str(code): _in_trouble(code) for code in (429, 500, 502, 503, 504)},
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
def test_a_rollout_waits_for_an_unavailable_server(
    trouble: Callable[[httpx2.Request], httpx2.Response], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "_POLL", 0)
    looks = itertools.count()
    cluster = a_cluster(lambda asked: trouble(asked) if next(looks) < 3 else rolled_out())
    reported: list[str] = []

    state = apply.wait(cluster, loaded({}).manifest, 60, lambda _, why: reported.append(why))

    assert state.done
    assert len(reported) == 4
    assert all(reported[:3])


def test_an_unavailable_server_ends_the_wait_in_time_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "_POLL", 0.01)
    with pytest.raises(
        apply.RolloutTimeout,
        match=r"after 0.1 s, .*cannot connect to the Kubernetes API at https://cluster.test: Connection refused",
    ):
        apply.wait(a_cluster(_no_answer), loaded({}).manifest, 0.1, lambda *_: None)


def waiting(pods: Callable[[httpx2.Request], httpx2.Response]) -> list[str]:
    """What a wait for a rollout that makes no progress ends with, where the list of pods is answered like this."""
    (live,) = rendered({})
    live = live | {"metadata": live["metadata"] | {"generation": 1, "uid": "1"}}
    listed = to("GET", f"/api/v1/namespaces/{NAMESPACE}/pods", httpx2.Response(200))
    cluster = a_cluster(
        to("GET", DAEMON_SET, httpx2.Response(200, json=live)), lambda asked: pods(asked) if listed(asked) else None
    )
    with pytest.raises(apply.RolloutTimeout) as late:
        apply.wait(cluster, loaded({}).manifest, 0, lambda *_: None)
    return str(late.value).split("; ")


def failed(reason: str, **metadata: object) -> Json:
    return {"metadata": metadata, "status": {"phase": "Failed", "reason": reason}}


def test_a_list_of_pods_that_is_too_large_explains_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kubelet can create mirror pods with the agent's labels, as large as an object can be."""
    monkeypatch.setattr(apply, "_EXPLANATION_PAGE", 100_000)
    pages = iter([[failed("Evicted")], [failed("Odd", managedFields=["x" * 200_000])]])

    def pods(_: httpx2.Request) -> httpx2.Response:
        page = {"items": next(pages), "metadata": {"continue": "more"}}
        return httpx2.Response(200, content=iter([json.dumps(page).encode()]))

    *_, trouble, note, rest = waiting(pods)
    assert trouble == "1 pod: Evicted: "
    assert note == f"the list of pods in {NAMESPACE}: the response has more than 0.0954 MiB"
    assert rest == "the rest of it was not read"


def test_a_list_of_pods_ends_about_when_the_wait_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "_LEAST_SECONDS", 0.3)

    def pods(_: httpx2.Request) -> httpx2.Response:
        time.sleep(0.1)
        return httpx2.Response(200, json={"items": [failed("Evicted")], "metadata": {"continue": "more"}})

    began = time.monotonic()
    ended = waiting(pods)
    assert time.monotonic() - began < 3
    assert f"the list of pods in {NAMESPACE}: the list is not complete in time" in ended


def test_a_response_that_is_not_from_an_api_server_does_not_mean_not_found() -> None:
    page = httpx2.Response(404, text="<html>no such page</html>")
    with pytest.raises(ClusterError, match="returned HTTP 404 with a body that is not a JSON object"):
        a_cluster(lambda _: page).get(Ref("Namespace", NAMESPACE))


def test_an_answer_that_is_nested_too_deeply_is_an_error_and_not_a_traceback() -> None:
    """Every account that can patch an object can nest its managedFields."""
    nested = httpx2.Response(200, text='{"a":' * 5000 + "{}" + "}" * 5000)
    with pytest.raises(ClusterError, match="returned HTTP 200 with a body that is not a JSON object"):
        a_cluster(lambda _: nested).get(Ref("Namespace", NAMESPACE))


def test_an_unavailable_server_stops_an_apply_before_the_first_write() -> None:
    with pytest.raises(Unreachable, match="in trouble"):
        a_plan(a_cluster(lambda _: refusal(503, "Trouble", "in trouble")))


def test_a_different_selector_is_the_only_reason_and_has_all_commands() -> None:
    (live,) = rendered({})
    live["spec"]["selector"] = {
        "matchLabels": {"app": "daemonset"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
    }
    cause = {"field": ".spec.selector", "message": 'conflict with "kubectl"'}
    there = a_cluster(
        to("GET", DAEMON_SET, httpx2.Response(200, json=live)),
        to("PATCH", DAEMON_SET, refusal(409, "Conflict", "failed", cause)),
    )
    with pytest.raises(apply.ApplyRejected) as refused:
        a_plan(there, create_namespace=False)
    (reason,) = refused.value.reasons
    assert "exists with selector app=daemonset,tier in (a,b), which is immutable" in reason
    assert f"kubectl delete daemonset agent --namespace {NAMESPACE} --cascade=orphan" in reason
    old_pods = "app=daemonset,tier in (a,b),app.kubernetes.io/managed-by!=kubernetes-daemonset"
    assert f"kubectl delete pods --namespace {NAMESPACE} --selector '{old_pods}'" in reason


def test_a_server_that_requires_https_is_recognized() -> None:
    page = httpx2.Response(400, text="Client sent an HTTP request to an HTTPS server.\n")
    with pytest.raises(ClusterError, match="requires HTTPS; use https:// instead of http:// in the kubeconfig"):
        a_cluster(lambda _: page).get(Ref("Namespace", NAMESPACE))
