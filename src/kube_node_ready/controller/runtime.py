"""Run the controller process: signals, leader election, probe servers, graceful shutdown.

Informers sync while the process waits for the lease, so a standby takes over immediately. A process that loses the
lease exits, which cancels all writes in progress: its successor starts from the state of the cluster. On SIGTERM, the
reconciles in progress are finished and the lease is released, so that the next leader can start.
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

from kube_node_ready import __version__
from kube_node_ready.controller.cache import ClusterCache
from kube_node_ready.controller.controller import Controller
from kube_node_ready.controller.dry_run import DryRun
from kube_node_ready.controller.execution import CacheSink, ExecutorContext
from kube_node_ready.controller.executor import Executor
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.controller.reconciler import Executes
from kube_node_ready.controller.resources import Scope
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.kube.access import access
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.leader_election import LeaderElector, LeaseConfig, LeaseLost
from kube_node_ready.kube.rate_limit import TokenBucket
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.log import log
from kube_node_ready.probes import Health, ProbeServer
from kube_node_ready.settings import policy as settings
from kube_node_ready.settings.config import Config

Tasks = Sequence[asyncio.Task[None]]
_DRAIN_SECONDS = 10


async def run(config: Config) -> int:
    """Run until SIGTERM or SIGINT (0), or until another process holds the Lease (1)."""
    code = await _run(config)
    if code == ExitCode.OK:
        log("Controller stopped")  # last: watches can log an error while they end
    return code


async def _run(config: Config) -> int:
    stop = _on_signal()  # first: signals to a container's first process are lost without a handler
    asyncio.get_running_loop().set_exception_handler(log_loop_error)
    policy = settings.policy(config)
    metrics = Metrics(policy, settings.known_targets(config))
    health = Health()
    reach = access(_kubeconfig(config, os.environ))
    log("API server selected", server=reach.server)
    if reach.is_insecure:
        log("TLS verification disabled", level="warn", server=reach.server, reason="insecure-skip-tls-verify is true")
    limit = TokenBucket(config.kubernetes.qps, config.kubernetes.burst)
    with _probe_servers(config, health, metrics):
        own = KubeClient(reach, on_call=metrics.on_api_call)
        election = Leadership(config, own, metrics)
        async with (
            own,
            KubeClient(reach, limit=limit, on_call=metrics.on_api_call, before_write=election.check) as kube,
        ):
            scope = Scope(
                config.worker.namespace,
                config.reconciliation.max_concurrent_verifications,
                config.reconciliation.workers,
                ",".join(f"{key}={value}" for key, value in config.node_management.node_selector.items()),
            )
            queue = WorkQueue(on_wait=metrics.queue_seconds.observe)
            cache = ClusterCache(kube, policy, scope, metrics, queue)
            controller = Controller(cache, _executor(config, scope, cache, kube, election), queue, policy, metrics)
            metrics.export_state(controller, per_node=config.metrics.per_node)
            health.readiness_problem = lambda: controller.not_synced() or election.readiness_problem()
            async with _running(controller.watch(), _heartbeat(health)) as beside:
                return await _lead(controller, scope.reconciles, election, beside, stop)


def _kubeconfig(config: Config, environ: Mapping[str, str]) -> Path | None:
    """Return what was named explicitly. The variable is left to `access`, which skips files that do not exist."""
    path = config.kubernetes.kubeconfig_path
    return Path(path) if path and path != environ.get("KUBECONFIG") else None


def log_loop_error(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Log errors that no code awaits, such as those of a connection that was closed while data was sent.

    By default, the event loop would print a traceback.
    """
    log("Event loop callback failed", level="warn", context=context["message"], error=repr(context.get("exception")))


