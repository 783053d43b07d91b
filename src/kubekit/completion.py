"""Complete command lines in bash, zsh and fish, with click's scripts.

Imported by the command lines only, because click is an extra of the distribution.
"""

import os

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete


class PrintableComplete(ShellComplete):
    """Offer only printable words: the shells insert them as they are."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        completions = super().get_completions(args, incomplete)
        return [item for item in completions if item.type != "plain" or str(item.value).isprintable()]


class _WholeWords(PrintableComplete):
    """For shells that replace `--output=y` as one word, where click offers only what follows the sign."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        completions = super().get_completions(args, incomplete)
        option, sign, _ = incomplete.partition("=")
        if not (sign and option.startswith("--")):
            return completions
        return [
            CompletionItem(f"{option}={item.value}", item.type, item.help)
            for item in completions
            if item.type == "plain"
        ]


class _Bash(PrintableComplete, BashComplete):
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
SHELLS = tuple(_SHELLS)


def script(shell: str, program: click.Command, name: str, variable: str) -> str:
    """Return the script for a shell. It calls the program with the variable set."""
    return _SHELLS[shell](program, {}, name, variable).source()


def answer(program: click.Command, name: str, variable: str) -> str | None:
    """Return what can replace the last word, or None if the variable was not set by one of our scripts."""
    shell = os.environ[variable].removesuffix("_complete")
    if shell not in _SHELLS or not {"COMP_WORDS", "COMP_CWORD"} <= os.environ.keys():
        return None
    return _SHELLS[shell](program, {}, name, variable).complete()
