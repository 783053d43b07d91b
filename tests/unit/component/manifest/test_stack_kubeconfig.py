"""A stack input's kubeconfig is another party's text: it can hold credentials, but no program and no path.

client-go, which reads it in the end, matches keys without regard to case and takes the last of two equal ones. So the
tests write each forbidden field in every way that client-go would still understand.
"""

import base64
import json
from typing import Any

import pulumi
import pytest
import yaml

from kubekit.diagnostics import Diagnostic
from kubernetes_daemonset.backends.pulumi import ManifestRunError
from kubernetes_daemonset.backends.pulumi_program import program
from kubernetes_daemonset.manifest import stack_kubeconfig
from kubernetes_daemonset.validation import validate
from tests.support.manifests import builders
from tests.support.pulumi_agents import a_small_agent
from tests.support.pulumi_mocks import Engine, deploy

Json = dict[str, Any]

FIELD = "provider_config.digital_ocean_doks.kube_config"
ALLOW = "KUBERNETES_DAEMONSET_TRUST_KUBECONFIG"


@pytest.fixture(autouse=True)
def _nothing_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PULUMI_CONFIG", "STACK_INPUT_YAML", "STACK_INPUT_YAML_FILE", "KUBE_CTX", ALLOW):
        monkeypatch.delenv(variable, raising=False)


def a_kubeconfig(user: Json | None = None, cluster: Json | None = None) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": "https://192.0.2.1"} | (cluster or {})}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "t"} if user is None else user}],
    }


def found(kubeconfig: str | bytes) -> list[Diagnostic]:
    """The errors that `validate` reports for a stack input with this kubeconfig."""
    loaded = builders.read(builders.as_yaml(builders.a_stack_input(provider_config=provider(kubeconfig))))
    return validate.errors(validate.validate(loaded))


def provider(kubeconfig: str | bytes) -> Json:
    content = kubeconfig if isinstance(kubeconfig, bytes) else kubeconfig.encode()
    encoded = base64.b64encode(content).decode()
    return {"provider": "digital_ocean_doks", "digital_ocean_doks": {"kube_config": encoded}}


def test_aliases_of_a_long_name_do_not_use_up_the_memory() -> None:
    """The kubeconfig has 350 KB, and its unknown fields stand for 1.5 GB."""
    kubeconfig = f"current-context: &name {'x' * 300_000}\nusers:\n" + "- {*name : 1}\n" * 5_000
    encoded = base64.b64encode(kubeconfig.encode()).decode()
    assert sum(map(len, stack_kubeconfig.problems(encoded, {}))) < 1_000_000


def deployed(monkeypatch: pytest.MonkeyPatch, kubeconfig: str | bytes) -> Engine:
    given = {"target": a_small_agent(), "provider_config": provider(kubeconfig)}
    monkeypatch.setenv("STACK_INPUT_YAML", yaml.safe_dump(given))

    def build() -> pulumi.Output[Any]:
        program()
        return pulumi.Output.from_input({})

    return deploy(build)[0]


def passed_on(engine: Engine) -> str:
    (one,) = [one for one in engine.seen if one.typ == "pulumi:providers:kubernetes"]
    text: str = one.inputs["kubeconfig"]["value"]
    return text


RUN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": ["/tmp/owned"]}

