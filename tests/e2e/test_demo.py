"""`make run`, as a newcomer sees it, from the first line until everything is gone."""

import subprocess
import sys

import pytest

from tests.support.shell import NAME, ROOT, kept_folder, run_lab, traces


def demonstrated(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", "--name", NAME, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def opens_when_healed(node: str) -> bool:
    run_lab("heal", node)
    label = "jsonpath={.metadata.labels.node-ready/verified}=true"
    return run_lab("kubectl", "wait", f"node/{node}", f"--for={label}", "--timeout=180s").returncode == 0


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("words", "sound", "broken"),
    [((), ["node-1", "node-2"], "node-3"), (("--simulated",), ["node-0", "node-1"], "broken-0")],
    ids=["real", "simulated"],
)
def test_two_nodes_open_and_the_broken_one_stays_gated_until_repaired(
    words: tuple[str, ...], sound: list[str], broken: str
) -> None:
    try:
        seen = demonstrated(*words)
        assert seen.returncode == 0, seen.stdout + seen.stderr
        assert f"{sound[0]} and {sound[1]} were open" in seen.stdout
        assert f"the workload's pods run on {sound[0]} and {sound[1]}.\n{broken} stays gated" in seen.stdout
        assert "dns: kubernetes.default.svc.cluster.local: no answer from 10.96.0.10:53" in seen.stdout
        assert f"-m lab --name {NAME} kubectl get nodes" in seen.stdout, "how to look around"
        assert "assumed" not in seen.stderr, "the configuration is found"
        again = demonstrated(*words)
        assert (again.returncode, "is up already" in again.stderr) == (0, True)
        assert opens_when_healed(broken)
        folder = kept_folder()
    finally:
        run_lab("down")
    assert not traces(folder)
