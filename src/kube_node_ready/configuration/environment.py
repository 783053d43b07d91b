"""Environment variables, by the names of the fields they set."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from kube_node_ready.configuration import checks
from kube_node_ready.configuration.document import Scalar
from kube_node_ready.configuration.mistakes import Mistake
from kube_node_ready.configuration.model import Config
from kube_node_ready.configuration.schema import is_scalar, leaves
from kube_node_ready.configuration.spelling import similar
from kube_node_ready.configuration.tree import Override

PREFIX = "KUBE_NODE_READY_"
ORIGINAL = {
    "DRY_RUN": "dryRun",
    "KUBECONFIG": "kubernetes.kubeconfigPath",
    "LOG_FORMAT": "logging.format",
    "LOG_LEVEL": "logging.level",
}
"""Variables without our prefix that have always been read."""

_WORKERS_OWN = "KUBE_NODE_READY_WORKER_CONFIG"
_LABS_OWN = "KUBE_NODE_READY_LAB_"
# Kubernetes tells every pod about the Services of its namespace, and ours may well be called kube-node-ready….
_SERVICE = re.compile(
    r"KUBE_NODE_READY_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")


@cache
def variables() -> dict[str, str]:
    """Every variable with our prefix, and the path of its field."""
    own = {PREFIX + "_".join(names).upper(): path for path, names, field in leaves(Config) if is_scalar(field.kind)}
    return own | {f"{PREFIX}WORKER_{checks.variable(name).upper()}": f"worker.{name}" for name in checks.NAMES}


def from_environment(environment: Mapping[str, str], mistakes: list[Mistake]) -> Iterator[Override]:
    """An empty variable is one that was not set: charts write those when they have nothing to say."""
    for name, path in ORIGINAL.items():
        if text := environment.get(name):
            yield path, Scalar(text, name, quoted=True)
    for name, text in sorted(environment.items()):
        if not text or not name.startswith(PREFIX) or _is_not_ours(name, text):
            continue
        if known := variables().get(name):
            yield known, Scalar(text, name, quoted=True)
        else:
            mistakes.append(Mistake(name, _unknown(name)))


def _is_not_ours(name: str, text: str) -> bool:
    if name == _WORKERS_OWN or name.startswith(_LABS_OWN) or _SERVICE.fullmatch(name):
        return True
    # A Service called kube-node-ready-metrics makes KUBE_NODE_READY_METRICS_PORT, which is our name for metrics.port.
    return name.endswith("_PORT") and bool(_SERVICE_ADDRESS.fullmatch(text))


def _unknown(name: str) -> str:
    for path, names, _ in leaves(Config):
        if name == PREFIX + "_".join(names).upper():
            return f"{path} is not a single value and can only be given in the file"
    meant = similar(name, variables())
    return f"unknown variable (did you mean {meant}?)" if meant else "unknown variable: no field of the configuration"
