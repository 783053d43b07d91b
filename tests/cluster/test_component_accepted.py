"""Validation before a real API server: what it takes is accepted there, and what it refuses is refused there too.

So it is neither looser than the server nor, but for the reasons in `STRICTER`, stricter. Nothing is made: all is asked
as server-side apply, dry.
"""

import json
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace

import lab
from kube_node_ready.agent.api import Api
from kube_node_ready.kube.errors import KubeError
from kubernetes_daemonset.render import resources
from tests.support.chart_release import api_of
from tests.support.manifests.builders import NAMESPACE, Json, as_yaml, loaded, objects_of, read, rendered
from tests.support.manifests.refusals import REFUSALS, STRICTER, TAKEN, Refusal, words
from tests.support.manifests.strategies import stack_inputs
from tests.support.manifests.texts import FLUENTD, NODE_EXPORTER, WHOLE

APPLY: Final = "application/apply-patch+yaml"
DRY: Final = "dryRun=All&fieldManager=test&force=true&fieldValidation=Strict"
OURS: Final = "daemonset-accepted"
PLURALS: Final = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ConfigMap": "configmaps",
    "DaemonSet": "daemonsets",
    "Namespace": "namespaces",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Secret": "secrets",
    "ServiceAccount": "serviceaccounts",
}
SOME: Final = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],  # a manifest is a large thing to draw
)


class Server:
    """A real API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def refusals(self, objects: list[Json]) -> list[str]:
        """What it says to those of the objects that it refuses."""
        return [output for one in objects if (output := self._refusal(one))]

    def _refusal(self, one: Json) -> str:
        try:
            self._api.patch(_path(one), json.dumps(one, ensure_ascii=False).encode(), APPLY)
        except KubeError as refused:
            if not refused.status:  # it said nothing at all
                raise
            return str(refused)  # a 500 is an answer here: so it says that a list holds a thing twice
        return ""


def _path(one: Json) -> str:
    version, metadata = one["apiVersion"], one["metadata"]
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{group}{within}/{PLURALS[one['kind']]}/{metadata['name']}?{DRY}"


def moved(objects: list[Json]) -> list[Json]:
    """What belongs to the namespace of most manifests in tests, in that of these tests."""
    return json.loads(json.dumps(objects).replace(f'"namespace": "{NAMESPACE}"', f'"namespace": "{OURS}"'))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def server(plane: lab.Plane) -> Iterator[Server]:
    plane.client.create(Namespace(metadata=ObjectMeta(name=OURS)))
    yield Server(api_of(plane.kubeconfig()))
    plane.client.delete(Namespace, OURS)


def test_the_server_rejects_unknown_fields(server: Server) -> None:
    """Else all that follows would prove nothing."""
    (daemon_set,) = moved(rendered())
    assert server.refusals([daemon_set]) == []
    daemon_set["spec"]["template"]["spec"]["hostPid"] = True
    (output,) = server.refusals([daemon_set])
    assert 'unknown field "spec.template.spec.hostPid"' in output or "hostPid: field not declared in schema" in output


@pytest.mark.parametrize("text", [FLUENTD, NODE_EXPORTER, WHOLE], ids=["fluentd", "node-exporter", "every field"])
def test_the_examples_are_accepted(server: Server, text: str) -> None:
    objects = objects_of(read(text.replace("logging", NAMESPACE)))
    assert server.refusals(moved(objects)) == []


def test_any_valid_manifest_is_accepted(server: Server) -> None:
    @SOME
    @given(stack_inputs(st.just(NAMESPACE)))
    def ask(tree: Json) -> None:
        assert server.refusals(moved(objects_of(read(as_yaml(tree))))) == []

    ask()


@pytest.mark.parametrize("what", TAKEN)
def test_unusual_valid_manifests_are_accepted(server: Server, what: str) -> None:
    assert server.refusals(moved(rendered(TAKEN[what]))) == []


@pytest.mark.parametrize("case", REFUSALS, ids=[case.what for case in REFUSALS])
def test_rejected_manifests_are_rejected_by_the_server_or_listed_as_stricter(server: Server, case: Refusal) -> None:
    output = server.refusals(moved(resources.render(loaded(case.changes).input)))
    if case.what in STRICTER:
        assert output == []
    else:
        assert any(words(case) in one for one in output), output
