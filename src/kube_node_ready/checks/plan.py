"""Build the list of checks from the settings."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from kube_node_ready.checks import api_server, dns, network, services, transport
from kube_node_ready.checks import settings as reading
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.api_server import ApiRoot
from kube_node_ready.checks.check import ANY_PEER, Check, Deadline, Evidence, PodIdentity, SkippedError
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.checks.services import Endpoints, Lookup
from kube_node_ready.checks.settings import Settings
from kube_node_ready.checks.transport import Response

_OUTSIDE = "pods can be reached from inside the cluster only"
HEALTH_PORT = 8081
"""The default port of the controller's probe server."""
_PEERS = "pods on other nodes"
Found = dict[str, Endpoints]
"""The ready endpoints of each Service, as looked up."""


class Known(FastTuple):
    """What a partial run uses instead of requests to the API server."""

    response: Response
    """The response to a request with our credentials, right before. It has the server's time."""
    endpoints: Mapping[str, Endpoints]
    omit: tuple[str, ...]
    """Checks to leave out."""


def in_pod(settings: Settings, access: Access, identity: PodIdentity, found: Found | None = None) -> tuple[Check, ...]:
    """Return all checks. The endpoints that are looked up are added to `found`."""
    endpoints = _lookups(settings, access)
    if found is not None:
        endpoints = {service: _noting(lookup, service, found) for service, lookup in endpoints.items()}
    root = api_server.api_root(access)
    return tuple(_checks(settings, access, identity, root, endpoints, settings.api_connections))


def later(settings: Settings, access: Access, identity: PodIdentity, known: Known) -> tuple[Check, ...]:
    """Return the checks of a partial run on a verified node. It is not a proof."""
    endpoints = {service: _recalling(service_endpoints) for service, service_endpoints in known.endpoints.items()}
    # One connection to the API Service: these rounds must cost the API server little. All checks run now and then.
    checks = _checks(settings, access, identity, lambda _deadline: known.response, endpoints, connections=1)
    return tuple(check for check in checks if check.name not in known.omit)


def _noting(lookup: Lookup, service: str, found: Found) -> Lookup:
    def fetch(deadline: Deadline) -> Endpoints:
        endpoints = found[service] = lookup(deadline)
        return endpoints

    return fetch


def _recalling(endpoints: Endpoints) -> Lookup:
    return lambda _deadline: endpoints


def _checks(
    settings: Settings,
    access: Access,
    identity: PodIdentity,
    root: ApiRoot,
    endpoints: Mapping[str, Lookup],
    connections: int,
) -> list[Check]:
    of_the_api = _of_the_api(settings, access, root, connections)
    checks = [*_dns(settings, access.host), *of_the_api, *_configured(settings)]
    if settings.dns_service:
        lookup = endpoints[settings.dns_service]
        name, sampling = settings.cluster_name, settings.sampling
        run = partial(network.each_dns_server, lookup, settings.dns_service, name, sampling, identity)
        checks.append(Check("network", settings.dns_service, run, ANY_PEER, is_lookup=True))
    checks += _services(settings, endpoints)
    if settings.connectivity_matrix:
        checks.append(_matrix(settings, access, identity))
    return checks


def on_this_machine(settings: Settings, access: Access | None, why_no_access: str) -> tuple[Check, ...]:
    """Return the checks that can run outside a pod, and the others as skipped, with the reason."""
    checks = [_outside_dns(settings, name) for name in settings.dns_test_domains]
    checks += _cluster_dns(settings, "")
    if access:
        root = api_server.api_root(access)
        checks += [
            *_of_the_api(settings, access, root, settings.api_connections),
            *_services(settings, _lookups(settings, access)),
        ]
    else:
        checks += [_skipped(name, target, why_no_access) for name, target in _needs_access(settings)]
    if settings.dns_service:
        checks.append(_skipped("network", settings.dns_service, _OUTSIDE))
    if settings.connectivity_matrix:
        checks.append(_skipped("matrix", _PEERS, _OUTSIDE))
    return tuple(checks + _configured(settings))


def without_cluster(settings: Settings, reason: str) -> tuple[Check, ...]:
    """Return the checks that need no cluster: this machine's resolver, and configured names and targets."""
    run = partial(dns.own_resolver_answers, settings.cluster_name)
    return (Check("dns", "this machine's resolver", run), *on_this_machine(settings, None, reason))


