"""Check that names resolve, with the pod's resolver and with direct queries, in every sample."""

import socket
import time
from collections.abc import Iterable, Iterator

from kube_node_ready.checks import dns_client, resolver, sampling, transport
from kube_node_ready.checks.check import CheckFailedError, Deadline, Evidence, SkippedError
from kube_node_ready.checks.dns_client import Question, RefusedError, Reply
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.checks.resolver import Resolver
from kube_node_ready.checks.sampling import Sampling
from kube_node_ready.checks.settings import is_api_service

_MOST_NAMED = 5
_TIMES_TO_SEARCH = 3
_SECONDS_TO_SEARCH_AGAIN = 0.05


class Name(FastTuple):
    """A configured name, and the types of addresses to query, the preferred one first."""

    text: str
    kinds: tuple[int, ...]


def resolves(name: str, api_host: str) -> Evidence:
    """Resolve the name as any program on this node does. The API Service's name must resolve to its address."""
    try:
        addresses = transport.addresses_of(name)
    except socket.gaierror as error:
        raise CheckFailedError(f"does not resolve: {error.strerror} (queried {resolver.read().shown})") from error
    if is_api_service(name):
        expect_address(api_host, addresses)
    return Evidence({"addresses": addresses})


def resolves_if_known_here(name: str) -> Evidence:
    """Resolve a name of the cluster. On a machine outside the cluster, a failure is skipped."""
    try:
        return resolves(name, "")
    except CheckFailedError as error:
        raise SkippedError(
            "this machine's resolver is not the cluster's, and does not know the cluster's names"
        ) from error


def own_resolver_answers(name: str, deadline: Deadline) -> Evidence:
    """Check that a server of this machine's resolver answers. Any answer is sufficient, even REFUSED.

    Ask the next server only if one does not answer, as libc does.
    """
    servers = resolver.read().servers
    if not servers:
        raise SkippedError(f"{resolver.RESOLV_CONF} lists no DNS server")
    errors = []
    for at, server in enumerate(servers):
        try:
            dns_client.ask(server, dns_client.PORT, Question(name), deadline.part(1 / (len(servers) - at)))
        except RefusedError:
            return Evidence({"server": server})
        except (CheckFailedError, TimeoutError) as error:
            errors.append(str(error) or f"no answer from {server}")
        else:
            return Evidence({"server": server})
    raise CheckFailedError("; ".join(errors))


def always_resolves(name: str, api_host: str, wanted: Sampling, deadline: Deadline) -> Evidence:
    """Check that the name resolves with libc, and that its server answers the queries for it.

    The server first: libc repeats what is lost, which takes seconds and hides the loss.
    """
    if resolver.is_in_hosts_file(name):
        return resolves(name, api_host)
    used = resolver.read()
    kinds = (
        (dns_client.AAAA, dns_client.A) if is_api_service(name) and ":" in api_host else (dns_client.A, dns_client.AAAA)
    )
    result = _search(Name(name, kinds), used, deadline)
    if result is None:
        resolves(name, api_host)  # raises the error that every program gets
        raise CheckFailedError(
            f"resolves only sometimes: {used.shown} returned no address {_TIMES_TO_SEARCH} times before"
        )
    server, question, seconds = result
    sample = dns_client.sample_by_tcp if used.by_tcp else dns_client.sample_by_udp
    ask = sample(server, dns_client.PORT, question, _judge(api_host if is_api_service(name) else ""))
    details = _sampled(ask, server, wanted, deadline, seconds)
    return Evidence({**resolves(name, api_host).details, **details})


def _search(name: Name, used: Resolver, deadline: Deadline) -> tuple[str, Question, float] | None:
    """Return the server that resolved the name, the full name, and the seconds of its slowest answer.

    Several times, since a server that denies a name now and then is what the samples are to find.
    """
    for _ in range(_TIMES_TO_SEARCH):
        if result := _search_once(name, used, deadline):
            return result
        time.sleep(min(_SECONDS_TO_SEARCH_AGAIN, deadline.left()))
    return None


