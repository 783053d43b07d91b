"""The kubernetes-daemonset command against a real API server, with simulated nodes that run whatever is scheduled."""

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lab
from lab import waiting
from tests.support.component_tool import COMMAND, Json, Tool

NODES = 3
GROUP = {"pool": "agents"}

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets]}}
  variables:
    - {{name: labels, expression: object.spec.template.metadata.labels}}
  validations:
    - expression: '!("forbidden" in variables.labels) || variables.labels["forbidden"] != "{name}"'
      message: no such label
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"""


@pytest.fixture(scope="module")
def guarded_plane() -> Iterator[lab.Plane]:
    with lab.plane() as plane:
        plane.simulated_nodes(NODES, prefix="agents", labels=GROUP)
        yield plane


@pytest.fixture
def tool(guarded_plane: lab.Plane, tmp_path: Path) -> Tool:
    return Tool(guarded_plane, tmp_path, guarded_plane.kubeconfig())


def an_agent(name: str, namespace: str, **spec: Any) -> Json:  # noqa: ANN401  the manifest's own fields
    app: Json = {"image": "registry.example.com/agent:1.0"}
    defaults: Json = {
        "namespace": namespace,
        "create_namespace": True,
        "node_selector": GROUP,
        "container": {"app": app},
    }
    return {
        "apiVersion": "kubernetes.project-planton.org/v1",
        "kind": "KubernetesDaemonSet",
        "metadata": {"name": name},
        "spec": defaults | spec,
    }


def an_original(name: str, namespace: str) -> Json:
    """A DaemonSet as the original makes it: all of them have one selector."""
    container = {"name": "daemonset-container", "image": "registry.example.com/agent:0.9"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "daemonset"}},
            "template": {
                "metadata": {"labels": {"app": "daemonset"}},
                "spec": {"nodeSelector": GROUP, "containers": [container]},
            },
        },
    }


def everything(name: str, namespace: str) -> Json:
    """A manifest that makes an object of each kind."""
    rule = {"api_groups": [""], "resources": ["pods"], "verbs": ["list"]}
    manifest = an_agent(
        name,
        namespace,
        create_service_account=True,
        config_maps={f"{name}-config": "verbose: true\n"},
        rbac={"cluster_rules": [rule], "namespace_rules": [rule]},
    )
    manifest["spec"]["container"]["app"] |= {
        "env": {"variables": {"MODE": "node"}, "secrets": {"TOKEN": "s3cret"}},
        "volume_mounts": [{"name": "config", "mount_path": "/etc/agent", "config_map": f"{name}-config"}],
    }
    return manifest


def test_an_agent_is_deployed_waited_for_and_reported(tool: Tool, prefix: str) -> None:
    file = tool.write("agent.yaml", everything("agent", prefix))

    applied = tool.run("apply", "-f", file)

    assert applied.code == 0, applied.err
    assert applied.err.count(f"applied Namespace {prefix}\n") == 1
    assert f"applied DaemonSet {prefix}/agent" in applied.err
    assert f"{NODES} of {NODES} nodes updated, {NODES} available" in applied.err
    outputs = tool.does("outputs", "-f", file, "-o", "json")
    assert f'"number_ready": "{NODES}"' in outputs
    assert f'"namespace": "{prefix}"' in outputs


def test_applying_again_changes_nothing_and_there_is_no_difference(tool: Tool, prefix: str) -> None:
    file = tool.write("agent.yaml", everything("agent", prefix))
    tool.does("apply", "-f", file)
    before = tool.versions(prefix)

    assert tool.does("diff", "-f", file) == ""
    tool.does("apply", "-f", file)

    assert tool.versions(prefix) == before


def test_a_changed_config_is_shown_and_rolls_the_pods(tool: Tool, prefix: str) -> None:
    manifest = everything("agent", prefix)
    file = tool.write("agent.yaml", manifest)
    tool.does("apply", "-f", file)
    old = _pods(tool, prefix)
    manifest["spec"]["config_maps"]["agent-config"] = "verbose: false\n"
    tool.write("agent.yaml", manifest)

    shown = tool.run("diff", "-f", file)
    tool.does("apply", "-f", file)

    assert shown.code == 1
    assert "-    verbose: true" in shown.out
    assert "+    verbose: false" in shown.out
    assert not old & _pods(tool, prefix)


def test_a_changed_secret_rolls_the_pods_and_is_never_shown(tool: Tool, prefix: str) -> None:
    manifest = everything("agent", prefix)
    file = tool.write("agent.yaml", manifest)
    tool.does("apply", "-f", file)
    old = _pods(tool, prefix)
    manifest["spec"]["container"]["app"]["env"]["secrets"]["TOKEN"] = "another-s3cret"  # noqa: S105
    tool.write("agent.yaml", manifest)

    shown = tool.run("diff", "-f", file)
    tool.does("apply", "-f", file)

    assert shown.code == 1
    assert "agent-env-secrets" in shown.out
    assert "czNjcmV0" not in shown.out  # s3cret in base64; the start of both
    assert not old & _pods(tool, prefix)


def test_only_objects_that_left_the_manifest_are_deleted(tool: Tool, prefix: str) -> None:
    tool.does("apply", "-f", tool.write("agent.yaml", everything("agent", prefix)))
    ours = tool.live("configmap", "agent-config", prefix)
    assert ours
    _create(tool, "copied", prefix, ours["metadata"]["labels"])
    _create(tool, "unrelated", prefix, {})

    pruned = tool.run("apply", "-f", tool.write("agent.yaml", an_agent("agent", prefix)))

    assert pruned.code == 0, pruned.err
    assert f"deleted ConfigMap {prefix}/agent-config, which the manifest no longer includes" in pruned.err
    for kind, name, namespace in (
        ("configmap", "agent-config", prefix),
        ("secret", "agent-env-secrets", prefix),
        ("role", "agent", prefix),
        ("rolebinding", "agent", prefix),
        ("clusterrole", f"kubernetes-daemonset:{prefix}:agent", ""),
        ("clusterrolebinding", f"kubernetes-daemonset:{prefix}:agent", ""),
        ("serviceaccount", "agent", prefix),
    ):
        assert tool.live(kind, name, namespace) is None, (kind, name)
    assert tool.live("configmap", "copied", prefix)
    assert tool.live("configmap", "unrelated", prefix)


def test_a_field_that_another_manager_owns_is_named_and_nothing_is_changed(tool: Tool, prefix: str) -> None:
    file = tool.write("agent.yaml", everything("agent", prefix))
    tool.does("apply", "-f", file)
    theirs = '{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"registry.example.com/agent:2.0"}]}}}}'
    tool.plane.kubectl("patch", "daemonset", "agent", "-n", prefix, "--patch", theirs, "--field-manager", "someone")
    before = tool.versions(prefix)
    manifest = everything("agent", prefix)
    manifest["spec"]["config_maps"]["agent-config"] = "verbose: false\n"
    tool.write("agent.yaml", manifest)

    refused = tool.run("apply", "-f", file)

    assert refused.code == 3
    assert "nothing was changed" in refused.err
    assert '.spec.template.spec.containers[name="agent"].image (conflict with "someone"' in refused.err
    assert refused.err.count("--force-conflicts") == 1
    assert tool.versions(prefix) == before

    shown = tool.run("diff", "-f", file)

    assert shown.code == 1
    assert "registry.example.com/agent:2.0" in shown.out
    assert "verbose: false" in shown.out
    assert shown.err.splitlines()[-1] == "apply does not change these fields; use --force-conflicts to take them over"
    assert tool.versions(prefix) == before

    tool.does("apply", "-f", file, "--force-conflicts")

    live = tool.live("daemonset", "agent", prefix)
    assert live
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/agent:1.0"


def test_nothing_is_applied_if_a_later_manifest_is_rejected(tool: Tool, prefix: str) -> None:
    lost = an_agent("second", f"{prefix}-lost", create_namespace=False)

    refused = tool.run("apply", "-f", tool.write("agents.yaml", an_agent("first", prefix), lost))

    assert refused.code == 3
    assert refused.err.count(f"{prefix}-lost") == 1
    assert f"Namespace {prefix}-lost does not exist; set create_namespace: true or create it first" in refused.err
    assert tool.live("namespace", prefix) is None


def test_policies_of_the_namespace_are_checked_before_any_object_is_created(tool: Tool, prefix: str) -> None:
    tool.plane.apply(POLICY.format(name=prefix))
    manifest = everything("agent", prefix)
    manifest["spec"]["pod_labels"] = {"forbidden": prefix}
    file = tool.write("agent.yaml", manifest)
    doubt = f"DaemonSet {prefix}/agent: Namespace {prefix} does not exist yet; in default it would be rejected: "
    waiting.until("the policy holds", lambda: doubt in tool.run("apply", "-f", file, "--dry-run").err, 180)

    tried = tool.run("diff", "-f", file)
    refused = tool.run("apply", "-f", file)

    assert tried.code == 1
    assert doubt in tried.err
    assert "no such label" in tried.err
    assert f"{prefix}-agent" not in tried.err
    assert refused.code == 3
    assert f"nothing was changed, except that Namespace {prefix} was created:" in refused.err
    assert f"DaemonSet {prefix}/agent: " in refused.err
    assert "no such label" in refused.err
    assert not [name for name in tool.versions(prefix) if "/agent" in name]


def test_policies_of_other_namespaces_do_not_apply(tool: Tool, prefix: str) -> None:
    """Not even one of the namespace in which objects are tried for one that is yet to be made."""
    quota = ["--hard=count/configmaps=0", "-n", "default"]
    tool.plane.kubectl("create", "quota", prefix, *quota)
    try:
        file = tool.write("agent.yaml", everything("agent", prefix))
        waiting.until("the quota holds", lambda: "quota" in tool.run("apply", "-f", file, "--dry-run").err, 180)
        tool.does("apply", "-f", file, "--no-wait")
    finally:
        tool.plane.kubectl("delete", "quota", prefix, "-n", "default")

    assert tool.live("daemonset", "agent", prefix)


def test_permissions_in_a_missing_namespace_are_checked(tool: Tool, prefix: str) -> None:
    home = f"{prefix}-home"
    tool.plane.kubectl("create", "namespace", home)
    tool.plane.kubectl("create", "serviceaccount", "founder", "-n", home)
    tool.plane.kubectl("create", "clusterrole", prefix, "--verb=get,create,patch", "--resource=namespaces")
    tool.plane.kubectl("create", "clusterrole", f"{prefix}-look", "--verb=get,list", "--resource=daemonsets.apps")
    for role in (prefix, f"{prefix}-look"):
        tool.plane.kubectl(
            "create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={home}:founder"
        )
    founder = Tool(tool.plane, tool.folder, tool.plane.kubeconfig(f"{home}/founder"))

    refused = founder.run("apply", "-f", tool.write("agent.yaml", an_agent("agent", prefix)))

    assert refused.code == 3
    assert "nothing was changed:" in refused.err
    assert f"DaemonSet {prefix}/agent: you are not allowed to create daemonsets in {prefix}" in refused.err
    assert tool.live("namespace", prefix) is None


def test_objects_of_another_owner_are_taken_over_only_with_adopt(tool: Tool, prefix: str) -> None:
    tool.plane.kubectl("create", "namespace", prefix)
    tool.plane.kubectl("create", "configmap", "agent-config", "-n", prefix, "--from-literal=precious=1")
    file = tool.write("agent.yaml", everything("agent", prefix))

    refused = tool.run("apply", "-f", file)

    assert refused.code == 3
    assert f"ConfigMap {prefix}/agent-config: is managed by kubectl-create" in refused.err
    assert tool.live("daemonset", "agent", prefix) is None
    tool.does("apply", "-f", file, "--adopt")
    live = tool.live("configmap", "agent-config", prefix)
    assert live
    assert sorted(live["data"]) == ["agent-config", "precious"]


def test_a_namespace_of_another_owner_is_neither_changed_nor_deleted(tool: Tool, prefix: str) -> None:
    tool.plane.kubectl("create", "namespace", prefix)
    before = tool.live("namespace", prefix)
    file = tool.write("agent.yaml", an_agent("agent", prefix))

    tool.does("apply", "-f", file)
    versions = tool.versions(prefix)
    refused = tool.run("delete", "-f", file, "--delete-namespace")

    assert refused.code == 3
    assert f"Namespace {prefix} is not managed by kubernetes-daemonset, so nothing was deleted" in refused.err
    assert tool.versions(prefix) == versions
    assert tool.live("namespace", prefix) == before


def test_objects_in_use_by_pods_are_not_deleted(tool: Tool, prefix: str) -> None:
    manifest = everything("agent", prefix)
    tool.does("apply", "-f", tool.write("agent.yaml", manifest))
    del manifest["spec"]["config_maps"], manifest["spec"]["rbac"]
    manifest["spec"] |= {"create_service_account": False, "service_account_name": "agent"}

    tool.does("apply", "-f", tool.write("agent.yaml", manifest))

    assert tool.live("configmap", "agent-config", prefix)
    assert tool.live("serviceaccount", "agent", prefix)
    assert tool.live("role", "agent", prefix) is None


def test_one_manifest_can_create_the_namespace_of_another(tool: Tool, prefix: str) -> None:
    guest = an_agent("guest", prefix, create_namespace=False)
    tool.does("apply", "-f", tool.write("agents.yaml", an_agent("host", prefix), guest))
    assert tool.live("daemonset", "guest", prefix)


def test_a_slow_rollout_does_not_stop_others(tool: Tool, prefix: str) -> None:
    late = an_agent("late", prefix, priority_class_name="there-is-none")

    ended = tool.run("apply", "-f", tool.write("agents.yaml", late, an_agent("fine", prefix)), "--timeout", "12s")

    assert ended.code == 4
    assert f"DaemonSet {prefix}/late: after 12 s" in ended.err
    assert f"{NODES} of {NODES} nodes updated, {NODES} available" in ended.err


def test_a_namespace_administrator_can_deploy_an_agent_with_permissions_there(tool: Tool, prefix: str) -> None:
    """To them a binding's role must exist, and in a dry run it does not."""
    tool.plane.kubectl("create", "namespace", prefix)
    tool.plane.kubectl("create", "serviceaccount", "admin", "-n", prefix)
    tool.plane.kubectl(
        "create", "rolebinding", "admin", "-n", prefix, "--clusterrole=admin", f"--serviceaccount={prefix}:admin"
    )
    admin = Tool(tool.plane, tool.folder, tool.plane.kubeconfig(f"{prefix}/admin"))
    rule = {"api_groups": [""], "resources": ["pods"], "verbs": ["list"]}
    manifest = an_agent(
        "agent", prefix, create_namespace=False, create_service_account=True, rbac={"namespace_rules": [rule]}
    )

    applied = admin.run("apply", "-f", tool.write("agent.yaml", manifest))

    assert applied.code == 0, applied.err
    assert tool.live("rolebinding", "agent", prefix)
    assert applied.err.count("you are not allowed to list clusterrolebindings, clusterroles: ") == 1
    assert "is forbidden" not in applied.err


