"""What can be said on the command line. Completion and docs/cli.md are made from this, so it is all there is to say."""

import argparse
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from kube_node_ready import version
from kube_node_ready.checks import table as checks
from kube_node_ready.verbs import VERBS

NODE, FILE = "NODE", "FILE"
"""Arguments that stand for a node and for a file: the shell completes them."""
SHELLS = ("bash", "zsh", "fish")
UNTIL = ("verified", "settled")
_EXITS = "2 a mistake on the command line, 3 no access to Kubernetes"
_ALWAYS = "10 a bug, 130 interrupted"
_DURATION = re.compile(r"(?=.)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")
_HOUR, _MINUTE = 3600, 60
_WIDTH = 100
_AS_WRITTEN = argparse.RawDescriptionHelpFormatter


def parser(prog: str) -> argparse.ArgumentParser:
    """`prog` is how we were called: `kube-node-ready` or `kubectl node-ready`."""
    about = "Tells what nodes wait for, and has them verified again. It uses your kubeconfig and your rights."
    examples = ("status", "explain node-1", "verify node-1 --wait", "VERB --help")
    made = argparse.ArgumentParser(
        prog=prog, description=about, epilog=_told(prog, examples), formatter_class=_AS_WRITTEN, allow_abbrev=False
    )
    version.add_flag(made)
    those = made.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    for name, add in _ADD.items():
        verb = those.add_parser(name, help=VERBS[name], formatter_class=_AS_WRITTEN, allow_abbrev=False)
        add(verb, f"{prog} {name}")
    return made


def parsed(prog: str, words: Sequence[str]) -> argparse.Namespace:
    """What was said; a mistake ends us, with the usage of the verb that it was made in."""
    made = parser(prog)
    _check_verbs(made, words)
    options, unknown = made.parse_known_args(words)
    asked = _asked(made, options)
    if isinstance(getattr(options, "node", None), list):  # argparse takes only those that stand together
        options.node += [word for word in unknown if not word.startswith("-")]
        unknown = [word for word in unknown if word.startswith("-")]
    if unknown:
        asked.error(_unknown(unknown[0], asked))
    if options.verb is None:
        made.error(f"a verb is missing: {', '.join(VERBS)}")
    return options