class Leadership:
    """Leader election, or none: without it, this process is always the leader."""

    def __init__(self, config: Config, kube: KubeClient, metrics: Metrics) -> None:
        self.identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._metrics = metrics
        self.elector: LeaderElector | None = None
        if config.leader_election.enabled and not config.dry_run:
            lease = _lease_config(config, self.identity)
            self.elector = LeaderElector(kube, lease, on_transition=self._transition, on_error=_log_lease_error)
            metrics.lease_duration.set(lease.duration)

    def check(self) -> None:
        """Raise LeaseLost if this process no longer holds the Lease."""
        if self.elector and self.elector.seconds_left() <= 0:
            raise LeaseLost("the lease is no longer held")

    def readiness_problem(self) -> str | None:
        """Return why this process is not ready. A standby is ready when the leader is known."""
        return None if not self.elector or self.elector.holder else "the leader is not known yet"

    async def acquire(self) -> None:
        if self.elector:
            log("Waiting for lease", identity=self.identity)
            await self.elector.acquire()
        self._metrics.leader.set(1)

    async def hold(self) -> None:
        if self.elector:
            await self.elector.renew_until_lost()
        await asyncio.Event().wait()

    async def release(self) -> None:
        self._metrics.leader.set(0)
        if self.elector:
            await self.elector.release()

    def _transition(self, holder: str) -> None:
        self._metrics.transitions.inc()
        log("Leader changed", holder=holder, ours=holder == self.identity)


async def _lead(
    controller: Controller, reconciles: int, election: Leadership, beside: Tasks, stop: asyncio.Event
) -> int:
    """Lead until a signal arrives, the Lease is lost, or a background task ends. Return the exit code."""
    try:
        async with _running(election.acquire()) as winning:
            await _first_completed(*winning, *beside, stop.wait())
        if not stop.is_set():
            log("Controller started", version=__version__, identity=election.identity)
            async with _running(controller.work(reconciles), election.hold()) as working:
                await _first_completed(*working, *beside, stop.wait())
                log("Controller stopping")
                await controller.drain(_DRAIN_SECONDS)
    except LeaseLost as error:
        log("Lease lost", level="error", error=str(error))
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001  a bug: the next process starts from the state of the cluster
        log("Controller exiting", level="error", error=repr(error))
        return ExitCode.UNEXPECTED
    finally:
        await election.release()
    return ExitCode.OK


async def _first_completed(*waits: asyncio.Task[None] | Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them ends, and raise its error, if any. Coroutines among them are canceled."""
    tasks = [wait if isinstance(wait, asyncio.Task) else asyncio.create_task(wait) for wait in waits]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task, wait in zip(tasks, waits, strict=True):
        if task is not wait:
            task.cancel()
    for task in done:
        if (error := task.exception()) is not None:
            raise _root_cause(error)


def _root_cause(error: BaseException) -> BaseException:
    """Return the first error of a TaskGroup; the others are its consequences."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _on_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def _running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[Tasks]:
    """Run the coroutines as tasks while the block runs."""
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _heartbeat(health: Health) -> None:
    while True:
        health.beat()
        await asyncio.sleep(5)


@contextmanager
def _probe_servers(config: Config, health: Health, metrics: Metrics) -> Iterator[None]:
    # Clients that can probe might not be allowed to read metrics, unless both use the same port.
    ports = {config.metrics.port: metrics.registry} if config.metrics.enabled else {}
    servers = [ProbeServer(port, health, registry) for port, registry in ports.items()]
    if config.health.port not in ports:
        servers.append(ProbeServer(config.health.port, health, None))
    for server in servers:
        server.start()
    log("Probe server started", ports=[server.port for server in servers])
    try:
        yield
    finally:
        for server in servers:
            server.stop()


def _executor(config: Config, scope: Scope, sink: CacheSink, kube: KubeClient, election: Leadership) -> Executes:
    if config.dry_run:
        return DryRun(sink)
    policy, template = settings.policy(config), settings.template(config)
    context = ExecutorContext(
        now=_now,
        identity=election.identity,
        ledger_path=scope.ledger_path,
        removal_dry_run=config.node_management.removal.dry_run,
    )
    return Executor(kube, sink, policy, template, context)


def _lease_config(config: Config, identity: str) -> LeaseConfig:
    election = config.leader_election
    return LeaseConfig(
        election.namespace,
        election.id,
        identity,
        election.lease_duration.total_seconds(),
        election.renew_deadline.total_seconds(),
        election.retry_period.total_seconds(),
    )


def _log_lease_error(error: str) -> None:
    log("Failed to acquire lease", level="warn", error=error)


def _now() -> datetime:
    return datetime.now(UTC)
