"""How much of a node containers may use, and how much is set aside for them."""

from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset.api.shared.container_pb2 import ContainerResources, CpuMemory
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest import entry
from kubernetes_daemonset.quantities import nearest, parsed
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import APP, Part, parts
from kubernetes_daemonset.syntax import LABEL_NAME

_HUGE_PAGES: Final = "hugepages-"
# Of such names a server takes fractions, and requests without limits: they are not devices, but Kubernetes' own.
_OF_KUBERNETES: Final = "kubernetes.io/"
# How a quota calls a device. A server refuses a device of such a name, and one that would be too long with it.
_OF_A_QUOTA: Final = "requests."


def amounts_are_amounts(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        resources: ContainerResources = part.body.resources
        for kind, given in (("limits", resources.limits), ("requests", resources.requests)):
            for path, text in _amounts(given, f"{part.path}.resources.{kind}"):
                amount = parsed(text)
                if amount is None:
                    right = nearest(text) or "a number with a unit, such as 250m, 64Mi or 2"
                    yield Finding(path, f'"{text}" is no amount; write {right}')
                elif amount < 0:
                    yield Finding(path, f'"{text}" is less than nothing; write 0 or more')


def requests_stay_below_limits(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        limits = dict(_amounts(part.body.resources.limits, ""))
        for path, text in _amounts(part.body.resources.requests, ""):
            request, limit = parsed(text), parsed(limits.get(path, ""))
            if request is not None and limit is not None and request > limit:
                where = f"{part.path}.resources.requests{path}"
                yield Finding(where, f'"{text}" is more than the limit "{limits[path]}"; lower it or raise the limit')


def other_resources_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        for path, name in _other_names(part):
            if not _is_resource(name):
                yield Finding(path, f'"{name}" is no resource; write its full name, such as nvidia.com/gpu')


def devices_are_whole(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Devices and huge pages: a container has them for itself, so that its request is its limit."""
    for part in parts(manifest):
        limits, requests = part.body.resources.limits.other, part.body.resources.requests.other
        for path, name in _other_names(part):
            if not _is_resource(name) or _OF_KUBERNETES in name:
                continue
            if name not in limits:
                text = "such a resource is requested by its limit; write it under limits"
                yield Finding(path, text, (f"{part.path}.resources.limits",))
            elif (amount := parsed(limits[name])) is None:
                continue  # said already
            elif amount != amount.to_integral_value():
                yield Finding(path, f'"{limits[name]}" is no whole number, and such a resource cannot be divided')
            elif (request := parsed(requests.get(name, ""))) is not None and request < amount:
                both = f'is "{limits[name]}", and the request "{requests[name]}"'
                yield Finding(path, f"{both}; such a resource takes the same for both")


def huge_pages_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        limits, requests = part.body.resources.limits, part.body.resources.requests
        for name, text in sorted(limits.other.items()):
            path = entry(f"{part.path}.resources.limits.other", name)
            size, amount = parsed(name.removeprefix(_HUGE_PAGES)), parsed(text)
            if not _is_huge(name) or amount is None:
                continue
            if not size or size < 0 or (pages := amount / size) != pages.to_integral_value():
                yield Finding(path, f'"{text}" is not a whole number of such pages')
            elif not (limits.cpu or limits.memory or requests.cpu or requests.memory):
                says = "huge pages go with cpu or memory; write how much of one of them"
                yield Finding(path, says, (f"{part.path}.resources",))


def memory_is_not_limited(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        has_the_default = part.path == APP and not part.body.HasField("resources")
        if not has_the_default and not part.body.resources.limits.memory:
            text = "no memory limit: one leak can take down every pod of a node"
            yield Finding(f"{part.path}.resources", text)


def _amounts(given: CpuMemory, path: str) -> Iterator[tuple[str, str]]:
    for name in ("cpu", "memory", "ephemeral_storage"):
        if text := getattr(given, name):
            yield f"{path}.{name}", text
    for name, text in sorted(given.other.items()):
        yield entry(f"{path}.other", name), text


def _other_names(part: Part) -> Iterator[tuple[str, str]]:
    """Each once, with its path: that of the limit if it has one."""
    limits, requests = part.body.resources.limits.other, part.body.resources.requests.other
    for name in sorted({*limits, *requests}):
        kind = "limits" if name in limits else "requests"
        yield entry(f"{part.path}.resources.{kind}.other", name), name


def _is_resource(name: str) -> bool:
    if _is_huge(name):
        return True
    if "/" not in name or not LABEL_NAME.fullmatch(name):
        return False
    of_a_device = not name.startswith(_OF_A_QUOTA) and LABEL_NAME.fullmatch(_OF_A_QUOTA + name)
    return _OF_KUBERNETES in name or bool(of_a_device)


def _is_huge(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)
