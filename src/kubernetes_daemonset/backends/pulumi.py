"""The component for Pulumi programs: every object of a manifest as a resource, under one parent.

    agent = KubernetesDaemonSetComponent("agent", Path("agent.yaml"))
    pulumi.export("ready", agent.number_ready)

The objects of `resources.render` are passed to the engine unmodified: its Kubernetes provider identifies a kind by a
type token, so no SDK with a class for each kind is needed. `pulumi_program` is a complete program based on this.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

try:
    import pulumi

    from kubernetes_daemonset.deploy import loader
    from kubernetes_daemonset.deploy.dependencies import depends_on
    from kubernetes_daemonset.deploy.loader import Manifest
    from kubernetes_daemonset.manifest.reader import Loaded
    from kubernetes_daemonset.render import naming, resources
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"the Pulumi backend requires {missing.name}; run pip install '.[pulumi]' in a checkout",
        name=missing.name,
    ) from missing

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.types import Json

TYPE: Final = "kubernetes-daemonset:index:KubernetesDaemonSet"

# The version of the engine's Kubernetes plugin, which it downloads automatically. Fixed, so that an unchanged stack is
# always deployed by the same plugin; the latest version when this was written.
PROVIDER_VERSION: Final = "4.34.2"

# To Pulumi, a mapping with this key is a file that its engine reads, a URL that it requests, a secret or a
# reference (`SigKey` in its sdk/go/common/resource). Annotations and labels can have any key.
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"

_EXACT: Final = 2**53  # Pulumi's numbers are floating-point; whole ones above this are rounded


class ManifestRunError(ManifestError, pulumi.RunError):
    """All errors of a manifest. Pulumi prints a RunError without a stack trace."""


@contextmanager
def mistakes_end_the_run() -> Iterator[None]:
    try:
        yield
    except ManifestError as error:
        raise ManifestRunError(error.diagnostics) from None


@dataclass(frozen=True)
class Plan:
    """A valid manifest, its warnings and its objects."""

    loaded: Loaded
    warnings: Sequence[Diagnostic]
    objects: Sequence[Json]


def planned(manifest: Manifest, source: str) -> Plan:
    """Validate and render a manifest, so that all errors occur before anything is registered."""
    loaded, warnings = loader.load_valid(manifest, source)
    objects = resources.render(loaded.input)
    if lost := [Diagnostic(path, text, Location(loaded.source)) for path, text in _not_transmissible(objects)]:
        raise ManifestError(lost)
    return Plan(loaded, warnings, objects)


class KubernetesDaemonSetComponent(pulumi.ComponentResource):
    """A node agent and all objects that it needs.

    The manifest is a mapping, YAML, the path of a file, or a message. All of its values must be known: one that comes
    from another resource requires that resource's `apply`. Nothing is deployed if the manifest is invalid. In `opts`,
    `providers` or `provider` selects the cluster, and `version` the provider's version.
    """

    namespace: pulumi.Output[str]
    daemonset_name: pulumi.Output[str]
    desired_number_scheduled: pulumi.Output[str]
    current_number_scheduled: pulumi.Output[str]
    number_ready: pulumi.Output[str]

    def __init__(self, name: str, manifest: Manifest, opts: pulumi.ResourceOptions | None = None) -> None:
        with mistakes_end_the_run():
            plan = planned(manifest, f"manifest of {name}")
        super().__init__(TYPE, name, {}, opts)
        for warning in plan.warnings:
            pulumi.log.warn(str(warning), self)
        daemon_set = self._register(plan.objects, (opts and opts.version) or PROVIDER_VERSION)
        self._set_outputs(daemon_set, naming.namespace(plan.loaded.manifest), plan.loaded.manifest.metadata.name)

    @property
    def stack_outputs(self) -> dict[str, pulumi.Output[str]]:
        """The outputs, by their names in stack_outputs.proto."""
        return {
            "namespace": self.namespace,
            "daemonset_name": self.daemonset_name,
            "desired_number_scheduled": self.desired_number_scheduled,
            "current_number_scheduled": self.current_number_scheduled,
            "number_ready": self.number_ready,
        }

    def _register(self, objects: Sequence[Json], version: str) -> pulumi.CustomResource:
        """Register all objects and return the last one, the DaemonSet, which depends on all others."""
        registered: list[pulumi.CustomResource] = []
        for body in objects:
            needed = [resource for other, resource in zip(objects, registered, strict=False) if depends_on(body, other)]
            # Types are part of a resource's identity, but parents' names are not, so the parent's name is included.
            name = f"{self.pulumi_resource_name}/{body['kind']}/{body['metadata']['name']}"
            options = pulumi.ResourceOptions(
                parent=self,
                depends_on=needed,
                version=version,
                additional_secret_outputs=["data"] if body["kind"] == "Secret" else None,
                # It can contain other objects when this component is deleted.
                retain_on_delete=body["kind"] == "Namespace" or None,
            )
            registered.append(pulumi.CustomResource(type_token(body), name, _properties(body), options))
        return registered[-1]

    def _set_outputs(self, daemon_set: pulumi.CustomResource, namespace: str, name: str) -> None:
        # A consumer of a name must wait for the object, so the names depend on the resource, like the numbers.
        self.namespace = daemon_set.urn.apply(lambda _: namespace)
        self.daemonset_name = daemon_set.urn.apply(lambda _: name)
        status: pulumi.Output[Any] = daemon_set.__dict__["status"]
        self.desired_number_scheduled = status.apply(lambda seen: _count(seen, "desiredNumberScheduled"))
        self.current_number_scheduled = status.apply(lambda seen: _count(seen, "currentNumberScheduled"))
        self.number_ready = status.apply(lambda seen: _count(seen, "numberReady"))
        self.register_outputs(self.stack_outputs)


def type_token(body: Json) -> str:
    """Return the Kubernetes provider's type token for this kind of object."""
    version = body["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{body['kind']}"


def _properties(body: Json) -> dict[str, Any]:
    """Return the object as properties; the provider sets those without a value."""
    match body["kind"]:
        case "Secret":
            return body | {"data": pulumi.Output.secret(body["data"])}
        case "DaemonSet":
            return body | {"status": None}
        case _:
            return body


def _count(status: Mapping[str, Any] | None, key: str) -> str:
    number = (status or {}).get(key)
    return "" if number is None else str(int(number))


def _not_transmissible(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield what would not reach the provider as it is."""
    match value:
        case dict():
            if _SIGNATURE in value:
                yield path, f'the key "{_SIGNATURE}" is reserved by Pulumi; remove it or deploy without Pulumi'
            for key, item in value.items():
                yield from _not_transmissible(item, f"{path}.{key}" if path else key)
        case list():
            for at, item in enumerate(value):
                yield from _not_transmissible(item, f"{path}[{at}]" if path else "")
        case int() if abs(value) > _EXACT:
            yield path, f"{value} is too large for Pulumi to represent exactly; expected at most {_EXACT}"
