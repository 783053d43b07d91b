"""argv -> verb. What verbs do stands in `validating`, `offline`, `online`; here, their options and what errors become.

Exit codes: 0 done; 1 `validate` found errors or `diff` found differences; 2 the input cannot be used, and nothing was
touched; 3 the cluster refused or could not be reached; 4 the rollout did not finish in time.
"""

import argparse
import difflib
import gc
import importlib
import io
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from kubernetes_daemonset import exits
from kubernetes_daemonset.terminal import on_one_line

_LONGEST_WAIT: Final = 7 * 24 * 3600  # seconds; a clock takes more, but whoever writes more has mistaken the unit

_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_TIME: Final = re.compile(f"(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?")

_EPILOG: Final = """\
first steps:
  kubernetes-daemonset init node-exporter > agent.yaml   a manifest to start from
  kubernetes-daemonset validate -f agent.yaml            everything that is wrong with it, with lines
  kubernetes-daemonset explain spec.container.app        what can be written there
  kubernetes-daemonset diff -f agent.yaml                what applying it would change
  kubernetes-daemonset apply -f agent.yaml               deploy it and wait until every node runs it

exit codes:
  0 done   1 validate found errors, diff found differences   2 the input cannot be used, nothing was touched
  3 the cluster refused or could not be reached   4 the rollout did not finish in time
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    gc.disable()  # the process is over before collecting could pay
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to end
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.verb is None:
        parser.print_help(sys.stderr)
        sys.exit(exits.BAD_INPUT)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.stderr.write("\nkubernetes-daemonset: interrupted; running it again goes on from where it is\n")
        sys.exit(exits.INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        sys.exit(exits.NOBODY_READS)
    except OSError as why:
        _forget_output()
        sys.stderr.write(f"kubernetes-daemonset: what was to be printed could not be: {why.strerror}\n")
        sys.exit(exits.BAD_INPUT)


def _forget_output() -> None:
    """Or Python complains when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: argparse.Namespace) -> int:
    """The verb's exit code. A verb's module is loaded when it is run: `validate` does not wait for an HTTP client."""
    try:
        verbs = importlib.import_module(f"kubernetes_daemonset.{arguments.module}")
    except ModuleNotFoundError as why:
        if (why.name or "").startswith("kubernetes_daemonset"):
            raise
        text = f"the Python package {why.name} is missing; pip install 'kube-node-ready[component]' brings it"
        sys.stderr.write(f"kubernetes-daemonset: {text}\n")
        return exits.BAD_INPUT
    code: int = verbs.run(arguments.verb, arguments)
    return code


class _Parser(argparse.ArgumentParser):
    """Takes flags by their whole names alone, and says which ones were meant; so do the parsers of its verbs."""

    verbs: Collection[str] = ()

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**options, allow_abbrev=False)

    # Argparse's types have three forms of this, of which one is ever called.
    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        words = list(sys.argv[1:] if args is None else args)
        if self.verbs and words and not words[0].startswith("-") and words[0] not in self.verbs:
            self.error(f'there is no verb "{words[0]}"{_meant(words[0], self.verbs)}')
        found, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self.error(self._refusal(unknown[0].partition("=")[0]))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """An argument can hold what a script took from elsewhere."""
        super().error(on_one_line(message))

    def _refusal(self, word: str) -> str:
        if not word.startswith("-"):
            remedy = "; manifests are given by -f" if "-f" in self._option_string_actions else ""
            return f'there is no place for "{word}"{remedy}'
        flags = [one for one in self._option_string_actions if one.startswith("--")]
        return f"there is no flag {word}{_meant(word, flags)}"


