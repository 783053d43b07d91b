"""argv -> verb. The verbs arrive one by one; for now the command can only say which version it is."""

import argparse
import sys
from collections.abc import Sequence

from kubernetes_daemonset import __version__


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="kubernetes-daemonset",
        description="Validates, renders and deploys node agents declared as KubernetesDaemonSet manifests.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.parse_args(argv)
    parser.print_help(sys.stderr)
    sys.exit(2)
