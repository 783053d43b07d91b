"""Choose how this process reaches the API server, and which checks can run here."""

import os
import time
from collections.abc import Mapping

from kube_node_ready.api.contract import SERVICE_ACCOUNT
from kube_node_ready.checks import access, plan
from kube_node_ready.checks.access import Access, NoAccessError
from kube_node_ready.checks.check import Check, PodIdentity
from kube_node_ready.checks.plan import Found, Known
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.log import log
from kube_node_ready.settings.agent import Settings


class InCluster:
    """Access with the pod's ServiceAccount. Its files are read each time: the kubelet renews the token."""

    def __init__(self, environ: Mapping[str, str], folder: str | os.PathLike[str]) -> None:
        self._environ = environ
        self._folder = folder

    def access(self) -> Access:
        return access.in_pod(self._environ, self._folder)

    def checks(self, settings: CheckSettings, identity: PodIdentity, found: Found | None = None) -> tuple[Check, ...]:
        """Return all checks. Endpoints that they look up are added to `found`, for partial runs."""
        return plan.in_pod(settings, self.access(), identity, found)

    def later_checks(self, settings: CheckSettings, identity: PodIdentity, known: Known) -> tuple[Check, ...]:
        return plan.later(settings, self.access(), identity, known)


class FromKubeconfig:
    """Access from outside a pod, for a dry run. Checks that need a pod are skipped."""

    def __init__(self, paths: str) -> None:
        self._paths = paths
        self._read_at = float("-inf")
        self._access: Access | None = None

    def access(self) -> Access:
        from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML
        from kubekit.credentials import REREAD_SECONDS  # noqa: PLC0415  as above

        if self._access is None or time.monotonic() - self._read_at > REREAD_SECONDS:
            self._access, self._read_at = kubeconfig.load(self._paths), time.monotonic()
        return self._access

    def checks(self, settings: CheckSettings, identity: PodIdentity, found: Found | None = None) -> tuple[Check, ...]:  # noqa: ARG002  as the others'
        return plan.on_this_machine(settings, self.access(), "")


class NoCluster:
    """A dry run without a cluster: checks that need one are skipped."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def access(self) -> Access:
        raise NoAccessError(self._reason)

    def checks(self, settings: CheckSettings, identity: PodIdentity, found: Found | None = None) -> tuple[Check, ...]:  # noqa: ARG002  as the others'
        return plan.without_cluster(settings, self._reason)


ClusterAccess = InCluster | FromKubeconfig | NoCluster


def choose(settings: Settings, folder: str | os.PathLike[str] = SERVICE_ACCOUNT) -> ClusterAccess:
    """By --kubeconfig, else by KUBECONFIG, else by the pod's ServiceAccount, else by ~/.kube/config."""
    is_there = access.has_kubeconfig(settings.kubeconfig)
    if settings.kubeconfig and (is_there or settings.kubeconfig_by_flag or not settings.service_host):
        from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML

        if settings.dry_run and not settings.kubeconfig_by_flag and not is_there:
            return _without_kubeconfig(settings.kubeconfig)
        reach = _usable(FromKubeconfig(settings.kubeconfig))
        kubeconfig.warn_if_insecure(reach.access())
        return reach
    if settings.service_host:
        where = {
            "KUBERNETES_SERVICE_HOST": settings.service_host,
            "KUBERNETES_SERVICE_PORT": str(settings.service_port),
        }
        return _usable(InCluster(where, folder))
    from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML

    usual = kubeconfig.usual()
    chosen: ClusterAccess = (
        FromKubeconfig(usual) if usual else NoCluster("no ServiceAccount and no kubeconfig was found")
    )
    try:
        chosen = _usable(chosen)
    except NoAccessError as error:
        if not settings.dry_run:
            raise
        return NoCluster(str(error))
    kubeconfig.warn_if_insecure(chosen.access())
    return chosen


def _without_kubeconfig(paths: str) -> NoCluster:
    """A leftover variable is ignored, as by kubectl. A flag for a missing file is an error."""
    log("Kubeconfig not found", level="warn", path=paths, reason="checks that need a cluster are skipped")
    return NoCluster(f"KUBECONFIG: {paths} does not exist")


def _usable(reach: ClusterAccess) -> ClusterAccess:
    """Fail at the start if there is no access."""
    reach.access()
    return reach
