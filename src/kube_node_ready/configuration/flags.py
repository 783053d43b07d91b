"""The controller's flags: ours, and those that controller-runtime gave the original."""

import argparse
import re
from collections.abc import Iterator, Mapping

from kube_node_ready.configuration.document import Scalar
from kube_node_ready.configuration.mistakes import Mistake, shown
from kube_node_ready.configuration.spelling import similar
from kube_node_ready.configuration.tree import Override

FIELDS = {
    "zap-log-level": "logging.level",
    "zap-encoder": "logging.format",
    "metrics-bind-address": "metrics.port",
    "health-probe-bind-address": "health.port",
    "leader-elect": "leaderElection.enabled",
    "leader-election-id": "leaderElection.id",
    "leader-election-namespace": "leaderElection.namespace",
    "kubeconfig": "kubernetes.kubeconfigPath",
    "log-level": "logging.level",
    "log-format": "logging.format",
    "dry-run": "dryRun",
}
"""Which field a flag sets, the stronger of two flags last."""

WITHOUT_EFFECT = frozenset({"zap-stacktrace-level", "zap-time-encoding"})
_SHORTHANDS = ("zap-devel", "v")
_DEBUG_VERBOSITY = 4
_ADDRESS = re.compile(r"(?P<host>.*):(?P<port>[0-9]{1,5})")
_EVERYWHERE = ("", "0.0.0.0", "[::]")  # noqa: S104  names for what the controller does anyway


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Everything but `--config`. A flag wins over the environment, the environment over the file."""
    ours = parser.add_argument_group(
        "settings", "Each takes the place of a field of the file, and of the field's environment variable."
    )
    for flag, metavar, text in (
        ("metrics-bind-address", ":PORT", "where /metrics is served (:8080); 0 switches it off"),
        ("health-probe-bind-address", ":PORT", "where /healthz and /readyz are served (:8081)"),
        ("leader-election-id", "NAME", "the Lease that replicas compete for (kube-node-ready-controller)"),
        ("leader-election-namespace", "NAMESPACE", "where that Lease is (the worker's namespace)"),
        ("kubeconfig", "FILE", "how to reach the cluster from outside (in a pod: its ServiceAccount)"),
        ("log-level", "LEVEL", "debug, info, warn or error (info)"),
        ("log-format", "FORMAT", "json for machines, console for people (json)"),
    ):
        ours.add_argument(f"--{flag}", metavar=metavar, help=text)
    _switch(ours, "leader-elect", "let replicas agree on which one works (true); --leader-elect=false for one alone")
    _switch(ours, "dry-run", "decide and log, and write nothing to the cluster (false)")
    old = parser.add_argument_group("accepted from older deployments")
    old.add_argument(
        "--zap-log-level", metavar="LEVEL", help="like --log-level; a number means debug, panic means error"
    )
    old.add_argument("--zap-encoder", metavar="FORMAT", help="like --log-format")
    _switch(old, "zap-devel", "like --log-level=debug --log-format=console")
    old.add_argument("-v", "--v", metavar="N", help=f"{_DEBUG_VERBOSITY} or more is like --log-level=debug")
    old.add_argument("--zap-stacktrace-level", metavar="LEVEL", help="without effect")
    old.add_argument("--zap-time-encoding", metavar="FORMAT", help="without effect")


def flags_of(namespace: argparse.Namespace) -> dict[str, object]:
    """What was given, by the names `config.load` knows."""
    known = {*FIELDS, *WITHOUT_EFFECT, *_SHORTHANDS}
    given = {name.replace("_", "-"): value for name, value in vars(namespace).items() if value is not None}
    return {name: value for name, value in given.items() if name in known}


def from_flags(flags: Mapping[str, object], mistakes: list[Mistake]) -> Iterator[Override]:
    texts = {flag: str(value).lower() if isinstance(value, bool) else str(value) for flag, value in flags.items()}
    for flag in texts.keys() - {*FIELDS, *WITHOUT_EFFECT, *_SHORTHANDS}:
        meant = similar(flag, FIELDS)
        mistakes.append(Mistake(f"--{flag}", f"unknown flag (did you mean --{meant}?)" if meant else "unknown flag"))
    yield from _shorthands(texts, mistakes)
    for flag, path in FIELDS.items():
        if flag in texts and flag.endswith("-bind-address"):
            yield from _port(flag, texts[flag], mistakes)
        elif flag in texts:
            yield path, _said(flag, _from_zap(texts[flag]) if flag == "zap-log-level" else texts[flag])


def _shorthands(texts: Mapping[str, str], mistakes: list[Mistake]) -> Iterator[Override]:
    devel = texts.get("zap-devel", "false")
    if devel == "true":
        yield "logging.level", _said("zap-devel", "debug")
        yield "logging.format", _said("zap-devel", "console")
    elif devel != "false":
        mistakes.append(Mistake("--zap-devel", f"is {shown(devel)}, and must be true or false"))
    verbosity = texts.get("v", "0")
    if not re.fullmatch(r"[0-9]{1,9}", verbosity):
        mistakes.append(Mistake("-v", f"is {shown(verbosity)}, and must be a whole number"))
    elif int(verbosity) >= _DEBUG_VERBOSITY:
        yield "logging.level", _said("v", "debug")


def _from_zap(level: str) -> str:
    return "debug" if level.isdecimal() else {"panic": "error"}.get(level, level)


def _port(flag: str, text: str, mistakes: list[Mistake]) -> Iterator[Override]:
    section = "metrics" if flag.startswith("metrics") else "health"
    if text == "0" and section == "metrics":
        yield "metrics.enabled", _said(flag, "false")
    elif (match := _ADDRESS.fullmatch(text)) and match["host"] in _EVERYWHERE:
        yield f"{section}.port", _said(flag, match["port"])
    else:
        # To listen on every address although one was asked for would show more than was meant.
        off = ", or 0 for no metrics" if section == "metrics" else ""
        reason = f"is {shown(text)}, and must be a port of every address such as :8080{off}"
        mistakes.append(Mistake(f"--{flag}", reason))


def _said(flag: str, text: str) -> Scalar:
    return Scalar(text, f"--{flag}" if len(flag) > 1 else f"-{flag}", quoted=True)


def _switch(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    group.add_argument(f"--{name}", nargs="?", const="true", metavar="true|false", help=text)