def test_a_rollout_without_pods_times_out_with_the_reason(tool: Tool, prefix: str) -> None:
    file = tool.write("agent.yaml", an_agent("agent", prefix, priority_class_name="there-is-none"))

    late = tool.run("apply", "-f", file, "--timeout", "12s")

    assert late.code == 4
    last = late.err.splitlines()[-1]
    assert f"DaemonSet {prefix}/agent: after 12 s, 0 of {NODES} nodes updated, 0 available" in last
    assert "no PriorityClass with name there-is-none was found" in last


def test_two_agents_in_one_namespace_do_not_conflict(tool: Tool, prefix: str) -> None:
    both = tool.write("agents.yaml", everything("one", prefix), everything("two", prefix))
    tool.does("apply", "-f", both)

    tool.does("delete", "-f", tool.write("one.yaml", everything("one", prefix)))

    left = tool.versions(prefix)
    assert "DaemonSet/two" in left
    assert "ConfigMap/two-config" in left
    assert "Secret/two-env-secrets" in left
    assert not [name for name in left if "/one" in name]
    assert tool.live("clusterrole", f"kubernetes-daemonset:{prefix}:two")
    assert tool.does("outputs", "-f", tool.write("two.yaml", everything("two", prefix)), "-o", "table").split()[
        -1
    ] == str(NODES)


