"""Variables, and where their values come from."""

import re
from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.shared.container_pb2 import ContainerEnvVar, KubernetesSecretKeyRef
from kubernetes_daemonset.api.shared.reference_pb2 import ValueFromRef
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest import entry
from kubernetes_daemonset.pod import environment
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import APP, INIT_CONTAINERS, SIDECARS, Part, parts

_SECRETS: Final = f"{APP}.env.secrets"

# $(date) is left alone for a shell to run, and is meant so.
_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
# Kubernetes tells containers of the Services of their namespace by such variables.
_OF_A_SERVICE: Final = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)")


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


def used_variables_are_defined(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        if any(part.whole_sources):  # nobody knows here which variables these bring
            continue
        defined = _variables(manifest, part)
        for path, written in _filled_in(part):
            for name in dict.fromkeys(environment.REFERENCE.findall(written)):
                if name not in defined and _NAME.fullmatch(name) and not _OF_A_SERVICE.fullmatch(name):
                    stays = f'"$({name})" stays as it is written: the container has no variable {name}'
                    text = f"{stays}; define it, or write $$({name}) if that is meant"
                    yield Finding(path, text, (f"{part.path}.env", f"{part.path}.env_from"))


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


def _variables(manifest: KubernetesDaemonSet, part: Part) -> set[str]:
    if part.path == APP:
        return {one["name"] for one in environment.of_app(manifest)}
    return {one.name for one in part.variables}


def _filled_in(part: Part) -> Iterator[tuple[str, str]]:
    """The texts in which Kubernetes puts values in the place of $(NAME)."""
    for field in ("command", "args"):
        for at, text in enumerate(getattr(part.body, field)):
            yield f"{part.path}.{field}[{at}]", text
    for one in part.variables:
        yield (f"{one.path}.value" if isinstance(one.source, ContainerEnvVar) else one.path), one.source.value
