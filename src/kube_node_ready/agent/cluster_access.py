"""How this process reaches the API server, and which checks it can make from where it runs."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from kube_node_ready.checks import access, plan
from kube_node_ready.checks.access import Access, NoAccessError
from kube_node_ready.checks.model import Here, Job
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.daemonset.settings import Settings

_REREAD_SECONDS = 60.0


class InPod:
    """By the pod's ServiceAccount, whose files are read each time: the kubelet renews the token in them."""

    def __init__(self, environ: Mapping[str, str], folder: str | os.PathLike[str]) -> None:
        self._environ = environ
        self._folder = folder

    def access(self) -> Access:
        return access.in_pod(self._environ, self._folder)

    def jobs(self, settings: CheckSettings, here: Here) -> tuple[Job, ...]:
        return plan.in_pod(settings, self.access(), here)


class ByKubeconfig:
    """From outside a pod, for a dry run. What only a pod can try is skipped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = float("-inf")
        self._access: Access | None = None

    def access(self) -> Access:
        from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML

        if self._access is None or time.monotonic() - self._read_at > _REREAD_SECONDS:
            self._access, self._read_at = kubeconfig.load(self._path), time.monotonic()
        return self._access

    def jobs(self, settings: CheckSettings, here: Here) -> tuple[Job, ...]:  # noqa: ARG002  as the others'
        return plan.on_this_machine(settings, self.access(), "")


class Nowhere:
    """For a dry run: what needs a cluster is skipped."""

    def __init__(self, why: str) -> None:
        self._why = why

    def access(self) -> Access:
        raise NoAccessError(self._why)

    def jobs(self, settings: CheckSettings, here: Here) -> tuple[Job, ...]:  # noqa: ARG002  as the others'
        return plan.on_this_machine(settings, None, self._why)


Reach = InPod | ByKubeconfig | Nowhere


def choose(settings: Settings, folder: str | os.PathLike[str] = access.SERVICE_ACCOUNT) -> Reach:
    """The kubeconfig that is named, else the pod's own ServiceAccount, else the usual kubeconfig."""
    if settings.kubeconfig:
        from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML

        return _usable(ByKubeconfig(kubeconfig.first_file(settings.kubeconfig)))
    if settings.service_host:
        where = {
            "KUBERNETES_SERVICE_HOST": settings.service_host,
            "KUBERNETES_SERVICE_PORT": str(settings.service_port),
        }
        return _usable(InPod(where, folder))
    from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML

    usual = kubeconfig.default()
    found = ByKubeconfig(usual) if usual else Nowhere("there is neither a ServiceAccount nor a kubeconfig")
    try:
        return _usable(found)
    except NoAccessError as why:
        if not settings.dry_run:
            raise
        return Nowhere(str(why))


def _usable(reach: Reach) -> Reach:
    """Better to say at the start that there is no way."""
    reach.access()
    return reach
