"""The component for Pulumi: what it registers, what it accepts, and what it rejects."""

import base64
import enum
import json
import logging
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

import kubernetes_daemonset
from kubernetes_daemonset.backends.pulumi import KubernetesDaemonSetComponent, ManifestRunError
from kubernetes_daemonset.deploy import loader
from kubernetes_daemonset.deploy.dependencies import depends_on
from kubernetes_daemonset.manifest import reader
from tests.support.pulumi_agents import SECRET, a_small_agent, an_agent, with_login
from tests.support.pulumi_mocks import MARK, SECRET_MARK, Engine, deploy, named, rendered

Json = dict[str, Any]

AGENT = an_agent("agent", "logging")


def deploy_agent(of: loader.Manifest, name: str = "agent", engine: Engine | None = None) -> Engine:
    def build() -> None:
        KubernetesDaemonSetComponent(name, of)

    return deploy(build, engine)[0]


# --- what is registered ---


@pytest.mark.parametrize("of", [a_small_agent(), AGENT, with_login(AGENT)])
def test_the_registered_objects_are_the_rendered_ones(of: Json) -> None:
    registered, expected = deploy_agent(of).objects, named(rendered(of))
    assert registered == expected
    assert json.dumps(registered, sort_keys=True) == json.dumps(expected, sort_keys=True)  # to Python, False is 0


def test_zero_false_and_empty_values_are_kept() -> None:
    spec = deploy_agent(AGENT).objects["kubernetes:apps/v1:DaemonSet agent/DaemonSet/agent"]["spec"]
    pod = spec["template"]["spec"]
    app = pod["containers"][0]
    assert spec["revisionHistoryLimit"] == 0
    assert spec["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": "10%"}
    assert pod["tolerations"][0]["tolerationSeconds"] == 0
    assert pod["terminationGracePeriodSeconds"] == 0
    assert pod["automountServiceAccountToken"] is False
    assert app["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,
    }
    assert app["livenessProbe"]["initialDelaySeconds"] == 0
    assert {"name": "EMPTY", "value": ""} in app["env"]
    assert {"name": "scratch", "emptyDir": {}} in pod["volumes"]


def test_every_kind_has_the_type_that_the_provider_knows() -> None:
    types = {one.typ for one in deploy_agent(with_login(AGENT)).seen}
    assert types == {
        "kubernetes-daemonset:index:KubernetesDaemonSet",
        "kubernetes:core/v1:Namespace",
        "kubernetes:core/v1:ServiceAccount",
        "kubernetes:core/v1:ConfigMap",
        "kubernetes:core/v1:Secret",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
        "kubernetes:rbac.authorization.k8s.io/v1:Role",
        "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding",
        "kubernetes:apps/v1:DaemonSet",
    }


def test_secrets_are_marked_and_not_repeated() -> None:
    seen = deploy_agent(with_login(AGENT)).seen
    secrets = [one.inputs for one in seen if one.typ == "kubernetes:core/v1:Secret"]
    assert len(secrets) == 2
    assert all(one["data"][MARK] == SECRET_MARK for one in secrets)
    others = json.dumps([one.inputs for one in seen if one.typ != "kubernetes:core/v1:Secret"])
    for output in (SECRET, base64.b64encode(SECRET.encode()).decode(), "dTpw"):
        assert output not in others


def test_agents_of_one_name_in_two_namespaces_are_distinct() -> None:
    def build() -> None:
        KubernetesDaemonSetComponent("here", an_agent("agent", "here"))
        KubernetesDaemonSetComponent("there", an_agent("agent", "there"))

    engine, _ = deploy(build)
    assert len(engine.objects) == 2 * len(rendered(an_agent("agent", "here")))


def test_dependencies_come_first() -> None:
    objects = rendered(with_login(AGENT))
    needed = {
        one["kind"]: {other["kind"] for other in objects if other is not one and depends_on(one, other)}
        for one in objects
    }
    everything = {one["kind"] for one in objects} - {"DaemonSet"}
    assert needed == {
        "Namespace": set(),
        "ServiceAccount": {"Namespace"},
        "ConfigMap": {"Namespace"},
        "Secret": {"Namespace"},
        "ClusterRole": set(),
        "ClusterRoleBinding": {"ClusterRole", "ServiceAccount"},
        "Role": {"Namespace"},
        "RoleBinding": {"Namespace", "Role", "ServiceAccount"},
        "DaemonSet": everything,
    }


# --- what it says ---


