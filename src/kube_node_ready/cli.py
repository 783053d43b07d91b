"""argv -> role. The roles arrive one by one; for now the command can only say which version it is."""

import argparse
import sys
from collections.abc import Sequence

from kube_node_ready import __version__


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="kube-node-ready",
        description="Keeps workloads off a new Kubernetes node until the node has proved that its network works.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.parse_args(argv)
    parser.print_help(sys.stderr)
    sys.exit(2)
