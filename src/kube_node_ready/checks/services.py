"""Services exist and have somebody behind them, as their EndpointSlices say."""

from collections.abc import Callable, Iterator

from kube_node_ready.api_paths import collection_path, object_path
from kube_node_ready.checks import access
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.model import CheckFailedError, Deadline, NotJudgedError, Proof
from kube_node_ready.checks.record import Record
from kube_node_ready.checks.wire import Conversation, NoAnswerError, UnreachableError

_ADDRESS_TYPES = ("IPv4", "IPv6")


class Endpoint(Record):
    address: str
    udp: tuple[int, ...]
    tcp: tuple[int, ...]


Endpoints = tuple[Endpoint, ...]
Lookup = Callable[[Deadline], Endpoints]


def endpoints_of(api: Access, service: str) -> Lookup:
    """The ready endpoints of a Service that exists."""

    def look(deadline: Deadline) -> Endpoints:
        try:
            with api.converse(deadline) as conversation:
                return _look(conversation, api.path, service, deadline)
        except (UnreachableError, NoAnswerError) as why:
            raise NotJudgedError(f"the API server cannot be asked: {why}") from why

    return access.shared(look)


def _look(conversation: Conversation, prefix: str, service: str, deadline: Deadline) -> Endpoints:
    """Version 0 means that the API server may answer from memory, and need not ask etcd for every new node."""
    namespace, _, name = service.partition("/")
    path = object_path("v1", "services", name, namespace=namespace)
    answer = conversation.get(f"{prefix}{path}?resourceVersion=0", deadline)
    if answer.status == access.NOT_FOUND:
        raise CheckFailedError(f"the Service {service} does not exist")
    access.json_of(answer, f"get services in namespace {namespace}")
    path = collection_path("discovery.k8s.io/v1", "endpointslices", namespace=namespace)
    query = f"labelSelector=kubernetes.io%2Fservice-name%3D{name}&resourceVersion=0"
    answer = conversation.get(f"{prefix}{path}?{query}", deadline)
    found = access.json_of(answer, f"list endpointslices in namespace {namespace}")
    try:
        return tuple(dict.fromkeys(_ready(found)))
    except (AttributeError, KeyError, TypeError, ValueError) as why:
        raise NotJudgedError(f"the API server's list of EndpointSlices is malformed: {why!r}") from why


def _ready(found: dict[str, object]) -> Iterator[Endpoint]:
    """An endpoint that says nothing of its readiness is ready; so the API is defined."""
    slices: list[dict[str, object]] = found["items"] or []  # type: ignore[assignment]
    for one in slices:
        if one["addressType"] not in _ADDRESS_TYPES:
            continue
        ports: list[dict[str, object]] = one.get("ports") or []  # type: ignore[assignment]
        endpoints: list[dict[str, object]] = one.get("endpoints") or []  # type: ignore[assignment]
        udp = tuple(_port(port) for port in ports if port.get("protocol") == "UDP" and port.get("port"))
        tcp = tuple(_port(port) for port in ports if _is_dns_by_tcp(port, udp))
        for endpoint in endpoints:
            conditions: dict[str, object] = endpoint.get("conditions") or {}  # type: ignore[assignment]
            addresses: list[str] = endpoint["addresses"]  # type: ignore[assignment]
            if conditions.get("ready") is not False:
                yield Endpoint(str(addresses[0]), udp, tcp)


def _is_dns_by_tcp(port: dict[str, object], udp: tuple[int, ...]) -> bool:
    """Metrics are served by TCP too, under a name and a number of their own."""
    is_tcp = port.get("protocol", "TCP") == "TCP" and port.get("port")
    return bool(is_tcp) and (str(port.get("name") or "").startswith("dns") or _port(port) in udp)


def _port(port: dict[str, object]) -> int:
    return int(str(port["port"]))


def has_ready_endpoints(endpoints: Lookup, deadline: Deadline) -> Proof:
    found = endpoints(deadline)
    if not found:
        raise CheckFailedError("the Service exists, but none of its endpoints is ready")
    return Proof({"endpoints": len(found)})
