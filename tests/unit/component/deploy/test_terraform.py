"""A Terraform module: the very objects that are rendered, what each of them needs, and secrets in one place only."""

import base64
import json
import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.deploy import terraform
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.render.resources import render
from tests.support.manifests.builders import loaded
from tests.support.shell import ROOT
from tests.support.terraform import LOGINS, PASSWORD, TEXT, TEXTS, a_small_agent, an_agent

Files = dict[str, str]


def resources(files: Files) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files["main.tf.json"])["resource"]["kubectl_manifest"]
    return found


def variables(files: Files) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files["variables.tf.json"])["variable"]
    return found


def objects(files: Files) -> list[Any]:
    """What Terraform would give to the provider, read as the provider does."""
    return [yaml.safe_load(body(files, one["yaml_body"])) for one in resources(files).values()]


def body(files: Files, expression: str) -> str:
    if secret := re.fullmatch(r'\$\{var\.secrets\["(.+)"\]\}', expression):
        text: str = json.loads(files[terraform.SECRETS_FILE])["secrets"][secret[1]]
        return text
    file = re.fullmatch(r'\$\{file\("\$\{path\.module\}/(.+)"\)\}', expression)
    assert file
    return files[file[1]]


def needs(files: Files) -> dict[str, set[str]]:
    return {
        name: {other.removeprefix("kubectl_manifest.") for other in one.get("depends_on", ())}
        for name, one in resources(files).items()
    }


@pytest.mark.parametrize("given", [an_agent(), a_small_agent()], ids=["with everything", "with nothing"])
def test_the_objects_are_those_that_are_rendered_in_the_same_order(given: KubernetesDaemonSetStackInput) -> None:
    assert objects(terraform.module(given)) == render(given)


def with_many_texts() -> list[list[str]]:
    texts = {**TEXTS, **dict.fromkeys("abcdefgh", "")}
    return [list(one) for one in terraform.module(an_agent(config_maps=texts)).items()]


def test_the_same_agent_renders_to_the_same_bytes_in_every_process() -> None:
    """The order of a message's maps differs from process to process."""
    script = f"import json; from {__name__} import with_many_texts; print(json.dumps(with_many_texts()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == with_many_texts()


def test_no_text_of_the_agent_is_a_terraform_template() -> None:
    files = terraform.module(an_agent())
    assert not [name for name, content in files.items() if name.endswith(".tf.json") and "HOME" in content]
    assert "cd ${HOME} $${HOME} %{if} %%{if}" in files["config_map_agent_conf.yaml"]
    assert {"agent.conf": TEXT} in [one.get("data") for one in objects(files)]


def test_nothing_is_left_for_terraform_to_normalize() -> None:
    assert not [name for name, content in terraform.module(an_agent()).items() if not content.isascii()]


def test_every_text_is_in_quotes_so_that_no_reader_takes_it_for_a_number() -> None:
    assert '"value": "0o14"' in terraform.module(an_agent())["daemon_set.yaml"]


@pytest.mark.parametrize("letter", ["\x7f", "\x85", "\x9f", "\ufeff", "\uffff"])
def test_characters_that_the_provider_would_lose_are_rejected(letter: str) -> None:
    changed = an_agent(config_maps={"agent.conf": f"a{letter}b", "b": letter})
    with pytest.raises(ManifestError, match=rf"(?s)ConfigMap agent\.conf: .*U\+{ord(letter):04X};.*\nConfigMap b: "):
        terraform.module(changed)


def test_secrets_are_in_one_file_only() -> None:
    files = terraform.module(an_agent())
    for secret in (PASSWORD, LOGINS):
        hidden = base64.b64encode(secret.encode()).decode()
        assert [name for name, content in files.items() if secret in content or hidden in content] == [
            terraform.SECRETS_FILE
        ]


def test_plans_do_not_print_secrets() -> None:
    files = terraform.module(an_agent())
    assert variables(files)["secrets"]["sensitive"] is True
    secrets = [one for name, one in resources(files).items() if name.startswith("secret_")]
    assert [one["sensitive_fields"] for one in secrets] == [["data"], ["data"]]


