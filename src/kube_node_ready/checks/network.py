"""Packets arrive: at the API Service, at what the settings name, and at pods on other nodes."""

import ssl
import time

from kube_node_ready.checks import dnsquery, wire
from kube_node_ready.checks.dnsquery import Question
from kube_node_ready.checks.model import CheckFailedError, Deadline, Job, NotJudgedError, Proof
from kube_node_ready.checks.sampling import Sampling, take
from kube_node_ready.checks.services import Endpoint, Lookup
from kube_node_ready.checks.settings import Url

_LOWEST_SUCCESS, _LOWEST_ERROR = 200, 400


def accepts_connections(host: str, port: int, deadline: Deadline) -> Proof:
    wire.connect(host, port, deadline).close()
    return Proof()


def answers(url: Url, deadline: Deadline) -> Proof:
    """A redirect is an answer, and is not followed."""
    plain = wire.connect(url.host, url.port, deadline)
    try:
        connection = (
            wire.encrypt(plain, ssl.create_default_context(), url.host, deadline) if url.scheme == "https" else plain
        )
    except BaseException:
        plain.close()
        raise
    host = wire.joined(url.host, url.port)
    with wire.Conversation(connection, host, {"Accept": "*/*"}, close=True) as conversation:
        status = conversation.get(url.path, deadline, wants_body=False).status
    if not _LOWEST_SUCCESS <= status < _LOWEST_ERROR:
        raise CheckFailedError(f"answers {status}, and 2xx or 3xx was hoped for")
    return Proof({"status": status})


def each_dns_server(
    endpoints: Lookup, service: str, cluster_name: str, sampling: Sampling, deadline: Deadline
) -> Proof:
    """A job for each, since the Service's round robin would hide a dead one."""
    try:
        found = endpoints(deadline)
    except (CheckFailedError, TimeoutError) as why:
        cause = str(why).removeprefix("not judged: ") or "timed out"
        raise NotJudgedError(f"the endpoints of {service} are not known: {cause}") from why
    if not found:
        raise NotJudgedError(f"{service} has no ready endpoint to ask")
    # The packets to all of them take the node's own path, so they share the first samples.
    share = sampling.spread_over(len(found))
    return Proof(more=tuple(_job(endpoint, cluster_name, share) for endpoint in found))


def _job(endpoint: Endpoint, cluster_name: str, sampling: Sampling) -> Job:
    ports = endpoint.udp or endpoint.tcp or (dnsquery.PORT,)
    target = wire.joined(endpoint.address, ports[0])
    return Job("network", target, lambda deadline: serves_dns(endpoint, Question(cluster_name), sampling, deadline))


def serves_dns(endpoint: Endpoint, question: Question, sampling: Sampling, deadline: Deadline) -> Proof:
    """By TCP and by UDP, and one failure does not hide the other."""
    ways = [(_serves_by_tcp, port) for port in endpoint.tcp] + [(_serves_by_udp, port) for port in endpoint.udp]
    if not ways:
        raise CheckFailedError("its EndpointSlice names no port for DNS: neither a UDP port nor a TCP port called dns…")
    errors: list[str] = []
    facts: dict[str, object] = {}
    for tried, (serves, port) in enumerate(ways):
        try:
            share = deadline.part(1 / (len(ways) - tried))
            facts |= serves(endpoint.address, port, question, sampling, share)
        except CheckFailedError as error:
            errors.append(str(error))
    if errors:
        raise CheckFailedError("; ".join(errors))
    return Proof(facts)


def _serves_by_tcp(
    address: str,
    port: int,
    question: Question,
    _sampling: Sampling,
    deadline: Deadline,
) -> dict[str, object]:
    """Once: TCP repeats what is lost, so it would show no loss."""
    dnsquery.ask_by_tcp(address, port, question, deadline)
    return {}


def _serves_by_udp(
    address: str, port: int, question: Question, sampling: Sampling, deadline: Deadline
) -> dict[str, object]:
    begun = time.monotonic()
    dnsquery.ask_by_udp(address, port, question, deadline)
    ask = dnsquery.sample_by_udp(address, port, question)
    try:
        return take(ask, sampling, deadline, first_answer=time.monotonic() - begun)
    except CheckFailedError as error:
        raise CheckFailedError(f"{error} by UDP") from error
