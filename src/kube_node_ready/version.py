"""Describe the build: version, commit and date. Imported where arguments are parsed, so not by a worker in its pod."""

import argparse
import sys

from kube_node_ready import __built__, __commit__, __version__


def describe(version: str = __version__, commit: str = __commit__, built: str = __built__) -> str:
    """`1.0.0-alpha.1 (commit 1a2b3c4, built 2026-11-16T04:20:20Z)`, or `1.0.0-alpha.1 (from source)`."""
    known = {"commit": commit, "built": built}
    facts = ", ".join(f"{what} {value}" for what, value in known.items() if value)
    return f"{version} ({facts or 'from source'})"


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--version", action=_VersionAction, nargs=0, default=argparse.SUPPRESS, help="print the version and exit"
    )


class _VersionAction(argparse.Action):
    """One line, however narrow the terminal: argparse's own action would break it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"{parser.prog} {describe()}\n")
        parser.exit()
