"""`make run`: gated nodes join, the operator is installed, two nodes are released, and a broken one stays gated."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import httpx2
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node, Pod

from demo import stage
from demo.stage import Nodes
from lab import LabError, command_hint, network, runs, waiting
from lab.plane import ADMIN_KUBECONFIG
from lab.progress import say

_PROGRAM = Path(sys.executable).with_name("kube-node-ready")
_PATIENCE = "120s"
_SOME_NODE_IS_GATED, _INTERRUPTED = 1, 130
_A_MOMENT = 30
_BLINK_SECONDS = 0.1
_LOOK = "kubectl get nodes"


def main() -> NoReturn:
    # SIGTERM unwinds like Ctrl-C, so that nothing is left behind.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    arguments = _parser().parse_args()
    try:
        sys.exit(_run(arguments.name, simulate=arguments.simulated))
    except (LabError, OSError) as error:
        sys.exit(f"lab: {error}")
    except (ApiError, httpx2.HTTPError) as error:
        sys.exit(f"lab: API request failed: {error}")
    except KeyboardInterrupt:
        say("interrupted; what had been started is gone again")
        sys.exit(128 + signal.SIGINT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="use simulated nodes even if real ones are possible")
    parser.add_argument("--name", default=runs.DEFAULT_NAME, help="name of the cluster (%(default)s)")
    return parser


def _run(cluster: str, *, simulate: bool) -> int:
    if runs.kept(cluster):
        say(f"the cluster is up already, and this is its state; `{_stop(cluster)}` removes it")
        return _watch_and_tell(cluster)
    if not simulate and not network.is_root():
        say("real nodes need root, so these are simulated")
        simulate = True
    begun = datetime.now(UTC)
    say("starting the control plane")
    nodes = stage.with_simulated_nodes(cluster) if simulate else stage.with_real_nodes(cluster)
    code = _watch(cluster)
    if code == _INTERRUPTED:
        say("interrupted; the cluster keeps running")
        _tell_what_to_try(cluster, nodes)
        return 0
    if code != _SOME_NODE_IS_GATED:
        return code or _missed(nodes)
    return _tell(cluster, nodes, begun)


def _watch_and_tell(cluster: str) -> int:
    """Show the state of a cluster that is already running."""
    if (code := _watch(cluster)) not in (0, _SOME_NODE_IS_GATED, _INTERRUPTED):
        return code
    with _client(cluster) as client:
        simulated = any(node.metadata and node.metadata.name == stage.SIMULATED.broken for node in client.list(Node))
    _tell_what_to_try(cluster, stage.SIMULATED if simulated else stage.REAL)
    return 0


def _watch(cluster: str) -> int:
    """Show the live table of `status --watch` until every node has passed or failed.

    The command always stops first, because it restores the terminal.
    """
    words = ["status", "--watch", "--until=settled", f"--timeout={_PATIENCE}"]
    environment = {**os.environ, "KUBECONFIG": str(_kubeconfig(cluster)), "NO_PROXY": "*", "no_proxy": "*"}
    asked: list[int] = []
    # Neither raises an error, even while the table starts; and Ctrl-C reaches it directly.
    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: lambda number, _: asked.append(number)}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        table = subprocess.Popen([_PROGRAM, *words], env=environment)
        while table.poll() is None and not asked:
            time.sleep(_BLINK_SECONDS)
        if asked:
            table.terminate()
        code = table.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:
        sys.exit(128 + asked[0])
    return code


def _missed(nodes: Nodes) -> int:
    say(f"{nodes.broken} is open, though its DNS is broken: this is a bug")
    return 1


def _tell(cluster: str, nodes: Nodes, begun: datetime) -> int:
    with _client(cluster) as client:
        with contextlib.suppress(LabError):  # the gate is removed first; the condition and the workload follow
            waiting.until(
                "the nodes are open", lambda: all(_opened(client, nodes).values()) and _places(client), _A_MOMENT
            )
        opened, places = _opened(client, nodes), _places(client)
    if shut := [name for name, at in opened.items() if at is None]:
        say(f"{' and '.join(shut)} should be open by now: `{_lab(cluster, 'shell')}`, then kube-node-ready explain")
        return 1
    last = max(at for at in opened.values() if at)
    seconds = (last - begun).total_seconds()
    print(
        f"\n{' and '.join(nodes.sound)} were open {seconds:.0f} s after the control plane's start, and the"
        f" workload's pods run on {' and '.join(places) or 'none of them yet'}.\n{nodes.broken} stays gated: pods there"
        " would find no DNS."
    )
    _tell_what_to_try(cluster, nodes)
    return 0


def _tell_what_to_try(cluster: str, nodes: Nodes) -> None:
    print()
    rows = [
        (_lab(cluster, _LOOK), "look around: kubectl, with any of its words"),
        (_lab(cluster, "shell"), "a shell with kubectl, helm and kube-node-ready; in it:"),
        (f"  kube-node-ready explain {nodes.broken}", "show everything about one node"),
        (f"  kube-node-ready verify {nodes.sound[0]} --wait", "verify a node again"),
        ("  kube-node-ready status --watch", "the table, live"),
        (_lab(cluster, f"heal {nodes.broken}"), "repair it; its next attempt opens it"),
        (_stop(cluster), "remove everything"),
    ]
    width = max(len(command) for command, _ in rows)
    for command, what in rows:
        print(f"  {command:<{width}}   {what}")


def _client(cluster: str) -> Client:
    return Client(KubeConfig.from_file(_kubeconfig(cluster)), trust_env=False)


def _opened(client: Client, nodes: Nodes) -> dict[str, datetime | None]:
    return {name: _verified_at(client.get(Node, name)) for name in nodes.sound}


def _places(client: Client) -> list[str]:
    """Return where the workload's pods run, or None until all of them run."""
    pods = list(client.list(Pod, labels={"app": stage.WORKLOAD}))
    if not all(pod.status and pod.status.phase == "Running" for pod in pods):
        return []
    return sorted(str(pod.spec.nodeName) for pod in pods if pod.spec)


def _verified_at(node: Node) -> datetime | None:
    conditions = (node.status.conditions if node.status else None) or []
    ours = (condition for condition in conditions if condition.type == "NodeVerified" and condition.status == "True")
    return next((condition.lastTransitionTime for condition in ours), None)


def _stop(cluster: str) -> str:
    return "make stop" if cluster == runs.DEFAULT_NAME else _lab(cluster, "down")


def _lab(cluster: str, words: str) -> str:
    return command_hint.lab(words if cluster == runs.DEFAULT_NAME else f"--name {cluster} {words}")


def _kubeconfig(cluster: str) -> Path:
    run = runs.kept(cluster)
    assert run, "it is up, or was just brought up"
    return run.folder / ADMIN_KUBECONFIG


if __name__ == "__main__":
    main()