def test_an_object_of_another_component_is_never_taken_over(tool: Tool, prefix: str) -> None:
    tool.does("apply", "-f", tool.write("one.yaml", everything("one", prefix)))
    greedy = an_agent("two", prefix, config_maps={"one-config": "mine now"})

    refused = tool.run("apply", "-f", tool.write("two.yaml", greedy))

    assert refused.code == 3
    assert f"ConfigMap {prefix}/one-config: belongs to component one" in refused.err
    assert tool.live("daemonset", "two", prefix) is None


def test_a_daemon_set_with_another_selector_is_explained(tool: Tool, prefix: str) -> None:
    tool.plane.kubectl("create", "namespace", prefix)
    tool.plane.kubectl("apply", "-f", str(tool.write("foreign.yaml", an_original("agent", prefix))))

    refused = tool.run("apply", "-f", tool.write("agent.yaml", an_agent("agent", prefix, create_namespace=False)))

    assert refused.code == 3
    assert len(refused.err.splitlines()) == 2, refused.err
    assert "exists with selector app=daemonset, which is immutable" in refused.err
    assert "--cascade=orphan" in refused.err
    assert (
        f"kubectl delete pods --namespace {prefix} --selector 'app=daemonset,app.kubernetes.io/managed-by!="
        in refused.err
    )


