"""Variables, and where their values come from."""

from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.shared.container_pb2 import KubernetesSecretKeyRef
from kubernetes_daemonset.api.shared.reference_pb2 import ValueFromRef
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest import entry
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import APP, INIT_CONTAINERS, SIDECARS, parts

_SECRETS: Final = f"{APP}.env.secrets"


def references_are_resolved(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, source in _references_to_other_resources(manifest):
        if source.name:
            what = f"{source.field_path or 'a field'} of {source.name}"
            text = f"{what} cannot be looked up from here; write value with what it stands for"
            yield Finding(f"{path}.value_from", text)


def secrets_are_near(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    here = names.namespace(manifest)
    for path, reference in secret_references(manifest):
        if reference.namespace not in {"", here}:
            text = f'a pod cannot read Secrets of "{reference.namespace}"; copy {reference.name} to "{here}"'
            yield Finding(f"{path}.namespace", text, ("spec.namespace",))


def variables_are_given_once(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    env = manifest.spec.container.app.env
    for name in sorted(set(env.variables) & set(env.secrets)):
        yield Finding(entry(_SECRETS, name), "is a variable as well; leave one of them out")
    for part in parts(manifest):
        seen: set[str] = set()
        for one in part.variables:
            if one.name and one.name in seen:
                yield Finding(f"{one.path}.name", f'"{one.name}" is given twice; leave one out')
            seen.add(one.name)


def amounts_are_of_containers(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    known = [part.name for part in parts(manifest) if part.name]
    for part in parts(manifest):
        for one in part.variables:
            name = one.source.resource_field_ref.container_name
            if name and name not in known:
                text = f'no container of the pod is called "{name}"; write {" or ".join(known)}, or leave it out'
                because = ("metadata.name", SIDECARS, INIT_CONTAINERS)
                yield Finding(f"{one.path}.resource_field_ref.container_name", text, because)


def secrets_are_empty(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    secrets = manifest.spec.container.app.env.secrets
    for name in sorted(secrets):
        if secrets[name].WhichOneof("sensitive_value") in {None, "value"} and not secrets[name].value:
            text = "is empty, and the agent will be given an empty text; write its value, or a secret_ref"
            yield Finding(entry(_SECRETS, name), text)


def secret_references(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, KubernetesSecretKeyRef]]:
    """Keys of Secrets that single variables are taken from."""
    for name, value in sorted(manifest.spec.container.app.env.secrets.items()):
        if value.HasField("secret_ref"):
            yield f"{entry(_SECRETS, name)}.secret_ref", value.secret_ref
    for part in parts(manifest):
        for one in part.variables:
            if one.source.HasField("secret_ref"):
                yield f"{one.path}.secret_ref", one.source.secret_ref


def _references_to_other_resources(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, ValueFromRef]]:
    env = manifest.spec.container.app.env
    yield "spec.namespace", manifest.spec.namespace.value_from
    for name, variable in sorted(env.variables.items()):
        yield entry(f"{APP}.env.variables", name), variable.value_from
    for name, secret in sorted(env.secrets.items()):
        yield entry(_SECRETS, name), secret.value_from
