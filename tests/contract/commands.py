"""Programs, verbs, flags, arguments, environment variables and exit codes, as `--help` shows them."""

import itertools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.contract.golden import Facts
from tests.contract.programs import run, run_all
from tests.contract.shapes import prefixed

PROGRAMS: Final = ("kube-node-ready", "kube-node-ready-controller", "kube-node-ready-worker", "kubernetes-daemonset")
PLUGIN: Final = "kubectl-node_ready"
_BOX: Final = re.compile("[│╭╮╰╯─]")
_NAMES: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_CHOICES: Final = re.compile(r"[{\[]([\w.]+(?:[,|][\w.]+)+)[}\]]")
_DECLARES: Final = re.compile(r"-.*|[{\[<].*[}\]>]|[A-Z_]+")
_CODES: Final = re.compile(r"(?:^ *|[:,] +|  +|\n *)(\d{1,3})\s+(?=[a-z])")
_VERBS: Final = re.compile(r"^ {2,4}([a-z]+) {2,}\S", re.MULTILINE)
_VARIABLE: Final = re.compile(r"\(([A-Z][A-Z0-9_]+)(?:, (.+?))?\)$")
_IMPOSSIBLE: Final = "? ?"


class Option(NamedTuple):
    names: str
    takes: str
    """Its choices, `a value`, or `nothing`."""
    about: str


def commands() -> Facts:
    """The flags and arguments of every program and verb, and the exit codes that its help promises."""
    found = {f"{PLUGIN} verbs": " ".join(sorted(verbs(run(PLUGIN, "--help").stdout)))}
    for command, text in helps().items():
        found |= prefixed(command, facts_of(command, text))
    return found


def helps() -> dict[str, str]:
    """The help of every program, of every verb, and of every verb's verb."""
    found: dict[str, str] = {}
    level = [[program] for program in PROGRAMS]
    while level:
        done = run_all([[*words, "--help"] for words in level])
        found |= {" ".join(words): each.stdout for words, each in zip(level, done, strict=True)}
        level = [[*words, verb] for words in level for verb in verbs(found[" ".join(words)])]
    return found


def facts_of(command: str, text: str) -> Facts:
    """Return the facts of one help text. Its layout does not matter: argparse, click and rich are read alike."""
    plain = _BOX.sub(" ", text)
    found = {option.names: option.takes for option in options(plain)}
    found["arguments"] = arguments(plain, command) or "none"
    return found | ({"exit codes": " ".join(exit_codes(plain))} if "exit codes:" in plain.lower() else {})


def environment() -> Facts:
    """Variables of DaemonSet mode and of the worker. A checked one is named if its value is impossible."""
    agent = dict(variables(run("kube-node-ready", "--help").stdout))
    worker = re.findall(r"\b(?:[A-Z][A-Z0-9]*_[A-Z0-9_]+|KUBECONFIG)\b", run("kube-node-ready-worker", "--help").stdout)
    impossible = {name: f"{name}={_IMPOSSIBLE}" for name in (*agent, *worker)}
    # DaemonSet mode reports all mistakes, the worker the first one.
    reported = run_all([[*map(impossible.__getitem__, agent), "kube-node-ready"]])[0].stderr
    each = run_all([["NODE_NAME=node-1", impossible[name], "kube-node-ready-worker"] for name in worker])
    first = {name: done.stdout for name, done in zip(worker, each, strict=True)}
    return {
        **{f"kube-node-ready {name}": what + "; checked" * (name in reported) for name, what in agent.items()},
        **{f"kube-node-ready-worker {name}": "checked" if name in first[name] else "read" for name in worker},
    }


def verbs(text: str) -> list[str]:
    """The verbs that a help lists, if there are any."""
    return _VERBS.findall(text) if re.search(r"\b(VERB|ACTION|COMMAND)\b", usage(text)) else []


def usage(text: str) -> str:
    return text.strip().partition("\n\n")[0]


def options(text: str) -> Iterator[Option]:
    """Each option: a line that begins with a dash, and the deeper ones that follow it."""
    for found in re.finditer(r"(?m)^( +)(-.*(?:\n\1 +(?!-).+)*)", text):
        cells = re.split(r"\n +|  +", found[2].strip())
        declared = " ".join(itertools.takewhile(_DECLARES.fullmatch, cells))
        about = " ".join(itertools.dropwhile(_DECLARES.fullmatch, cells))
        names = sorted(dict.fromkeys(_NAMES.findall(declared)), key=len)
        choices = _CHOICES.search(declared)
        value = "a value" if _NAMES.sub("", declared).strip(", /") else "nothing"
        takes = choices[1].replace(",", "|") if choices else value
        yield Option(", ".join(names), takes, about)


def arguments(text: str, command: str) -> str:
    """What the usage names besides options: `NODE` once, `[NODE]` at most once, `[NODE...]` any number of times."""
    line = " ".join(usage(text).split()).partition(": ")[2].removeprefix(command)
    without_options = re.sub(r"\[-(?:[^\[\]]|\[[^\]]*\])*\]|\[OPTIONS\]|(?<!\S)-\S+ \S+", "", line)
    return re.sub(r"\[(\w+)(?: \.\.\.\]|\]\.\.\.)", r"[\1...]", " ".join(without_options.split()))


def exit_codes(text: str) -> list[str]:
    return _CODES.findall(re.split("exit codes:", text, maxsplit=1, flags=re.IGNORECASE)[-1])


def variables(text: str) -> Iterator[tuple[str, str]]:
    """Environment variables that options name at the end of their help, with their default."""
    for option in options(text):
        if found := _VARIABLE.search(option.about):
            yield found[1], f"{option.names}, default {found[2]}" if found[2] else option.names
