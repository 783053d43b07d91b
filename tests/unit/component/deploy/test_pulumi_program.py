"""The ready Pulumi program: where its stack input comes from, which cluster it goes to, and what it says at its end."""

import base64
import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.runtime.stack import Stack

from kube_node_ready import __version__
from kubernetes_daemonset.backends.pulumi import ManifestRunError
from kubernetes_daemonset.backends.pulumi_program import program
from kubernetes_daemonset.deploy.pulumi_project import project_files
from tests.support.pulumi_agents import a_small_agent, an_agent
from tests.support.pulumi_mocks import MARK, SECRET_MARK, Engine, deploy, named, rendered

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _no_stack_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PULUMI_CONFIG", "STACK_INPUT_YAML", "STACK_INPUT_YAML_FILE", "KUBE_CTX"):
        monkeypatch.delenv(variable, raising=False)


def run_program() -> tuple[Engine, dict[str, Any]]:
    def build() -> pulumi.Output[Any]:
        program()
        stack = pulumi.runtime.get_root_resource()
        assert isinstance(stack, Stack)
        return pulumi.Output.all(**stack.outputs)

    return deploy(build)


def provider_of(engine: Engine) -> Json:
    (provider,) = [one for one in engine.seen if one.typ == "pulumi:providers:kubernetes"]
    (used,) = {one.provider for one in engine.seen if one.typ.startswith("kubernetes:")}
    assert str(used).endswith(f"pulumi:providers:kubernetes::{provider.name}::id of {provider.name}")
    inputs: Json = provider.inputs
    return inputs


def test_the_stack_input_comes_from_the_config_then_the_variable_then_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input.yaml").write_text(yaml.safe_dump({"target": an_agent("of-the-file", "logging")}))
    monkeypatch.setenv("STACK_INPUT_YAML_FILE", str(tmp_path / "input.yaml"))
    assert run_program()[1]["daemonset_name"] == "of-the-file"
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump({"target": an_agent("of-the-variable", "logging")}))
    assert run_program()[1]["daemonset_name"] == "of-the-variable"
    of_the_config = json.dumps({"target": an_agent("of-the-config", "logging")})
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"planton-cloud:stack-input": of_the_config}))
    assert run_program()[1]["daemonset_name"] == "of-the-config"


def test_without_a_stack_input_all_three_places_are_named() -> None:
    with pytest.raises(pulumi.RunError, match=r"planton-cloud:stack-input.*STACK_INPUT_YAML,.*STACK_INPUT_YAML_FILE"):
        run_program()


def test_the_program_exports_the_five_stack_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump({"target": a_small_agent()}))
    assert list(run_program()[1]) == [
        "namespace",
        "daemonset_name",
        "desired_number_scheduled",
        "current_number_scheduled",
        "number_ready",
    ]


def test_a_number_that_pulumi_would_round_registers_not_even_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = an_agent("agent", "logging", termination_grace_period_seconds=2**60)
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump(agent))
    engine = Engine()
    with pytest.raises(ManifestRunError, match="is too large for Pulumi to represent exactly"):
        deploy(program, engine)
    assert engine.seen == []


def test_errors_in_a_stack_input_have_its_source_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "STACK_INPUT_YAML", yaml.safe_dump({"target": a_small_agent() | {"kind": "Daemon"}}, sort_keys=False)
    )
    with pytest.raises(ManifestRunError, match=r'^STACK_INPUT_YAML:3:3: kind: "Daemon" is invalid; expected'):
        run_program()


def test_by_default_the_users_kubeconfig_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump(a_small_agent()))
    assert provider_of(run_program()[0]) == {"enableServerSideApply": "true"}


def test_a_context_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump(a_small_agent()))
    monkeypatch.setenv("KUBE_CTX", "staging")
    assert provider_of(run_program()[0]) == {"enableServerSideApply": "true", "context": "staging"}


def with_provider(monkeypatch: pytest.MonkeyPatch, **config: object) -> None:
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump({"target": a_small_agent(), "provider_config": config}))


def test_a_given_kubeconfig_reaches_the_provider_as_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_CTX", "of another kubeconfig")
    encoded = base64.encodebytes(b"apiVersion: v1\nkind: Config\nclusters: []\n").decode()  # with line ends
    with_provider(monkeypatch, provider="digital_ocean_doks", digital_ocean_doks={"kube_config": encoded})
    assert provider_of(run_program()[0]) == {
        "enableServerSideApply": "true",
        "kubeconfig": {MARK: SECRET_MARK, "value": '{"apiVersion": "v1", "kind": "Config", "clusters": []}'},
    }


NO_KUBECONFIGS = {
    "in plain": "apiVersion: v1",
    "no ASCII": "é",
    "no mapping": base64.b64encode(b"nothing").decode(),
    "no text": base64.b64encode(b"\xff").decode(),
    "no YAML": base64.b64encode(b"{").decode(),
}


@pytest.mark.parametrize("odd", NO_KUBECONFIGS.values(), ids=NO_KUBECONFIGS)
def test_an_invalid_kubeconfig_is_rejected(monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    with_provider(monkeypatch, provider="digital_ocean_doks", digital_ocean_doks={"kube_config": odd})
    with pytest.raises(
        ManifestRunError,
        match=r"^STACK_INPUT_YAML:\d+:\d+: provider_config.*kube_config: is not a kubeconfig in base64",
    ):
        run_program()


def test_an_unsupported_login_is_rejected_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    key = {"cluster_endpoint": "192.0.2.1", "cluster_ca_data": "Q0E=", "service_account_key_base64": "e30="}
    with_provider(monkeypatch, provider="gcp_gke", gcp_gke=key)
    with pytest.raises(ManifestRunError, match=r"provider_config\.gcp_gke: .*remove provider_config.*KUBE_CTX"):
        run_program()


def test_a_projects_files_are_valid_for_pulumi(monkeypatch: pytest.MonkeyPatch) -> None:
    files = project_files()
    assert set(files) == {"Pulumi.yaml", "__main__.py", "requirements.txt"}
    project = yaml.safe_load(files["Pulumi.yaml"])
    assert project["name"] == "kubernetes-daemonset"
    assert project["runtime"]["name"] == "python"
    assert files["requirements.txt"] == f"kube-node-ready[pulumi]=={__version__}\n"
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump(a_small_agent()))

    def run() -> None:
        exec(compile(files["__main__.py"], "__main__.py", "exec"), {"__name__": "__main__"})  # noqa: S102

    assert deploy(run)[0].objects == named(rendered(a_small_agent()))
