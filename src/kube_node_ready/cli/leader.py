"""Which controller works, by its Lease: whoever waits for a verdict should know if nobody makes one."""

from datetime import datetime, timedelta

from msgspec import Struct

from kube_node_ready import objects
from kube_node_ready.console import words
from kube_node_ready.console.reading import decoded
from kube_node_ready.console.rights import asking
from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.errors import NotFound
from kube_node_ready.verify.report import printable

_STALE = timedelta(seconds=60)


class Leader(Struct, frozen=True):
    holder: str = ""
    renewed: datetime | None = None

    def at_work(self, now: datetime) -> bool:
        return bool(self.holder and self.renewed and now - self.renewed <= _STALE)

    def told(self, now: datetime) -> str:
        holder = printable(self.holder)
        if not holder or self.renewed is None:
            return "no controller is at work: nobody holds the Lease"
        renewed = f"renewed its Lease {words.ago(self.renewed, now)}"
        if self.at_work(now):
            return f"the controller is at work: {holder} {renewed}"
        return f"no controller is at work: {holder} last {renewed}"


class _LeaseSpec(objects.Wire, frozen=True):
    holder_identity: str | None = None
    renew_time: datetime | None = None


class _Lease(objects.Wire, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


async def leader(kube: Kube, path: str) -> Leader:
    """By the Lease at that path. Raises NotAllowed where it may not be read."""
    with asking("get", "leases", path.split("/")[5]):
        try:
            lease = decoded(await kube.get(path), _Lease).spec
        except NotFound:
            return Leader()
    return Leader(lease.holder_identity or "", lease.renew_time)
