"""Complete the command line, with click. Bash, zsh and fish use click's scripts; kubectl has its own protocol."""

import os
import sys
from collections.abc import Sequence

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from kube_node_ready.cli.program import program
from kube_node_ready.commands import COMPLETE_VARIABLE
from kube_node_ready.exit_codes import ExitCode

_PROGRAM = "kube-node-ready"
_FILES, _NO_FILES = ":0", ":4"
"""The last line for kubectl: whether file names are completed as well."""


class _Safe(ShellComplete):
    """Offer only printable words: the shells insert them as they are."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        return [item for item in found if item.type != "plain" or str(item.value).isprintable()]


class _WholeWords(_Safe):
    """For shells that replace `--output=y` as one word, where click offers only what follows the sign."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        option, sign, _ = incomplete.partition("=")
        if not (sign and option.startswith("--")):
            return found
        return [
            CompletionItem(f"{option}={item.value}", item.type, item.help) for item in found if item.type == "plain"
        ]


class _Bash(_Safe, BashComplete):
    def source(self) -> str:
        """Without running bash to find out its version: the script can be printed on another machine."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Bash passes the sign in `--output=json` as a word."""
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete


class _Zsh(_WholeWords, ZshComplete): ...


class _Fish(_WholeWords, FishComplete): ...


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


class _Kubectl(_Safe):
    """kubectl runs `kubectl_complete-node_ready` with the words, of which the last can be incomplete."""

    name = "kubectl"

    def format_completion(self, item: CompletionItem) -> str:
        return str(item.value)


def script(shell: str) -> str:
    return _made(_SHELLS[shell]).source()


def answer(prog: str, words: Sequence[str]) -> int:
    """Print what can replace the last word. The shells' scripts pass the words in variables, kubectl as arguments."""
    if COMPLETE_VARIABLE not in os.environ:
        sys.stdout.write(_for_kubectl(prog, words))
        return ExitCode.OK
    shell = os.environ[COMPLETE_VARIABLE].removesuffix("_complete")
    if shell not in _SHELLS or not {"COMP_WORDS", "COMP_CWORD"} <= os.environ.keys():
        return ExitCode.INVALID
    sys.stdout.write(f"{_made(_SHELLS[shell]).complete()}\n")
    return ExitCode.OK


def _made(kind: type[ShellComplete]) -> ShellComplete:
    return kind(program, {}, _PROGRAM, COMPLETE_VARIABLE)


def _for_kubectl(prog: str, words: Sequence[str]) -> str:
    *args, incomplete = words or [""]
    found = _Kubectl(program, {}, prog, COMPLETE_VARIABLE).get_completions(args, incomplete)
    lines = [str(item.value) for item in found if item.type == "plain"]
    wants_file = any(item.type == "file" for item in found)
    return "".join(f"{line}\n" for line in (*lines, _FILES if wants_file else _NO_FILES))
