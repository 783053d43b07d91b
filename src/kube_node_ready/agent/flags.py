"""Parse the command line of DaemonSet mode."""

import argparse
from collections.abc import Iterator, Sequence

from kube_node_ready import version
from kube_node_ready.commands import VERBS, meant
from kube_node_ready.settings.agent import FIELDS, default_text
from kube_node_ready.settings.flags import Arguments, Flag, add_to_help, of_field
from kube_node_ready.settings.flags import parse as read
from kubekit.diagnostics import Diagnostic, DiagnosticsError, quoted

_DESCRIPTION = """\
Keeps workloads off a new Kubernetes node until the node has proved that its network works.

Without a command, this is DaemonSet mode: it verifies the node it runs on, opens its gate, and waits to be removed
(--mode=once) or continues to check the node (--mode=continuous). See docs/ARCHITECTURE_DAEMONSET.md.

The commands are for people. See `kube-node-ready help COMMAND` and docs/cli.md:

{}

The controller, kube-node-ready-controller, runs kube-node-ready-worker on each gated node.
"""
_EPILOG = "Exit codes: 0 stopped by a signal (dry run: the checks that ran passed), 1 dry run: a check failed, 2 the \
settings are invalid, 3 the API server is not reachable, 4 nothing was proved and nothing was changed: not a pod on \
that node, or (dry run) no check could run, 10 unexpected error."


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kube-node-ready",
        usage="%(prog)s [COMMAND] [flags]",
        description=_DESCRIPTION.format("\n".join(f"  {verb:<12}{about}" for verb, about in VERBS.items())),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version.add_flag(parser)
    add_to_help(parser, _flags(), "flags", "A flag overrides its environment variable.")
    return parser


def parse(words: Sequence[str]) -> Arguments:
    """Return the values by flag, and what is unknown or incomplete.

    Raises DiagnosticsError for a mistyped command: what DaemonSet mode would miss then has nothing to do with it.
    """
    if words and words[0] and not words[0].startswith("-"):
        raise DiagnosticsError([_unknown_command(words[0])])
    return read(parser(), words, _flags(), _unknown_command)


def _flags() -> Iterator[Flag]:
    for field in FIELDS:
        yield of_field(field, f"{field.description} ({', '.join(filter(None, (field.variable, default_text(field))))})")


def _unknown_command(word: str) -> Diagnostic:
    nearest = meant(word)
    hint = f"did you mean {nearest}?" if nearest else "--help lists all of them"
    return Diagnostic("", f"unknown command {quoted(word)}; {hint}")