def _meant(word: str, known: Iterable[str]) -> str:
    known = list(known)
    begun = [one for one in known if one.startswith(word)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="kubernetes-daemonset",
        description="Validates, renders and deploys node agents declared as KubernetesDaemonSet manifests.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    parser.verbs = verbs.choices
    manifests, cluster = _manifest_options(), _cluster_options()

    def verb(name: str, module: str, about: str, *parents: _Parser) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", parents=parents)
        added.set_defaults(module=module)
        return added

    validate = verb("validate", "validating", "say everything that is wrong with manifests", manifests)
    validate.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")

    render = verb("render", "offline", "print what manifests stand for", manifests)
    render.add_argument(
        "--to",
        choices=("yaml", "manifest", "terraform", "pulumi"),
        default="yaml",
        help="Kubernetes objects, for kubectl, GitOps and kustomize (default); the manifest itself, every dialect"
        " brought to one; a Terraform module; a Pulumi project",
    )
    render.add_argument(
        "-o", "--output", choices=("yaml", "json", "table"), help="how --to yaml prints the objects; default: yaml"
    )
    render.add_argument(
        "--into", metavar="FOLDER", type=Path, help="where --to terraform and --to pulumi write their files"
    )

    diff = verb("diff", "online", "show what applying manifests would change, and change nothing", manifests, cluster)
    diff.add_argument("-o", "--output", choices=("diff", "table"), default="diff", help="default: diff")
    _takeovers(diff)

    apply = verb(
        "apply", "online", "deploy manifests by server-side apply and wait for the rollout", manifests, cluster
    )
    apply.add_argument("--dry-run", action="store_true", help="have the server try it, and say what would change")
    _takeovers(apply)
    apply.add_argument("--no-wait", dest="wait", action="store_false", help="do not wait for the rollout")
    apply.add_argument("--no-prune", dest="prune", action="store_false", help="leave what an earlier manifest made")
    _timeout(apply, "how long to wait for the rollout")

    delete = verb("delete", "online", "delete what manifests made; the namespace stays", manifests, cluster)
    delete.add_argument("--dry-run", action="store_true", help="say what would be deleted, and what left")
    delete.add_argument("--delete-namespace", action="store_true", help="delete the namespace, and all that is in it")
    _timeout(delete, "how long to wait for the pods to end")

    outputs = verb(
        "outputs", "online", "print where the agent runs and on how many nodes it is ready", manifests, cluster
    )
    outputs.add_argument("-o", "--output", choices=("yaml", "json", "table"), default="yaml", help="default: yaml")

    explain = verb("explain", "offline", "say what a field means and what can be written below it")
    explain.add_argument("path", nargs="?", default="", metavar="PATH", help="such as spec.container.app.volume_mounts")
    explain.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")

    init = verb("init", "offline", "print a manifest to start from")
    init.add_argument("name", nargs="?", metavar="NAME", help="which one; without, a list of them is printed")
    return parser


class _Version(argparse.Action):
    """Looks the version up when it is asked for: that costs as much as reading a manifest."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415

        print(f"{parser.prog} {version('kube-node-ready')}")
        parser.exit()


def _manifest_options() -> _Parser:
    options = _Parser(add_help=False)
    options.add_argument(
        "-f",
        "--file",
        action="append",
        required=True,
        metavar="PATH",
        help="a manifest or stack input, a folder of them, or - for standard input; may be given several times",
    )
    options.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="replace a field of any type: spec.host_network=true, spec.tolerations[0].key=gpu,"
        " 'spec.node_selector[kubernetes.io/os]=linux'",
    )
    options.add_argument(
        "--docker-config",
        type=Path,
        metavar="FILE",
        help="a Docker config.json; a pull secret is made of its logins for the manifest's images",
    )
    return options


def _cluster_options() -> _Parser:
    options = _Parser(add_help=False)
    options.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="default: a pod's account, KUBECONFIG, ~/.kube/config"
    )
    options.add_argument("--kube-context", metavar="NAME", help="a context of the kubeconfig; default: the current one")
    return options


def _takeovers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force-conflicts", action="store_true", help="take over fields that another manager owns")
    parser.add_argument("--adopt", action="store_true", help="take over objects that someone else made")


def _timeout(parser: argparse.ArgumentParser, about: str) -> None:
    help_text = f"{about}: seconds, or 90s, 5m, 1h30m; default: 5m"
    parser.add_argument("--timeout", type=_seconds, default=300.0, metavar="TIME", help=help_text)


def _seconds(text: str) -> float:
    """Seconds, or with units: 90, 90s, 5m, 1h30m."""
    with_units = f"{text}s" if re.fullmatch(_NUMBER, text) else text
    parts = _TIME.fullmatch(with_units) if with_units else None
    hours, minutes, seconds = (float(part or 0) for part in parts.groups()) if parts else (0.0, 0.0, -1.0)
    total = hours * 3600 + minutes * 60 + seconds
    if not 0 <= total <= _LONGEST_WAIT:
        raise argparse.ArgumentTypeError(f'"{text}" is no time; write seconds, or 90s, 5m, 1h30m')
    return total
