"""Find the leading controller by its Lease, to warn when none is running."""

from datetime import datetime, timedelta

from msgspec import Struct

from kube_node_ready.api import objects
from kube_node_ready.api.report import printable
from kube_node_ready.cli.cluster import decoded
from kube_node_ready.cli.permissions import requires
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.errors import NotFound
from kubekit import durations

_STALE = timedelta(seconds=60)


class Leader(Struct, frozen=True):
    holder: str = ""
    renewed: datetime | None = None

    def is_running(self, now: datetime) -> bool:
        return bool(self.holder and self.renewed and now - self.renewed <= _STALE)

    def describe(self, now: datetime) -> str:
        holder = printable(self.holder)
        if not holder or self.renewed is None:
            return "no controller is running: the Lease has no holder"
        renewed = f"renewed its Lease {durations.format_ago(self.renewed, now)}"
        if self.is_running(now):
            return f"the controller is running: {holder} {renewed}"
        return f"no controller is running: {holder} last {renewed}"


class _LeaseSpec(objects.Wire, frozen=True):
    holder_identity: str | None = None
    renew_time: datetime | None = None


class _Lease(objects.Wire, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


async def leader(kube: KubeClient, path: str) -> Leader:
    """Return the holder of the Lease at that path. Raise NotAllowed if it cannot be read."""
    with requires("get", "leases", path.split("/")[5]):
        try:
            lease = decoded(await kube.get(path), _Lease).spec
        except NotFound:
            return Leader()
    return Leader(lease.holder_identity or "", lease.renew_time)
