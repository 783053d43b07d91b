"""The flags of `check`. They are data, because `check` also runs where click is not installed: in the image."""

import argparse
from pathlib import Path
from typing import NamedTuple

from kube_node_ready.commands import VERBS

DESCRIPTION = (
    "Run the worker's checks on this machine. In a pod they are the same as the worker's. Elsewhere, a kubeconfig "
    "defines the API server, and checks that need a cluster are skipped if there is no kubeconfig."
)
EXITS = {
    0: "no check failed",
    1: "a check failed",
    2: "a setting is invalid",
    3: "the kubeconfig is not usable",
    4: "nothing was checked: all checks were skipped",
    10: "unexpected error",
    130: "interrupted",
}


class Flag(NamedTuple):
    names: tuple[str, ...]
    about: str
    metavar: str = ""
    """What its value is called; empty if it takes none."""
    choices: tuple[str, ...] = ()


FLAGS = (
    Flag(
        ("--kubeconfig",),
        "Use this kubeconfig instead of KUBECONFIG, the pod's ServiceAccount or ~/.kube/config.",
        metavar="FILE",
    ),
    Flag(("--config",), "Read the worker's settings from this file, in YAML or JSON.", metavar="FILE"),
    Flag(("--dry-run",), "List the checks without running them."),
    Flag(("-o", "--output"), "Choose the format of the results (default: table).", choices=("table", "json")),
)


class Options(NamedTuple):
    kubeconfig: Path | None
    config: Path | None
    dry_run: bool
    output: str


def parse(words: list[str]) -> Options:
    """Parse with the standard library."""
    parser = argparse.ArgumentParser("kube-node-ready check", description=VERBS["check"], allow_abbrev=False)
    for flag in FLAGS:
        if flag.choices:
            parser.add_argument(*flag.names, choices=flag.choices, default=flag.choices[0], help=flag.about)
        elif flag.metavar:
            parser.add_argument(*flag.names, metavar=flag.metavar, type=Path, help=flag.about)
        else:
            parser.add_argument(*flag.names, action="store_true", help=flag.about)
    return Options(**vars(parser.parse_args(words)))
