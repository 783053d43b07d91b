"""Parse the command line of DaemonSet mode."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from kube_node_ready import version
from kube_node_ready.commands import VERBS, meant
from kube_node_ready.settings.agent import FIELDS, default_text
from kube_node_ready.settings.readers import Switch
from kubekit.diagnostics import Diagnostic, DiagnosticsError
from kubekit.suggestions import did_you_mean

_DESCRIPTION = """\
Keeps workloads off a new Kubernetes node until the node has proved that its network works.

Without a command, this is DaemonSet mode: it verifies the node it runs on, opens its gate, and waits to be removed
(--mode=once) or continues to check the node (--mode=continuous). See docs/ARCHITECTURE_DAEMONSET.md.

The commands are for people. See `kube-node-ready help COMMAND` and docs/cli.md:

{}

The controller is kube-node-ready-controller, and kube-node-ready-worker is what it runs on each node.
"""
_EPILOG = "Exit codes: 0 stopped by a signal (dry run: the checks that ran passed), 1 dry run: a check failed, 2 the \
settings are invalid, 3 the API server is not reachable, 4 nothing was proved and nothing was changed: not a pod on \
that node, or (dry run) no check could run, 10 unexpected error."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """As every other mistake in the settings."""
        raise DiagnosticsError([Diagnostic("", message.removeprefix("argument "))])


def parser() -> argparse.ArgumentParser:
    made = _Parser(
        prog="kube-node-ready",
        usage="%(prog)s [COMMAND] [flags]",
        description=_DESCRIPTION.format("\n".join(f"  {verb:<12}{about}" for verb, about in VERBS.items())),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    version.add_flag(made)
    flags = made.add_argument_group("flags", "A flag overrides its environment variable.")
    for field in FIELDS:
        text = f"{field.description} ({', '.join(filter(None, (field.variable, default_text(field))))})"
        if isinstance(field.reader, Switch):
            flags.add_argument(f"--{field.flag}", nargs="?", const="true", metavar="true|false", help=text)
        else:
            flags.add_argument(f"--{field.flag}", metavar=field.flag.rpartition("-")[2].upper(), help=text)
    return made


def parse(words: Sequence[str]) -> dict[str, str]:
    """Return the values by flag. A DiagnosticsError names what is unknown, and what was probably meant."""
    known, rest = parser().parse_known_args(words)
    if rest:
        raise DiagnosticsError([_unknown(rest[0])])
    return {name.replace("_", "-"): value for name, value in vars(known).items() if value is not None}


def _unknown(word: str) -> Diagnostic:
    name = word.partition("=")[0]
    if name.startswith("-"):
        near = did_you_mean(name, [*(f"--{field.flag}" for field in FIELDS), "--help", "--version"])
        hint = f"did you mean {near}?" if near else "--help lists all of them"
        return Diagnostic(name, f"unknown flag; {hint}")
    nearest = meant(name)
    hint = f"did you mean {nearest}?" if nearest else "--help lists all of them"
    return Diagnostic("", f'unknown command "{name}"; {hint}')
