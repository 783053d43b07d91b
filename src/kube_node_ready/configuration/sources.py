"""Environment variables and flags, laid over what the file says."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from kube_node_ready.configuration import checks
from kube_node_ready.configuration.document import Scalar, Table, is_null
from kube_node_ready.configuration.flags import FIELDS, WITHOUT_EFFECT
from kube_node_ready.configuration.mistakes import Mistake, shown
from kube_node_ready.configuration.model import Config
from kube_node_ready.configuration.schema import is_scalar, leaves
from kube_node_ready.configuration.spelling import similar

PREFIX = "KUBE_NODE_READY_"
ORIGINAL = {
    "DRY_RUN": "dryRun",
    "KUBECONFIG": "kubernetes.kubeconfigPath",
    "LOG_FORMAT": "logging.format",
    "LOG_LEVEL": "logging.level",
}
"""Variables without our prefix that have always been read."""

_WORKERS_OWN = "KUBE_NODE_READY_WORKER_CONFIG"
# Kubernetes tells every pod about the Services of its namespace, and ours may well be called kube-node-ready….
_SERVICE = re.compile(
    r"KUBE_NODE_READY_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")
_ADDRESS = re.compile(r"(?P<host>.*):(?P<port>[0-9]{1,5})")
_EVERYWHERE = ("", "0.0.0.0", "[::]")  # noqa: S104  names for what the controller does anyway

Override = tuple[str, Scalar]


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


def from_flags(flags: Mapping[str, object], mistakes: list[Mistake]) -> Iterator[Override]:
    for flag, value in flags.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if flag.endswith("-bind-address"):
            yield from _port(flag, text, mistakes)
        elif flag in FIELDS:
            yield FIELDS[flag], Scalar(text, f"--{flag}", quoted=True)
        elif flag not in WITHOUT_EFFECT:
            mistakes.append(Mistake(f"--{flag}", f"unknown flag (did you mean --{similar(flag, FIELDS)}?)"))


def lay(root: Table, override: Override) -> Table:
    """The tree with one more value; a section that is no section stays, to be complained about."""
    path, value = override
    first, _, rest = path.partition(".")
    if not rest:
        return replace(root, entries=root.entries | {first: value})
    section = root.entries.get(first)
    if section is None or is_null(section):
        section = Table({})
    if not isinstance(section, Table):
        return root
    return replace(root, entries=root.entries | {first: lay(section, (rest, value))})


def has(root: Table, path: str) -> bool:
    """Whether something that is not empty stands there."""
    first, _, rest = path.partition(".")
    node = root.entries.get(first)
    if node is None or is_null(node):
        return False
    if rest and isinstance(node, Table):
        return has(node, rest)
    return not isinstance(node, Scalar) or node.text != ""


def _is_not_ours(name: str, text: str) -> bool:
    if name == _WORKERS_OWN or _SERVICE.fullmatch(name):
        return True
    # A Service called kube-node-ready-metrics makes KUBE_NODE_READY_METRICS_PORT, which is our name for metrics.port.
    return name.endswith("_PORT") and bool(_SERVICE_ADDRESS.fullmatch(text))


def _unknown(name: str) -> str:
    for path, names, _ in leaves(Config):
        if name == PREFIX + "_".join(names).upper():
            return f"{path} is not a single value and can only be given in the file"
    meant = similar(name, variables())
    return f"unknown variable (did you mean {meant}?)" if meant else "unknown variable: no field of the configuration"


def _port(flag: str, text: str, mistakes: list[Mistake]) -> Iterator[Override]:
    section = "metrics" if flag.startswith("metrics") else "health"
    where = f"--{flag}"
    if text == "0" and section == "metrics":
        yield "metrics.enabled", Scalar("false", where, quoted=True)
    elif (match := _ADDRESS.fullmatch(text)) and match["host"] in _EVERYWHERE:
        yield f"{section}.port", Scalar(match["port"], where, quoted=True)
    else:
        # To listen on every address although one was asked for would show more than was meant.
        off = ", or 0 for no metrics" if section == "metrics" else ""
        reason = f"is {shown(text)}, and must be a port of every address such as :8080{off}"
        mistakes.append(Mistake(where, reason))
