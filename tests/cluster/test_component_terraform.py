"""Modules by the real Terraform on a real API server. Who plays the provider: lab/binaries/terraform/main.go."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import lab
from kubernetes_daemonset.deploy import terraform
from kubernetes_daemonset.manifest.dump import to_json
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.render.resources import render
from tests.support.component_tool import Tool
from tests.support.terraform import LOGINS, NAME, PASSWORD, TEXTS, Terraform, a_container, an_agent

Object = dict[str, Any]

NODES = 2


class World:
    """A namespace to be made, nodes for its agent, and a module in front of them."""

    def __init__(self, plane: lab.Plane, namespace: str, folder: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self.terraform = Terraform(plane, folder)

    def found(self) -> list[Object]:
        """The agent's objects as the server has them."""
        return [one for one in map(self.get, render(an_agent(self.namespace))) if one]

    def get(self, one: Object) -> Object | None:
        words = ["get", one["kind"], one["metadata"]["name"], "--ignore-not-found", "--show-managed-fields"]
        words += [f"--namespace={one['metadata'].get('namespace', '')}", "--output=json"]
        output = self.plane.kubectl(*words)
        return json.loads(output) if output else None

    def daemon_set(self) -> Object:
        found = self.get({"kind": "DaemonSet", "metadata": {"name": NAME, "namespace": self.namespace}})
        assert found
        return found


@pytest.fixture
def world(plane: lab.Plane, prefix: str, tmp_path: Path) -> Iterator[World]:
    here = World(plane, prefix, tmp_path)
    nodes = plane.simulated_nodes(NODES, prefix=prefix, labels={"pool": prefix})
    yield here
    gone = ["--ignore-not-found", "--wait=false"]
    plane.kubectl("delete", "clusterrole,clusterrolebinding", naming.cluster_role(an_agent(prefix).target), *gone)
    plane.kubectl("delete", "namespace", prefix, *gone)
    nodes.delete()


def lasting(found: Mapping[str, Any]) -> Object:
    """What is the same however often an object is made, and who we are to the server."""
    metadata = {key: value for key, value in found["metadata"].items() if key not in {"uid", "resourceVersion"}}
    metadata.pop("creationTimestamp")
    ours = [one for one in metadata["managedFields"] if one["manager"] == terraform.FIELD_MANAGER]
    metadata["managedFields"] = [{key: value for key, value in one.items() if key != "time"} for one in ours]
    assert ours
    return {key: value for key, value in found.items() if key != "status"} | {"metadata": metadata}


def test_it_creates_what_a_direct_apply_creates_and_deletes_all_of_it(world: World) -> None:
    given = an_agent(world.namespace)
    world.terraform.init(terraform.module(given))
    world.terraform.apply("-var=delete_namespace=true")
    by_terraform = world.found()
    assert [one["kind"] for one in by_terraform] == [one["kind"] for one in render(given)]
    assert world.terraform.outputs() == {"namespace": world.namespace, "daemonset_name": NAME}
    world.terraform.destroy()
    assert world.found() == []
    listed = {"apiVersion": "v1", "kind": "List", "items": render(given)}
    manager = f"--field-manager={terraform.FIELD_MANAGER}"
    world.plane.kubectl("apply", "--server-side", manager, "--filename=-", standard_input=json.dumps(listed))
    assert list(map(lasting, by_terraform)) == list(map(lasting, world.found()))


def test_a_second_plan_is_empty_until_something_changes(world: World) -> None:
    made = world.terraform
    made.init(terraform.module(an_agent(world.namespace)))
    assert set(made.plan().values()) == {"create"}
    made.apply()
    assert made.plan() == {}
    made.write(terraform.module(an_agent(world.namespace, container=a_container(level="debug"))))
    assert made.plan() == {"daemon_set": "update"}
    made.apply()
    assert made.plan() == {}
    made.write(terraform.module(an_agent(world.namespace, config_maps={**TEXTS, "agent-conf": "2"})))
    assert made.plan() == {"config_map_agent-conf": "update", "daemon_set": "update"}


