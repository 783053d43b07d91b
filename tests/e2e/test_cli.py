"""The command line on real nodes: what `make run` gives a newcomer, from up to down."""

from pathlib import Path

import pytest

from lab import build, images
from tests.support.shell import kept_cluster, kept_folder, run_lab, traces

NODE = "node-1"
OTHER = "lab.local/other:1"


def in_a_pod(*words: str) -> bool:
    return run_lab("kubectl", "exec", "prober", "--", "/toolbox", *words).returncode == 0


@pytest.mark.usefixtures("as_root")
def test_a_cluster_is_started_broken_healed_and_stopped(tmp_path: Path) -> None:
    """By commands alone, each in a process of its own."""
    with kept_cluster("--nodes", "1") as up:
        assert up.returncode == 0, up.stderr
        folder = kept_folder()
        run_lab("kubectl", "run", "prober", f"--image={images.TOOLBOX}", "--image-pull-policy=Never")
        run_lab("kubectl", "wait", "--for=condition=Ready", "pod/prober", "--timeout=90s")
        assert in_a_pod("dns", "example.com")
        assert "fault dns is active" in run_lab("break", NODE, "dns").stderr
        assert not in_a_pod("dns", "example.com")
        assert run_lab("heal", NODE).returncode == 0
        assert in_a_pod("dns", "example.com")
        toolbox = {"/toolbox": build.programs().path("toolbox")}
        archive = images.write(tmp_path / "other.tar", OTHER, toolbox, ["/toolbox", "pause"])
        image = run_lab("import", str(archive))
        assert (image.returncode, image.stderr) == (0, f"lab: {NODE}: importing other.tar\n")
        run_lab("kubectl", "run", "imported", f"--image={OTHER}", "--image-pull-policy=Never")
        assert run_lab("kubectl", "wait", "--for=condition=Ready", "pod/imported", "--timeout=90s").returncode == 0
        missing = run_lab("import", "missing.tar")
        assert (missing.returncode, "there is no file 'missing.tar'" in missing.stderr) == (1, True)
        unknown = run_lab("break", "node-7", "dns")
        assert (unknown.returncode, unknown.stderr) == (1, "lab: there is no real node 'node-7'; there are: node-1\n")
    assert not traces(folder)