def outputs_with(engine: Engine) -> dict[str, str]:
    def build() -> pulumi.Output[Any]:
        return pulumi.Output.all(**KubernetesDaemonSetComponent("it", a_small_agent()).stack_outputs)

    output: dict[str, str] = deploy(build, engine)[1]
    return output


def test_the_outputs_report_the_rollout() -> None:
    engine = Engine({"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 0})
    assert outputs_with(engine) == {
        "namespace": "logging",
        "daemonset_name": "agent",
        "desired_number_scheduled": "3",
        "current_number_scheduled": "2",
        "number_ready": "0",
    }


def test_missing_numbers_are_empty() -> None:
    output = outputs_with(Engine())
    assert output["namespace"] == "logging"
    assert [output[key] for key in output if "number" in key] == ["", "", ""]


def test_a_preview_has_names_but_no_numbers() -> None:
    _, name = deploy(lambda: KubernetesDaemonSetComponent("it", a_small_agent()).daemonset_name, preview=True)
    _, ready = deploy(lambda: KubernetesDaemonSetComponent("it", a_small_agent()).number_ready, preview=True)
    assert (name, ready) == ("agent", None)


def test_warnings_are_printed_and_do_not_stop_the_run(caplog: pytest.LogCaptureFixture) -> None:
    agent = a_small_agent()
    agent["spec"]["container"]["app"] |= {
        "ports": [{"name": "metrics", "container_port": 9200, "host_port": 9200}],
        "security_context": {"privileged": True},
    }
    with caplog.at_level(logging.WARNING, "engine"):
        assert deploy_agent(agent).objects
    assert "manifest of agent: spec.container.app" in caplog.text


# --- what it accepts ---


def forms(folder: Path) -> dict[str, loader.Manifest]:
    (folder / "agent.yaml").write_text(yaml.safe_dump(AGENT))
    message = reader.load(yaml.safe_dump(AGENT).encode(), "test")[0]
    return {
        "text": yaml.safe_dump(AGENT),
        "json": json.dumps(AGENT),
        "path": folder / "agent.yaml",
        "path as a text": str(folder / "agent.yaml"),
        "message": message.manifest,
        "stack input": message.input,
        "stack input as a mapping": {"target": AGENT},
        "read already": message,
    }


def test_every_form_of_a_manifest_makes_the_same_objects(tmp_path: Path) -> None:
    expected = named(rendered(AGENT))
    assert {form: deploy_agent(of).objects == expected for form, of in forms(tmp_path).items()} == dict.fromkeys(
        forms(tmp_path), True
    )


def test_a_mapping_can_contain_values_of_yaml_and_python() -> None:
    """Tuples, enums, numbers and dates where texts are wanted, in any dialect of a manifest."""

    class Level(enum.StrEnum):
        INFO = "info"

    agent = a_small_agent()
    agent["spec"]["container"]["app"] |= {
        "image": {"repo": "example/agent", "tag": yaml.safe_load("2026-01-31")},
        "args": ("--verbose", Level.INFO),
        "env": {"variables": [{"name": "LEVEL", "value": Level.INFO}, {"name": "PORT", "value": 9200}]},
    }
    (daemon_set,) = rendered(agent)
    (app,) = daemon_set["spec"]["template"]["spec"]["containers"]
    assert app["image"] == "example/agent:2026-01-31"
    assert app["args"] == ["--verbose", "info"]
    assert {"name": "LEVEL", "value": "info"} in app["env"]
    assert {"name": "PORT", "value": "9200"} in app["env"]


# --- what is refused ---


def refused(of: loader.Manifest) -> str:
    """All that is said, after nothing was registered."""
    engine = Engine()
    with pytest.raises(ManifestRunError) as caught:
        deploy_agent(of, engine=engine)
    assert engine.seen == []
    return str(caught.value)


def test_an_invalid_manifest_registers_nothing_and_reports_all_errors() -> None:
    agent = an_agent("agent", "logging")
    agent["spec"]["container"]["app"]["security_context"]["run_as_user"] = -1
    agent["spec"]["update_strategy"] = {"type": "Sometimes"}
    output = refused(agent)
    assert 'manifest of agent: spec.update_strategy.type: "Sometimes" is invalid; expected RollingUpdate' in output
    assert (
        "manifest of agent: spec.container.app.security_context.run_as_user: -1 is invalid; expected a user ID"
        in output
    )
    assert len(output.splitlines()) == 2


def test_an_unreadable_manifest_registers_nothing_and_reports_every_error() -> None:
    output = refused(a_small_agent() | {"spek": {}, "mettadata": {}})
    assert 'manifest of agent: unknown field "spek"; did you mean spec?' in output
    assert 'unknown field "mettadata"; did you mean metadata?' in output


def test_errors_in_a_text_have_their_line_and_those_in_a_mapping_have_none() -> None:
    agent = a_small_agent() | {"kind": "Daemon"}
    assert 'manifest of agent:2:7: kind: "Daemon"' in refused(yaml.safe_dump(agent, sort_keys=False))
    assert 'manifest of agent: kind: "Daemon"' in refused(agent)


def test_an_unknown_value_is_rejected_with_its_path() -> None:
    def build() -> None:
        agent = a_small_agent()
        agent["spec"]["container"]["app"]["image"]["tag"] = pulumi.Output.from_input("1")
        KubernetesDaemonSetComponent("agent", agent)

    with pytest.raises(
        ManifestRunError, match=r"spec\.container\.app\.image\.tag: Output is not allowed in a manifest"
    ):
        deploy(build)


def test_a_number_that_pulumi_would_round_is_rejected() -> None:
    agent = an_agent("agent", "logging")
    agent["spec"]["tolerations"][0]["toleration_seconds"] = 2**53 + 1
    assert "tolerations[0].tolerationSeconds: 9007199254740993 is too large for Pulumi to represent exactly" in refused(
        agent
    )


ASSET = {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "path": "/etc/hostname"}


@pytest.mark.parametrize(
    ("section", "field", "path"),
    [
        ("metadata", "annotations", "metadata.annotations"),
        ("metadata", "labels", "metadata.labels"),
        ("spec", "pod_annotations", "spec.template.metadata.annotations"),
        ("spec", "pod_labels", "spec.template.metadata.labels"),
        ("spec", "node_selector", "spec.template.spec.nodeSelector"),
        ("spec", "service_account_annotations", "metadata.annotations"),
    ],
)
def test_no_mapping_is_a_file_that_pulumi_reads(section: str, field: str, path: str) -> None:
    agent = a_small_agent()
    texts = {key: value.replace("/", "") if "annotations" not in field else value for key, value in ASSET.items()}
    agent["spec"]["create_service_account"] = True
    agent[section][field] = texts
    assert f'{path}: the key "{next(iter(ASSET))}" is reserved by Pulumi; remove it' in refused(agent)


@pytest.mark.parametrize(
    ("of", "output"),
    [
        (None, "manifest of agent: NoneType is not a manifest; expected a mapping"),
        ("", "manifest of agent: is empty"),
        ("no/such/agent.yaml", "no/such/agent.yaml: cannot be read: No such file or directory"),
        ("odd\0name", "odd\\x00name: cannot be read: embedded null byte"),
        (f"{yaml.safe_dump(a_small_agent())}---\n{yaml.safe_dump(a_small_agent())}", "2 documents found; expected one"),
        ({"spec": {(1, 2): 3}}, "spec: tuple is not allowed in a manifest"),
        ({"spec": {"container": b"app"}}, "spec.container: bytes is not allowed in a manifest"),
    ],
)
def test_values_that_are_not_manifests_are_rejected(of: loader.Manifest, output: str) -> None:
    assert output in refused(of)


def test_a_mapping_that_contains_itself_is_rejected() -> None:
    agent = a_small_agent()
    agent["spec"]["container"] |= {"a": agent, "b": agent}
    assert "nested too deeply" in refused(agent)


# --- an optional extra ---


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("module", ["pulumi", "pulumi_program"])
@pytest.mark.parametrize("missing", ["pulumi", "protovalidate"])
def test_without_pulumi_the_backend_reports_what_to_install(module: str, missing: str) -> None:
    done = python(f"import sys; sys.modules['{missing}'] = None; import kubernetes_daemonset.backends.{module}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: the Pulumi backend requires {missing};")
    assert "pip install '.[pulumi]'" in last


def test_nothing_but_the_backend_imports_pulumi() -> None:
    here = kubernetes_daemonset.__name__
    backend = {f"{here}.backends.pulumi", f"{here}.backends.pulumi_program"}
    modules = {found.name for found in pkgutil.walk_packages(kubernetes_daemonset.__path__, f"{here}.")}
    assert backend < modules
    done = python(f"import sys, {', '.join(sorted(modules - backend))}; print({{'pulumi', 'grpc'}} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr
