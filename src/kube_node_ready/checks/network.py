"""Check connections to the API Service, to configured targets, and to DNS servers on other nodes."""

import os
import ssl
import time
from collections import Counter
from collections.abc import Sequence

from kube_node_ready.checks import dns_client, transport
from kube_node_ready.checks.check import Check, CheckFailedError, Deadline, Evidence, InconclusiveError, PodIdentity
from kube_node_ready.checks.dns_client import Question
from kube_node_ready.checks.sampling import Sampling, take
from kube_node_ready.checks.services import Endpoint, Endpoints, Lookup
from kube_node_ready.checks.settings import Url
from kube_node_ready.checks.transport import UnreachableError

_LOWEST_SUCCESS, _LOWEST_ERROR = 200, 400
_MOST_SERVERS = 64
_MOST_PER_NODE = 4


def accepts_connections(host: str, port: int, deadline: Deadline) -> Evidence:
    transport.connect(host, port, deadline).close()
    return Evidence()


def always_accepts_connections(host: str, port: int, count: int, deadline: Deadline) -> Evidence:
    """Check that each of many connections can be made. A Service selects an endpoint for each.

    With one of three API servers out of reach, a single connection succeeds two times out of three, so a node would be
    verified after a few attempts. No share of failed connections is tolerated: TCP repeats lost packets.
    """
    failures = transport.failed_connections(host, port, count, deadline)
    if failures:
        target = transport.host_port(host, port)
        raise UnreachableError(f"{len(failures)} of {count} connections to {target} failed: {described(failures)}")
    return Evidence({"connections": count})


def described(failures: Sequence[str]) -> str:
    """Return the cause, or each cause with its number, the most frequent one first."""
    causes = Counter(failures)
    if len(causes) == 1:
        return failures[0]
    return ", ".join(f"{count} {cause}" for cause, count in causes.most_common())


def answers(url: Url, deadline: Deadline) -> Evidence:
    """Check that the URL responds. A redirect is a response, and is not followed."""
    plain = transport.connect(url.host, url.port, deadline)
    name = url.host.removesuffix(".")  # a final dot is for the resolver, and in no certificate
    try:
        connection = (
            transport.start_tls(plain, ssl.create_default_context(), name, deadline) if url.scheme == "https" else plain
        )
    except BaseException:
        plain.close()
        raise
    host = transport.host_port(name, url.port)
    with transport.HttpConnection(connection, host, {"Accept": "*/*"}, close=True) as http:
        status = http.get(url.path, deadline, wants_body=False).status
    if not _LOWEST_SUCCESS <= status < _LOWEST_ERROR:
        raise CheckFailedError(f"returned HTTP {status}, expected 2xx or 3xx")
    return Evidence({"status": status})


def each_dns_server(
    endpoints: Lookup, service: str, cluster_name: str, sampling: Sampling, identity: PodIdentity, deadline: Deadline
) -> Evidence:
    """Return a check per DNS server, because the Service's load balancing would hide a broken one."""
    try:
        ready = endpoints(deadline)
    except (CheckFailedError, TimeoutError) as error:
        cause = str(error) or "timed out"
        raise InconclusiveError(f"the endpoints of {service} are not known: {cause}") from error
    if not ready:
        raise InconclusiveError(f"{service} has no ready endpoint to query")
    asked = _sample(ready)
    # The packets to all of them use the node's network, so they share the first samples.
    share = sampling.spread_over(len(asked))
    return Evidence(follow_ups=tuple(_check(endpoint, cluster_name, share, identity) for endpoint in asked))


def _sample(endpoints: Endpoints) -> list[Endpoint]:
    """Return a sample, selected again for each run. Each needs a thread, and a kubelet can add many endpoints."""
    on_node: dict[str, int] = {}
    kept = []
    for endpoint in sorted(endpoints, key=lambda _: os.urandom(8)) if len(endpoints) > _MOST_SERVERS else endpoints:
        on_node[endpoint.node] = on_node.get(endpoint.node, 0) + 1
        if not endpoint.node or on_node[endpoint.node] <= _MOST_PER_NODE:
            kept.append(endpoint)
    return kept[:_MOST_SERVERS]


def _check(endpoint: Endpoint, cluster_name: str, sampling: Sampling, identity: PodIdentity) -> Check:
    question, peer = Question(cluster_name), endpoint.node if endpoint.node != identity.node else ""
    ports = endpoint.udp or endpoint.tcp or (dns_client.PORT,)
    target = transport.host_port(endpoint.address, ports[0])
    return Check("network", target, lambda deadline: serves_dns(endpoint, question, sampling, deadline), peer)


def serves_dns(endpoint: Endpoint, question: Question, sampling: Sampling, deadline: Deadline) -> Evidence:
    """Check TCP and UDP, and report both failures."""
    ways = [(_serves_by_tcp, port) for port in endpoint.tcp] + [(_serves_by_udp, port) for port in endpoint.udp]
    if not ways:
        raise CheckFailedError(
            "its EndpointSlice has no DNS port: expected a UDP port, or a TCP port with a name such as dns-tcp"
        )
    errors: list[str] = []
    details: dict[str, object] = {}
    for tried, (serves, port) in enumerate(ways):
        try:
            share = deadline.part(1 / (len(ways) - tried))
            details |= serves(endpoint.address, port, question, sampling, share)
        except CheckFailedError as error:
            errors.append(str(error))
    if errors:
        raise CheckFailedError("; ".join(errors))
    return Evidence(details)


def _serves_by_tcp(
    address: str,
    port: int,
    question: Question,
    _sampling: Sampling,
    deadline: Deadline,
) -> dict[str, object]:
    """Query once: TCP repeats lost packets, so samples would show no loss."""
    dns_client.ask_by_tcp(address, port, question, deadline)
    return {}


def _serves_by_udp(
    address: str, port: int, question: Question, sampling: Sampling, deadline: Deadline
) -> dict[str, object]:
    started = time.monotonic()
    dns_client.ask_by_udp(address, port, question, deadline)
    ask = dns_client.sample_by_udp(address, port, question)
    try:
        return take(ask, sampling, deadline, first_answer=time.monotonic() - started)
    except CheckFailedError as error:
        raise CheckFailedError(f"{error} by UDP") from error
