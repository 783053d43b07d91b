"""`make run`: nodes join gated, the operator is installed, two nodes open, and one that is broken stays shut."""

import argparse
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Node, Pod

from demo import stage
from demo.stage import Stage
from lab import LabError, invocation, network, runs
from lab.plane import ADMIN_KUBECONFIG
from lab.progress import say

_PROGRAM = Path(sys.executable).with_name("kube-node-ready")
_PATIENCE = "120s"


def main() -> NoReturn:
    # So that being asked to stop unwinds like Ctrl-C, and leaves nothing behind.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    arguments = _parser().parse_args()
    try:
        sys.exit(_run(simulate=arguments.simulated))
    except (LabError, OSError) as why:
        sys.exit(f"lab: {why}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="simulated nodes, also where real ones are possible")
    return parser


def _run(*, simulate: bool) -> int:
    if runs.kept(runs.DEFAULT_NAME):
        say("the cluster is up already, and this is how it stands; `make stop` takes it away")
        return _watch()
    if not simulate and not network.is_root():
        say("real nodes need root, so these are simulated")
        simulate = True
    begun = datetime.now(UTC)
    say("starting the control plane")
    made = stage.with_simulated_nodes() if simulate else stage.with_real_nodes()
    code = _watch()
    if code in (0, 1):  # 1: there is a node that stays gated, as is meant to be
        _tell(made, begun)
    return 0 if code == 1 else code


def _watch() -> int:
    """The live table, until every node has passed or failed: the command that users have."""
    words = ["status", "--watch", "--until=settled", f"--timeout={_PATIENCE}"]
    environment = {**os.environ, "KUBECONFIG": str(_kubeconfig()), "NO_PROXY": "*", "no_proxy": "*"}
    return subprocess.run([_PROGRAM, *words], env=environment, check=False).returncode


def _tell(made: Stage, begun: datetime) -> None:
    with Client(KubeConfig.from_file(_kubeconfig()), trust_env=False) as client:
        opened = max(_verified_at(client.get(Node, name)) for name in made.sound)
        pods = client.list(Pod, labels={"app": stage.WORKLOAD})
        places = sorted(str(pod.spec.nodeName) for pod in pods if pod.spec and pod.spec.nodeName)
    first = made.sound[0]
    print(
        f"\n{' and '.join(made.sound)} were open {(opened - begun).total_seconds():.0f} s after the start, and the"
        f" workload's pods run on {' and '.join(places) or 'none of them yet'}.\n{made.broken} stays gated: pods there"
        " would find no DNS.\n\n"
        + _table(
            (invocation.lab("shell"), "a shell with kubectl, helm and kube-node-ready; in it:"),
            (f"  kube-node-ready explain {made.broken}", "the whole story of one node"),
            (f"  kube-node-ready verify {first} --wait", "have a node prove itself again"),
            ("  kube-node-ready status --watch", "the table above, live"),
            (made.healing, f"mend {made.broken}, which then opens by itself"),
            ("make stop", "take it all away"),
        )
    )


def _verified_at(node: Node) -> datetime:
    assert node.status
    conditions = node.status.conditions or []
    return next(one.lastTransitionTime for one in conditions if one.type == "NodeVerified" and one.lastTransitionTime)


def _table(*rows: tuple[str, str]) -> str:
    width = max(len(command) for command, _ in rows)
    return "\n".join(f"  {command:<{width}}   {what}" for command, what in rows)


def _kubeconfig() -> Path:
    run = runs.kept(runs.DEFAULT_NAME)
    assert run, "it is up, or was just brought up"
    return run.folder / ADMIN_KUBECONFIG


if __name__ == "__main__":
    main()
