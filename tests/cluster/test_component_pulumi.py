"""The ready Pulumi program against a real API server: everything that it asks of the engine is carried out there."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import lab
from kubernetes_daemonset.backends.pulumi import PROVIDER_VERSION, type_token
from kubernetes_daemonset.deploy import loader
from kubernetes_daemonset.deploy.pulumi_project import project_files
from kubernetes_daemonset.render import resources
from tests.support import pulumi_monitor
from tests.support.pulumi_agents import an_agent, with_login
from tests.support.pulumi_mocks import MARK, SECRET_MARK

Json = dict[str, Any]

NAME = "agent-of-pulumi"
MANAGER = "pulumi"
_ON_THE_TEST = {"example.com/test": NAME}  # other tests' nodes are none of its business
_BOUND = "--request-timeout=60s"
_COMPONENT = "kubernetes-daemonset:index:KubernetesDaemonSet"


@dataclass(frozen=True)
class Cluster:
    """Does by kubectl what the engine's Kubernetes plugin does: applies on the server's side, and awaits rollouts."""

    plane: lab.Plane
    folder: Path

    def make(self, expected: Json, provider: Json) -> Json:
        assert provider["enableServerSideApply"] == "true"
        kubeconfig = (
            self.folder / f"{expected['kind']}-{expected['metadata']['name']}.kubeconfig"
        )  # several simultaneously
        kubeconfig.write_text(provider["kubeconfig"])
        if expected["kind"] == "Namespace":
            time.sleep(0.5)  # whatever does not wait for it is refused by the server
        made = self.apply(expected, f"--kubeconfig={kubeconfig}")
        if expected["kind"] == "DaemonSet":
            self.kubectl(made, "rollout", "status", "--timeout=60s", f"daemonset/{made['metadata']['name']}")
        return self.get(made)

    def apply(self, expected: Json, *more: str) -> Json:
        words = ("apply", "--server-side", f"--field-manager={MANAGER}", "--output=json", "--filename=-", *more)
        made: Json = json.loads(self.plane.kubectl(_BOUND, *words, standard_input=json.dumps(expected)))
        return made

    def get(self, one: Json) -> Json:
        words = ("get", one["kind"].lower(), one["metadata"]["name"], "--show-managed-fields", "--output=json")
        found: Json = json.loads(self.kubectl(one, *words))
        return found

    def kubectl(self, one: Json, *words: str) -> str:
        namespace = one["metadata"].get("namespace")
        return self.plane.kubectl(_BOUND, *words, *([f"--namespace={namespace}"] if namespace else []))

    def run(self, stack_input: Json) -> pulumi_monitor.Run:
        for name, content in project_files().items():
            (self.folder / name).write_text(content)
        config = {"planton-cloud:stack-input": yaml.safe_dump(stack_input)}
        return pulumi_monitor.run(self.folder, self.make, PULUMI_CONFIG=json.dumps(config))


@pytest.fixture(scope="module")
def cluster(plane: lab.Plane, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(plane, tmp_path_factory.mktemp("project"))


def stack_input(cluster: Cluster, **spec: object) -> Json:
    kubeconfig = base64.b64encode(cluster.plane.kubeconfig().read_bytes()).decode()
    provider = {"provider": "digital_ocean_doks", "digital_ocean_doks": {"kube_config": kubeconfig}}
    agent = an_agent(NAME, NAME, node_selector=_ON_THE_TEST, **spec)
    return with_login(agent) | {"provider_config": provider}


def rendered(cluster: Cluster) -> list[Json]:
    return resources.render(loader.load_valid(stack_input(cluster), "test")[0].input)


@pytest.fixture(scope="module")
def deployed(cluster: Cluster) -> Iterator[pulumi_monitor.Run]:
    nodes = cluster.plane.simulated_nodes(2, prefix=NAME, labels=_ON_THE_TEST)
    try:
        run = cluster.run(stack_input(cluster))
        assert run.process.returncode == 0, run.process.stderr
        yield run
    finally:
        for one in rendered(cluster):
            if "namespace" not in one["metadata"]:
                words = ("delete", one["kind"].lower(), one["metadata"]["name"], "--ignore-not-found", "--timeout=60s")
                cluster.plane.kubectl(*words)
        nodes.delete()


def lasting(one: Json) -> Json:
    """What of an object does not change by itself; which fields are whose belongs to it."""
    metadata = {key: value for key, value in one["metadata"].items() if key not in {"resourceVersion", "managedFields"}}
    owners = [entry for entry in one["metadata"]["managedFields"] if entry.get("subresource") != "status"]
    owned = {entry["manager"]: entry["fieldsV1"] for entry in owners}
    return {key: value for key, value in one.items() if key != "status"} | {"metadata": metadata, "owned": owned}


@pytest.mark.usefixtures("deployed")
def test_the_server_holds_what_a_direct_apply_makes(cluster: Cluster) -> None:
    """Applied by the same manager, another object would differ in a value or in the fields that the manager owns."""
    for one in rendered(cluster):
        by_pulumi = lasting(cluster.get(one))
        assert MANAGER in by_pulumi["owned"]
        cluster.apply(one)
        assert lasting(cluster.get(one)) == by_pulumi


def test_dependencies_are_created_first(deployed: pulumi_monitor.Run) -> None:
    kinds = {one.urn: one.type.rpartition(":")[2] for one in deployed.resources}
    needed = {kinds[one.urn]: {kinds[urn] for urn in one.dependencies} for one in deployed.of_kubernetes}
    assert needed == {
        "Namespace": set(),
        "ServiceAccount": {"Namespace"},
        "ConfigMap": {"Namespace"},
        "Secret": {"Namespace"},
        "ClusterRole": set(),
        "ClusterRoleBinding": {"ClusterRole", "ServiceAccount"},
        "Role": {"Namespace"},
        "RoleBinding": {"Namespace", "Role", "ServiceAccount"},
        "DaemonSet": set(kinds.values()) - {"DaemonSet", "Stack", "KubernetesDaemonSet", "kubernetes"},
    }
    everything = {one.urn for one in deployed.of_kubernetes}
    daemon_set = deployed.only("kubernetes:apps/v1:DaemonSet")
    assert daemon_set.dependencies == everything - {daemon_set.urn}


def test_every_object_belongs_to_the_component_and_goes_to_the_programs_cluster(
    cluster: Cluster, deployed: pulumi_monitor.Run
) -> None:
    component = deployed.only(_COMPONENT)
    provider = deployed.only("pulumi:providers:kubernetes")
    assert sorted(one.type for one in deployed.of_kubernetes) == sorted(map(type_token, rendered(cluster)))
    assert {one.parent for one in deployed.of_kubernetes} == {component.urn}
    assert {one.provider for one in deployed.of_kubernetes} == {f"{provider.urn}::id-of-kubernetes"}
    assert {one.version for one in [provider, *deployed.of_kubernetes]} == {PROVIDER_VERSION}


def test_secrets_are_marked_in_both_directions(deployed: pulumi_monitor.Run) -> None:
    secrets = [one for one in deployed.of_kubernetes if one.type == "kubernetes:core/v1:Secret"]
    assert [(one.inputs["data"][MARK], one.secret_outputs) for one in secrets] == [(SECRET_MARK, ("data",))] * 2
    assert deployed.only("pulumi:providers:kubernetes").inputs["kubeconfig"][MARK] == SECRET_MARK


def test_the_stack_exports_the_state_of_the_pods(deployed: pulumi_monitor.Run) -> None:
    output = {
        "namespace": NAME,
        "daemonset_name": NAME,
        "desired_number_scheduled": "2",
        "current_number_scheduled": "2",
        "number_ready": "2",
    }
    assert deployed.outputs == {deployed.only("pulumi:pulumi:Stack").urn: output, deployed.only(_COMPONENT).urn: output}


def test_a_second_run_changes_nothing(cluster: Cluster, deployed: pulumi_monitor.Run) -> None:
    def versions() -> list[Json]:
        found = [cluster.get(one)["metadata"] for one in rendered(cluster)]
        return [{"uid": one["uid"], "version": one.get("generation", one["resourceVersion"])} for one in found]

    before = versions()
    again = cluster.run(stack_input(cluster))
    assert again.process.returncode == 0, again.process.stderr
    assert {one.urn for one in again.resources} == {one.urn for one in deployed.resources}
    assert versions() == before


def test_an_invalid_manifest_is_not_sent_to_the_engine(cluster: Cluster) -> None:
    run = cluster.run(stack_input(cluster, update_strategy={"type": "Sometimes"}, dns_policy="None"))
    assert run.process.returncode == 1
    assert 'spec.update_strategy.type: "Sometimes" is invalid; expected RollingUpdate' in run.process.stderr
    assert 'spec.dns_policy: "None" is invalid; expected ClusterFirst' in run.process.stderr
    assert [one.type for one in run.resources] == ["pulumi:pulumi:Stack"]


def test_a_rejection_by_the_server_ends_the_run_with_its_message(cluster: Cluster) -> None:
    run = cluster.run(stack_input(cluster, namespace="nowhere", create_namespace=False, rbac={}))
    assert run.process.returncode == 1
    assert 'namespaces "nowhere" not found' in run.process.stderr
    assert run.refused
    assert "kubernetes:apps/v1:DaemonSet" not in {one.type for one in run.refused}  # it waits for what was refused
