"""`python -m lab`: manage a cluster that stays until it is taken down."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import httpx2
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError

from lab import build, cleanup, command_hint, network, node, runs, simulated_nodes, simulated_stages, waiting
from lab.errors import LabError
from lab.faults import Faults
from lab.plane import ADMIN_KUBECONFIG, plane
from lab.progress import say
from lab.taints import Taint

_KUBECTL = "kubectl"
_BUSY_SECONDS = 20
_FAULTS = {
    "dns": Faults.break_dns,
    "dns-loss": Faults.lose_dns,
    "api": Faults.break_api,
    "mtu": Faults.drop_mtu,
    "cut": Faults.cut,
    "freeze": Faults.freeze,
}
_EXAMPLES = {
    "up --nodes 2": "a control plane and two real nodes (root)",
    "up --nodes 0 --fake 50": "a control plane and fifty simulated nodes (anyone)",
    "kubectl get nodes": "",
    "break node-1 dns": "break the DNS of its pods …",
    "heal node-1": "… and repair it",
    "down": "",
}


def main(argv: Sequence[str] | None = None) -> NoReturn:
    # SIGTERM unwinds like Ctrl-C, so that nothing is left behind.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        words = list(sys.argv[1:] if argv is None else argv)
        # Everything after `kubectl` is passed to kubectl, including options.
        ours = words.index(_KUBECTL) + 1 if _KUBECTL in words else len(words)
        arguments = _parser().parse_args(words[:ours])
        sys.exit(arguments.run(arguments, *words[ours:]))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(1)
    except (ApiError, httpx2.HTTPError) as error:
        print(f"lab: API request failed: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=command_hint.lab("").strip(),
        description="Run a real Kubernetes cluster on this machine.",
        epilog="examples:\n"
        + "\n".join(f"  {command_hint.lab(words):<50} {description}" for words, description in _EXAMPLES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name", default=runs.DEFAULT_NAME, help="name of the cluster (%(default)s)")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)

    up = verbs.add_parser("up", help="start a cluster that stays")
    up.add_argument("--nodes", type=_count, help="real nodes (2; without root, 0)")
    up.add_argument("--fake", type=_count, help="simulated nodes (0; without root, 2)")
    up.add_argument(
        "--taint", type=_taint, action="append", default=[], metavar="KEY[=VALUE]:EFFECT", help="taint of every node"
    )
    up.add_argument(
        "--kubernetes", default=build.KUBERNETES_VERSION, metavar="VERSION", help="version of Kubernetes (%(default)s)"
    )
    up.set_defaults(run=_up)

    verbs.add_parser("down", help="remove the cluster").set_defaults(run=_down)
    verbs.add_parser("status", help="list the clusters").set_defaults(run=_status)

    clean = verbs.add_parser("clean", help="remove runs of killed processes")
    clean.add_argument("--all", action="store_true", help="also remove every running cluster")
    clean.set_defaults(run=_clean)

    verbs.add_parser(_KUBECTL, help="run kubectl against the cluster", add_help=False).set_defaults(run=_kubectl)
    verbs.add_parser("shell", help="start a shell with KUBECONFIG and PATH set").set_defaults(run=_shell)

    fault = verbs.add_parser("break", help="break a real node until it is healed")
    fault.add_argument("node")
    fault.add_argument("fault", choices=_FAULTS)
    fault.set_defaults(run=_break)

    heal = verbs.add_parser(
        "heal", help="end all faults of a node; for a simulated node, let the pods of its group pass"
    )
    heal.add_argument("node")
    heal.set_defaults(run=_heal)

    image = verbs.add_parser("import", help="import an image on every real node of the cluster")
    image.add_argument("archive", type=Path, help="an OCI archive, such as that of `make image` in dist/")
    image.set_defaults(run=_import)

    builder = verbs.add_parser("build", help="build the programs if needed")
    builder.add_argument("--kubernetes", default=build.KUBERNETES_VERSION, metavar="VERSION", help="%(default)s")
    builder.add_argument("--karpenter", action="store_true", help="also build Karpenter with its KWOK provider")
    builder.add_argument("--terraform", action="store_true", help="also build a provider for Terraform")
    builder.set_defaults(run=_build)
    return parser


def _up(arguments: argparse.Namespace) -> int:
    if runs.kept(arguments.name):
        raise LabError(f"cluster {arguments.name!r} is up already; `{_hint(arguments, 'down')}` removes it")
    real = arguments.nodes if arguments.nodes is not None else 2 if network.is_root() else 0
    fake = arguments.fake if arguments.fake is not None else 0 if network.is_root() else 2
    if arguments.nodes is None and not network.is_root():
        say("real nodes need root, so these are simulated")
    if real:
        network.require_root()
    say("starting the control plane")
    with plane(arguments.kubernetes, keep_as=arguments.name) as cluster:
        if real:
            say(f"starting {real} real node{'s' if real > 1 else ''}")
            cluster.start_nodes(*(f"node-{number}" for number in range(1, real + 1)), taints=arguments.taint)
            say("waiting for cluster DNS")
            cluster.wait_for_dns()
        if fake:
            say(f"starting {fake} simulated node{'s' if fake > 1 else ''}")
            cluster.simulated_nodes(fake, taints=arguments.taint)
    inspect, end = _hint(arguments, "kubectl get nodes"), _hint(arguments, "down")
    say(f"the cluster is up; `{inspect}` shows its nodes, `{end}` removes it")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    if run := runs.kept(arguments.name):
        waiting.until(f"cluster {arguments.name!r} can be taken away", lambda: runs.remove(run), _BUSY_SECONDS)
        say(f"cluster {arguments.name!r} was removed")
    else:
        say(f"there is no cluster {arguments.name!r}")
    return 0


def _status(_arguments: argparse.Namespace) -> int:
    rows = [(run.name or "-", _state(run), str(run.folder)) for run in runs.existing()]
    for name, state, folder in [("NAME", "STATE", "FOLDER"), *rows]:
        print(f"{name:<12} {state:<28} {folder}")
    return 0


def _state(run: runs.Run) -> str:
    if run.name is None:
        return "in use by a program" if run.in_use else "left behind (see clean)"
    if not any(cleanup.processes(run.folder)):
        return "dead (see down)"
    nodes = len(_real_nodes(run))
    return f"up, {nodes} real node{'' if nodes == 1 else 's'}"


def _clean(arguments: argparse.Namespace) -> int:
    removed = runs.remove_abandoned()
    if arguments.all:
        removed += [run for run in runs.existing() if runs.remove(run)]
    say(f"removed {', '.join(str(run.folder) for run in removed)}" if removed else "there are no abandoned runs")
    return 0


def _kubectl(arguments: argparse.Namespace, *words: str) -> NoReturn:
    run = _cluster(arguments)
    os.execve(_program(run, _KUBECTL), [_KUBECTL, *words], _environment(run))  # noqa: S606  as a shell


def _shell(arguments: argparse.Namespace) -> NoReturn:
    shell, environment = os.environ.get("SHELL", "/bin/sh"), _environment(_cluster(arguments))
    say("KUBECONFIG is set; kubectl, helm and this project's programs are in PATH; leave with `exit`")
    os.execve(shell, [shell], environment)  # noqa: S606  the person's own shell


def _break(arguments: argparse.Namespace) -> int:
    _FAULTS[arguments.fault](_faults(arguments))
    heal = _hint(arguments, f"heal {arguments.node}")
    say(f"{arguments.node}: fault {arguments.fault} is active; `{heal}` ends it")
    return 0


def _heal(arguments: argparse.Namespace) -> int:
    run = _cluster(arguments)
    if arguments.node not in _real_nodes(run) and (group := simulated_nodes.group_of(_client(run), arguments.node)):
        group.decide(simulated_stages.PASSES)
    else:
        _faults(arguments).heal()
    say(f"{arguments.node} is healed")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    if not arguments.archive.is_file():
        raise LabError(f"there is no file {str(arguments.archive)!r}; `make image` writes one into dist/")
    names = _real_nodes(_cluster(arguments))
    if not names:
        raise LabError(f"cluster {arguments.name!r} has no real node; simulated ones run no images")
    for name in names:
        say(f"{name}: importing {arguments.archive.name}")
        Faults(node.folder_of(_cluster(arguments), name)).import_image(arguments.archive)
    return 0


def _build(arguments: argparse.Namespace) -> int:
    build.programs(arguments.kubernetes)
    if arguments.karpenter:
        build.build(build.karpenter())
    if arguments.terraform:
        build.build(build.terraform())
    return 0


def _cluster(arguments: argparse.Namespace) -> runs.Run:
    if run := runs.kept(arguments.name):
        return run
    raise LabError(f"there is no cluster {arguments.name!r}; `{_hint(arguments, 'up')}` starts one")


def _faults(arguments: argparse.Namespace) -> Faults:
    run = _cluster(arguments)
    known = _real_nodes(run)
    if arguments.node not in known:
        raise LabError(f"there is no real node {arguments.node!r}; there are: {', '.join(known) or 'none'}")
    return Faults(node.folder_of(run, arguments.node))


def _real_nodes(run: runs.Run) -> list[str]:
    return sorted(path.name for path in node.folder_of(run, "").glob("*") if path.is_dir())


def _client(run: runs.Run) -> Client:
    return Client(KubeConfig.from_file(run.folder / ADMIN_KUBECONFIG), trust_env=False)


def _program(run: runs.Run, program: str) -> Path:
    folders = json.loads((run.folder / "programs.json").read_text())
    return build.Programs(tuple(map(Path, folders))).path(program)


def _environment(run: runs.Run) -> dict[str, str]:
    ours = [_program(run, _KUBECTL).parent, _program(run, "helm").parent, Path(sys.executable).parent]
    path = [*map(str, ours), os.environ.get("PATH", os.defpath)]
    direct = [network.of(run).api_address, os.environ.get("NO_PROXY", "")]
    return {
        **os.environ,
        "KUBECONFIG": str(run.folder / ADMIN_KUBECONFIG),
        "NO_PROXY": ",".join(filter(None, direct)),
        "PATH": ":".join(path),
    }


def _hint(arguments: argparse.Namespace, words: str) -> str:
    """Return a command for this cluster that can be copied."""
    name = "" if arguments.name == runs.DEFAULT_NAME else f"--name {arguments.name} "
    return command_hint.lab(f"{name}{words}")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is invalid; expected a number of nodes, 0 or more")
    return int(text)


def _taint(text: str) -> Taint:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    try:
        return Taint(key, effect, value)
    except LabError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is invalid; expected a taint such as key:NoSchedule or key=value:NoExecute; {error}"
        ) from error