def test_output_of_terraform_contains_no_secret(world: World) -> None:
    made = world.terraform
    made.init(terraform.module(an_agent(world.namespace)))
    made.plan()
    made.apply()
    changed = "another horse"
    made.write(terraform.module(an_agent(world.namespace, container=a_container(password=changed))))
    assert made.plan() == {"secret_agent-env-secrets": "update", "daemon_set": "update"}
    made.apply()
    assert "data: (sensitive value)" in made.output
    for secret in (PASSWORD, LOGINS, changed):
        assert secret not in made.output
        assert base64.b64encode(secret.encode()).decode() not in made.output


def test_an_apply_waits_for_all_nodes_unless_disabled(world: World) -> None:
    made = world.terraform
    made.init(terraform.module(an_agent(world.namespace, min_ready_seconds=60)))
    made.apply("-var=wait_for_rollout=false")
    assert world.daemon_set()["status"].get("numberAvailable", 0) == 0
    made.write(terraform.module(an_agent(world.namespace, min_ready_seconds=2, container=a_container(level="debug"))))
    made.apply()
    status = world.daemon_set()["status"]
    assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (NODES, NODES)


def test_changes_of_other_managers_are_reverted_only_with_force(world: World) -> None:
    made = world.terraform
    made.init(terraform.module(an_agent(world.namespace)))
    made.apply("-var=wait_for_rollout=false")
    change = {"spec": {"template": {"spec": {"containers": [{"name": NAME, "image": "registry.example.com/other:1"}]}}}}
    as_someone = ["--field-manager=someone", f"--namespace={world.namespace}"]
    world.plane.kubectl("patch", "daemonset", NAME, f"--patch={json.dumps(change)}", *as_someone)
    assert made.plan("-var=wait_for_rollout=false") == {"daemon_set": "update"}
    assert 'conflict with "someone"' in made.refused("-var=wait_for_rollout=false")
    made.apply("-var=wait_for_rollout=false", "-var=force_conflicts=true")
    (container,) = world.daemon_set()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "lab.local/toolbox:1"


def test_a_namespace_remains_after_the_agent_is_deleted(world: World) -> None:
    made = world.terraform
    made.init(terraform.module(an_agent(world.namespace)))
    made.apply()
    made.destroy()
    assert [one["kind"] for one in world.found()] == ["Namespace"]


def test_objects_of_terraform_are_neither_taken_over_nor_deleted_by_a_direct_apply(
    world: World, tmp_path: Path
) -> None:
    given = an_agent(world.namespace)
    world.terraform.init(terraform.module(given))
    world.terraform.apply("-var=wait_for_rollout=false")
    before = list(map(lasting, world.found()))
    tool = Tool(world.plane, tmp_path, world.plane.kubeconfig())
    same = tool.write("same.yaml", to_json(given))
    less = tool.write("less.yaml", to_json(an_agent(world.namespace, config_maps={"agent.conf": TEXTS["agent.conf"]})))

    refused = tool.run("apply", "-f", same)
    deleted = tool.run("delete", "-f", less)

    daemon_set = f"DaemonSet {world.namespace}/{NAME}"
    assert refused.code == 3
    assert (
        f"{daemon_set}: is managed by {terraform.FIELD_MANAGER}; deploy it with that tool, or use --adopt"
        in refused.err
    )
    assert f"kept {daemon_set}, which is managed by {terraform.FIELD_MANAGER}" in deleted.err
    assert list(map(lasting, world.found())) == before
    assert world.terraform.plan("-var=wait_for_rollout=false") == {}


def test_objects_with_another_manager_are_not_pruned(world: World, tmp_path: Path) -> None:
    world.terraform.init(terraform.module(an_agent(world.namespace)))
    world.terraform.apply("-var=wait_for_rollout=false")
    tool = Tool(world.plane, tmp_path, world.plane.kubeconfig())
    tool.does("apply", "-f", tool.write("same.yaml", to_json(an_agent(world.namespace))), "--adopt")
    less = an_agent(world.namespace, config_maps={"agent.conf": TEXTS["agent.conf"]})

    pruned = tool.run("apply", "-f", tool.write("less.yaml", to_json(less)), "--force-conflicts")

    assert pruned.code == 0, pruned.err
    assert (
        f"kept ConfigMap {world.namespace}/agent-conf, which is also managed by {terraform.FIELD_MANAGER}" in pruned.err
    )
    assert "ConfigMap" in {one["kind"] for one in world.found() if one["metadata"]["name"] == "agent-conf"}