def test_without_secrets_an_existing_file_is_emptied() -> None:
    files = terraform.module(a_small_agent())
    assert "secrets" not in variables(files)
    assert json.loads(files[terraform.SECRETS_FILE]) == {}


def test_every_object_depends_on_what_it_uses() -> None:
    found = needs(terraform.module(an_agent()))
    daemon_set = found.pop("daemon_set")
    assert daemon_set == set(found)
    assert found == {
        "namespace": set(),
        "service_account": {"namespace"},
        "config_map_agent-conf": {"namespace"},
        "config_map_agent_conf": {"namespace"},
        "secret_agent-env-secrets": {"namespace"},
        "secret_agent-image-pull-secret": {"namespace"},
        "cluster_role": set(),
        "cluster_role_binding": {"cluster_role", "service_account"},
        "role": {"namespace"},
        "role_binding": {"namespace", "role", "service_account"},
    }


def test_existing_objects_are_not_dependencies() -> None:
    given = an_agent(create_namespace=False, create_service_account=False, service_account_name="existing")
    found = needs(terraform.module(given))
    assert (found["role_binding"], found["role"]) == ({"role"}, set())
    assert needs(terraform.module(a_small_agent())) == {"daemon_set": set()}


def test_names_are_stable_when_other_objects_change() -> None:
    before = resources(terraform.module(an_agent()))
    after = resources(terraform.module(an_agent(config_maps={**TEXTS, "a": "first in line"})))
    assert set(after) - set(before) == {"config_map_a"}
    assert all(after[name] == one for name, one in before.items() if name != "daemon_set")


def test_every_object_is_applied_by_the_server_and_under_a_name_that_no_direct_apply_uses() -> None:
    for one in resources(terraform.module(an_agent())).values():
        assert (one["server_side_apply"], one["field_manager"]) == (True, "kubernetes-daemonset-terraform")


def test_the_rollout_is_awaited_unless_disabled() -> None:
    files = terraform.module(an_agent())
    assert variables(files)["wait_for_rollout"]["default"] is True
    assert resources(files)["daemon_set"]["wait_for_rollout"] == "${var.wait_for_rollout}"


def test_a_shared_namespace_is_kept_unless_its_deletion_is_enabled() -> None:
    files = terraform.module(an_agent())
    assert variables(files)["delete_namespace"]["default"] is False
    assert resources(files)["namespace"]["apply_only"] == "${!var.delete_namespace}"
    assert "delete_namespace" not in variables(terraform.module(a_small_agent()))


def test_the_provider_source_names_no_registry() -> None:
    """No registry is named."""
    settings = json.loads(terraform.module(an_agent())["versions.tf.json"])["terraform"]
    assert re.fullmatch(r"[a-z]+/[a-z]+", settings["required_providers"]["kubectl"]["source"])


def test_the_outputs_are_the_daemon_sets_own() -> None:
    outputs = json.loads(terraform.module(an_agent())["outputs.tf.json"])["output"]
    assert {name: one["value"] for name, one in outputs.items()} == {
        "namespace": "${kubectl_manifest.daemon_set.namespace}",
        "daemonset_name": "${kubectl_manifest.daemon_set.name}",
    }


@pytest.mark.parametrize(
    "main",
    [
        "no json",
        "[]",
        '{"resource": {"kubectl_manifest": []}}',
        '{"resource": {"kubectl_manifest": {"a": {"yaml_body": "${file(\\"${path.module}/a.yaml\\")}"}}}}',
        '{"resource": {"kubectl_manifest": {"a": {"field_manager": "x", "yaml_body": "a"}}}}',
    ],
)
def test_a_foreign_main_file_names_no_file_of_ours(main: str) -> None:
    assert terraform.files_named_in(main) == []


def test_our_main_file_names_the_file_of_each_object_and_not_of_secrets() -> None:
    made = terraform.module(loaded({"spec.config_maps": {"a.b": ""}, "app.env.secrets": {"KEY": "text"}}).input)
    assert terraform.files_named_in(made[terraform.MAIN_FILE]) == ["config_map_a_b.yaml", "daemon_set.yaml"]
