"""The commands and their flags. What runs a command is imported when it runs: `validate` needs no HTTP client."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import click

from kubekit import completion, durations, usage
from kubekit.usage import OneOf
from kubernetes_daemonset.cli import exit_codes

PROGRAM: Final = "kubernetes-daemonset"
COMPLETE_VARIABLE: Final = "_KUBERNETES_DAEMONSET_COMPLETE"
"""Set by the completion scripts of the shells."""
_LONGEST_WAIT: Final = 7 * 24 * 3600  # seconds; a longer time is probably a wrong unit
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EPILOG: Final = """\
\b
First steps:
  kubernetes-daemonset init node-exporter > agent.yaml   create a starter manifest
  kubernetes-daemonset validate -f agent.yaml            report all errors, with their lines
  kubernetes-daemonset explain spec.container.app        describe a field and those below it
  kubernetes-daemonset diff -f agent.yaml                show what an apply would change
  kubernetes-daemonset apply -f agent.yaml               deploy it and wait until every node runs it

\b
Exit codes:
  0 success   1 validate found errors, diff found differences   2 the input is invalid, nothing was changed
  3 the cluster rejected a request or is unreachable   4 the rollout did not finish in time   10 unexpected error
"""
F = TypeVar("F", bound=Callable[..., Any])


class Command(usage.Command):
    @property
    def remedy(self) -> str:
        takes_manifests = any("-f" in parameter.opts for parameter in self.params)
        return "; pass manifests with -f" if takes_manifests else ""


class Group(usage.Group):
    command_class = Command
    changing = ("apply", "delete")


class _Duration(click.ParamType[float]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        duration = value if isinstance(value, float) else seconds(str(value))
        if duration is None:
            self.fail(f'"{value}" is invalid; expected seconds, or a duration such as 90s, 5m or 1h30m', param, ctx)
        return duration


def seconds(text: str) -> float | None:
    """Parse seconds, with or without units: 90, 90s, 5m, 1h30m."""
    duration = durations.parse(text, float, units=("h", "m", "s"))
    return None if duration is None or duration > _LONGEST_WAIT else duration


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's
    """Print the version. It is looked up on demand, because that takes as long as reading a manifest."""
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # noqa: PLC0415

        print(f"{ctx.command_path} {version('kube-node-ready')}")
        ctx.exit()


@click.group(cls=Group, context_settings=_SETTINGS, epilog=_EPILOG)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def program() -> None:
    """Validate, render and deploy node agents declared as KubernetesDaemonSet manifests."""


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Add options in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _flag(name: str, about: str) -> Callable[[F], F]:
    return click.option(name, is_flag=True, help=about)


def _output(*choices: str, about: str = "") -> Callable[[F], F]:
    text = f"Choose the format (default: {choices[0]}){about}."
    return click.option("-o", "--output", type=OneOf(choices), default=choices[0], help=text)


def _timeout(about: str) -> Callable[[F], F]:
    text = f"{about}: seconds, or 90s, 5m, 1h30m (default: 5m)."
    return click.option("--timeout", type=_Duration(), default=300.0, metavar="TIME", help=text)


_MANIFESTS = _options(
    click.option(
        "-f",
        "--file",
        multiple=True,
        required=True,
        metavar="PATH",
        # As text: "-" is standard input.
        type=click.Path(),
        help="Read this manifest or stack input, a directory of them, or standard input (-). Can be repeated.",
    ),
    click.option(
        "--set",
        multiple=True,
        metavar="PATH=VALUE",
        help="Replace a field of any type: spec.host_network=true, spec.tolerations[0].key=gpu,"
        " 'spec.node_selector[kubernetes.io/os]=linux'.",
    ),
    click.option(
        "--docker-config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Create a pull secret for the manifest's images from the credentials in this Docker config.json.",
    ),
)
_CLUSTER = _options(
    click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this kubeconfig instead of KUBECONFIG, the pod's ServiceAccount or ~/.kube/config.",
    ),
    click.option("--kube-context", metavar="NAME", help="Use this context instead of the kubeconfig's current one."),
)
_TAKEOVERS = _options(
    _flag("--force-conflicts", "Take over fields that another manager owns."),
    _flag("--adopt", "Take over objects of another owner."),
)


def _run(module: str, verb: str, params: dict[str, Any]) -> int:
    try:
        verbs = importlib.import_module(f"kubernetes_daemonset.cli.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kubernetes_daemonset"):
            raise
        text = f"the Python package {error.name} is not installed; run pip install '.[component]' in a checkout"
        sys.stderr.write(f"kubernetes-daemonset: {text}\n")
        return exit_codes.BAD_INPUT
    code: int = verbs.run(verb, SimpleNamespace(**params))
    return code


@program.command("validate", cls=Command)
@_MANIFESTS
@_output("text", "json")
def _validate(**params: Any) -> int:  # noqa: ANN401 - by name, as declared above
    """Report all errors and warnings of manifests."""
    return _run("validate", "validate", params)


@program.command("render", cls=Command)
@_MANIFESTS
@click.option(
    "--to",
    type=OneOf(("yaml", "manifest", "terraform", "pulumi")),
    default="yaml",
    help="Choose what is made: Kubernetes objects for kubectl, GitOps and kustomize (default); the manifest itself,"
    " normalized; a Terraform module; a Pulumi project.",
)
@click.option(
    "-o", "--output", type=OneOf(("yaml", "json", "table")), help="Choose how --to yaml prints objects (default: yaml)."
)
@click.option(
    "--into",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write the files of --to terraform and --to pulumi to this directory.",
)
def _render(**params: Any) -> int:  # noqa: ANN401 - as above
    """Print the Kubernetes objects of manifests, or convert them."""
    return _run("offline", "render", params)


@program.command("diff", cls=Command)
@_MANIFESTS
@_CLUSTER
@_output("diff", "table")
@_TAKEOVERS
def _diff(**params: Any) -> int:  # noqa: ANN401 - as above
    """Show what an apply would change. Nothing is changed."""
    return _run("deploy", "diff", params)


@program.command("apply", cls=Command)
@_MANIFESTS
@_CLUSTER
@_flag("--dry-run", "Print what would change, based on a dry run by the server.")
@_TAKEOVERS
@click.option("--no-wait", "wait", is_flag=True, flag_value=False, default=True, help="Do not wait for the rollout.")
@click.option(
    "--no-prune",
    "prune",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Keep objects that only an earlier manifest included.",
)
@_timeout("Stop waiting for the rollout after this time")
def _apply(**params: Any) -> int:  # noqa: ANN401 - as above
    """Deploy manifests and wait for the rollout.

    Objects are written by server-side apply.
    """
    return _run("deploy", "apply", params)


@program.command("delete", cls=Command)
@_MANIFESTS
@_CLUSTER
@_flag("--dry-run", "Print what would be deleted and what would remain.")
@_flag("--delete-namespace", "Delete the namespace and everything in it.")
@_timeout("Stop waiting for the pods to stop after this time")
def _delete(**params: Any) -> int:  # noqa: ANN401 - as above
    """Delete the objects of manifests. The namespace remains."""
    return _run("deploy", "delete", params)


@program.command("outputs", cls=Command)
@_MANIFESTS
@_CLUSTER
@_output("yaml", "json", "table", "manifest", about="; manifest: print the manifest with the outputs in its status")
def _outputs(**params: Any) -> int:  # noqa: ANN401 - as above
    """Print where the agent runs and on how many nodes it is ready."""
    return _run("deploy", "outputs", params)


@program.command("explain", cls=Command)
@click.argument("path", required=False, default="", metavar="[PATH]")
@_output("table", "json")
def _explain(**params: Any) -> int:  # noqa: ANN401 - as above
    """Describe a field and the fields below it.

    PATH is one such as spec.container.app.volume_mounts.
    """
    return _run("offline", "explain", params)


def _starters(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kubernetes_daemonset.cli import offline  # noqa: PLC0415 - other commands do without

    return [name for name in offline.starters() if name.startswith(incomplete)]


@program.command("init", cls=Command)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=_starters)
def _init(**params: Any) -> int:  # noqa: ANN401 - as above
    """Print a starter manifest. Without NAME, list the available ones."""
    return _run("offline", "init", params)


@program.command("completion", cls=Command)
@click.argument("shell", type=OneOf(completion.SHELLS))
def _completion(shell: str) -> int:
    r"""Print a script that completes commands and flags.

    \b
    Examples:
      kubernetes-daemonset completion bash > /etc/bash_completion.d/kubernetes-daemonset
      kubernetes-daemonset completion zsh > ~/.zfunc/_kubernetes-daemonset
      kubernetes-daemonset completion fish | source
    """
    sys.stdout.write(completion.script(shell, program, PROGRAM, COMPLETE_VARIABLE))
    return exit_codes.OK
