"""The command line of DaemonSet mode."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from kube_node_ready import version
from kube_node_ready.checks.settings import SettingsError
from kube_node_ready.daemonset.settings import default, nearest
from kube_node_ready.daemonset.table import SETTINGS
from kube_node_ready.verbs import VERBS

_DESCRIPTION = """\
Keeps workloads off a new Kubernetes node until the node has proved that its network works.

Without a verb this is DaemonSet mode: it verifies the node it runs on, opens its gate, and waits to be removed
(--mode=once) or goes on checking (--mode=continuous). docs/ARCHITECTURE_DAEMONSET.md tells more.

With a verb it is for people; `kube-node-ready VERB --help` tells more, and so does docs/cli.md:

{}

The controller is kube-node-ready-controller; what it runs on each node is kube-node-ready-worker.
"""
_EPILOG = "Exit codes: 0 stopped by a signal (dry run: nothing failed), 1 dry run: a check failed, 2 wrong settings, \
3 no way to Kubernetes, 4 not a pod on that node: nothing was changed, 10 something unexpected."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """As every other mistake in the settings."""
        raise SettingsError([message.removeprefix("argument ")])


def parser() -> argparse.ArgumentParser:
    made = _Parser(
        prog="kube-node-ready",
        usage="%(prog)s [VERB] [flags]",
        description=_DESCRIPTION.format("\n".join(f"  {verb:<12}{about}" for verb, about in VERBS.items())),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    version.add_flag(made)
    flags = made.add_argument_group("flags", "Each wins over its environment variable.")
    for setting in SETTINGS:
        text = f"{setting.about} ({', '.join(filter(None, (setting.variable, default(setting))))})"
        if setting.is_switch:
            flags.add_argument(f"--{setting.flag}", nargs="?", const="true", metavar="true|false", help=text)
        else:
            flags.add_argument(f"--{setting.flag}", metavar=setting.flag.rpartition("-")[2].upper(), help=text)
    return made


def parse(words: Sequence[str]) -> dict[str, str]:
    """What was given, by flag. A SettingsError names what is unknown, and what was probably meant."""
    known, rest = parser().parse_known_args(words)
    if rest:
        raise SettingsError([_unknown(rest[0])])
    return {name.replace("_", "-"): value for name, value in vars(known).items() if value is not None}


def _unknown(word: str) -> str:
    name, right = word.partition("=")[0], [f"--{setting.flag}" for setting in SETTINGS]
    if name.startswith("-"):
        near = nearest(name, [*right, "--help", "--version"])
        return f"the flag {name} is unknown; " + (f"did you mean {near}?" if near else "--help lists all of them")
    near = nearest(name, VERBS)
    return f"{name!r} is no verb; " + (f"did you mean {near}?" if near else f"there is {', '.join(VERBS)}")
