"""Load the controller's configuration: `load` returns a frozen Config, or raises one DiagnosticsError.

Later sources win: defaults, the YAML file, environment variables, flags. docs/configuration.md lists every field.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from kube_node_ready.api.contract import SERVICE_ACCOUNT, WORKER_SETTINGS_VARIABLE
from kube_node_ready.settings import compat, images
from kube_node_ready.settings.controller import CONFIG, Config
from kube_node_ready.settings.engine import Decoder, Field
from kube_node_ready.settings.field_types import SERVICE_ADDRESS
from kube_node_ready.settings.flags import Flag, add_to_help, of_field
from kube_node_ready.settings.rules import violations
from kube_node_ready.settings.structs import is_scalar, leaves, manifest
from kubekit import yaml_nodes
from kubekit.diagnostics import Diagnostic, DiagnosticsError, Location, unknown
from kubekit.suggestions import did_you_mean
from kubekit.yaml_nodes import Scalar

__all__ = ["Config", "add_flags", "flags", "load", "manifest", "parse"]

PREFIX = "KUBE_NODE_READY_"
ACCOUNT = Path(SERVICE_ACCOUNT)
_FALLBACK_NAMESPACE = "kube-system"
_LABS_OWN = "KUBE_NODE_READY_LAB_"
# Kubernetes sets variables for the Services of a pod's namespace, and ours can be called kube-node-ready….
_SERVICE = re.compile(
    r"KUBE_NODE_READY_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_INSTEAD = {
    "backoffLimit": "reconciliation.maxRetries counts attempts",
    "completions": "one worker runs for each attempt",
    "parallelism": "one worker runs for each attempt",
    "ttlSecondsAfterFinished": "a failed worker stays until the next attempt, others are deleted immediately",
}

Override = tuple[str, Scalar]
"""The path of a field, and its value."""


def load(
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    *,
    account: Path = ACCOUNT,
    known: Sequence[Diagnostic] = (),
) -> Config:
    """Load the configuration of this process, or raise one DiagnosticsError with everything that is wrong with it.

    `account` is where a pod finds its ServiceAccount, and `known` is what is wrong with the command line.
    """
    diagnostics: list[Diagnostic] = []
    node = None
    try:
        node = yaml_nodes.read_file(file, diagnostics) if file else None
    except DiagnosticsError as error:
        diagnostics += error.diagnostics
    return _load(node, environment, flags, account, diagnostics, known)


def parse(text: str, name: str, environment: Mapping[str, str]) -> Config:
    """Load the configuration of another process: the text of its file, which has that name in diagnostics."""
    diagnostics: list[Diagnostic] = []
    return _load(yaml_nodes.parse(text, name, diagnostics), environment, {}, ACCOUNT, diagnostics)


def _load(
    node: yaml_nodes.Node | None,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    account: Path,
    diagnostics: list[Diagnostic],
    known: Sequence[Diagnostic] = (),
) -> Config:
    root = compat.normalize(_root(node, diagnostics), diagnostics)
    for path, value in (*_from_environment(environment, diagnostics), *_from_flags(flags, diagnostics)):
        root = yaml_nodes.set_path(root, path, value)
    if not yaml_nodes.has_path(root, "worker.namespace"):
        root = yaml_nodes.set_path(root, "worker.namespace", _namespace(environment, account))
    if not yaml_nodes.has_path(root, "worker.image.repository"):
        root = _with_own_image(root, environment.get(images.VARIABLE, ""))
    decoder = Decoder(compat.suggest)
    config = _complete(decoder.read(CONFIG, root, base=Config()))
    diagnostics += decoder.diagnostics
    diagnostics += _violations(config, root, diagnostics)
    if known or diagnostics:
        raise DiagnosticsError([*known, *diagnostics])
    return replace(config, warnings=tuple(_warnings(config, flags)))


def _root(node: yaml_nodes.Node | None, diagnostics: list[Diagnostic]) -> yaml_nodes.Mapping:
    if isinstance(node, yaml_nodes.Mapping):
        return node
    if node is not None and not yaml_nodes.is_null(node):
        noun = "a list" if isinstance(node, yaml_nodes.Sequence) else "text"
        message = f"the file has {noun}; expected sections such as `worker:` and `reconciliation:`"
        diagnostics.append(Diagnostic("", message, node.location))
    return yaml_nodes.Mapping({})


def _complete(config: Config) -> Config:
    worker = replace(
        config.worker, timeout_seconds=config.worker.job.active_deadline_seconds or config.worker.timeout_seconds
    )
    election = replace(config.leader_election, namespace=config.leader_election.namespace or worker.namespace)
    return replace(config, worker=worker, leader_election=election)


def _namespace(environment: Mapping[str, str], account: Path) -> Scalar:
    if name := environment.get("POD_NAMESPACE"):
        return Scalar(name, Location("POD_NAMESPACE"), quoted=True)
    file = account / "namespace"
    try:
        return Scalar(file.read_text().strip() or _FALLBACK_NAMESPACE, Location(str(file)), quoted=True)
    except (OSError, UnicodeDecodeError):
        return Scalar(_FALLBACK_NAMESPACE)


def _with_own_image(root: yaml_nodes.Mapping, own: str) -> yaml_nodes.Mapping:
    """Set the controller's own image. Its tag and digest belong together: a configured one of them replaces both."""
    image = images.split(own)
    is_configured = any(yaml_nodes.has_path(root, f"worker.image.{key}") for key in ("tag", "digest"))
    parts = {"repository": image.repository} | ({} if is_configured else {"tag": image.tag, "digest": image.digest})
    for key, value in parts.items():
        if value:
            scalar = Scalar(value, Location(images.VARIABLE), quoted=True)
            root = yaml_nodes.set_path(root, f"worker.image.{key}", scalar)
    return root


