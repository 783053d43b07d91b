"""The component for Pulumi programs: every object of a manifest as a resource, all under one parent.

    agent = KubernetesDaemonSetComponent("agent", Path("agent.yaml"))
    pulumi.export("ready", agent.number_ready)

The objects are those of `resources.render`, given to the engine as they are: its Kubernetes provider knows a kind by a
type token, so that no SDK with a class for each is needed. `pulumi_program` is a whole program made of this.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

try:
    import pulumi

    from kubernetes_daemonset import names, resources
    from kubernetes_daemonset.backends import given
    from kubernetes_daemonset.backends.given import Manifest
    from kubernetes_daemonset.backends.order import needs
    from kubernetes_daemonset.manifest import Loaded
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"the Pulumi backend needs {missing.name}, which is not installed: pip install 'kube-node-ready[pulumi]'",
        name=missing.name,
    ) from missing

from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place
from kubernetes_daemonset.objects import Json

TYPE: Final = "kubernetes-daemonset:index:KubernetesDaemonSet"

# Of the engine's Kubernetes plugin, which it fetches by itself once it is told which one. A fixed one, so that a stack
# that nobody touched is not made by another plugin tomorrow; the newest when this was written.
PROVIDER_VERSION: Final = "4.34.2"

_EXACT: Final = 2**53  # Pulumi's numbers are floating-point; whole ones above this are rounded


class ManifestRunError(ManifestError, pulumi.RunError):
    """Every mistake of a manifest. Pulumi shows the text of a RunError alone, without a stack trace."""


@contextmanager
def mistakes_end_the_run() -> Iterator[None]:
    try:
        yield
    except ManifestError as why:
        raise ManifestRunError(why.mistakes) from None


@dataclass(frozen=True)
class Plan:
    """A manifest in which nothing is wrong, and what is to be made of it."""

    loaded: Loaded
    warnings: Sequence[Mistake]
    objects: Sequence[Json]


def planned(manifest: Manifest, source: str) -> Plan:
    """All that can go wrong with a manifest does so here, before anything is registered."""
    loaded, warnings = given.checked(manifest, source)
    objects = resources.render(loaded.input)
    if inexact := [Mistake(path, text, Place(loaded.source)) for path, text in _inexact_numbers(objects)]:
        raise ManifestError(inexact)
    return Plan(loaded, warnings, objects)


class KubernetesDaemonSetComponent(pulumi.ComponentResource):
    """A node agent and all that it needs.

    The manifest is a mapping, YAML, the path of a file, or a message; all of its values have to be known when it is
    given, so one that comes from another resource needs that resource's `apply`. Nothing is made of a manifest with
    mistakes. `opts` as always: `providers` or `provider` chooses the cluster, `version` the provider's version.
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
        self._say(daemon_set, names.namespace(plan.loaded.manifest), plan.loaded.manifest.metadata.name)

    @property
    def stack_outputs(self) -> dict[str, pulumi.Output[str]]:
        """As stack_outputs.proto names them."""
        return {
            "namespace": self.namespace,
            "daemonset_name": self.daemonset_name,
            "desired_number_scheduled": self.desired_number_scheduled,
            "current_number_scheduled": self.current_number_scheduled,
            "number_ready": self.number_ready,
        }

    def _register(self, objects: Sequence[Json], version: str) -> pulumi.CustomResource:
        """The last resource, which is the DaemonSet: it needs all others."""
        made: list[pulumi.CustomResource] = []
        for one in objects:
            needed = [resource for other, resource in zip(objects, made, strict=False) if needs(one, other)]
            # Types are part of a resource's identity and parents' names are not, so ours has to be in its name.
            name = f"{self.pulumi_resource_name}/{one['kind']}/{one['metadata']['name']}"
            options = pulumi.ResourceOptions(
                parent=self,
                depends_on=needed,
                version=version,
                additional_secret_outputs=["data"] if one["kind"] == "Secret" else None,
                # Others may live there by the time this component goes.
                retain_on_delete=one["kind"] == "Namespace" or None,
            )
            made.append(pulumi.CustomResource(type_token(one), name, _properties(one), options))
        return made[-1]

    def _say(self, daemon_set: pulumi.CustomResource, namespace: str, name: str) -> None:
        # Whoever uses a name must wait for what it names, so the names come from the resource as the numbers do.
        self.namespace = daemon_set.urn.apply(lambda _: namespace)
        self.daemonset_name = daemon_set.urn.apply(lambda _: name)
        status: pulumi.Output[Any] = daemon_set.__dict__["status"]
        self.desired_number_scheduled = status.apply(lambda seen: _count(seen, "desiredNumberScheduled"))
        self.current_number_scheduled = status.apply(lambda seen: _count(seen, "currentNumberScheduled"))
        self.number_ready = status.apply(lambda seen: _count(seen, "numberReady"))
        self.register_outputs(self.stack_outputs)


def type_token(one: Json) -> str:
    """What the Kubernetes provider calls this kind of object."""
    version = one["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{one['kind']}"


def _properties(one: Json) -> dict[str, Any]:
    """The object itself; a property without a value is one that the provider will fill in."""
    match one["kind"]:
        case "Secret":
            return one | {"data": pulumi.Output.secret(one["data"])}
        case "DaemonSet":
            return one | {"status": None}
        case _:
            return one


def _count(status: Mapping[str, Any] | None, key: str) -> str:
    number = (status or {}).get(key)
    return "" if number is None else str(int(number))


def _inexact_numbers(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key, item in value.items():
                yield from _inexact_numbers(item, f"{path}.{key}" if path else key)
        case list():
            for at, item in enumerate(value):
                yield from _inexact_numbers(item, f"{path}[{at}]" if path else "")
        case int() if abs(value) > _EXACT:
            yield path, f"{value} is more than Pulumi can carry exactly; write at most {_EXACT}"
