"""Which build this is, in words. Imported where there are arguments to read, so not by a worker in its pod."""

import argparse
import sys

from kube_node_ready import __built__, __commit__, __version__


def told(version: str = __version__, commit: str = __commit__, built: str = __built__) -> str:
    """`0.1.0 (commit 1a2b3c4, built 2026-11-16T04:20:20Z)`, or `0.1.0 (from source)`."""
    known = {"commit": commit, "built": built}
    facts = ", ".join(f"{what} {value}" for what, value in known.items() if value)
    return f"{version} ({facts or 'from source'})"


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action=_Tell, nargs=0, default=argparse.SUPPRESS, help="say it, and exit")


class _Tell(argparse.Action):
    """One line, however narrow the terminal: argparse's own action would break it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"{parser.prog} {told()}\n")
        parser.exit()
