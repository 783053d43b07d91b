"""A deployment in front of a server that a test plays: whose objects are whose, what is tried, what is waited for."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
import yaml

from kubernetes_daemonset.backends import direct
from kubernetes_daemonset.backends.cluster import Cluster, ClusterError, Unreachable
from kubernetes_daemonset.changes import Plan, Ref
from tests.component import NAMESPACE, loaded, rendered

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
    wanted = loaded({"spec.create_namespace": create_namespace})
    wish = direct.Wish(wanted.manifest, rendered({"spec.create_namespace": create_namespace}), adopt=adopt)
    (planned,) = direct.plans(cluster, [wish])
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
def test_what_another_tool_made_of_the_same_manifest_is_not_taken_over(tool: str) -> None:
    theirs = a_cluster(to("GET", DAEMON_SET, made_by(tool)))
    with pytest.raises(direct.Refused) as refused:
        a_plan(theirs, create_namespace=False)
    (reason,) = refused.value.reasons
    assert reason == f"DaemonSet {NAMESPACE}/agent: was made by {tool}; deploy it by that, or take it by --adopt"
    assert a_plan(theirs, create_namespace=False, adopt=True).objects


def test_what_we_have_applied_is_applied_again_whoever_else_has() -> None:
    for makers in (["kubernetes-daemonset"], ["kubernetes-daemonset", TERRAFORM]):
        assert a_plan(a_cluster(to("GET", DAEMON_SET, made_by(*makers))), create_namespace=False).objects


def test_only_what_we_alone_made_is_deleted_when_the_manifest_no_longer_asks_for_it() -> None:
    a, b, c, _ = rendered({"spec.config_maps": dict.fromkeys("abc", "")})
    ours, both, theirs = ["kubernetes-daemonset"], ["kubernetes-daemonset", TERRAFORM], [TERRAFORM]
    items = [applied(a, *ours), applied(b, *both), applied(c, *theirs)]
    listed = httpx2.Response(200, json={"items": items, "metadata": {}})
    planned = a_plan(a_cluster(to("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps", listed)), create_namespace=False)
    assert [str(one.ref) for one in planned.changes if one.after is None] == [f"ConfigMap {NAMESPACE}/a"]
    assert planned.warnings == (f"left ConfigMap {NAMESPACE}/b, which was also made by {TERRAFORM}",)


def test_an_object_that_is_wrong_is_refused_before_its_namespace_is_made() -> None:
    """Under the name that the manifest gives it."""
    cause = {"field": "spec.template", "message": "odd"}
    wrong = refusal(422, "Invalid", f'DaemonSet.apps "{NAMESPACE}-agent" is invalid: spec.template: odd', cause)
    with pytest.raises(direct.Refused) as refused:
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
def test_what_is_refused_where_it_was_only_tried_is_told_and_stops_nothing(theirs: httpx2.Response) -> None:
    planned = a_plan(a_cluster(to("PATCH", IN_DEFAULT, theirs)))
    (doubt,) = planned.warnings
    assert doubt == (
        f"DaemonSet {NAMESPACE}/agent: Namespace {NAMESPACE} is yet to be made; in default it would be refused: "
        f"{theirs.json()['message']}"
    )
    assert [one["kind"] for one in planned.objects] == ["Namespace", "DaemonSet"]


def test_rights_in_a_namespace_that_is_yet_to_be_made_are_asked_for() -> None:
    asked: list[Json] = []

    def judge(request: httpx2.Request) -> httpx2.Response | None:
        if not request.url.path.endswith("selfsubjectaccessreviews"):
            return None
        asked.append(json.loads(request.content)["spec"]["resourceAttributes"])
        return httpx2.Response(201, json={"status": {"allowed": asked[-1]["verb"] != "patch"}})

    with pytest.raises(direct.Refused) as refused:
        a_plan(a_cluster(judge))
    (reason,) = refused.value.reasons
    assert reason.startswith(f"DaemonSet {NAMESPACE}/agent: you may not patch daemonsets in {NAMESPACE}")
    assert asked[0] == {
        "verb": "create", "group": "apps", "resource": "daemonsets", "namespace": NAMESPACE, "name": "agent"
    }  # fmt: skip


def test_a_namespace_that_another_tool_made_is_neither_written_nor_deleted() -> None:
    (namespace, _) = rendered({"spec.create_namespace": True})
    labels: Json = {"f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}}}}
    namespace["metadata"] |= {"uid": "1", "managedFields": [{"manager": TERRAFORM, "fieldsV1": labels}]}
    there = a_cluster(to("GET", f"/api/v1/namespaces/{NAMESPACE}", httpx2.Response(200, json=namespace)))
    with pytest.raises(ClusterError, match="was not made by kubernetes-daemonset"):
        direct.our_namespace(there, NAMESPACE)
    written = a_plan(a_cluster(lambda asked: _only_namespace(asked, namespace)))
    assert [one["kind"] for one in written.objects] == ["DaemonSet"]


def _only_namespace(asked: httpx2.Request, namespace: Json) -> httpx2.Response | None:
    return httpx2.Response(200, json=namespace) if asked.url.path == f"/api/v1/namespaces/{NAMESPACE}" else None


def test_every_character_arrives() -> None:
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
def test_a_server_in_trouble_is_waited_for_during_a_rollout(
    trouble: Callable[[httpx2.Request], httpx2.Response], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "_POLL", 0)
    looks = itertools.count()
    cluster = a_cluster(lambda asked: trouble(asked) if next(looks) < 3 else rolled_out())
    told: list[str] = []

    state = direct.wait(cluster, loaded({}).manifest, 60, lambda _, why: told.append(why))

    assert state.done
    assert len(told) == 4
    assert all(told[:3])


def test_a_server_that_stays_away_ends_the_wait_in_time_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_POLL", 0.01)
    with pytest.raises(
        direct.TooLate, match=r"after 0.1 s, .*https://cluster.test does not answer: Connection refused"
    ):
        direct.wait(a_cluster(_no_answer), loaded({}).manifest, 0.1, lambda *_: None)


def test_a_page_that_is_no_answer_of_an_api_server_does_not_mean_that_nothing_is_there() -> None:
    page = httpx2.Response(404, text="<html>no such page</html>")
    with pytest.raises(ClusterError, match="answered 404 with something that is no object"):
        a_cluster(lambda _: page).get(Ref("Namespace", NAMESPACE))


def test_before_anything_is_applied_a_server_in_trouble_ends_it() -> None:
    with pytest.raises(Unreachable, match="in trouble"):
        a_plan(a_cluster(lambda _: refusal(503, "Trouble", "in trouble")))


def test_a_selector_that_differs_is_told_alone_with_every_command_that_is_needed() -> None:
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
    with pytest.raises(direct.Refused) as refused:
        a_plan(there, create_namespace=False)
    (reason,) = refused.value.reasons
    assert "exists with the selector app=daemonset,tier in (a,b), which nobody can change" in reason
    assert f"kubectl delete daemonset agent --namespace {NAMESPACE} --cascade=orphan" in reason
    assert f"kubectl delete pods --namespace {NAMESPACE} --selector 'app=daemonset,tier in (a,b)'" in reason


def test_a_server_that_speaks_https_alone_is_told_from_others() -> None:
    page = httpx2.Response(400, text="Client sent an HTTP request to an HTTPS server.\n")
    with pytest.raises(ClusterError, match="speaks https; write https:// instead of http:// in the kubeconfig"):
        a_cluster(lambda _: page).get(Ref("Namespace", NAMESPACE))