def test_replacing_the_originals_daemon_set_ends_its_pods_and_no_others(tool: Tool, prefix: str) -> None:
    """By the commands that the error names. The pods of both have the label app=daemonset."""
    tool.plane.kubectl("create", "namespace", prefix)
    tool.plane.kubectl("apply", "-f", str(tool.write("original.yaml", an_original("agent", prefix))))
    file = tool.write("agent.yaml", an_agent("agent", prefix, create_namespace=False))
    waiting.until("the original's pods", lambda: len(_pods(tool, prefix)) == NODES, 30)
    old = _pods(tool, prefix)
    delete, end = re.findall(
        r"kubectl (delete .*?)(?:, apply again|$)", tool.run("apply", "-f", file).err, re.MULTILINE
    )

    tool.plane.kubectl(*shlex.split(delete))
    tool.does("apply", "-f", file)
    new = _pods(tool, prefix) - old
    assert len(new) == NODES
    tool.plane.kubectl(*shlex.split(end))

    assert _pods(tool, prefix) == new


def test_delete_removes_the_pods_first_and_keeps_the_namespace(tool: Tool, prefix: str) -> None:
    file = tool.write("agent.yaml", everything("agent", prefix))
    tool.does("apply", "-f", file)

    would = tool.does("delete", "-f", file, "--dry-run")
    deleted = tool.run("delete", "-f", file)

    assert would.splitlines()[0] == f"would delete DaemonSet {prefix}/agent"
    assert deleted.code == 0, deleted.err
    assert deleted.err.splitlines()[0] == f"deleted DaemonSet {prefix}/agent"
    assert "kept Namespace" in deleted.err
    assert not _pods(tool, prefix)
    assert not [name for name in tool.versions(prefix) if "/agent" in name]
    would = tool.does("delete", "-f", file, "--dry-run", "--delete-namespace")
    assert would == f"would delete Namespace {prefix} and everything in it\n"
    output = tool.run("delete", "-f", file, "--delete-namespace")
    assert f"Namespace {prefix} is being deleted with everything in it" in output.err
    waiting.until("the namespace is gone", lambda: tool.live("namespace", prefix) is None, 180)


