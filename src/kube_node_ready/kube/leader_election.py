"""Leader election with a coordination.k8s.io/v1 Lease, compatible with client-go.

The holder renews every `renew`/2 seconds, and every `retry` seconds when that fails. If no renewal succeeds for `renew`
seconds, it stops. A standby takes over when the Lease has not changed for `duration` seconds *by its own clock*. Clocks
are never compared, and the times in the Lease are for people to read.

    holder    last renewal sent ──── renew ────▶ stops writing
    standby        sees that renewal ──────── duration ────────▶ can write

`renew` counts from before the request is sent and `duration` from after it is seen, so with `renew` < `duration` two
processes never write simultaneously, whatever the network does.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NoReturn, Protocol

import msgspec
from msgspec import Struct

from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.paths import collection_path, object_path
from kube_node_ready.kube.errors import AlreadyExists, Conflict, KubeError, NotFound

_API = "coordination.k8s.io/v1"
_RELEASE_SECONDS = 5.0
_MAX_DURATION = 3600
_JITTER = 1.2


class LeaseLost(Exception):  # noqa: N818  an event, not always an error
    """Stop writing: another process holds the Lease, or might hold it soon."""


class LeaseClient(Protocol):
    """The requests of leader election. Use a client without a rate limit: a renewal must not wait behind a burst."""

    async def get(self, path: str) -> bytes: ...
    async def create(self, path: str, body: bytes) -> bytes: ...
    async def replace(self, path: str, body: bytes) -> bytes: ...


class LeaseConfig(Struct, frozen=True):
    """Which Lease, the identity of this process, and times in seconds.

    No two running processes have the same identity. The name of the pod is a good choice.
    """

    namespace: str
    name: str
    identity: str
    duration: float = 15
    renew: float = 10
    retry: float = 2

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError('identity: "" is invalid; expected a name such as that of the pod')
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


class _Lease(Struct, frozen=True):
    """A Lease. Other clients write it, too, so nothing is assumed about its content."""

    metadata: dict[str, Any]
    spec: dict[str, Any] | None = None

    @property
    def holder(self) -> str:
        return str((self.spec or {}).get("holderIdentity") or "")

    def number(self, field: str) -> int:
        value = (self.spec or {}).get(field)
        return value if isinstance(value, int) else 0


_decode = tolerant(msgspec.json.Decoder(_Lease).decode)


def _ignore(_: str) -> None:
    return None


class LeaderElector:
    """`await acquire()`, run `renew_until_lost()` beside the work, check `seconds_left()` before writes; `release()`.

    `on_transition` is called with the identity of each new holder, our own included.
    """

    def __init__(
        self,
        kube: LeaseClient,
        config: LeaseConfig,
        *,
        on_transition: Callable[[str], None] = _ignore,
        on_error: Callable[[str], None] = _ignore,
    ) -> None:
        self._client = kube
        self._config = config
        self._on_transition = on_transition
        self._on_error = on_error
        self._lease: _Lease | None = None
        self._exists = False
        self._unchanged_since = 0.0
        self._renewed_at: float | None = None

    @property
    def holder(self) -> str:
        """The identity of the last known holder; empty if there is none."""
        return self._lease.holder if self._lease else ""

    def seconds_left(self) -> float:
        """Return for how many seconds this process can still write; 0 if it cannot."""
        if self._renewed_at is None:
            return 0.0
        return max(0.0, self._renewed_at + self._config.renew - _now())

    async def acquire(self) -> None:
        """Wait until this process holds the Lease."""
        while not await self._attempt(self._try_acquire, self._config.renew):  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(self._config.retry * (1 + _JITTER * random.random()))  # noqa: S311  separates candidates

    async def renew_until_lost(self) -> NoReturn:
        """Renew as long as that succeeds. Raises LeaseLost before another process can take the Lease."""
        renewed = True
        while (left := self.seconds_left()) > 0:
            pause = max(self._config.retry, self._config.renew / 2) if renewed else self._config.retry
            await asyncio.sleep(min(pause, left))
            if (left := self.seconds_left()) > 0:
                # Not all of the time that is left: otherwise a hanging connection leaves no time for a retry.
                renewed = await self._attempt(self._renew, max(left / 2, min(left, self._config.retry)))
        self._renewed_at = None
        raise LeaseLost(f"{self._config}: not renewed within {self._config.renew:g} s")

    async def release(self) -> None:
        """Release the Lease, so that a standby takes over immediately. Otherwise it waits until the Lease expires."""
        if self._renewed_at is not None:
            self._renewed_at = None
            await self._attempt(self._release, _RELEASE_SECONDS)

    async def _attempt(self, step: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await step()
        except (AlreadyExists, Conflict):
            return False  # another process was faster; the next read shows which
        except TimeoutError:
            self._on_error(f"{self._config}: no response within {seconds:.1f} s")
        except (KubeError, msgspec.MsgspecError) as error:
            self._on_error(f"{self._config}: {error}")
        return False

    async def _try_acquire(self) -> bool:
        await self._read()
        if not self._is_free():
            return False
        await self._write()
        return True

    def _is_free(self) -> bool:
        if self._lease is None or self._lease.holder in ("", self._config.identity):
            return True
        promised = self._lease.number("leaseDurationSeconds")
        term = promised if 0 < promised <= _MAX_DURATION else self._config.duration
        return _now() - self._unchanged_since > term

    async def _renew(self) -> bool:
        try:
            await self._write()
        except (Conflict, NotFound):
            # The response to the last renewal might have been lost, or another client labeled or deleted the Lease.
            await self._read()
            if self.holder not in ("", self._config.identity):
                self._renewed_at = None
                raise LeaseLost(f"{self._config}: {self.holder} holds it now") from None
            await self._write()
        return True

    async def _release(self) -> bool:
        try:
            await self._replace(self._spec_free())
        except Conflict:
            await self._read()
            if self._exists and self.holder == self._config.identity:
                await self._replace(self._spec_free())
        return True

    async def _read(self) -> None:
        try:
            self._observe(await self._client.get(self._config.path))
        except NotFound:
            # The last known state still counts: deleting a Lease does not stop its holder from writing.
            self._exists = False

    async def _write(self) -> None:
        """Create or replace the Lease with this process as the holder. Fails if it changed since it was read."""
        sent = _now()
        if not self._exists:
            metadata = {"name": self._config.name, "namespace": self._config.namespace}
            self._observe(await self._client.create(self._config.collection, _encode(metadata, self._spec_held())))
        else:
            await self._replace(self._spec_held())
        self._renewed_at = sent

    async def _replace(self, spec: dict[str, Any]) -> None:
        assert self._lease is not None
        metadata = {field: value for field, value in self._lease.metadata.items() if field != "managedFields"}
        self._observe(await self._client.replace(self._config.path, _encode(metadata, spec)))

    def _observe(self, answer: bytes) -> None:
        before, self._lease, self._exists = self._lease, _decode(answer), True
        if before is None or before.spec != self._lease.spec:
            self._unchanged_since = _now()
        if self.holder and self.holder != (before.holder if before else ""):
            self._on_transition(self.holder)

    def _spec_held(self) -> dict[str, Any]:
        now, old = _timestamp(), self._lease or _Lease({})
        ours = old.holder == self._config.identity
        kept = old.spec or {}
        return kept | {
            "holderIdentity": self._config.identity,
            "leaseDurationSeconds": math.ceil(self._config.duration),
            "acquireTime": kept.get("acquireTime") or now if ours else now,
            "renewTime": now,
            "leaseTransitions": old.number("leaseTransitions") + (0 if ours or self._lease is None else 1),
        }

    def _spec_free(self) -> dict[str, Any]:
        now = _timestamp()
        free = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
        return ((self._lease.spec if self._lease else None) or {}) | free


def _encode(metadata: dict[str, Any], spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    )


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _now() -> float:
    return asyncio.get_running_loop().time()
