"""Check that Services have ready endpoints, by EndpointSlices, or by Endpoints where only those can be read."""

import itertools
from collections.abc import Callable, Iterator

from kube_node_ready import log
from kube_node_ready.api.paths import collection_path, object_path
from kube_node_ready.checks import access, transport
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.check import Deadline, ElsewhereError, Evidence, InconclusiveError
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.checks.transport import HttpConnection, NoAnswerError, UnreachableError

_ADDRESS_TYPES = ("IPv4", "IPv6")
_LAST_PORT = 65_535
# About 25,000 endpoints. A kubelet can add any number, with mirror pods, and a pod of ours has memory for twice that.
_LARGEST_LIST = 8 * 1024 * 1024
_SERVICES_RULE = 'apiGroups: [""], resources: ["services"], verbs: ["get"]'
_SLICES_RULE = 'apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list"]'
_fallbacks = itertools.count()
"""How often Endpoints were read instead. `next` on it is atomic, and checks run in threads."""


class Endpoint(FastTuple):
    address: str
    udp: tuple[int, ...]
    tcp: tuple[int, ...]
    node: str = ""
    """The node of its pod; empty if unknown."""


Endpoints = tuple[Endpoint, ...]
Lookup = Callable[[Deadline], Endpoints]


def endpoints_of(api: Access, service: str) -> Lookup:
    """Return a shared lookup of the ready endpoints of a Service."""

    def fetch(deadline: Deadline) -> Endpoints:
        try:
            with api.open(deadline) as connection:
                return _look(connection, api.path, service, deadline)
        except (UnreachableError, NoAnswerError) as error:
            raise InconclusiveError(f"cannot connect to the API server: {error}") from error

    return access.once(fetch)


def _look(connection: HttpConnection, prefix: str, service: str, deadline: Deadline) -> Endpoints:
    """With resourceVersion 0, the API server answers from its cache, without a request to etcd per new node."""
    namespace, _, name = service.partition("/")
    path = object_path("v1", "services", name, namespace=namespace)
    response = connection.get(f"{prefix}{path}?resourceVersion=0", deadline)
    if response.status == access.NOT_FOUND:
        raise ElsewhereError(f"the Service {service} does not exist")
    access.json_of(response, f"get services in namespace {namespace}", _SERVICES_RULE)
    path = collection_path("discovery.k8s.io/v1", "endpointslices", namespace=namespace)
    query = f"labelSelector=kubernetes.io%2Fservice-name%3D{name}&resourceVersion=0"
    slices = connection.get(f"{prefix}{path}?{query}", deadline, largest=_LARGEST_LIST)
    if slices.status != access.FORBIDDEN:
        result = access.json_of(slices, f"list endpointslices in namespace {namespace}")
        return _parsed(result, _ready, "list of EndpointSlices")
    path = object_path("v1", "endpoints", name, namespace=namespace)
    endpoints = connection.get(f"{prefix}{path}?resourceVersion=0", deadline, largest=_LARGEST_LIST)
    if endpoints.status == access.NOT_FOUND:
        raise ElsewhereError(
            f"the Service {service} has no Endpoints, and permission to list endpointslices in namespace {namespace} "
            f"is missing; add the RBAC rule {_SLICES_RULE}"
        )
    if endpoints.status == access.FORBIDDEN:
        access.json_of(slices, f"list endpointslices in namespace {namespace}", _SLICES_RULE)
    result = access.json_of(endpoints, f"get endpoints in namespace {namespace}")
    if next(_fallbacks) == 0:
        log.log("EndpointSlices forbidden, reading Endpoints", level="warn", namespace=namespace, rule=_SLICES_RULE)
    return _parsed(result, _ready_in_subsets, "Endpoints")


def _parsed(
    result: dict[str, object], ready: Callable[[dict[str, object]], Iterator[Endpoint]], what: str
) -> Endpoints:
    try:
        return tuple(dict.fromkeys(ready(result)))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InconclusiveError(f"the API server's {what} is malformed: {error!r}") from error


def _ready_in_subsets(result: dict[str, object]) -> Iterator[Endpoint]:
    """Yield ready endpoints of Endpoints, which list addresses that are not ready under another key."""
    subsets: list[dict[str, object]] = result.get("subsets") or []  # type: ignore[assignment]
    for subset in subsets:
        addresses: list[dict[str, object]] = subset.get("addresses") or []  # type: ignore[assignment]
        udp, tcp = _dns_ports(subset.get("ports") or [])
        for address in addresses:
            yield Endpoint(_address(address["ip"]), udp, tcp, str(address.get("nodeName") or ""))


def _ready(result: dict[str, object]) -> Iterator[Endpoint]:
    """Yield ready endpoints of EndpointSlices. By definition, an endpoint without the condition is ready."""
    slices: list[dict[str, object]] = result["items"] or []  # type: ignore[assignment]
    for endpoint_slice in slices:
        if endpoint_slice["addressType"] not in _ADDRESS_TYPES:
            continue
        endpoints: list[dict[str, object]] = endpoint_slice.get("endpoints") or []  # type: ignore[assignment]
        udp, tcp = _dns_ports(endpoint_slice.get("ports") or [])
        for endpoint in endpoints:
            conditions: dict[str, object] = endpoint.get("conditions") or {}  # type: ignore[assignment]
            addresses: list[str] = endpoint["addresses"]  # type: ignore[assignment]
            if conditions.get("ready") is not False:
                yield Endpoint(_address(addresses[0]), udp, tcp, str(endpoint.get("nodeName") or ""))


def _dns_ports(ports: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return UDP and TCP ports. EndpointSlices and Endpoints list ports in the same form."""
    listed: list[dict[str, object]] = ports  # type: ignore[assignment]
    udp = tuple(_port(port) for port in listed if port.get("protocol") == "UDP" and port.get("port"))
    return udp, tuple(_port(port) for port in listed if _is_dns_by_tcp(port, udp))


def _is_dns_by_tcp(port: dict[str, object], udp: tuple[int, ...]) -> bool:
    """Whether this is a DNS port. Metrics have a TCP port with another name and number."""
    is_tcp = port.get("protocol", "TCP") == "TCP" and port.get("port")
    return bool(is_tcp) and (str(port.get("name") or "").startswith("dns") or _port(port) in udp)


def _port(port: dict[str, object]) -> int:
    number = int(str(port["port"]))
    if not 0 < number <= _LAST_PORT:
        raise ValueError(f"{number} is not a valid port")
    return number


def _address(address: object) -> str:
    if not transport.is_address(str(address)):
        raise ValueError("an endpoint's address is not an IP address")
    return str(address)


def has_ready_endpoints(endpoints: Lookup, deadline: Deadline) -> Evidence:
    """Check that there is a ready endpoint. A stopped Service holds a node, but does not count against it."""
    result = endpoints(deadline)
    if not result:
        raise ElsewhereError("the Service exists, but none of its endpoints is ready")
    return Evidence({"endpoints": len(result)})
