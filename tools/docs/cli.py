"""Write docs/cli.md from the code.

python -m tools.docs.cli > docs/cli.md
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import click
from msgspec import Struct, inspect
from msgspec.structs import fields

from kube_node_ready.cli import status_json
from kube_node_ready.cli.program import Command, program
from kube_node_ready.commands import VERBS
from tools.docs import cli_sample

_PROGRAM = "kube-node-ready"
_INTRODUCTION = """\
# The command line

<!-- Written by `python -m tools.docs.cli > docs/cli.md`; change the code, not this page. -->

This page is for cluster operators: it lists every command of `kube-node-ready`, which is also `kubectl node-ready`,
with options, exit codes and required permissions. The command line uses your [kubeconfig](reference/kubeconfig.md) and
your permissions, from any machine. It runs the controller's own decision code on the same objects and on the
configuration that is installed in the cluster, so both come to the same result.

`make build` makes `bin/kube-node-ready`, which needs only Python. Put it into your PATH, and beside it a link for
kubectl: `ln -s kube-node-ready kubectl-node_ready`. The Python package has both:
`pip install ".[cli]"` in a checkout.
The image has only the command `check`. Without a command, `kube-node-ready` is
[DaemonSet mode](ARCHITECTURE_DAEMONSET.md), or prints its help if you run it in a terminal without `NODE_NAME`.

Colors and truncated lines are for terminals, without colors if `NO_COLOR` is set. In a pipe, output is plain and
complete, and a live view prints one line per change. Notes go to stderr. A missing permission is named:

    kube-node-ready: you are not allowed to list nodes: ask for the verb "list" on "nodes"

| command | |
|---|---|
"""
_RIGHTS = """\
## Permissions

| to | needed | otherwise |
|---|---|---|
| `status`, `explain`, `verify` | `list` on nodes; to watch, `watch` as well | exit code 3 |
| read the installed configuration | `list` on configmaps where it is installed | the defaults are assumed |
| see running workers | `list` (`watch`) on pods there | only recorded results are shown |
| see what can be removed | `get` (`watch`) on the ConfigMap `kube-node-ready-removals` there | shown as unknown |
| see Events | `list` on events in `default` | Events are not shown |
| see whether a controller is running | `get` on its Lease | not shown |
| `verify`, `pause NODE`, `resume NODE` | `patch` on nodes; for `verify` also `get` | exit code 3 |
| `pause`, `resume` | `patch` and `create` on configmaps there | exit code 3 |

## Shell completion

    kube-node-ready completion bash > /etc/bash_completion.d/kube-node-ready
    kube-node-ready completion zsh > ~/.zfunc/_kube-node-ready      # with fpath+=~/.zfunc before compinit
    kube-node-ready completion fish > ~/.config/fish/completions/kube-node-ready.fish

The scripts need bash 4.4 or later, zsh or fish. kubectl runs a program called `kubectl_complete-node_ready`, beside
`kubectl-node_ready`. The Python package contains it. Beside an executable, create it:

    printf '#!/bin/sh\\nexec kube-node-ready __complete "$@"\\n' > kubectl_complete-node_ready
    chmod +x kubectl_complete-node_ready
"""
_DATA = """\
## Data for scripts

`status -o json` and `-o yaml` print a list of objects, one per node, in the order of the table. Later versions can add
keys, but do not change the meaning of existing ones.

    kube-node-ready status -o json | jq -r '.[] | select(.verified | not) | .name'

"""


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    return "\n".join(
        [
            _INTRODUCTION + "".join(f"| [{name}](#{name}) | {about} |\n" for name, about in VERBS.items()),
            *(_section(f"{_PROGRAM} {name}", program.commands[name]) for name in VERBS),
            _DATA + "".join(_shape(status_json.NodeStatusJson, "")),
            _RIGHTS,
        ]
    )


def _section(path: str, command: click.Command) -> str:
    if isinstance(command, click.Group):
        return "\n".join(_section(f"{path} {name}", inner) for name, inner in command.commands.items())
    assert isinstance(command, Command), "all of the program's commands are ours"
    name = path.removeprefix(f"{_PROGRAM} ")
    title = "config" if name == "config check" else name
    about = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    examples = "".join(f"    {path} {example}".rstrip() + "\n" for example in command.examples)
    parts = [
        f"## {title}",
        about,
        _arguments(command),
        f"Examples:\n\n{examples}" if examples else "",
        _exits(command.exits),
    ]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n" + (_explained() if name == "explain" else "")


def _exits(exits: Mapping[int, str]) -> str:
    return f"Exit codes: {', '.join(f'{code} {about}' for code, about in exits.items())}." if exits else ""


def _explained() -> str:
    lines = [f"    {line}".rstrip() for line in cli_sample.explained()]
    return "\n".join(["\nFor example:\n", *lines, ""])


def _arguments(command: click.Command) -> str:
    rows = [_argument(parameter) for parameter in command.params if parameter.name != "help"]
    return "| | |\n|---|---|\n" + "".join(rows) if rows else ""


def _argument(parameter: click.Parameter) -> str:
    about = str(getattr(parameter, "help", "") or "")
    if isinstance(parameter.type, click.Choice):
        about = f"{about} One of {', '.join(f'`{choice}`' for choice in parameter.type.choices)}."
    metavar = str(parameter.metavar or "")
    names = [f"{option} {metavar}".rstrip() for option in parameter.opts]
    if isinstance(parameter, click.Argument):
        names = [metavar or str(parameter.name).upper()]
    return f"| {', '.join(f'`{name}`' for name in names)} | {about} |\n"


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
        (first,) = (choice for choice in kind.types if not isinstance(choice, inspect.NoneType))
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
