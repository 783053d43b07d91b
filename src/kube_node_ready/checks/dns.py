"""Names resolve, by the pod's own resolver and by servers asked directly."""

import contextlib
import socket

from kube_node_ready.checks import dnsquery, files, wire
from kube_node_ready.checks.dnsquery import Question
from kube_node_ready.checks.model import CheckFailedError, Deadline, Proof, SkippedError
from kube_node_ready.checks.settings import is_api_service

_RESOLV_CONF = "/etc/resolv.conf"


def resolves(name: str, api_host: str) -> Proof:
    """As any program on this node would resolve it. The API Service's name must lead to the API Service."""
    try:
        addresses = wire.addresses_of(name)
    except socket.gaierror as why:
        raise CheckFailedError(f"does not resolve: {why.strerror} (asked {_resolvers()})") from why
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


def answers(server: str, cluster_name: str, deadline: Deadline) -> Proof:
    """Any answer will do: a public server says that a cluster's name does not exist, and has answered."""
    dnsquery.ask(server, dnsquery.PORT, Question(cluster_name), deadline)
    return Proof()


def knows_the_cluster(server: str, cluster_name: str, api_host: str, deadline: Deadline) -> Proof:
    kind = dnsquery.AAAA if ":" in api_host else dnsquery.A
    reply = dnsquery.ask(server, dnsquery.PORT, Question(cluster_name, kind), deadline)
    if not reply.addresses:
        raise CheckFailedError(f"the server answers, and knows no address of {cluster_name}")
    leads_to(api_host, list(reply.addresses))
    return Proof({"addresses": list(reply.addresses)})


def leads_to(api_host: str, addresses: list[str]) -> None:
    """Where KUBERNETES_SERVICE_HOST is a name, there is no address to compare with."""
    expected = wire.packed(api_host)
    if expected is not None and expected not in map(wire.packed, addresses):
        raise CheckFailedError(f"resolves to {', '.join(addresses)}, and the API Service is {api_host}")


def _resolvers() -> str:
    with contextlib.suppress(OSError):
        lines = (line.split() for line in files.read(_RESOLV_CONF).splitlines())
        if found := [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]:
            return ", ".join(found)
    return f"no server: {_RESOLV_CONF} names none"
