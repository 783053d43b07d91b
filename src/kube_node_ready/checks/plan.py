"""Settings -> everything that is to be proved."""

from collections.abc import Callable, Iterable
from functools import partial

from kube_node_ready.checks import api, dns, network, services, wire
from kube_node_ready.checks import settings as reading
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.model import Deadline, Here, Job, Proof, SkippedError
from kube_node_ready.checks.services import Lookup
from kube_node_ready.checks.settings import Settings

_OUTSIDE = "pods can be reached from inside the cluster only"
HEALTH_PORT = 8081
"""Where a controller answers, unless it is told otherwise."""
_PEERS = "pods on other nodes"


def in_pod(settings: Settings, access: Access, here: Here) -> tuple[Job, ...]:
    """What a node must prove."""
    endpoints = _lookups(settings, access)
    jobs = [*_dns(settings, access.host), *_of_the_api(settings, access), *_configured(settings)]
    if settings.dns_service:
        found = endpoints[settings.dns_service]
        name, sampling = settings.cluster_name, settings.sampling
        prove = partial(network.each_dns_server, found, settings.dns_service, name, sampling)
        jobs.append(Job("network", settings.dns_service, prove))
    jobs += _services(settings, endpoints)
    if settings.connectivity_matrix:
        jobs.append(_matrix(settings, access, here))
    return tuple(jobs)


def on_this_machine(settings: Settings, access: Access | None, why_no_access: str) -> tuple[Job, ...]:
    """What can be tried from outside a pod; the rest is named, with the reason why it is not tried."""
    jobs = [_outside_dns(settings, name) for name in settings.dns_test_domains]
    jobs += _cluster_dns(settings, "")
    if access:
        jobs += [*_of_the_api(settings, access), *_services(settings, _lookups(settings, access))]
    else:
        jobs += [_skipped(name, target, why_no_access) for name, target in _needs_access(settings)]
    if settings.dns_service:
        jobs.append(_skipped("network", settings.dns_service, _OUTSIDE))
    if settings.connectivity_matrix:
        jobs.append(_skipped("matrix", _PEERS, _OUTSIDE))
    return tuple(jobs + _configured(settings))


def _dns(settings: Settings, api_host: str) -> list[Job]:
    jobs = []
    for name in settings.dns_test_domains:
        if wire.is_address(name):
            jobs.append(_dns_server(settings, name))
        else:
            jobs.append(Job("dns", name, partial(dns.always_resolves, name, api_host, settings.sampling)))
    return jobs + _cluster_dns(settings, api_host)


def _dns_server(settings: Settings, address: str) -> Job:
    return Job("dns", address, partial(dns.answers, address, settings.cluster_name, settings.sampling))


def _cluster_dns(settings: Settings, api_host: str) -> list[Job]:
    if not (server := settings.cluster_dns_ip):
        return []
    prove = partial(dns.knows_the_cluster, server, settings.cluster_name, api_host, settings.sampling)
    return [Job("dns", f"{settings.cluster_name} at {server}", prove)]


def _outside_dns(settings: Settings, name: str) -> Job:
    """Names are asked for once: this machine's resolver need not use DNS at all."""
    if wire.is_address(name):
        return _dns_server(settings, name)
    if not reading.is_api_service(name):
        return Job("dns", name, _without_deadline(partial(dns.resolves, name, "")))
    return Job("dns", name, _without_deadline(partial(dns.resolves_if_known_here, name)))


def _of_the_api(settings: Settings, access: Access) -> list[Job]:
    hello = api.greeting(access)
    jobs = [
        Job("api", access.target, partial(api.authenticates, hello)),
        Job("network", access.target, partial(network.accepts_connections, access.host, access.port)),
    ]
    if settings.payload:
        path = settings.payload_path
        jobs.append(Job("payload", path, partial(api.sends_large_answers, access, path)))
    if settings.clock:
        limit = settings.max_clock_skew_seconds
        jobs.append(Job("clock", access.target, partial(api.tells_our_time, hello, limit)))
    return jobs


def _configured(settings: Settings) -> list[Job]:
    jobs = []
    for target in settings.network_targets:
        if found := reading.url(target):
            jobs.append(Job("network", target, partial(network.answers, found)))
        elif place := reading.host_and_port(target):
            jobs.append(Job("network", target, partial(network.accepts_connections, *place)))
    return jobs


def _lookups(settings: Settings, access: Access) -> dict[str, Lookup]:
    wanted = dict.fromkeys((*settings.services, settings.dns_service))
    return {service: services.endpoints_of(access, service) for service in wanted if service}


def _services(settings: Settings, endpoints: dict[str, Lookup]) -> list[Job]:
    return [
        Job("services", service, partial(services.has_ready_endpoints, endpoints[service]))
        for service in settings.services
    ]


def _matrix(settings: Settings, access: Access, here: Here) -> Job:
    from kube_node_ready.checks import matrix  # noqa: PLC0415  most nodes are not asked for it

    wanted = matrix.Wanted(
        here, settings.connectivity_selector, settings.connectivity_port or HEALTH_PORT, settings.connectivity_sample
    )
    return Job("matrix", _PEERS, partial(matrix.reaches_other_nodes, access, wanted))


def _needs_access(settings: Settings) -> list[tuple[str, str]]:
    return [
        ("api", "the API server"),
        ("network", "the API server"),
        *(("services", service) for service in settings.services),
        *([("payload", settings.payload_path)] if settings.payload else []),
        *([("clock", "the API server")] if settings.clock else []),
    ]


def only_told(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The same jobs, none of which asks anybody."""
    return tuple(_skipped(job.name, job.target, "dry run") for job in jobs)


def _skipped(name: str, target: str, why: str) -> Job:
    def skip(_deadline: Deadline) -> Proof:
        raise SkippedError(why)

    return Job(name, target, skip)


def _without_deadline(prove: Callable[[], Proof]) -> Callable[[Deadline], Proof]:
    """The resolver of libc cannot be told when to stop; the runner stops waiting for it."""
    return lambda _deadline: prove()
