"""Rules for resource limits and requests."""

from collections.abc import Iterator
from typing import Final

from kubekit import quantities
from kubekit.names import QUALIFIED_NAME
from kubernetes_daemonset.api.shared.container_pb2 import ContainerResources, CpuMemory
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest.reader import map_entry
from kubernetes_daemonset.validation.containers_view import APP, ContainerView, container_views
from kubernetes_daemonset.validation.rules.finding import Finding

_HUGE_PAGES: Final = "hugepages-"
# Of these an API server accepts fractions, and requests without limits: they are native resources, not devices.
_OF_KUBERNETES: Final = "kubernetes.io/"
# The prefix of a device in a quota. An API server rejects a device name that has it, or that is too long with it.
_OF_A_QUOTA: Final = "requests."


def valid_quantities(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        resources: ContainerResources = container.body.resources
        for kind, amounts in (("limits", resources.limits), ("requests", resources.requests)):
            for path, text in _amounts(amounts, f"{container.path}.resources.{kind}"):
                amount = quantities.parse(text)
                if amount is None:
                    right = quantities.suggest(text) or "a quantity such as 250m, 64Mi or 2"
                    yield Finding(path, f'"{text}" is invalid; expected {right}')
                elif amount < 0:
                    yield Finding(path, f'"{text}" is negative; expected 0 or more')


def requests_stay_below_limits(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        limits = dict(_amounts(container.body.resources.limits, ""))
        for path, text in _amounts(container.body.resources.requests, ""):
            if quantities.exceeds(text, limits.get(path, "")):
                where = f"{container.path}.resources.requests{path}"
                yield Finding(
                    where, f'"{text}" is more than the limit "{limits[path]}"; decrease it or increase the limit'
                )


def other_resources_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        for path, name in _other_names(container):
            if not _is_resource(name):
                yield Finding(path, f'"{name}" is invalid; expected a full resource name such as nvidia.com/gpu')


def devices_are_whole(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Check devices and huge pages: a container uses them exclusively, so its request equals its limit."""
    for container in container_views(manifest):
        limits, requests = container.body.resources.limits.other, container.body.resources.requests.other
        for path, name in _other_names(container):
            if not _is_resource(name) or _OF_KUBERNETES in name:
                continue
            if name not in limits:
                text = "the limit of this resource is also its request; move it to limits"
                yield Finding(path, text, (f"{container.path}.resources.limits",))
            elif (amount := quantities.parse(limits[name])) is None:
                continue  # already reported
            elif amount != amount.to_integral_value():
                yield Finding(
                    path,
                    f'"{limits[name]}" is invalid; expected a whole number, because this resource cannot be divided',
                )
            elif (request := quantities.parse(requests.get(name, ""))) is not None and request < amount:
                both = f'is "{limits[name]}", but the request is "{requests[name]}"'
                yield Finding(path, f"{both}; limit and request of this resource must be equal")


def huge_pages_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        limits, requests = container.body.resources.limits, container.body.resources.requests
        for name, text in sorted(limits.other.items()):
            path = map_entry(f"{container.path}.resources.limits.other", name)
            size, amount = quantities.parse(name.removeprefix(_HUGE_PAGES)), quantities.parse(text)
            if not _is_huge(name) or amount is None:
                continue
            if not size or size < 0 or (pages := amount / size) != pages.to_integral_value():
                yield Finding(path, f'"{text}" is not a multiple of the page size')
            elif not (limits.cpu or limits.memory or requests.cpu or requests.memory):
                missing = "huge pages require cpu or memory; add a request or limit of one of them"
                yield Finding(path, missing, (f"{container.path}.resources",))


def memory_is_not_limited(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        has_the_default = container.path == APP and not container.body.HasField("resources")
        if not has_the_default and not container.body.resources.limits.memory:
            text = "no memory limit: one leak can bring down every pod on a node"
            yield Finding(f"{container.path}.resources", text)


def _amounts(amounts: CpuMemory, path: str) -> Iterator[tuple[str, str]]:
    for name in ("cpu", "memory", "ephemeral_storage"):
        if text := getattr(amounts, name):
            yield f"{path}.{name}", text
    for name, text in sorted(amounts.other.items()):
        yield map_entry(f"{path}.other", name), text


def _other_names(container: ContainerView) -> Iterator[tuple[str, str]]:
    """Yield each resource once, with the path of its limit, or of its request if it has no limit."""
    limits, requests = container.body.resources.limits.other, container.body.resources.requests.other
    for name in sorted({*limits, *requests}):
        kind = "limits" if name in limits else "requests"
        yield map_entry(f"{container.path}.resources.{kind}.other", name), name


def _is_resource(name: str) -> bool:
    if _is_huge(name):
        return True
    if "/" not in name or not QUALIFIED_NAME.matches(name):
        return False
    of_a_device = not name.startswith(_OF_A_QUOTA) and QUALIFIED_NAME.matches(_OF_A_QUOTA + name)
    return _OF_KUBERNETES in name or of_a_device


def _is_huge(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)
