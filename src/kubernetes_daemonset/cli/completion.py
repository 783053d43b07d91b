"""Complete the command line in bash, zsh and fish, with click's scripts."""

import os
import sys
from typing import Final

from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from kubernetes_daemonset.cli import exit_codes
from kubernetes_daemonset.cli.commands import program

VARIABLE: Final = "_KUBERNETES_DAEMONSET_COMPLETE"
"""What a shell's script passes: the shell, and that it wants the words that can come next."""
_PROGRAM: Final = "kubernetes-daemonset"


class _Bash(BashComplete):
    def source(self) -> str:
        """Without running bash to find out its version: the script can be printed on another machine."""
        return ShellComplete.source(self)


_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


def script(shell: str) -> str:
    return _SHELLS[shell](program, {}, _PROGRAM, VARIABLE).source()


def answer() -> int:
    """Print what can replace the last word."""
    shell = os.environ[VARIABLE].removesuffix("_complete")
    if shell not in _SHELLS or not {"COMP_WORDS", "COMP_CWORD"} <= os.environ.keys():
        return exit_codes.BAD_INPUT
    sys.stdout.write(f"{_SHELLS[shell](program, {}, _PROGRAM, VARIABLE).complete()}\n")
    return exit_codes.OK