def _violations(config: Config, root: yaml_nodes.Mapping, known: list[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield what the rules reject, unless a field that a rule compares is invalid by itself, or the whole file is."""
    invalid = tuple(diagnostic.path for diagnostic in known)
    for diagnostic, *others in violations(config):
        # A list with an invalid item is a list without that item, so all of it is uncertain.
        fields = [path.partition("[")[0] for path in (diagnostic.path, *others)]
        if not any(path.startswith(field) or field.startswith(path) for path in invalid for field in fields):
            yield diagnostic._replace(location=yaml_nodes.locate(root, diagnostic.path, *others))


def _warnings(config: Config, flags: Mapping[str, str]) -> Iterator[str]:
    job = config.worker.job
    for key, value in (
        ("backoffLimit", job.backoff_limit),
        ("completions", job.completions),
        ("parallelism", job.parallelism),
        ("ttlSecondsAfterFinished", job.ttl_seconds_after_finished),
    ):
        if value is not None:
            yield f"worker.job.{key} has no effect, since workers are pods and not Jobs: {_INSTEAD[key]}"
    for flag in sorted(compat.WITHOUT_EFFECT & flags.keys()):
        yield f"--{flag} has no effect"


@cache
def variables() -> dict[str, str]:
    """Every variable with our prefix, and the path of its field."""
    return {_variable(names): path for path, names, field in leaves(CONFIG) if is_scalar(field)}


@cache
def short_variables() -> dict[str, str]:
    """Variables without our prefix, and the path of their field."""
    return {field.variable: path for path, _, field in leaves(CONFIG) if field.variable}


def _variable(names: tuple[str, ...]) -> str:
    return PREFIX + "_".join(names).upper()


def _from_environment(environment: Mapping[str, str], diagnostics: list[Diagnostic]) -> Iterator[Override]:
    """An empty variable counts as not set: charts write those when they have no value."""
    for name, path in short_variables().items():
        if text := environment.get(name):
            yield path, Scalar(text, Location(name), quoted=True)
    for name, text in sorted(environment.items()):
        if not text or not name.startswith(PREFIX) or _is_not_ours(name, text):
            continue
        if path := variables().get(name, ""):
            yield path, Scalar(text, Location(name), quoted=True)
        else:
            diagnostics.append(_unknown_variable(name))


def _is_not_ours(name: str, text: str) -> bool:
    if name == WORKER_SETTINGS_VARIABLE or name.startswith(_LABS_OWN) or _SERVICE.fullmatch(name):
        return True
    # A Service called kube-node-ready-metrics makes KUBE_NODE_READY_METRICS_PORT, which is our name for metrics.port.
    return name.endswith("_PORT") and bool(SERVICE_ADDRESS.fullmatch(text))


def _unknown_variable(name: str) -> Diagnostic:
    for path, names, _ in leaves(CONFIG):
        if name == _variable(names):
            return Diagnostic(name, f"unknown variable; {path} is not a single value, and can only be set in the file")
    return unknown("variable", name, did_you_mean(name, variables()), ())


def flag_fields() -> dict[str, tuple[str, Field]]:
    """Every flag of a field, with the path of it."""
    return {field.flag: (path, field) for path, _, field in leaves(CONFIG) if field.flag}


def flags() -> tuple[Flag, ...]:
    """Every flag of the controller but `--config`, in the order of its help."""
    return (*_setting_flags(), *compat.FLAGS)


def _setting_flags() -> Iterator[Flag]:
    for path, field in flag_fields().values():
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
        yield of_field(field, f"{path}: {field.description.removesuffix('.')}{f' ({default})' if default else ''}")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add every flag but `--config` to the help. A flag wins over the environment, the environment over the file."""
    about = "Each overrides a field of the file, and the field's environment variable."
    add_to_help(parser, _setting_flags(), "settings", about)
    add_to_help(parser, compat.FLAGS, "accepted from older deployments")


def _from_flags(flags: Mapping[str, str], diagnostics: list[Diagnostic]) -> Iterator[Override]:
    yield from compat.from_flags(flags, diagnostics)
    for flag, (path, _) in flag_fields().items():
        if flag in flags:
            yield path, compat.at_flag(flag, flags[flag])
