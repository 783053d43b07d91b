"""Names resolve, by the pod's own resolver and by servers asked directly, and they do so every time."""

import socket
import time
from collections.abc import Iterable, Iterator

from kube_node_ready.checks import dnsquery, resolver, sampling, wire
from kube_node_ready.checks.dnsquery import Question, RefusedError, Reply
from kube_node_ready.checks.model import CheckFailedError, Deadline, Proof, SkippedError
from kube_node_ready.checks.record import Record
from kube_node_ready.checks.resolver import Resolver
from kube_node_ready.checks.sampling import Sampling
from kube_node_ready.checks.settings import is_api_service

_TIMES_TO_SEARCH = 3
_SECONDS_TO_SEARCH_AGAIN = 0.05


class Name(Record):
    """A name as it is configured, and which kinds of addresses it is asked for, the preferred one first."""

    text: str
    kinds: tuple[int, ...]


def resolves(name: str, api_host: str) -> Proof:
    """As any program on this node would resolve it. The API Service's name must lead to the API Service."""
    try:
        addresses = wire.addresses_of(name)
    except socket.gaierror as why:
        raise CheckFailedError(f"does not resolve: {why.strerror} (asked {resolver.read().shown})") from why
    if is_api_service(name):
        leads_to(api_host, addresses)
    return Proof({"addresses": addresses})


def resolves_if_known_here(name: str) -> Proof:
    """On a machine outside the cluster nobody need know the cluster's names."""
    try:
        return resolves(name, "")
    except CheckFailedError as why:
        raise SkippedError(
            "this machine's resolver is not the cluster's, and does not know the cluster's names"
        ) from why


def always_resolves(name: str, api_host: str, wanted: Sampling, deadline: Deadline) -> Proof:
    """The name resolves by libc, and its server answers every query for it.

    The server first: libc repeats what is lost, which takes seconds and hides the loss.
    """
    if resolver.is_in_hosts_file(name):
        return resolves(name, api_host)
    used = resolver.read()
    kinds = (dnsquery.AAAA, dnsquery.A) if is_api_service(name) and ":" in api_host else (dnsquery.A, dnsquery.AAAA)
    found = _search(Name(name, kinds), used, deadline)
    if found is None:
        resolves(name, api_host)  # its error is the one that every program gets
        raise CheckFailedError(f"resolves only sometimes: {used.shown} denied it {_TIMES_TO_SEARCH} times before")
    server, question, seconds = found
    sample = dnsquery.sample_by_tcp if used.by_tcp else dnsquery.sample_by_udp
    ask = sample(server, dnsquery.PORT, question, _judge(api_host if is_api_service(name) else ""))
    facts = _sampled(ask, server, wanted, deadline, seconds)
    return Proof({**resolves(name, api_host).facts, **facts})


def _search(name: Name, used: Resolver, deadline: Deadline) -> tuple[str, Question, float] | None:
    """Which server knows the name, which full name it is there, and how many seconds the answer took.

    Several times, since a server that denies a name now and then is what the samples are to find.
    """
    for _ in range(_TIMES_TO_SEARCH):
        if found := _search_once(name, used, deadline):
            return found
        time.sleep(min(_SECONDS_TO_SEARCH_AGAIN, deadline.left()))
    return None


def _search_once(name: Name, used: Resolver, deadline: Deadline) -> tuple[str, Question, float] | None:
    """The next server is asked only if one does not answer, as libc does."""
    servers = resolver.servers(used)
    for at, server in enumerate(servers, start=1):
        try:
            # The last server gets all of the time, the ones before it leave enough for the others and for libc.
            within = deadline if at == len(servers) else deadline.part(1 / (len(servers) - at + 2))
            return next(_known(server, name, used, within), None)
        except CheckFailedError:
            if at == len(servers):
                raise
    return None


def _known(server: str, name: Name, used: Resolver, deadline: Deadline) -> Iterator[tuple[str, Question, float]]:
    ask = dnsquery.ask_by_tcp if used.by_tcp else dnsquery.ask
    for full_name in used.candidates(name.text):
        for kind in name.kinds:
            question, begun = Question(full_name, kind), time.monotonic()
            try:
                reply = ask(server, dnsquery.PORT, question, deadline)
            except RefusedError:
                break  # libc does not stop either if one of the names cannot be looked up
            if reply.addresses:
                yield server, question, time.monotonic() - begun
            if reply.is_unknown:
                break


def answers(server: str, cluster_name: str, wanted: Sampling, deadline: Deadline) -> Proof:
    """Any answer is sufficient: a public server answers that a cluster's name does not exist."""
    question, begun = Question(cluster_name), time.monotonic()
    dnsquery.ask(server, dnsquery.PORT, question, deadline)
    ask = dnsquery.sample_by_udp(server, dnsquery.PORT, question)
    return Proof(_sampled(ask, server, wanted, deadline, time.monotonic() - begun))


def knows_the_cluster(server: str, cluster_name: str, api_host: str, wanted: Sampling, deadline: Deadline) -> Proof:
    question = Question(cluster_name, dnsquery.AAAA if ":" in api_host else dnsquery.A)
    begun = time.monotonic()
    reply = dnsquery.ask(server, dnsquery.PORT, question, deadline)
    if not reply.addresses:
        raise CheckFailedError(f"the server answers, and knows no address of {cluster_name}")
    leads_to(api_host, list(reply.addresses))
    ask = dnsquery.sample_by_udp(server, dnsquery.PORT, question, _judge(api_host))
    facts = _sampled(ask, server, wanted, deadline, time.monotonic() - begun)
    return Proof({"addresses": list(reply.addresses), **facts})


def _sampled(ask: sampling.Ask, server: str, wanted: Sampling, deadline: Deadline, seconds: float) -> dict[str, object]:
    try:
        return sampling.take(ask, wanted, deadline, first_answer=seconds)
    except CheckFailedError as error:
        raise CheckFailedError(f"{error} (asked {server})") from error


def _judge(api_host: str) -> dnsquery.Judge:
    """A name of the API Service must lead to it in every answer."""

    def judge(reply: Reply) -> str:
        if fault := dnsquery.with_address(reply):
            return fault
        return "" if reply.truncated or _is_among(api_host, reply.addresses) else "answered with another address"

    return judge


def leads_to(api_host: str, addresses: list[str]) -> None:
    """Where KUBERNETES_SERVICE_HOST is a name, there is no address to compare with."""
    if not _is_among(api_host, addresses):
        raise CheckFailedError(f"resolves to {', '.join(addresses)}, and the API Service is {api_host}")


def _is_among(api_host: str, addresses: Iterable[str]) -> bool:
    expected = wire.packed(api_host)
    return expected is None or expected in map(wire.packed, addresses)