@pytest.mark.parametrize("makes_it", [True, False])
def test_a_terminating_namespace_is_an_error(
    tool: Tool,
    prefix: str,
    makes_it: bool,  # noqa: FBT001
) -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    tool.plane.kubectl("create", "namespace", prefix)
    tool.plane.kubectl("apply", "-n", prefix, "-f", str(tool.write("held.yaml", held)))
    tool.plane.kubectl("delete", "namespace", prefix, "--wait=false")
    manifest = everything("agent", prefix)
    manifest["spec"] |= {"create_namespace": makes_it}
    try:
        refused = tool.run("apply", "-f", tool.write("agent.yaml", manifest))
    finally:
        tool.plane.kubectl("patch", "configmap", "held", "-n", prefix, "--patch", '{"metadata":{"finalizers":null}}')

    assert refused.code == 3
    (reason,) = refused.err.splitlines()[1:]
    assert reason.strip() == f"Namespace {prefix} is being deleted; wait until it is gone and retry"


def test_an_interrupted_deployment_is_completed_by_the_next(tool: Tool, prefix: str) -> None:
    file = tool.write("agent.yaml", everything("agent", prefix))
    with subprocess.Popen(
        [*COMMAND, "apply", "-f", file], stderr=subprocess.PIPE, text=True, env=tool.environment
    ) as first:
        assert first.stderr
        assert first.stderr.readline().startswith("applied ")
        first.send_signal(signal.SIGKILL)

    tool.does("apply", "-f", file)

    assert tool.does("diff", "-f", file) == ""