def _dns(settings: Settings, api_host: str) -> list[Check]:
    checks = []
    for name in settings.dns_test_domains:
        if transport.is_address(name):
            checks.append(_dns_server(settings, name))
        else:
            run = partial(dns.always_resolves, name, api_host, settings.sampling)
            checks.append(Check("dns", name, run, ANY_PEER))
    return checks + _cluster_dns(settings, api_host)


def _dns_server(settings: Settings, address: str) -> Check:
    return Check("dns", address, partial(dns.answers, address, settings.cluster_name, settings.sampling))


def _cluster_dns(settings: Settings, api_host: str) -> list[Check]:
    if not (server := settings.cluster_dns_ip):
        return []
    run = partial(dns.resolves_cluster_name, server, settings.cluster_name, api_host, settings.sampling)
    return [Check("dns", f"{settings.cluster_name} at {server}", run, ANY_PEER)]


def _outside_dns(settings: Settings, name: str) -> Check:
    """Resolve once: this machine's resolver might not use DNS."""
    if transport.is_address(name):
        return _dns_server(settings, name)
    if not reading.is_api_service(name):
        return Check("dns", name, _without_deadline(partial(dns.resolves, name, "")))
    return Check("dns", name, _without_deadline(partial(dns.resolves_if_known_here, name)))


def _of_the_api(settings: Settings, access: Access, root: ApiRoot, connections: int) -> list[Check]:
    checks = [Check("api", access.target, partial(api_server.authenticates, root)), _api_network(access, connections)]
    if settings.payload:
        path = settings.payload_path
        checks.append(Check("payload", path, partial(api_server.large_messages_arrive, access, path)))
    if settings.clock:
        limit = settings.max_clock_skew_seconds
        checks.append(Check("clock", access.target, partial(api_server.clock_in_sync, root, limit)))
    return checks


def _api_network(access: Access, connections: int) -> Check:
    if access.route and access.route.proxy:  # a kubeconfig with a proxy forbids direct connections
        return _skipped("network", access.target, f"the kubeconfig connects through the proxy {access.route.proxy}")
    if connections == 1:
        return Check("network", access.target, partial(network.accepts_connections, access.host, access.port))
    run = partial(network.always_accepts_connections, access.host, access.port, connections)
    return Check("network", access.target, run)


def _configured(settings: Settings) -> list[Check]:
    checks = []
    for target in settings.network_targets:
        if found := reading.url(target):
            checks.append(Check("network", target, partial(network.answers, found)))
        elif place := reading.host_and_port(target):
            checks.append(Check("network", target, partial(network.accepts_connections, *place)))
    return checks


def _lookups(settings: Settings, access: Access) -> dict[str, Lookup]:
    wanted = dict.fromkeys((*settings.services, settings.dns_service))
    return {service: services.endpoints_of(access, service) for service in wanted if service}


def _services(settings: Settings, endpoints: Mapping[str, Lookup]) -> list[Check]:
    return [
        Check("services", service, partial(services.has_ready_endpoints, endpoints[service]), is_lookup=True)
        for service in settings.services
    ]


def _matrix(settings: Settings, access: Access, identity: PodIdentity) -> Check:
    from kube_node_ready.checks import connectivity  # noqa: PLC0415  off by default

    wanted = connectivity.Wanted(
        identity,
        settings.connectivity_selector,
        settings.connectivity_port or HEALTH_PORT,
        settings.connectivity_sample,
        settings.are_peers_expected,
    )
    return Check("matrix", _PEERS, partial(connectivity.reaches_other_nodes, access, wanted))


def _needs_access(settings: Settings) -> list[tuple[str, str]]:
    return [
        ("api", "the API server"),
        ("network", "the API server"),
        *(("services", service) for service in settings.services),
        *([("payload", settings.payload_path)] if settings.payload else []),
        *([("clock", "the API server")] if settings.clock else []),
    ]


def as_skipped(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the same checks, all of them skipped."""
    return tuple(_skipped(check.name, check.target, "dry run") for check in checks)


def _skipped(name: str, target: str, reason: str) -> Check:
    def skip(_deadline: Deadline) -> Evidence:
        raise SkippedError(reason)

    return Check(name, target, skip)


def _without_deadline(run: Callable[[], Evidence]) -> Callable[[Deadline], Evidence]:
    """The resolver of libc has no deadline; the runner stops waiting for it."""
    return lambda _deadline: run()
