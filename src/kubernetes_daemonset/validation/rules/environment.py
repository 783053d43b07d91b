"""Rules for environment variables and their sources."""

import re
from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset.api.shared.container_pb2 import ContainerEnvVar, KubernetesSecretKeyRef
from kubernetes_daemonset.api.shared.reference_pb2 import ValueFromRef
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest.reader import map_entry
from kubernetes_daemonset.render import environment, naming
from kubernetes_daemonset.validation.containers_view import (
    APP,
    INIT_CONTAINERS,
    SIDECARS,
    ContainerView,
    container_views,
)
from kubernetes_daemonset.validation.rules.finding import Finding

_SECRETS: Final = f"{APP}.env.secrets"

# $(date) is not a reference to a variable: it is meant for a shell.
_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
# Variables that Kubernetes sets for the Services of the namespace.
_OF_A_SERVICE: Final = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)")


def references_are_resolved(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, source in _references_to_other_resources(manifest):
        if source.name:
            what = f"{source.field_path or 'a field'} of {source.name}"
            text = f"{what} cannot be resolved by this tool; set value instead"
            yield Finding(f"{path}.value_from", text)


def secrets_are_near(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    here = naming.namespace(manifest)
    for path, reference in secret_references(manifest):
        if reference.namespace not in {"", here}:
            text = f'a pod cannot read Secrets in namespace "{reference.namespace}"; copy {reference.name} to "{here}"'
            yield Finding(f"{path}.namespace", text, ("spec.namespace",))


def variables_are_given_once(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    env = manifest.spec.container.app.env
    for name in sorted(set(env.variables) & set(env.secrets)):
        yield Finding(map_entry(_SECRETS, name), "is also defined in variables; remove one of them")
    for container in container_views(manifest):
        seen: set[str] = set()
        for variable in container.variables:
            if variable.name and variable.name in seen:
                yield Finding(f"{variable.path}.name", f'"{variable.name}" is defined twice; remove one')
            seen.add(variable.name)


def amounts_are_of_containers(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    known = [container.name for container in container_views(manifest) if container.name]
    for container in container_views(manifest):
        for variable in container.variables:
            name = variable.source.resource_field_ref.container_name
            if name and name not in known:
                text = f'the pod has no container "{name}"; expected {" or ".join(known)}, or remove it'
                because = ("metadata.name", SIDECARS, INIT_CONTAINERS)
                yield Finding(f"{variable.path}.resource_field_ref.container_name", text, because)


def secrets_are_empty(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    secrets = manifest.spec.container.app.env.secrets
    for name in sorted(secrets):
        if secrets[name].WhichOneof("sensitive_value") in {None, "value"} and not secrets[name].value:
            text = "is empty, so the agent receives an empty value; set a value or a secret_ref"
            yield Finding(map_entry(_SECRETS, name), text)


def used_variables_are_defined(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        if any(container.env_from):  # their variables are unknown here
            continue
        defined = _variables(manifest, container)
        for path, written in _filled_in(container):
            for name in dict.fromkeys(environment.REFERENCE.findall(written)):
                if name not in defined and _NAME.fullmatch(name) and not _OF_A_SERVICE.fullmatch(name):
                    stays = f'"$({name})" is not replaced: the container has no variable {name}'
                    text = f"{stays}; define it, or write $$({name}) for the literal text"
                    yield Finding(path, text, (f"{container.path}.env", f"{container.path}.env_from"))


def secret_references(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, KubernetesSecretKeyRef]]:
    """Yield the references to keys of Secrets, with their paths."""
    for name, value in sorted(manifest.spec.container.app.env.secrets.items()):
        if value.HasField("secret_ref"):
            yield f"{map_entry(_SECRETS, name)}.secret_ref", value.secret_ref
    for container in container_views(manifest):
        for variable in container.variables:
            if variable.source.HasField("secret_ref"):
                yield f"{variable.path}.secret_ref", variable.source.secret_ref


def _references_to_other_resources(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, ValueFromRef]]:
    env = manifest.spec.container.app.env
    yield "spec.namespace", manifest.spec.namespace.value_from
    for name, variable in sorted(env.variables.items()):
        yield map_entry(f"{APP}.env.variables", name), variable.value_from
    for name, secret in sorted(env.secrets.items()):
        yield map_entry(_SECRETS, name), secret.value_from


def _variables(manifest: KubernetesDaemonSet, container: ContainerView) -> set[str]:
    if container.path == APP:
        return {variable["name"] for variable in environment.of_app(manifest)}
    return {variable.name for variable in container.variables}


def _filled_in(container: ContainerView) -> Iterator[tuple[str, str]]:
    """Yield the texts in which Kubernetes replaces $(NAME), with their paths."""
    for field in ("command", "args"):
        for at, text in enumerate(getattr(container.body, field)):
            yield f"{container.path}.{field}[{at}]", text
    for variable in container.variables:
        yield (
            (f"{variable.path}.value" if isinstance(variable.source, ContainerEnvVar) else variable.path),
            variable.source.value,
        )
