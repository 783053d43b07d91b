"""Complete the command line: for shells with click's scripts, for kubectl with its own protocol."""

import os
import sys
from collections.abc import Sequence

from click.shell_completion import CompletionItem

from kube_node_ready.cli.program import program
from kube_node_ready.commands import COMPLETE_VARIABLE, PROGRAM
from kube_node_ready.exit_codes import ExitCode
from kubekit import completion

_FILES, _NO_FILES = ":0", ":4"
"""The last line for kubectl: whether file names are completed as well."""


class _Kubectl(completion.PrintableComplete):
    """kubectl runs `kubectl_complete-node_ready` with the words, of which the last can be incomplete."""

    name = "kubectl"

    def format_completion(self, item: CompletionItem) -> str:
        return str(item.value)


def answer(prog: str, words: Sequence[str]) -> int:
    """Print what can replace the last word. The shells' scripts pass the words in variables, kubectl as arguments."""
    if COMPLETE_VARIABLE not in os.environ:
        sys.stdout.write(_for_kubectl(prog, words))
        return ExitCode.OK
    words_for_shell = completion.answer(program, PROGRAM, COMPLETE_VARIABLE)
    if words_for_shell is None:
        return ExitCode.INVALID
    sys.stdout.write(f"{words_for_shell}\n")
    return ExitCode.OK


def _for_kubectl(prog: str, words: Sequence[str]) -> str:
    *args, incomplete = words or [""]
    completions = _Kubectl(program, {}, prog, COMPLETE_VARIABLE).get_completions(args, incomplete)
    lines = [str(item.value) for item in completions if item.type == "plain"]
    wants_file = any(item.type == "file" for item in completions)
    return "".join(f"{line}\n" for line in (*lines, _FILES if wants_file else _NO_FILES))
