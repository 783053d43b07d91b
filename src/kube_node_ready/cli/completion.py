"""What the shell offers while someone types. The scripts only ask; `candidates` answers, from the parser itself."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kube_node_ready.console.parser import FILE, NODE, parser, verbs
from kube_node_ready.verbs import COMPLETE

FILES, NO_FILES = ":0", ":4"
"""The last line of an answer, in kubectl's own words: whether names of files are right, too."""
_PROGRAM = "kube-node-ready"

_BASH = """\
# kube-node-ready completion bash > /etc/bash_completion.d/kube-node-ready
_kube_node_ready() {{
    local found last
    mapfile -t found < <({program} {complete} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)
    last=$(( ${{#found[@]}} - 1 ))
    (( last >= 0 )) || return 0
    if [[ ${{found[last]}} == "{files}" ]]; then
        compopt -o default 2>/dev/null
    fi
    COMPREPLY=("${{found[@]:0:last}}")
}}
complete -F _kube_node_ready {program}
"""
_ZSH = """\
#compdef {program}
# kube-node-ready completion zsh > ~/.zfunc/_kube-node-ready, with ~/.zfunc in fpath
_kube_node_ready() {{
    local -a found
    found=("${{(@f)$({program} {complete} "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
    compset -P '--*='
    [[ ${{found[-1]}} == "{files}" ]] && _files
    found=("${{(@)found[1,-2]}}")
    (( ${{#found}} )) && compadd -a found
}}
if [[ ${{funcstack[1]}} == _kube-node-ready ]]; then _kube_node_ready "$@"; else compdef _kube_node_ready {program}; fi
"""
_FISH = """\
# kube-node-ready completion fish > ~/.config/fish/completions/kube-node-ready.fish
function __kube_node_ready
    set -l words (commandline -opc) (commandline -ct)
    set -l found ({program} {complete} $words[2..-1] 2>/dev/null)
    set -l option (string match -r '^--[^=]+=' -- (commandline -ct); or echo '')
    if test "$found[-1]" = "{files}"
        printf '%s\\n' $option(__fish_complete_path (string replace -- "$option" '' (commandline -ct)))
    end
    printf '%s\\n' $option$found[1..-2]
end
complete -c {program} -f -a '(__kube_node_ready)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def script(shell: str) -> str:
    return _SCRIPTS[shell].format(program=_PROGRAM, complete=COMPLETE, files=FILES)


def complete(prog: str, words: Sequence[str]) -> int:
    """Prints what could stand in the place of the last word."""
    offered, files = candidates(parser(prog), words, _nodes(words))
    sys.stdout.writelines(f"{one}\n" for one in offered if one.isprintable())
    sys.stdout.write(f"{FILES if files else NO_FILES}\n")
    return 0


def candidates(
    made: argparse.ArgumentParser, words: Sequence[str], nodes: Callable[[], Iterable[str]]
) -> tuple[list[str], bool]:
    """What could be the last of these words, which may be empty or half a word; and whether a file could."""
    *before, begun = _without_signs(words) or [""]
    taken: list[str] = []
    valued: argparse.Action | None = None
    for word in before:
        if valued is not None:
            valued = None
        elif word.startswith("-"):
            action = _options(made).get(word.partition("=")[0])
            valued = action if action is not None and _takes_value(action) and "=" not in word else None
            taken.append(word.partition("=")[0])
        elif (inner := verbs(made).get(word)) is not None:
            made, taken = inner, []
        else:
            taken.append(word)
    if valued is not None:
        return _of_value(valued, begun)
    if begun.startswith("--") and "=" in begun:  # a word of its own everywhere but in bash, which adds the rest itself
        option, _, value = begun.partition("=")
        return _of_value(_options(made).get(option), value)
    if begun.startswith("-"):
        return _starting(begun, (option for option in _options(made) if option not in taken)), False
    return _positional(made, begun, taken, nodes)


def _of_value(action: argparse.Action | None, begun: str) -> tuple[list[str], bool]:
    """What an option's value could be; the scripts put the option before it."""
    return (_starting(begun, action.choices or ()), action.metavar == FILE) if action else ([], False)


def _without_signs(words: Sequence[str]) -> list[str]:
    """To bash, the sign in --output=json is a word of its own."""
    last = [words[-1].removeprefix("=")] if words else []
    return [word for word in words[:-1] if word != "="] + last


def _positional(
    made: argparse.ArgumentParser, begun: str, taken: Sequence[str], nodes: Callable[[], Iterable[str]]
) -> tuple[list[str], bool]:
    if inner := verbs(made):
        return _starting(begun, inner), False
    given = sum(not word.startswith("-") for word in taken)
    wanted = [action for action in made._actions if not action.option_strings]  # noqa: SLF001  argparse has no public list
    action = next((one for at, one in enumerate(wanted) if one.nargs == "*" or at == given), None)
    if action is None:
        return [], False
    if action.metavar == NODE:
        return _starting(begun, (name for name in nodes() if name not in taken)), False
    return _starting(begun, action.choices or ()), action.metavar == FILE


def _options(made: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {option: action for action in made._actions for option in action.option_strings}  # noqa: SLF001  as above


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _starting(begun: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(begun)]


def _nodes(words: Sequence[str]) -> Callable[[], Iterable[str]]:
    """Asked only where a node could stand, of the cluster that these words name."""

    def ask() -> Iterable[str]:
        from kube_node_ready.console import names  # noqa: PLC0415  it loads the client

        place = argparse.ArgumentParser(add_help=False, exit_on_error=False)
        place.add_argument("--kubeconfig", type=Path)
        place.add_argument("--context")
        try:
            found, _ = place.parse_known_args(words[:-1])
        except argparse.ArgumentError:
            return ()
        return names.of_nodes(found.kubeconfig, found.context)

    return ask
