"""The controller's process: from the configuration to its end.

Caches fill while we wait for the Lease, so a standby takes over at once. Whoever loses the Lease ends, and with it
every write on its way: a fresh process starts over from what the cluster shows. On SIGTERM, nodes in work are finished,
the Lease is given back, and the next one begins.
"""

import asyncio
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kube_node_ready import __version__, settings
from kube_node_ready.config import Config
from kube_node_ready.controller import Applies, Controller
from kube_node_ready.effects import DryRun, Setup, Writer
from kube_node_ready.kube.access import access
from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.lease import Lease, LeaseLost, Terms
from kube_node_ready.kube.limits import Limit
from kube_node_ready.log import log
from kube_node_ready.metrics import Metrics
from kube_node_ready.serve import Health, Server
from kube_node_ready.watched import Scope

LOST_LEASE = 1
UNEXPECTED = 10
Tasks = Sequence[asyncio.Task[None]]
_DRAIN_SECONDS = 10


async def run(config: Config) -> int:
    """Until SIGTERM or SIGINT (0), or until another holds the Lease (1)."""
    stop = _on_signal()  # before anyone can see us: as a container's first process we would lose what we do not heed
    asyncio.get_running_loop().set_exception_handler(told_by_the_loop)
    policy = settings.policy(config)
    metrics = Metrics(policy, settings.known_targets(config))
    health = Health()
    kubeconfig = Path(config.kubernetes.kubeconfig_path) if config.kubernetes.kubeconfig_path else None
    reach = access(kubeconfig)
    log("Working on the cluster", server=reach.server)
    limit = Limit(config.kubernetes.qps, config.kubernetes.burst)
    with _served(config, health, metrics):
        own = Kube(reach, observe=metrics.called)
        election = Election(config, own, metrics)
        async with own, Kube(reach, limit=limit, observe=metrics.called, permit=election.permit) as kube:
            scope = Scope(
                config.worker.namespace,
                config.reconciliation.max_concurrent_verifications,
                config.reconciliation.workers,
                ",".join(f"{key}={value}" for key, value in config.node_management.node_selector.items()),
            )
            controller = Controller(kube, policy, scope, metrics)
            metrics.describe(controller, per_node=config.metrics.per_node)
            health.not_ready = lambda: controller.not_synced() or election.not_ready()
            writer = _writer(config, scope, controller, kube, election)
            async with _running(controller.watch(), _beat(health)) as beside:
                return await _lead(controller, writer, election, beside, stop)


def told_by_the_loop(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Errors that nobody waits for, such as those of a connection that was closed with bytes on their way.

    Whoever does wait for it hears of it there. Left to itself, the loop would print a traceback.
    """
    log("The event loop met an error", level="warn", what=context["message"], error=repr(context.get("exception")))


class Election:
    """The Lease, or its absence: without leader election we always lead."""

    def __init__(self, config: Config, kube: Kube, metrics: Metrics) -> None:
        self.identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._metrics = metrics
        self.lease: Lease | None = None
        if config.leader_election.enabled and not config.dry_run:
            terms = _terms(config, self.identity)
            self.lease = Lease(kube, terms, on_transition=self._transition, complain=_complain)
            metrics.lease_duration.set(terms.duration)

    def permit(self) -> None:
        """Who no longer holds the Lease must not write."""
        if self.lease and self.lease.valid_for() <= 0:
            raise LeaseLost("the Lease is no longer ours")

    def not_ready(self) -> str | None:
        """A standby is ready: it knows who leads."""
        return None if not self.lease or self.lease.holder else "nobody is known to hold the Lease"

    async def win(self) -> None:
        if self.lease:
            log("Waiting for the Lease", identity=self.identity)
            await self.lease.acquire()
        self._metrics.leader.set(1)

    async def hold(self) -> None:
        if self.lease:
            await self.lease.hold()
        await asyncio.Event().wait()

    async def resign(self) -> None:
        self._metrics.leader.set(0)
        if self.lease:
            await self.lease.release()

    def _transition(self, holder: str) -> None:
        self._metrics.transitions.inc()
        log("The Lease has a new holder", holder=holder, ours=holder == self.identity)


async def _lead(controller: Controller, writer: Applies, election: Election, beside: Tasks, stop: asyncio.Event) -> int:
    """Until we are told to stop, or must; if what runs beside us ends, we must."""
    try:
        async with _running(election.win()) as winning:
            await _first(*winning, *beside, stop.wait())
        if not stop.is_set():
            log("Controller started", version=__version__, identity=election.identity)
            async with _running(controller.work(writer), election.hold()) as working:
                await _first(*working, *beside, stop.wait())
                log("Stopping")
                await controller.drain(_DRAIN_SECONDS)
    except LeaseLost as why:
        log("Lease lost, ending", level="error", reason=str(why))
        return LOST_LEASE
    except Exception as why:  # noqa: BLE001  a mistake of ours: the next process starts over from what the cluster shows
        log("Ending, for something that was not foreseen", level="error", error=repr(why))
        return UNEXPECTED
    finally:
        await election.resign()
    log("Stopped")
    return 0


async def _first(*waits: asyncio.Task[None] | Coroutine[Any, Any, Any]) -> None:
    """Until one of them ends; if by an error, that error. The coroutines among them are then given up."""
    tasks = [wait if isinstance(wait, asyncio.Task) else asyncio.create_task(wait) for wait in waits]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task, wait in zip(tasks, waits, strict=True):
        if task is not wait:
            task.cancel()
    for task in done:
        if (why := task.exception()) is not None:
            raise _one(why)


def _one(why: BaseException) -> BaseException:
    """What a TaskGroup collects is one thing that went wrong, and its echoes."""
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    return why


def _on_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def _running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[Tasks]:
    """As tasks, for as long as the block runs."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _beat(health: Health) -> None:
    while True:
        health.beat()
        await asyncio.sleep(5)


@contextmanager
def _served(config: Config, health: Health, metrics: Metrics) -> Iterator[None]:
    # Whoever may probe need not be one who may read the metrics, unless both come by the same port.
    ports = {config.metrics.port: metrics.registry} if config.metrics.enabled else {}
    servers = [Server(port, health, registry) for port, registry in ports.items()]
    if config.health.port not in ports:
        servers.append(Server(config.health.port, health, None))
    for server in servers:
        server.start()
    log("Serving /healthz, /readyz and /metrics", ports=[server.port for server in servers])
    try:
        yield
    finally:
        for server in servers:
            server.stop()


def _writer(config: Config, scope: Scope, controller: Controller, kube: Kube, election: Election) -> Applies:
    if config.dry_run:
        return DryRun(controller)
    policy, template = settings.policy(config), settings.template(config)
    setup = Setup(
        now=_now,
        identity=election.identity,
        ledger_path=scope.ledger_path,
        removal_dry_run=config.node_management.removal.dry_run,
    )
    return Writer(kube, controller, policy, template, setup)


def _terms(config: Config, identity: str) -> Terms:
    election = config.leader_election
    return Terms(
        election.namespace,
        election.id,
        identity,
        election.lease_duration.total_seconds(),
        election.renew_deadline.total_seconds(),
        election.retry_period.total_seconds(),
    )


def _complain(trouble: str) -> None:
    log("The Lease could not be had", level="warn", trouble=trouble)


def _now() -> datetime:
    return datetime.now(UTC)
