"""The controller's flags: ours, and those that controller-runtime gave the original."""

import argparse
from collections.abc import Iterator

FIELDS = {
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
"""Which field a flag sets."""

WITHOUT_EFFECT = frozenset({"zap-stacktrace-level", "zap-time-encoding"})
_DEBUG_VERBOSITY = 4


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
    """What was given, by the names `config.load` knows. Our own flags win over the older ones."""
    given = {name.replace("_", "-"): value for name, value in vars(namespace).items() if value is not None}
    return {
        **dict(_from_older(given)),
        **{name: value for name, value in given.items() if name in FIELDS or name in WITHOUT_EFFECT},
    }


def _from_older(given: dict[str, object]) -> Iterator[tuple[str, object]]:
    """In the order of their weight, the weakest first."""
    if str(given.get("zap-devel", "false")).lower() == "true":
        yield "log-level", "debug"
        yield "log-format", "console"
    verbosity = str(given.get("v", ""))
    if verbosity.isdecimal() and int(verbosity) >= _DEBUG_VERBOSITY:
        yield "log-level", "debug"
    if level := given.get("zap-log-level"):
        yield "log-level", "debug" if str(level).isdecimal() else {"panic": "error"}.get(str(level), level)
    if encoder := given.get("zap-encoder"):
        yield "log-format", encoder


def _switch(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    group.add_argument(f"--{name}", nargs="?", const="true", metavar="true|false", help=text)