def _search_once(name: Name, used: Resolver, deadline: Deadline) -> tuple[str, Question, float] | None:
    """Ask the next server only if one does not answer, as libc does."""
    servers = resolver.servers(used)
    for at, server in enumerate(servers, start=1):
        try:
            # The last server gets all of the time; the others leave enough for those after them and for libc.
            within = deadline if at == len(servers) else deadline.part(1 / (len(servers) - at + 2))
            return next(_known(server, name, used, within), None)
        except CheckFailedError:
            if at == len(servers):
                raise
    return None


def _known(server: str, name: Name, used: Resolver, deadline: Deadline) -> Iterator[tuple[str, Question, float]]:
    ask = dns_client.ask_by_tcp if used.by_tcp else dns_client.ask
    slowest = 0.0
    for full_name in used.candidates(name.text):
        for kind in name.kinds:
            question, started = Question(full_name, kind), time.monotonic()
            try:
                reply = ask(server, dns_client.PORT, question, deadline)
            except RefusedError:
                break  # libc does not stop either if one of the names cannot be looked up
            finally:
                slowest = max(slowest, time.monotonic() - started)
            if reply.addresses:
                yield server, question, slowest
            if reply.is_unknown:
                break


def answers(server: str, cluster_name: str, wanted: Sampling, deadline: Deadline) -> Evidence:
    """Check that the server answers. Any answer is sufficient: a public server does not know the cluster's name."""
    question, started = Question(cluster_name), time.monotonic()
    dns_client.ask(server, dns_client.PORT, question, deadline)
    ask = dns_client.sample_by_udp(server, dns_client.PORT, question)
    return Evidence(_sampled(ask, server, wanted, deadline, time.monotonic() - started))


def resolves_cluster_name(
    server: str, cluster_name: str, api_host: str, wanted: Sampling, deadline: Deadline
) -> Evidence:
    question = Question(cluster_name, dns_client.AAAA if ":" in api_host else dns_client.A)
    started = time.monotonic()
    reply = dns_client.ask(server, dns_client.PORT, question, deadline)
    if not reply.addresses:
        raise CheckFailedError(f"the server returned no address for {cluster_name}")
    expect_address(api_host, list(reply.addresses))
    ask = dns_client.sample_by_udp(server, dns_client.PORT, question, _judge(api_host))
    details = _sampled(ask, server, wanted, deadline, time.monotonic() - started)
    return Evidence({"addresses": list(reply.addresses), **details})


def _sampled(ask: sampling.Ask, server: str, wanted: Sampling, deadline: Deadline, seconds: float) -> dict[str, object]:
    try:
        return sampling.take(ask, wanted, deadline, first_answer=seconds)
    except CheckFailedError as error:
        raise CheckFailedError(f"{error} (queried {server})") from error


def _judge(api_host: str) -> dns_client.Judge:
    """Return a judge of replies: a name of the API Service must resolve to its address in every one."""

    def judge(reply: Reply) -> str:
        if fault := dns_client.with_address(reply):
            return fault
        return "" if reply.truncated or _is_among(api_host, reply.addresses) else "answered with another address"

    return judge


def expect_address(api_host: str, addresses: list[str]) -> None:
    """Raise an error unless the address is among them. If the API Service's host is a name, accept any address."""
    if not _is_among(api_host, addresses):
        more = f" and {len(addresses) - _MOST_NAMED} more" if len(addresses) > _MOST_NAMED else ""
        named = f"{', '.join(addresses[:_MOST_NAMED])}{more}"
        raise CheckFailedError(f"resolves to {named}, and the API Service is {api_host}")


def _is_among(api_host: str, addresses: Iterable[str]) -> bool:
    expected = transport.ip_bytes(api_host)
    return expected is None or expected in map(transport.ip_bytes, addresses)
