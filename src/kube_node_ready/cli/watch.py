"""Keep the view of the fleet current with watches."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from kube_node_ready.api.report import printable
from kube_node_ready.cli import cluster, fleet
from kube_node_ready.cli.cluster import Notes
from kube_node_ready.cli.fleet import FleetView, NodeStatus
from kube_node_ready.cli.installation import Installed
from kube_node_ready.cli.permissions import NoAccess, NotAllowed
from kube_node_ready.cli.screen import Frame, View
from kube_node_ready.controller import removal_ledger, resources
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.errors import KubeError
from kube_node_ready.kube.informer import Informer
from kube_node_ready.verification.model import Ledger

_TICK_SECONDS = 1.0
_QUICKEST_SECONDS = 0.25
_FRESH = timedelta(seconds=10)
_PATIENCE_SECONDS = 30
Choose = Callable[["FleetWatcher", datetime], list[NodeStatus]]
"""What is shown, in order."""
Over = Callable[["FleetWatcher", Sequence[NodeStatus]], int | None]
"""The exit code, when there is nothing left to wait for."""


class WatchResult(Struct, frozen=True):
    """How it ended: the exit code, or None if its time was up; and what was shown last."""

    code: int | None
    last: list[NodeStatus]


class Watch:
    """One cache, and whether the server has answered since it last failed."""

    def __init__(self, kube: KubeClient, kind: Any, changed: Callable[..., None], wake: Callable[[], None]) -> None:  # noqa: ANN401  of any Resource
        self.cache: Informer[Any, Any] = Informer(kube, kind, changed, self._on_error)
        self._wake = wake
        self._error = ""
        self._answers = 0
        self._since = datetime.now(UTC)

    def _on_error(self, error: KubeError) -> None:
        if not self.problem:
            self._since = datetime.now(UTC)
        self._error, self._answers = str(error), self._heard
        self._wake()

    @property
    def error(self) -> str:
        return printable(self._error) if self._heard == self._answers else ""

    @property
    def problem(self) -> str:
        """Why the view might be outdated; "" if it is current."""
        return f"not updated since {self._since.astimezone():%H:%M:%S}: {self.error}. Retrying" if self.error else ""

    @property
    def _heard(self) -> int:
        return self.cache.watches + self.cache.lists


class FleetWatcher:
    def __init__(self, kube: KubeClient, installed: Installed, notes: Notes) -> None:
        self.notes = notes
        self._kube = kube
        self._changed = asyncio.Event()
        self.fleet_view = FleetView(installed, self._changed.set)
        self._watches: list[Watch] = []
        self._running: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Start the watches, after checking that each is allowed."""
        installed, scope = self.fleet_view.installed, self.fleet_view.installed.scope
        await self._add(fleet.nodes(installed), self.fleet_view.node_changed)
        with self._without("running workers are not seen"):
            await self._add(resources.workers(scope), self.fleet_view.worker_changed, scope.namespace)
        if installed.policy.removal:
            self.fleet_view.ledger_changed(await cluster.read_ledger(self._kube, installed, self.notes))
            with self._without("what can be removed is shown as of the start"):
                await self._add(resources.removals(scope), self._ledger_changed, scope.namespace)

    def start(self) -> None:
        self._running = [asyncio.create_task(watch.cache.run()) for watch in self._watches]
        for task in self._running:
            task.add_done_callback(lambda _: self._changed.set())

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def filled(self) -> bool:
        return all(watch.cache.synced for watch in self._watches)

    @property
    def error(self) -> str:
        return next(filter(None, (watch.error for watch in self._watches)), "")

    @property
    def problem(self) -> str:
        return next(filter(None, (watch.problem for watch in self._watches)), "")

    def statuses(self, names: Iterable[str], now: datetime) -> list[NodeStatus]:
        return self.fleet_view.statuses(names or list(self.fleet_view.known), now, _FRESH)

    def wake(self) -> None:
        self._changed.set()

    async def wait_for_change(self, within: float) -> None:
        """Wait for a change, or for this many seconds. A burst counts as one change."""
        if (patience := within - _QUICKEST_SECONDS) > 0:  # a timeout of nothing would forget a Ctrl-C of just now
            with suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it forgets a Ctrl-C that arrives together with a change.
                async with asyncio.timeout(patience):
                    await self._changed.wait()
        await asyncio.sleep(min(_QUICKEST_SECONDS, within))
        self._changed.clear()
        for ended in (task for task in self._running if task.done()):
            ended.result()  # a watch ends only because of a bug, which must not look like a quiet cluster

    async def _add(self, kind: Any, changed: Callable[..., None], namespace: str = "") -> None:  # noqa: ANN401  a Kind
        await cluster.require_watch(self._kube, kind, namespace)
        self._watches.append(Watch(self._kube, kind, changed, self._changed.set))

    @contextmanager
    def _without(self, what: str) -> Iterator[None]:
        try:
            yield
        except NotAllowed as error:
            self.notes.add(f"{error}. Without it, {what}")

    def _ledger_changed(self, _: str, __: Ledger | None, after: Ledger | None) -> None:
        self.fleet_view.ledger_changed(after or removal_ledger.MISSING)


@asynccontextmanager
async def following(kube: KubeClient, installed: Installed, notes: Notes) -> AsyncIterator[FleetWatcher]:
    """Yield a watcher whose cache is synced, and keep it current within the block."""
    watcher = FleetWatcher(kube, installed, notes)
    await watcher.begin()
    watcher.start()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, watcher.wake)
    try:
        await _filled(watcher)
        yield watcher
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        await watcher.stop()


async def _filled(watcher: FleetWatcher) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not watcher.filled:
        if time.monotonic() > end:
            raise NoAccess(f"the API server does not respond: {watcher.error or 'no response'}")
        await watcher.wait_for_change(_QUICKEST_SECONDS)


async def follow(watcher: FleetWatcher, shown: View, choose: Choose, over: Over, seconds: float | None) -> WatchResult:
    """Show the chosen nodes until `over` returns a code or `seconds` have passed, and return the result."""
    end = time.monotonic() + seconds if seconds is not None else None
    while True:
        now = datetime.now(UTC)
        statuses = choose(watcher, now)
        notes = [*watcher.notes, *watcher.fleet_view.notes]
        shown.show(Frame(statuses, now, notes, watcher.problem, watcher.fleet_view.known.keys()))
        if (code := over(watcher, statuses)) is not None:
            return WatchResult(code, statuses)
        left = end - time.monotonic() if end is not None else _TICK_SECONDS
        if left <= 0:
            return WatchResult(None, statuses)
        await watcher.wait_for_change(min(_TICK_SECONDS, left))
