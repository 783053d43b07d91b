"""Console scripts: parse the arguments, load the configuration, start the daemon or the CLI.

The worker has its own entry point, because it must not import what is imported here.
"""

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from kube_node_ready import version
from kube_node_ready.commands import COMPLETE, COMPLETE_VARIABLE, RESPOND, VERBS
from kube_node_ready.exit_codes import ExitCode

_PLUGIN = "kubectl-node_ready"
_FOR_PEOPLE = ("click", "rich")
_CONFIG = "/etc/kube-node-ready/config.yaml"


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """`kube-node-ready`: with a verb for people at a terminal, without one for a DaemonSet."""
    words = sys.argv[1:] if argv is None else list(argv)
    if Path(sys.argv[0]).name == _PLUGIN:  # a link to an executable that is ours
        kubectl(words)
    if words[:1] == [RESPOND]:
        from kube_node_ready.worker import responder  # noqa: PLC0415  it stays small, so it loads nothing of the others

        sys.exit(responder.main(words[1:]))
    if words in (["--version"], ["version"]):  # also where click is not installed
        sys.exit(_print_version())
    if words[:1] == ["check"] and not _is_installed("click"):
        sys.exit(_check(words[1:]))
    if not words and not os.environ.get("NODE_NAME") and _is_at_a_terminal():
        _help()
    if (words and words[0] in (*VERBS, COMPLETE)) or (not words and COMPLETE_VARIABLE in os.environ):
        sys.exit(_cli("kube-node-ready", words))
    from kube_node_ready.agent import main as process  # noqa: PLC0415  the others need not wait for it

    process.main(words)


def kubectl(argv: Sequence[str] | None = None) -> NoReturn:
    """`kubectl-node_ready`, by which `kubectl node-ready` means us. It is for people, so without a verb it helps."""
    sys.exit(_cli("kubectl node-ready", sys.argv[1:] if argv is None else argv))


def kubectl_complete(argv: Sequence[str] | None = None) -> NoReturn:
    """`kubectl_complete-node_ready`, the completion program that kubectl runs."""
    sys.exit(_cli("kubectl node-ready", [COMPLETE, *(sys.argv[1:] if argv is None else argv)]))


def controller(argv: Sequence[str] | None = None) -> NoReturn:
    """`kube-node-ready-controller`."""
    from kube_node_ready.settings import config  # noqa: PLC0415  other programs need not wait for it
    from kube_node_ready.settings.flags import Flag, add_to_help, parse  # noqa: PLC0415  as above
    from kubekit.diagnostics import DiagnosticsError  # noqa: PLC0415  as above

    parser = argparse.ArgumentParser(
        prog="kube-node-ready-controller",
        description="Watch for gated nodes, run a worker on each, and open the gate of those that pass.",
        epilog="Exit codes: 0 stopped by a signal, 1 lost the Lease, 2 the configuration is invalid, "
        "3 the API server is not reachable, 10 unexpected error, such as a port that is in use.",
    )
    version.add_flag(parser)
    file = Flag("config", "FILE", f"read the configuration from this file (default: {_CONFIG}, if it exists)", "a file")
    add_to_help(parser, [file])
    config.add_flags(parser)
    flags, mistakes = parse(parser, sys.argv[1:] if argv is None else argv, (file, *config.flags()))
    path = flags.pop("config", None) or (_CONFIG if Path(_CONFIG).exists() else None)
    try:
        loaded = config.load(Path(path) if path else None, os.environ, flags, known=mistakes)
    except DiagnosticsError as error:
        _end(ExitCode.INVALID, error.listed("configuration"))
    sys.exit(_control(loaded))


def _control(config: object) -> int:
    import uvloop  # noqa: PLC0415

    from kube_node_ready import log  # noqa: PLC0415
    from kube_node_ready.controller import runtime  # noqa: PLC0415
    from kube_node_ready.kube.errors import AccessError  # noqa: PLC0415
    from kube_node_ready.settings import images  # noqa: PLC0415
    from kube_node_ready.settings.config import Config  # noqa: PLC0415

    assert isinstance(config, Config)
    log.configure(config.logging.level, config.logging.format)
    for warning in config.warnings:
        log.log("Configuration accepted with warning", level="warn", reason=warning)
    for warning in images.warnings(config.worker.image, os.environ.get(images.VARIABLE, "")):
        log.log("Unexpected worker image configured", level="warn", reason=warning)
    try:
        return uvloop.run(runtime.run(config))
    except AccessError as error:
        _end(ExitCode.NO_ACCESS, str(error))
    except OSError as error:
        _end(ExitCode.UNEXPECTED, f"{error.strerror or error}")


def _cli(prog: str, words: Sequence[str]) -> int:
    for package in _FOR_PEOPLE:
        if not _is_installed(package):
            _end(
                ExitCode.INVALID,
                f"the Python package {package} is not installed; run pip install '.[cli]' in a checkout",
            )
    from kube_node_ready.cli import main as console  # noqa: PLC0415  the others need not wait for it

    return console.run(prog, list(words))


def _print_version() -> int:
    from kube_node_ready.cli import ended  # noqa: PLC0415  as above

    def write() -> int:
        print(f"kube-node-ready {version.describe()}")
        return ExitCode.OK

    return ended.run("kube-node-ready", write)


def _help() -> NoReturn:
    """Print help: a user at a terminal does not start DaemonSet mode, which needs the name of its node."""
    if all(map(_is_installed, _FOR_PEOPLE)):
        sys.exit(_cli("kube-node-ready", []))
    from kube_node_ready.agent import flags  # noqa: PLC0415  as above

    flags.parser().print_help()
    sys.exit()


def _is_at_a_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _check(words: Sequence[str]) -> int:
    """Run `check` with the standard library, as in the image, where people run it to debug a node."""
    from kube_node_ready.cli import check, check_flags, ended  # noqa: PLC0415  as above

    return ended.run("kube-node-ready", lambda: check.run(check_flags.parse(list(words))))


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _end(code: int, sentence: str) -> NoReturn:
    print(f"kube-node-ready: {sentence}", file=sys.stderr)
    sys.exit(code)
