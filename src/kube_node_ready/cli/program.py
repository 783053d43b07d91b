"""Define the command line. Help, shell completion and docs/cli.md are generated from it.

What runs a command is imported when it runs, to keep help and completion fast.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kube_node_ready import version
from kube_node_ready.cli import check_flags
from kube_node_ready.commands import CHANGING, COMPLETE_VARIABLE, PROGRAM, VERBS
from kube_node_ready.exit_codes import ExitCode
from kubekit import completion, durations, usage
from kubekit.usage import OneOf

if TYPE_CHECKING:
    from kube_node_ready.cli.selector import Selector

UNTIL = ("verified", "settled")
_PART_OF_A_LONG_UNIT = re.compile(r"\.\d+[hm]")
_WIDTH = 100
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH}
_INVALID: Mapping[int, str] = {ExitCode.INVALID: "the command line is invalid"}
_ALWAYS: Mapping[int, str] = {ExitCode.UNEXPECTED: "unexpected error", ExitCode.INTERRUPTED: "interrupted"}
_OF_CLUSTER: Mapping[int, str] = {
    **_INVALID,
    ExitCode.NO_ACCESS: "the API server is not reachable, or a permission is missing",
    **_ALWAYS,
}
F = TypeVar("F", bound=Callable[..., Any])


class Command(usage.Command):
    """A command with examples and exit codes below its help."""

    examples: Sequence[str] = ()
    exits: Mapping[int, str] = {}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {ctx.command_path} {example}".rstrip() + "\n")
        if self.exits:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(int(code)), about) for code, about in self.exits.items()])


class Group(usage.Group):
    command_class = Command
    changing = CHANGING


class Duration(click.ParamType[float]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401  click's
        parsed = seconds(str(value))
        if parsed is None:
            self.fail(f'"{value}" is invalid; expected a duration such as 120s, 2m or 1h30m', param, ctx)
        return parsed


class NodeSelector(click.ParamType["Selector"]):
    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Selector":  # noqa: ANN401  click's
        from kube_node_ready.cli import selector  # noqa: PLC0415  completion does without

        parsed = selector.parse(str(value))
        if parsed is None:
            self.fail(f'"{value}" is invalid; expected a label selector such as disk=ssd,!gpu', param, ctx)
        return parsed


def seconds(text: str) -> float | None:
    """`120s`, `2m`, `1h30m` or plain seconds. The unit of a last part in seconds can be left out, as in `1m30`."""
    whole = f"{text}s" if text[-1:].isdecimal() else text
    duration = durations.parse(whole, float, units=("h", "m", "s"), number=durations.UNICODE_NUMBER)
    return None if duration is None or _PART_OF_A_LONG_UNIT.search(text) else duration


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001  click's
    if wanted and not ctx.resilient_parsing:
        sys.stdout.write(f"{ctx.command_path} {version.describe()}\n")
        ctx.exit()


@click.group(cls=Group, context_settings=_SETTINGS)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def program() -> None:
    """Show what nodes wait for, and have them verified again, with your kubeconfig and your permissions."""


def _documented(examples: Sequence[str], exits: Mapping[int, str] | None = None) -> Callable[[Any], Any]:
    def add(command: Any) -> Any:  # noqa: ANN401  click's decorators return one of many types
        command.examples, command.exits = examples, exits or {}
        return command

    return add


def _complete_nodes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from kube_node_ready.cli import node_names  # noqa: PLC0415  it loads the client

    chosen = ctx.params.get("node") or ()
    names = node_names.of_nodes(ctx.params.get("kubeconfig"), ctx.params.get("context"))
    return [name for name in names if name.startswith(incomplete) and name not in chosen]


def _nodes(about: str) -> Callable[[F], F]:
    return click.argument("node", nargs=-1, metavar="[NODE]...", shell_complete=_complete_nodes, help=about)


def _file(*names: str, about: str) -> Callable[[F], F]:
    return click.option(*names, metavar="FILE", type=click.Path(path_type=Path), help=about)


def _timeout(about: str) -> Callable[[F], F]:
    return click.option("--timeout", metavar="TIME", type=Duration(), help=about)


def _place(command: F) -> F:
    """Options of every command that reads a cluster."""
    options = (
        click.option(
            "-n",
            "--namespace",
            metavar="NAME",
            default="kube-system",
            help="The namespace where kube-node-ready is installed (default: kube-system).",
        ),
        _file(
            "--kubeconfig",
            about="Use this kubeconfig instead of KUBECONFIG, the pod's ServiceAccount or ~/.kube/config.",
        ),
        click.option("--context", metavar="NAME", help="Use this context instead of the kubeconfig's current one."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _ask_cluster(verb: str, params: Mapping[str, Any]) -> int:
    from kube_node_ready.cli import cluster_commands  # noqa: PLC0415  it loads the client

    return cluster_commands.run(verb, params)


@_documented(
    (
        "",
        "node-1 node-2 -o wide",
        "--gated -o json",
        "-l disk=ssd --sort-by age",
        "--group-by zone",
        "--watch --pool spot",
        "--until verified --timeout 120s",
    ),
    {
        ExitCode.OK: "all nodes are verified or not gated",
        ExitCode.FAILED: "a node is gated, not verified or failing (with --until: at its end)",
        **_OF_CLUSTER,
    },
)
@program.command("status", short_help=VERBS["status"])
@_nodes("Show only these nodes.")
@click.option(
    "-l",
    "--selector",
    metavar="SELECTOR",
    type=NodeSelector(),
    help="Show only nodes with these labels: disk=ssd,!gpu.",
)
@click.option("--pool", metavar="NAME", help="Show only nodes of this pool: a NodePool or node group.")
@click.option("--gated", is_flag=True, help="Show only nodes that are gated or have yet to be verified.")
@click.option(
    "-o",
    "--output",
    type=OneOf(("table", "wide", "json", "yaml")),
    default="table",
    help="Choose the format (default: table).",
)
@click.option(
    "--sort-by",
    type=OneOf(("name", "phase", "age", "pool")),
    help="Sort by this (default: attention first).",
)
@click.option("--group-by", type=OneOf(("pool", "zone")), help="Show a part of the table for each pool or zone.")
@click.option("-w", "--watch", is_flag=True, help="Keep showing the table; in a pipe, print one line per change.")
@click.option(
    "--until", type=OneOf(UNTIL), help="Watch until all nodes are verified, or until each has passed or failed."
)
@_timeout("Stop watching after this time: 120s, 2m, 1h30m.")
@_place
def _status(**params: Any) -> int:  # noqa: ANN401  by name, as declared above
    """Show what each node is waiting for; those that need attention come first.

    If there is more than one pool, the pool is a column. The column of a check shows the milliseconds it took in the
    last attempt that ended (dim while another attempt runs). A check that failed is marked, as in !10003.
    """
    return _ask_cluster("status", params)


@_documented(
    ("node-1",),
    {
        ExitCode.OK: "the node is not gated, and does not have to be verified",
        ExitCode.FAILED: "it is gated, not verified or failing",
        **_OF_CLUSTER,
    },
)
@program.command("explain", short_help=VERBS["explain"])
@click.argument("node", metavar="NODE", shell_complete=_complete_nodes, help="The node.")
@_place
def _explain(**params: Any) -> int:  # noqa: ANN401  as above
    """Show everything about one node: its gate, its attempts, each check, what happens next and when, whether it can be
    removed, its Events, and where to look next.
    """
    return _ask_cluster("explain", params)


@_documented(
    ("node-1", "node-1 node-2 --wait --timeout 2m", "--all-failed"),
    {
        ExitCode.OK: "requested (with --wait: all passed)",
        ExitCode.FAILED: "a request failed (with --wait: a node did not pass)",
        **_OF_CLUSTER,
    },
)
@program.command("verify", short_help=VERBS["verify"])
@_nodes("Verify these nodes.")
@click.option("--all-failed", is_flag=True, help="Verify all nodes whose last attempt failed.")
@click.option("--wait", is_flag=True, help="Show the nodes until each has passed or failed.")
@_timeout("Stop waiting after this time (default: 10m).")
@_place
def _verify(**params: Any) -> int:  # noqa: ANN401  as above
    """Request a new verification of nodes: one patch removes the label and writes the record.

    No taint is added: a node without a gate keeps running pods meanwhile, and with the controller even if it fails.
    Earlier failures are forgotten, so an exhausted node is tried immediately. A running worker is not interrupted.
    """
    return _ask_cluster("verify", params)


@_documented(("", "--dry-run", "-o json"), check_flags.EXITS)
@program.command("check", short_help=VERBS["check"], help=check_flags.DESCRIPTION)
def _check(**params: Any) -> int:  # noqa: ANN401  as above
    from kube_node_ready.cli import check  # noqa: PLC0415  it loads the checks

    return check.run(check_flags.Options(**params))


def _flag(flag: check_flags.Flag) -> click.Option:
    if flag.choices:
        return click.Option(flag.names, type=OneOf(flag.choices), default=flag.choices[0], help=flag.about)
    if flag.metavar:
        return click.Option(flag.names, metavar=flag.metavar, type=click.Path(path_type=Path), help=flag.about)
    return click.Option(flag.names, is_flag=True, help=flag.about)


_check.params += map(_flag, check_flags.FLAGS)


@_documented(
    ("", "node-1 node-2"), {ExitCode.OK: "removal is paused", ExitCode.FAILED: "a node does not exist", **_OF_CLUSTER}
)
@program.command("pause", short_help=VERBS["pause"])
@_nodes("Pause the removal of these nodes only. Without any, no node is removed.")
@_place
def _pause(**params: Any) -> int:  # noqa: ANN401  as above
    """Pause the removal of failed nodes, by an annotation on the removal ledger or on the nodes that you name.

    Verification continues.
    """
    return _ask_cluster("pause", params)


@_documented(
    ("", "node-1 node-2"),
    {ExitCode.OK: "removal is not paused", ExitCode.FAILED: "a node does not exist", **_OF_CLUSTER},
)
@program.command("resume", short_help=VERBS["resume"])
@_nodes("Resume the removal of these nodes only. Without any, the pause of all nodes ends.")
@_place
def _resume(**params: Any) -> int:  # noqa: ANN401  as above
    """Resume the removal of failed nodes: of all, or of the nodes that you name."""
    return _ask_cluster("resume", params)


@program.group("config", cls=Group, short_help=VERBS["config"])
def _config() -> None:
    """Validate configuration files of the controller and of workers."""


@_documented(
    ("config.yaml", "--worker worker-config.yaml"),
    {ExitCode.OK: "the file is valid", ExitCode.INVALID: "the file has errors", **_ALWAYS},
)
@_config.command("check", short_help="Report all errors in a file.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path), help="A file in YAML or JSON.")
@click.option("--worker", is_flag=True, help="Read the file as a worker's, whatever its keys are.")
def _config_check(file: Path, *, worker: bool) -> int:
    """Read a configuration file as the controller or a worker does, and report all errors.

    Its keys decide which of the two it is for. Only the file counts: environment variables, flags and the cluster are
    not read.
    """
    from kube_node_ready.cli import config_check  # noqa: PLC0415  it loads the settings

    return config_check.run(file, is_workers=worker)


@_documented(
    ("bash > /etc/bash_completion.d/kube-node-ready", "zsh > ~/.zfunc/_kube-node-ready", "fish | source"),
)
@program.command("completion", short_help=VERBS["completion"])
@click.argument("shell", type=OneOf(completion.SHELLS), help="The shell.")
def _completion(shell: str) -> int:
    """Print a script that completes commands, options and names of nodes.

    kubectl needs no script: it runs kubectl_complete-node_ready, which is beside kubectl-node_ready.
    """
    sys.stdout.write(completion.script(shell, program, PROGRAM, COMPLETE_VARIABLE))
    return ExitCode.OK


def _complete_commands(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    command: click.Command | None = program
    for word in ctx.params.get("words") or ():
        command = command.get_command(ctx, word) if isinstance(command, click.Group) else None
    names = command.commands if isinstance(command, click.Group) else ()
    return [name for name in names if name.startswith(incomplete)]


@_documented(("", "status", "config check"))
@program.command("help", short_help=VERBS["help"])
@click.argument("words", metavar="[COMMAND]...", nargs=-1, shell_complete=_complete_commands, help="The command.")
@click.pass_context
def _help(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of a command. Without one, list all commands."""
    assert ctx.parent, "the program"
    shown, command = ctx.parent, ctx.parent.command
    for word in words:
        if not isinstance(command, Group):
            raise usage.unexpected_argument(word, ctx)
        _, child, _ = command.resolve_command(shown, [word])
        assert child, "resolve_command raises an error about others"
        shown, command = click.Context(child, shown, info_name=word, **_SETTINGS), child  # type: ignore[arg-type]
    sys.stdout.write(f"{shown.get_help()}\n")
    return 0


@program.command("version", short_help=VERBS["version"])
@click.pass_context
def _version(ctx: click.Context) -> int:
    """Print the version and exit."""
    assert ctx.parent, "the program"
    sys.stdout.write(f"{ctx.parent.command_path} {version.describe()}\n")
    return 0
