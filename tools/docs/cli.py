"""Writes docs/cli.md from what the code says.

python -m kube_node_ready.console.reference > docs/cli.md
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any, get_type_hints

from msgspec import Struct, inspect
from msgspec.structs import fields

from kube_node_ready.console import sample, told
from kube_node_ready.console.parser import parser, verbs
from kube_node_ready.verbs import VERBS

_PROGRAM = "kube-node-ready"
_INTRODUCTION = """\
# The command line

<!-- Written by `python -m kube_node_ready.console.reference > docs/cli.md`; change the code, not this page. -->

`kube-node-ready VERB`, or `kubectl node-ready VERB`. It works with your kubeconfig and your rights, from any machine.
What it tells of a node is decided by the controller's own code, from the same objects and from the configuration that
is installed in the cluster, so it is what the controller thinks.

`make build` makes `bin/kube-node-ready`, which needs a Python and nothing else; put it into your PATH, and beside it a
link for kubectl: `ln -s kube-node-ready kubectl-node_ready`. (From a Python package, both are there.) Without a verb,
`kube-node-ready` is [DaemonSet mode](ARCHITECTURE_DAEMONSET.md).

Colours and cut lines are for terminals (without colours if `NO_COLOR` is set); in a pipe everything is plain and whole,
and a live view is one line for each change. Notes go to stderr. A right that is missing is named:

    kube-node-ready: you may not list nodes: ask for the verb "list" on "nodes"

| verb | |
|---|---|
"""
_RIGHTS = """\
## Rights

| to | needed | if you may not |
|---|---|---|
| `status`, `explain`, `verify` | `list` on nodes; to watch, `watch` as well | it ends with exit code 3 |
| have the configuration counted in | `list` on configmaps where it is installed | the defaults are assumed |
| see running workers | `list` (`watch`) on pods there | only what is on record is told |
| see what may be removed | `get` (`watch`) on the ConfigMap `kube-node-ready-removals` there | it is called unknown |
| see Events | `list` on events in `default` | there are none |
| see whether a controller is at work | `get` on its Lease | it is not told |
| `verify`, `pause NODE`, `resume NODE` | `patch` on nodes | it ends with exit code 3 |
| `pause`, `resume` | `patch` and `create` on configmaps there | it ends with exit code 3 |

## Completion in the shell

    kube-node-ready completion bash > /etc/bash_completion.d/kube-node-ready
    kube-node-ready completion zsh > ~/.zfunc/_kube-node-ready      # with fpath+=~/.zfunc before compinit
    kube-node-ready completion fish > ~/.config/fish/completions/kube-node-ready.fish

kubectl asks a program called `kubectl_complete-node_ready`, beside `kubectl-node_ready`. The Python package brings it;
beside an executable of your own, this will do:

    printf '#!/bin/sh\\nexec kube-node-ready __complete "$@"\\n' > kubectl_complete-node_ready
    chmod +x kubectl_complete-node_ready
"""
_DATA = """\
## Data for scripts

`status -o json` and `-o yaml` are a list of objects, one a node, in the order of the table. Keys are added in later
versions; none changes its meaning.

    kube-node-ready status -o json | jq -r '.[] | select(.verified | not) | .name'

"""


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    made = verbs(parser(_PROGRAM))
    return "\n".join(
        [
            _INTRODUCTION + "".join(f"| [{name}](#{name}) | {about} |\n" for name, about in VERBS.items()),
            *(_section(name, made[name]) for name in VERBS),
            _DATA + "".join(_shape(told.Told, "")),
            _RIGHTS,
        ]
    )


def _section(name: str, made: argparse.ArgumentParser) -> str:
    inner = verbs(made)
    if inner:
        return "\n".join(_section(f"{name} {action}", one) for action, one in inner.items()).replace(
            f"## {name} check", f"## {name}", 1
        )
    shown = _explained() if name == "explain" else ""
    return f"## {name}\n\n{made.description}\n\n{''.join(_arguments(made))}\n{_indented(made.epilog or '')}{shown}"


def _explained() -> str:
    lines = [f"    {line}".rstrip() for line in sample.explained()]
    return "\n".join(["\nIt reads like this:\n", *lines, ""])


def _arguments(made: argparse.ArgumentParser) -> Iterator[str]:
    yield "| | |\n|---|---|\n"
    for action in made._actions:  # noqa: SLF001  argparse has no public list of them
        if action.dest == "help":
            continue
        choices = f"one of {', '.join(f'`{choice}`' for choice in action.choices)}" if action.choices else ""
        about = (action.help or "").replace("%(default)s", str(action.default))
        names = [f"{option} {action.metavar}" if action.metavar else option for option in action.option_strings]
        shown = ", ".join(f"`{name}`" for name in names or [str(action.metavar or action.dest)])
        yield f"| {shown} | {'; '.join(filter(None, (about, choices)))} |\n"


def _indented(epilog: str) -> str:
    """Examples as code, exit codes as a sentence."""
    shown = "\n".join(f"  {line}" if line.startswith("  ") else line for line in epilog.splitlines())
    return shown.replace("examples:\n", "Examples:\n\n").replace("exit codes:", "Exit codes:") + "\n"


def _shape(kind: type[Struct], before: str) -> Iterator[str]:
    if not before:
        yield "| key | type | |\n|---|---|---|\n"
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        meta = hints[field.name].__metadata__[0]
        shown, inner = _type(inspect.type_info(field.type))
        yield f"| `{before}{field.encode_name}` | {shown} | {meta.description} |\n"
        if inner:
            yield from _shape(inner, f"{before}{field.encode_name}{'[]' if shown == 'list' else ''}.")


def _type(kind: Any) -> tuple[str, type[Struct] | None]:  # noqa: ANN401  msgspec's many types of types
    if isinstance(kind, inspect.Metadata):
        return _type(kind.type)
    if isinstance(kind, inspect.UnionType):
        (first,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
        shown, inner = _type(first)
        return f"{shown} or null", inner
    if isinstance(kind, inspect.VarTupleType):
        return "list", _type(kind.item_type)[1]
    if isinstance(kind, inspect.StructType):
        return "object", kind.cls
    if isinstance(kind, inspect.StrType):
        return "text", None
    if isinstance(kind, inspect.BoolType):
        return "true or false", None
    return "time, RFC 3339" if isinstance(kind, inspect.DateTimeType) else "number", None


if __name__ == "__main__":
    main()