def test_a_missing_right_is_named(tool: Tool, prefix: str) -> None:
    tool.plane.kubectl("create", "namespace", prefix)
    tool.plane.kubectl("create", "serviceaccount", "nobody", "-n", prefix)
    nobody = Tool(tool.plane, tool.folder, tool.plane.kubeconfig(f"{prefix}/nobody"))

    refused = nobody.run("apply", "-f", tool.write("agent.yaml", an_agent("agent", prefix, create_namespace=False)))

    assert refused.code == 3
    assert 'cannot get resource "daemonsets"' in refused.err


def test_an_unresponsive_server_is_reported_in_one_line(tool: Tool, prefix: str) -> None:
    away = tool.folder / "away.kubeconfig"
    away.write_text(tool.kubeconfig.read_text().replace(tool.plane.url, "https://127.0.0.1:9"))
    manifest = an_agent("agent", prefix, create_namespace=False)

    failed = tool.run("diff", "-f", tool.write("agent.yaml", manifest), "--kubeconfig", away)

    assert failed.code == 3
    assert len(failed.err.splitlines()) == 1
    assert "https://127.0.0.1:9" in failed.err


def test_an_address_without_https_is_reported(tool: Tool, prefix: str) -> None:
    plain = tool.folder / "plain.kubeconfig"
    plain.write_text(tool.kubeconfig.read_text().replace("https://", "http://"))

    failed = tool.run("diff", "-f", tool.write("agent.yaml", an_agent("agent", prefix)), "--kubeconfig", plain)

    assert failed.code == 3
    assert len(failed.err.splitlines()) == 1
    assert "expected an https:// URL, because http:// would send the user's credentials unencrypted" in failed.err


def test_an_unknown_context_is_reported_with_the_available_ones(tool: Tool, prefix: str) -> None:
    failed = tool.run(
        "outputs", "-f", tool.write("agent.yaml", an_agent("agent", prefix)), "--kube-context", "production"
    )

    assert failed.code == 3
    assert 'context "production" is not defined; expected ' in failed.err


def test_a_dry_run_lists_the_changes_and_changes_nothing(tool: Tool, prefix: str) -> None:
    shown = tool.run("apply", "-f", tool.write("agent.yaml", everything("agent", prefix)), "--dry-run")

    assert shown.code == 0, shown.err
    assert [line.split()[-1] for line in shown.out.splitlines()[1:]] == ["create"] * 9
    assert f"Namespace {prefix} does not exist yet, so its policies and quotas were not checked" in shown.err
    assert tool.live("namespace", prefix) is None


def _pods(tool: Tool, namespace: str) -> set[str]:
    return set(tool.plane.kubectl("get", "pods", "-n", namespace, "-o", "jsonpath={.items[*].metadata.uid}").split())


def _create(tool: Tool, name: str, namespace: str, labels: dict[str, str]) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
    }
    tool.plane.kubectl("create", "-f", str(tool.write(f"{name}.yaml", body)))