def _check_verbs(made: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Left to itself, argparse would list them all and not name the one that was meant."""
    for word in words:
        known = verbs(made)
        if not known or word.startswith("-"):
            return
        if word not in known:
            made.error(f"{word!r} is no verb; " + (_guess(word, known) or f"there is {', '.join(known)}"))
        made = known[word]


def _asked(made: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the verb, and of the verb's own action."""
    for name in (options.verb, getattr(options, "action", None)):
        made = verbs(made).get(name or "", made)
    return made


def _unknown(word: str, asked: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"{word!r} is one word too many"
    flag = word.partition("=")[0]
    known = [option for action in asked._actions for option in action.option_strings]  # noqa: SLF001  as in `verbs`
    guess = _guess(flag, known)
    return f"there is no {flag}" + (f"; {guess}" if guess else "")


def _guess(word: str, known: Iterable[str]) -> str:
    from kube_node_ready.configuration.spelling import similar  # noqa: PLC0415  completion does without

    near = similar(word, known)
    return f"did you mean {near}?" if near else ""


def seconds(text: str) -> float:
    """`120s`, `2m`, `1h30m` or plain seconds."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time; 120s, 2m and 1h30m are")
    hours, minutes, rest = (float(part or 0) for part in found.groups())
    return hours * _HOUR + minutes * _MINUTE + rest


def verbs(made: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The verbs of a parser that has some."""
    for action in made._actions:  # noqa: SLF001  argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  as above
            return dict(action.choices)
    return {}


def _told(prog: str, examples: tuple[str, ...], exits: str = "", others: str = _EXITS) -> str:
    shown = "examples:\n" + "".join(f"  {prog} {example}".rstrip() + "\n" for example in examples)
    return shown + (f"\n{textwrap.fill(f'exit codes: {exits}, {others}, {_ALWAYS}.', _WIDTH)}" if exits else "")


def _add_place(made: argparse.ArgumentParser) -> None:
    place = made.add_argument_group("which cluster")
    place.add_argument(
        "-n", "--namespace", default="kube-system", help="where kube-node-ready is installed (%(default)s)"
    )
    place.add_argument(
        "--kubeconfig", metavar=FILE, type=Path, help="instead of a pod's ServiceAccount, KUBECONFIG or ~/.kube/config"
    )
    place.add_argument("--context", metavar="NAME", help="instead of the kubeconfig's current one")


def _status(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = (
        "What each node is waiting for: those that need attention first. A check's column has the milliseconds\n"
        "it took in the last attempt that ended (dim while another runs); !10003 is one that failed."
    )
    made.epilog = _told(
        prog,
        ("", "node-1 node-2 -o wide", "--gated -o json", "--watch", "--until verified --timeout 120s"),
        "0 no node that was asked for has anything to prove or fails, 1 one does (with --until: at its end, or if it\n"
        "is named and nobody is going to verify it)",
    )
    made.add_argument("node", nargs="*", metavar=NODE, help="these only")
    made.add_argument("--gated", action="store_true", help="only nodes that are gated, or open with something to prove")
    made.add_argument("-o", "--output", choices=("table", "wide", "json", "yaml"), default="table")
    made.add_argument("-w", "--watch", action="store_true", help="go on showing it; in a pipe, a line for each change")
    made.add_argument(
        "--until", choices=UNTIL, help="watch until all of them are verified, or until each has passed or failed"
    )
    made.add_argument("--timeout", metavar="TIME", type=seconds, help="how long to watch at most: 120s, 2m, 1h30m")
    _add_place(made)


def _explain(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = (
        "The whole story of one node: its gate, its attempts, each check, what happens next and when, whether it\n"
        "would be removed, its Events, and where to look further."
    )
    made.epilog = _told(prog, ("node-1",), "0 it is open and has nothing to prove, 1 it is gated, unproved or failing")
    made.add_argument("node", metavar=NODE, help="which one")
    _add_place(made)


def _verify(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = (
        "Has nodes verified again, now: takes the label off and asks for a new proof, in one patch. A node that is\n"
        "open stays open meanwhile, and with the controller even if it fails: no taint is touched. What failed before\n"
        "is forgotten, so a node that was given up is tried at once. One with a worker at work is left to it."
    )
    made.epilog = _told(
        prog,
        ("node-1", "node-1 node-2 --wait --timeout 2m", "--all-failed"),
        "0 asked for (with --wait: all passed), 1 one could not be asked (with --wait: did not pass)",
    )
    made.add_argument("node", nargs="*", metavar=NODE, help="which ones")
    made.add_argument("--all-failed", action="store_true", help="all nodes whose last attempt failed")
    made.add_argument("--wait", action="store_true", help="show them until there is a verdict")
    made.add_argument("--timeout", metavar="TIME", type=seconds, help="how long to wait at most (10m)")
    _add_place(made)


def _check(made: argparse.ArgumentParser, prog: str) -> None:
    checks.describe(made)
    made.epilog = f"{made.epilog}\n\n{_told(prog, ('', '--dry-run', '-o json'))}"


def _pause(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = (
        "Stops the removal of failed nodes: of all of them, by an annotation on the ledger of removals, or of the\n"
        "nodes that are named, by the same annotation there. Verification goes on."
    )
    made.epilog = _told(prog, ("", "node-1 node-2"), "0 it is paused, 1 a node is not there")
    made.add_argument("node", nargs="*", metavar=NODE, help="these only; without any, no node is removed")
    _add_place(made)


def _resume(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = "Ends a pause of all nodes' removal, or that of the nodes that are named."
    made.epilog = _told(prog, ("", "node-1 node-2"), "0 it is not paused, 1 a node is not there")
    made.add_argument("node", nargs="*", metavar=NODE, help="these only; without any, the pause of all nodes ends")
    _add_place(made)


def _config(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = "Reads a configuration file as the controller or a worker would, and tells every mistake."
    actions = made.add_subparsers(metavar="ACTION", dest="action", required=True)
    check = actions.add_parser(
        "check", help="tell every mistake in a file", formatter_class=_AS_WRITTEN, allow_abbrev=False
    )
    check.description = (
        f"{made.description}\nWhich of the two it is for is seen by its keys. The file alone counts: no environment\n"
        "variables, no flags, no cluster."
    )
    examples = ("config.yaml", "--worker worker-config.yaml")
    check.epilog = _told(f"{prog} check", examples, "0 it is fine", "2 it has mistakes")
    check.add_argument("file", metavar=FILE, type=Path, help="in YAML or JSON")
    check.add_argument("--worker", action="store_true", help="it is a worker's, whatever it looks like")


def _completion(made: argparse.ArgumentParser, prog: str) -> None:
    made.description = (
        "A script that lets the shell complete verbs, options and names of nodes. kubectl needs none: it finds\n"
        "kubectl_complete-node_ready beside kubectl-node_ready."
    )
    made.epilog = _told(
        prog, ("bash > /etc/bash_completion.d/kube-node-ready", "zsh > ~/.zfunc/_kube-node-ready", "fish | source")
    )
    made.add_argument("shell", choices=SHELLS, help="which one")


_ADD = {
    "status": _status,
    "explain": _explain,
    "verify": _verify,
    "check": _check,
    "pause": _pause,
    "resume": _resume,
    "config": _config,
    "completion": _completion,
}
