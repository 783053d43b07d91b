"""One writer at a time, by a coordination.k8s.io/v1 Lease, in the way of client-go.

The holder renews three times within `renew` seconds, and every `retry` seconds when that fails. If for `renew` seconds
no renewal succeeds, it stops. Whoever waits takes over when it has seen the Lease unchanged for `duration` seconds *by
its own clock*; nobody's clock is compared with that of another, and the times in the Lease are for people to read.

    holder    last renewal sent ──── renew ────▶ stops writing
    waiting        sees that renewal ──────── duration ────────▶ may write

`renew` counts from before the request was sent and `duration` from after it was seen, so with `renew` < `duration` two
never write at once, whatever the network does in between.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NoReturn, Protocol

import msgspec
from msgspec import Struct

from kube_node_ready.api_paths import collection_path, object_path
from kube_node_ready.kube.errors import AlreadyExists, KubeError, LostRace, NotFound

_API = "coordination.k8s.io/v1"
_RELEASE_SECONDS = 5.0
_LONGEST_TERM = 3600
_JITTER = 1.2


class LeaseLost(Exception):  # noqa: N818  it is what happened, and not always a mistake
    """Stop writing: another has the Lease, or may have it soon."""


class Calls(Protocol):
    """What a Lease needs of a Kube. Let that be one without a limit: a renewal must not queue behind a burst."""

    async def get(self, path: str) -> bytes: ...
    async def create(self, path: str, body: bytes) -> bytes: ...
    async def replace(self, path: str, body: bytes) -> bytes: ...


class Terms(Struct, frozen=True):
    """Which Lease, for whom, and its times in seconds.

    The identity outlives a restart, and no two processes that live at once share it: a pod's name is good.
    """

    namespace: str
    name: str
    identity: str
    duration: float = 15
    renew: float = 10
    retry: float = 2

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("a Lease's holder needs an identity; an empty one means that nobody holds it")
        if not self.duration > self.renew > self.retry > 0:
            raise ValueError(
                f"lease duration {self.duration:g} s, renew deadline {self.renew:g} s, retry period {self.retry:g} s: "
                "each must be longer than the next, and the last more than 0"
            )

    def __str__(self) -> str:
        return f"the Lease {self.namespace}/{self.name}"

    @property
    def collection(self) -> str:
        return collection_path(_API, "leases", namespace=self.namespace)

    @property
    def path(self) -> str:
        return object_path(_API, "leases", self.name, namespace=self.namespace)


class _Record(Struct, frozen=True):
    """A Lease as it is. Others write there too, so nothing is assumed of what they wrote."""

    metadata: dict[str, Any]
    spec: dict[str, Any] | None = None

    @property
    def holder(self) -> str:
        return str((self.spec or {}).get("holderIdentity") or "")

    def number(self, field: str) -> int:
        value = (self.spec or {}).get(field)
        return value if isinstance(value, int) else 0


_decode = msgspec.json.Decoder(_Record).decode


def _ignore(_: str) -> None:
    return None


class Lease:
    """`await acquire()`, then `await hold()` beside the work, which asks `valid_for()` before it writes; `release()`.

    `on_transition` gets the name of every new holder when we learn of it, our own included.
    """

    def __init__(
        self,
        kube: Calls,
        terms: Terms,
        *,
        on_transition: Callable[[str], None] = _ignore,
        complain: Callable[[str], None] = _ignore,
    ) -> None:
        self._kube = kube
        self._terms = terms
        self._on_transition = on_transition
        self._complain = complain
        self._seen: _Record | None = None
        self._exists = False
        self._unchanged_since = 0.0
        self._renewed_at: float | None = None

    @property
    def holder(self) -> str:
        """Who holds it, as far as we know; empty for nobody."""
        return self._seen.holder if self._seen else ""

    def valid_for(self) -> float:
        """Seconds for which we may still write; 0 if we may not."""
        if self._renewed_at is None:
            return 0.0
        return max(0.0, self._renewed_at + self._terms.renew - _now())

    async def acquire(self) -> None:
        """Return when the Lease is ours."""
        while not await self._succeeds(self._take_if_free, self._terms.renew):  # noqa: ASYNC110  no event tells
            await asyncio.sleep(self._terms.retry * (1 + _JITTER * random.random()))  # noqa: S311  parts candidates

    async def hold(self) -> NoReturn:
        """Renew for as long as that works. Raises LeaseLost before anybody else may take the Lease for free."""
        renewed = True
        while (left := self.valid_for()) > 0:
            pause = max(self._terms.retry, self._terms.renew / 2) if renewed else self._terms.retry
            await asyncio.sleep(min(pause, left))
            if (left := self.valid_for()) > 0:
                # Not all of what is left: a connection that hangs gets no second chance otherwise.
                renewed = await self._succeeds(self._renew, max(left / 2, min(left, self._terms.retry)))
        self._renewed_at = None
        raise LeaseLost(f"{self._terms}: not renewed within {self._terms.renew:g} s")

    async def release(self) -> None:
        """Let the next one start at once. If that fails, it starts when the Lease has expired."""
        if self._renewed_at is not None:
            self._renewed_at = None
            await self._succeeds(self._give_up, _RELEASE_SECONDS)

    async def _succeeds(self, step: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await step()
        except (AlreadyExists, LostRace):
            return False  # somebody was faster; the next look tells who
        except TimeoutError:
            self._complain(f"{self._terms}: no answer within {seconds:.1f} s")
        except (KubeError, msgspec.MsgspecError) as why:
            self._complain(f"{self._terms}: {why}")
        return False

    async def _take_if_free(self) -> bool:
        await self._look()
        if not self._free():
            return False
        await self._write()
        return True

    def _free(self) -> bool:
        if self._seen is None or self._seen.holder in ("", self._terms.identity):
            return True
        promised = self._seen.number("leaseDurationSeconds")
        term = promised if 0 < promised <= _LONGEST_TERM else self._terms.duration
        return _now() - self._unchanged_since > term

    async def _renew(self) -> bool:
        try:
            await self._write()
        except (LostRace, NotFound):
            # Perhaps only the answer to our last renewal was lost, or somebody labelled the Lease, or deleted it.
            await self._look()
            if self.holder not in ("", self._terms.identity):
                self._renewed_at = None
                raise LeaseLost(f"{self._terms}: {self.holder} holds it now") from None
            await self._write()
        return True

    async def _give_up(self) -> bool:
        try:
            await self._replace(self._spec_free())
        except LostRace:
            await self._look()
            if self._exists and self.holder == self._terms.identity:
                await self._replace(self._spec_free())
        return True

    async def _look(self) -> None:
        try:
            self._note(await self._kube.get(self._terms.path))
        except NotFound:
            # What we saw last still counts: a Lease that somebody deletes does not stop its holder from writing.
            self._exists = False

    async def _write(self) -> None:
        """Say that it is ours. Fails whole if anybody wrote since we looked."""
        sent = _now()
        if not self._exists:
            metadata = {"name": self._terms.name, "namespace": self._terms.namespace}
            self._note(await self._kube.create(self._terms.collection, _lease(metadata, self._spec_held())))
        else:
            await self._replace(self._spec_held())
        self._renewed_at = sent

    async def _replace(self, spec: dict[str, Any]) -> None:
        assert self._seen is not None
        metadata = {field: value for field, value in self._seen.metadata.items() if field != "managedFields"}
        self._note(await self._kube.replace(self._terms.path, _lease(metadata, spec)))

    def _note(self, answer: bytes) -> None:
        before, self._seen, self._exists = self._seen, _decode(answer), True
        if before is None or before.spec != self._seen.spec:
            self._unchanged_since = _now()
        if self.holder and self.holder != (before.holder if before else ""):
            self._on_transition(self.holder)

    def _spec_held(self) -> dict[str, Any]:
        now, old = _timestamp(), self._seen or _Record({})
        ours = old.holder == self._terms.identity
        kept = old.spec or {}
        return kept | {
            "holderIdentity": self._terms.identity,
            "leaseDurationSeconds": math.ceil(self._terms.duration),
            "acquireTime": kept.get("acquireTime") or now if ours else now,
            "renewTime": now,
            "leaseTransitions": old.number("leaseTransitions") + (0 if ours or self._seen is None else 1),
        }

    def _spec_free(self) -> dict[str, Any]:
        now = _timestamp()
        free = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
        return ((self._seen.spec if self._seen else None) or {}) | free


def _lease(metadata: dict[str, Any], spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    )


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _now() -> float:
    return asyncio.get_running_loop().time()