FORBIDDEN: dict[str, tuple[str, str, str]] = {
    "a login program": (json.dumps(a_kubeconfig({"exec": RUN})), "users[0].user.exec", '"touch"'),
    "in another case": (json.dumps(a_kubeconfig({"eXeC": RUN})), "users[0].user.eXeC", '"touch"'),
    "another plugin": (
        json.dumps(a_kubeconfig({"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}})),
        "users[0].user.auth-provider",
        '"gcp"',
    ),
    "a token's file": (
        json.dumps(a_kubeconfig({"tokenFile": "/etc/shadow"})),
        "users[0].user.tokenFile",
        "/etc/shadow",
    ),
    "the file in lowercase": (
        json.dumps(a_kubeconfig({"tokenfile": "/etc/shadow"})),
        "users[0].user.tokenfile",
        "/etc/shadow",
    ),
    "a certificate's file": (
        json.dumps(a_kubeconfig({"client-certificate": "a.pem"})),
        "users[0].user.client-certificate",
        '"a.pem"',
    ),
    "a key's file": (json.dumps(a_kubeconfig({"client-key": "~/.ssh/id"})), "users[0].user.client-key", '"~/.ssh/id"'),
    "an authority's file": (
        json.dumps(a_kubeconfig(cluster={"certificate-authority": "/etc/passwd"})),
        "clusters[0].cluster.certificate-authority",
        '"/etc/passwd"',
    ),
    "as YAML": (yaml.safe_dump(a_kubeconfig({"exec": RUN})), "users[0].user.exec", '"touch"'),
    "by an anchor": (
        "x: &run {command: touch}\nusers: [{name: me, user: {exec: *run}}]\n",
        "users[0].user.exec",
        '"touch"',
    ),
    "by a merge": (
        "x: &user {exec: {command: touch}}\nusers: [{name: me, user: {token: t, <<: *user}}]\n",
        "users[0].user.exec",
        '"touch"',
    ),
    "of a user that no context names": (
        json.dumps(a_kubeconfig() | {"users": [{"name": "me", "user": {}}, {"name": "other", "user": {"exec": RUN}}]}),
        "users[1].user.exec",
        '"touch"',
    ),
    "with an escape in its key": (
        '{"users": [{"name": "me", "user": {"\\u0065xec": {"command": "touch"}}}]}',
        "users[0].user.exec",
        '"touch"',
    ),
    "by a letter that folds to ASCII": (  # Go's json folds U+017F to s and U+212A to k
        json.dumps(a_kubeconfig({"to\u212aenFile": "/etc/shadow"}), ensure_ascii=False),
        "users[0].user.to\u212aenFile",
        "/etc/shadow",
    ),
    "below a folded list": (
        json.dumps({"u\u017fers": [{"name": "me", "user": {"exec": RUN}}]}, ensure_ascii=False),
        "u\u017fers",
        "",
    ),
    "below a list in capitals": (json.dumps({"Users": [{"name": "me", "user": {"exec": RUN}}]}), "Users", ""),
    "below an entry in capitals": (
        json.dumps({"users": [{"name": "me", "User": {"exec": RUN}}]}),
        "users[0].User",
        "",
    ),
    "the second of two": (
        '{"users": [{"name": "me", "user": {"token": "t"}, "user": {"exec": {"command": "touch"}}}]}',
        "users[0].user",
        "",
    ),
    "the first of two": (
        '{"users": [{"name": "me", "user": {"exec": {"command": "touch"}}, "user": {"token": "t"}}]}',
        "users[0].user",
        "",
    ),
    "a key with a tag": (
        '{"users": [{"name": "me", "user": {!!binary "ZXhlYw==": {"command": "touch"}}}]}',
        "users[0].user",
        "",
    ),
    "a value with a tag": ("users: [{name: me, user: {token: !!binary aGk=}}]\n", "users[0].user.token", ""),
    "a field that is not known": (
        json.dumps(a_kubeconfig({"token": "t", "plugin-path": "/bin/sh"})),
        "users[0].user.plugin-path",
        "",
    ),
}


@pytest.mark.parametrize(("text", "field", "value"), FORBIDDEN.values(), ids=FORBIDDEN)
class TestForbidden:
    def test_validate_names_field_value_and_expectation(self, text: str, field: str, value: str) -> None:
        texts = [one.message for one in found(text) if one.path == FIELD]
        naming = [one for one in texts if one.startswith(f"{field}: ")]
        assert naming, texts
        assert value in naming[0]
        assert "expected" in naming[0]

    def test_nothing_is_registered(self, monkeypatch: pytest.MonkeyPatch, text: str, field: str, value: str) -> None:
        with pytest.raises(ManifestRunError, match="kube_config") as why:
            deployed(monkeypatch, text)
        assert all(one.path == FIELD for one in why.value.diagnostics)
        assert (field, value) != ("", "")


def test_the_remedy_is_named() -> None:
    (one,) = found(json.dumps(a_kubeconfig({"exec": RUN})))
    assert one.message == (
        'users[0].user.exec: "touch" is not allowed in a stack input; expected a token or certificate data; '
        f"set {ALLOW}=true to trust its kubeconfig"
    )


def test_a_secret_of_the_kubeconfig_is_never_printed() -> None:
    user = {"token": ["secret-1"], "password": {"a": "secret-2"}, "client-key": "/path", "unknown": "secret-3"}
    assert "secret" not in " ".join(one.message for one in found(json.dumps(a_kubeconfig(user))))


def test_every_wrong_field_is_reported() -> None:
    user = {"exec": RUN, "tokenFile": "/etc/shadow"}
    assert len(found(json.dumps(a_kubeconfig(user, {"certificate-authority": "/etc/passwd"})))) == 3


ALLOWED: dict[str, Json] = {
    "a token": a_kubeconfig(),
    "certificates": a_kubeconfig({"client-certificate-data": "Yw==", "client-key-data": "aw=="}),
    "a password": a_kubeconfig({"username": "u", "password": "p"}),
    "impersonation": a_kubeconfig({"token": "t", "as": "a", "as-uid": "1", "as-groups": ["g"]}),
    "a cluster's settings": a_kubeconfig(
        cluster={
            "certificate-authority-data": "Yw==",
            "insecure-skip-tls-verify": False,
            "tls-server-name": "n",
            "proxy-url": "http://192.0.2.2:3128",
            "disable-compression": True,
        }
    ),
    "nothing": {},
}


@pytest.mark.parametrize("kubeconfig", ALLOWED.values(), ids=ALLOWED)
def test_a_kubeconfig_with_only_credentials_is_passed_on(monkeypatch: pytest.MonkeyPatch, kubeconfig: Json) -> None:
    assert json.loads(passed_on(deployed(monkeypatch, yaml.safe_dump(kubeconfig)))) == kubeconfig


def test_the_checked_kubeconfig_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the text: what one parser takes for a comment, a tag or an alias, another might take for a field."""
    extended = a_kubeconfig() | {"preferences": {"colors": True}, "extensions": [{"name": "x", "extension": {"a": 1}}]}
    text = f"%YAML 1.1\n---\n# exec\n{yaml.safe_dump(extended)}...\n"
    assert json.loads(passed_on(deployed(monkeypatch, text))) == a_kubeconfig()


def test_a_trusted_kubeconfig_is_passed_on_unmodified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW, "true")
    text = yaml.safe_dump(a_kubeconfig({"exec": RUN}, {"certificate-authority": "/ca.pem"}))
    assert found(text) == []
    assert passed_on(deployed(monkeypatch, text)) == text


@pytest.mark.parametrize("value", ["1", "yes", "True", " true"])
def test_trust_requires_the_exact_value(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(ALLOW, value)
    (one,) = found(json.dumps(a_kubeconfig()))
    assert one.message == f'{ALLOW}: "{value}" is invalid; expected true or false'


@pytest.mark.parametrize("value", ["", "false"])
def test_no_trust_is_the_default(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(ALLOW, value)
    assert found(json.dumps(a_kubeconfig({"exec": RUN})))
    assert found(json.dumps(a_kubeconfig())) == []


def test_aliases_that_expand_to_billions_are_rejected() -> None:
    levels = "\n".join(f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]" for level in range(1, 12))
    text = f"x0: &x0 [a, a]\n{levels}\nusers: *x11\n"
    assert found(text)


@pytest.mark.parametrize("kind", ["Secret", "config"])
def test_another_kind_is_rejected(kind: str) -> None:
    (one,) = found(json.dumps(a_kubeconfig() | {"kind": kind}))
    assert one.message == f'kind: "{kind}" is invalid; expected Config'
