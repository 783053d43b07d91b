"""A secret that is in the wrong place or of the wrong form is not printed."""

import re

import pytest

from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest.overrides import override
from kubernetes_daemonset.validation.validate import validate
from tests.support.manifests.builders import a_manifest, as_yaml, loaded, read_in_part

MANIFEST = as_yaml(a_manifest({"app.env.secrets": "PLACE"}))


def reported(text: str) -> str:
    return "\n".join(map(str, validate(read_in_part(text))))


@pytest.mark.parametrize(
    ("secrets", "says"),
    [
        ("DB=hunter2", "secrets: expected a mapping of names to values, found a text"),
        ("{DB: {secret_ref: hunter2}}", "secrets.DB.secret_ref: expected a mapping with .*, found a text"),
        ("{DB: {secret_ref: {name: a, key: b, optional: hunter2}}}", "expected true or false, found a text"),
        ("{DB: {hunter2}}", "secrets.DB: unknown field; expected value"),
        ("{DB: {valeu: hunter2}}", 'secrets.DB: unknown field "valeu"; did you mean value?'),
        ("{DB=hunter2: x}", r'secrets\["DB=…"\]: "DB=…" is invalid; expected a secret variable name'),
        ("{DB=hunter2: null}", r'secrets\["DB=…"\]: found nothing'),
        ('{"DB:hunter2"}', r'secrets\["DB:…"\]: found nothing'),
        ("{DB: [hunter2]}", "secrets.DB: expected a mapping .* found a list"),
    ],
)
def test_a_mistyped_secret_is_not_printed(secrets: str, says: str) -> None:
    shown = reported(MANIFEST.replace("PLACE", secrets))
    assert re.search(says, shown), shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "rest",
    [
        "provider_config: hunter2",
        "provider_config: {hunter2: x}",
        "provider_config: {provider: hunter2}",
        "provider_config: {provider: gcp_gke, gcp_gke: hunter2}",
        "docker_config_json: [hunter2]",
        "docker_config_json: {hunter2: x}",
    ],
)
def test_nor_is_one_of_a_stack_input(rest: str) -> None:
    target = "\n  ".join(as_yaml(a_manifest()).splitlines())
    shown = reported(f"target:\n  {target}\n{rest}\n")
    assert rest.partition(":")[0] in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("assignment", ["=hunter2", ".DB={hunter2}", "[DB]hunter2"])
def test_nor_is_one_of_the_command_line(assignment: str) -> None:
    with pytest.raises(ManifestError) as rejected:
        override(loaded(), [f"spec.container.app.env.secrets{assignment}"])
    assert "hunter2" not in str(rejected.value)


def test_nor_is_the_login_of_an_image() -> None:
    shown = reported(as_yaml(a_manifest({"app.image.repo": "https://me:hunter2@registry.example/agent"})))
    assert '"https://…@registry.example/agent" is not a valid repository; remove https://' in shown


def test_other_values_are_printed() -> None:
    assert 'found "hunter2"' in reported(as_yaml(a_manifest({"app.env.variables": "hunter2"})))
