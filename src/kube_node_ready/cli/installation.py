"""Read what is installed in the cluster from the ConfigMap that the chart creates."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum, auto

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.agent import settings as daemonset
from kube_node_ready.api.objects import ConfigMap
from kube_node_ready.api.paths import object_path
from kube_node_ready.cli.errors import UsageError
from kube_node_ready.controller.resources import Scope
from kube_node_ready.settings import agent as agent_settings
from kube_node_ready.settings import config, images
from kube_node_ready.settings import policy as settings
from kube_node_ready.settings.config import Config
from kube_node_ready.settings.worker import JSON_VARIABLE
from kube_node_ready.verification.model import Policy
from kubekit.diagnostics import DiagnosticsError

SELECTOR = "app.kubernetes.io/component in (controller, daemonset)"
_NAME = "kube-node-ready"
_FILE = "config.yaml"
_MODE = "MODE"
_ANY_NODE = "any"
_PER_POD = frozenset({"NODE_NAME", "POD_NAMESPACE", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"})
_VARIABLES = frozenset(field.variable for field in agent_settings.FIELDS) - _PER_POD | {JSON_VARIABLE}
"""What the chart writes into the ConfigMap of DaemonSet mode. All else is ignored: this is the cluster's to write."""


class Mode(StrEnum):
    CONTROLLER = auto()
    DAEMONSET = auto()


class Installed(Struct, frozen=True):
    """The configuration, as far as a look from outside needs it."""

    policy: Policy
    namespace: str
    """Where worker pods and the removal ledger are; in DaemonSet mode, its pods."""
    mode: Mode = Mode.CONTROLLER
    slots: int = 1
    selector: Mapping[str, str] = {}
    lease: str = ""
    """The path of the controller's Lease, if it has one."""
    dry_run: bool = False
    removal_dry_run: bool = False
    assumed: bool = False
    """The configuration was not found: these are the defaults, which might not be in effect."""

    @property
    def scope(self) -> Scope:
        return Scope(self.namespace, self.slots, 1)


def read(maps: Sequence[ConfigMap], namespace: str) -> tuple[Installed, str]:
    """And a note, if something about it should be known.

    Raises UsageError if there are several: `verify` removes the label that the configuration names, so none is guessed.
    """
    usable = [config_map for config_map in maps if _is_ours(config_map)]
    candidates = [config_map for config_map in usable if _is_helms(config_map)] or usable
    if not candidates:
        where = f'no configuration of kube-node-ready was found in the namespace "{namespace}"'
        return defaults(namespace), f"{where}, so its defaults are assumed; set --namespace to where it is installed"
    if len(candidates) > 1:
        names = ", ".join(sorted(config_map.metadata.name for config_map in candidates))
        raise UsageError(
            f'found {len(candidates)} configurations of kube-node-ready in the namespace "{namespace}", expected one: '
            f"ConfigMaps {names}. Delete those that no installed release owns, or install releases in namespaces of "
            "their own"
        )
    (chosen,) = candidates
    try:
        installed = _of(chosen, namespace)
    except DiagnosticsError as error:
        doubt = f"the configuration in ConfigMap {chosen.metadata.name} cannot be read, so the defaults are assumed"
        return defaults(namespace), f"{doubt}: {_first(error.diagnostics)}"
    if others := sorted(config_map.metadata.name for config_map in usable if config_map is not chosen):
        return (
            installed,
            f"ConfigMap {chosen.metadata.name} is used; not installed by Helm, ignored: {', '.join(others)}",
        )
    return installed, ""


def _is_helms(config_map: ConfigMap) -> bool:
    return (config_map.metadata.labels or {}).get("app.kubernetes.io/managed-by") == "Helm"


def _is_ours(config_map: ConfigMap) -> bool:
    """Return whether it is our configuration. Other charts have controllers, too, and ours can have another name."""
    data, labels = config_map.data or {}, config_map.metadata.labels or {}
    by_name = labels.get("app.kubernetes.io/name") == _NAME or labels.get("helm.sh/chart", "").startswith(f"{_NAME}-")
    return by_name and (_FILE in data or _MODE in data)


def _of(config_map: ConfigMap, namespace: str) -> Installed:
    data = config_map.data or {}
    if _FILE in data:
        name = f"{config_map.metadata.name}/{_FILE}"
        return _controller(config.parse(data[_FILE], name, _variables(namespace)))
    variables = {name: data[name] for name in data.keys() & _VARIABLES}
    rules = daemonset.rules(agent_settings.load({"node-name": _ANY_NODE}, variables, files=False))
    return Installed(rules.policy, namespace, Mode.DAEMONSET, dry_run=data.get("DRY_RUN") == "true")


def defaults(namespace: str) -> Installed:
    """Return what is in effect without a configuration."""
    # Nor is it known whose Lease it would be.
    return replace(_controller(config.load(None, _variables(namespace), {})), assumed=True, lease="")


def _variables(namespace: str) -> dict[str, str]:
    """As in the controller's pod. Its image is not known here, and does not matter."""
    return {"POD_NAMESPACE": namespace, images.VARIABLE: "kube-node-ready"}


def _controller(loaded: Config) -> Installed:
    election = loaded.leader_election
    lease = object_path("coordination.k8s.io/v1", "leases", election.id, namespace=election.namespace)
    return Installed(
        settings.policy(loaded),
        loaded.worker.namespace,
        slots=loaded.reconciliation.max_concurrent_verifications,
        selector=loaded.node_management.node_selector,
        lease=lease if election.enabled and not loaded.dry_run else "",
        dry_run=loaded.dry_run,
        removal_dry_run=loaded.node_management.removal.dry_run,
    )


def _first(mistakes: Iterable[object]) -> str:
    first, *others = map(str, mistakes)
    return f"{first} (and {len(others)} more)" if others else first
