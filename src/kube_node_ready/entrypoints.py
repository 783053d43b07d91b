"""argv -> configuration -> role. The worker has an entry of its own, since it must not import what is imported here."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from kube_node_ready import version
from kube_node_ready.verbs import COMPLETE, VERBS

EXIT_CONFIGURATION = 2
EXIT_NO_ACCESS = 3
EXIT_UNEXPECTED = 10
_PLUGIN = "kubectl-node_ready"
_CONFIG = "/etc/kube-node-ready/config.yaml"


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """`kube-node-ready`: with a verb for people at a terminal, without one for a DaemonSet."""
    words = sys.argv[1:] if argv is None else list(argv)
    if Path(sys.argv[0]).name == _PLUGIN:  # a link to an executable that is ours
        kubectl(words)
    if words[:1] == ["check"]:
        sys.exit(_check(words[1:]))
    if words and words[0] in (*VERBS, COMPLETE):
        sys.exit(_console("kube-node-ready", words))
    if words == ["--version"]:
        print(f"kube-node-ready {version.told()}")
        sys.exit()
    from kube_node_ready.daemonset import process  # noqa: PLC0415  the others need not wait for it

    process.main(words)


def kubectl(argv: Sequence[str] | None = None) -> NoReturn:
    """`kubectl-node_ready`, by which `kubectl node-ready` means us. It is for people, so without a verb it helps."""
    sys.exit(_console("kubectl node-ready", sys.argv[1:] if argv is None else argv))


def kubectl_complete(argv: Sequence[str] | None = None) -> NoReturn:
    """`kubectl_complete-node_ready`, which kubectl asks while someone types."""
    sys.exit(_console("kubectl node-ready", [COMPLETE, *(sys.argv[1:] if argv is None else argv)]))


def controller(argv: Sequence[str] | None = None) -> NoReturn:
    """`kube-node-ready-controller`."""
    from kube_node_ready import config  # noqa: PLC0415  `--version` need not wait for it

    parser = argparse.ArgumentParser(
        prog="kube-node-ready-controller",
        description="Watches for gated nodes, runs a worker on each, and opens the gate of those that pass.",
        epilog="Exit codes: 0 stopped by a signal, 1 lost the Lease, 2 bad configuration, 3 no way to Kubernetes, "
        "10 something unexpected, such as a port that is taken.",
    )
    version.add_flag(parser)
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help=f"the configuration ({_CONFIG}, if it is there); docs/configuration.md",
    )
    config.add_flags(parser)
    arguments = parser.parse_args(argv)
    file = arguments.config or (Path(_CONFIG) if Path(_CONFIG).exists() else None)
    try:
        loaded = config.load(file, os.environ, config.flags_of(arguments))
    except config.ConfigError as why:
        _end(EXIT_CONFIGURATION, str(why))
    sys.exit(_control(loaded))


def _control(config: object) -> int:
    import uvloop  # noqa: PLC0415

    from kube_node_ready import lifecycle, log  # noqa: PLC0415
    from kube_node_ready.config import Config  # noqa: PLC0415
    from kube_node_ready.kube.errors import AccessError  # noqa: PLC0415

    assert isinstance(config, Config)
    log.configure(config.logging.level, config.logging.format)
    for note in config.notes:
        log.log("Configuration", level="warn", note=note)
    try:
        return uvloop.run(lifecycle.run(config))
    except AccessError as why:
        _end(EXIT_NO_ACCESS, str(why))
    except OSError as why:
        _end(EXIT_UNEXPECTED, f"{why.strerror or why}")


def _console(prog: str, words: Sequence[str]) -> int:
    from kube_node_ready.console import main as console  # noqa: PLC0415  the others need not wait for it

    return console.run(prog, list(words))


def _check(argv: Sequence[str]) -> int:
    from kube_node_ready.checks import table  # noqa: PLC0415

    return table.main(argv)


def _end(code: int, sentence: str) -> NoReturn:
    print(f"kube-node-ready: {sentence}", file=sys.stderr)
    sys.exit(code)
