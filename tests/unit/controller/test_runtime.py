"""The controller's process, as far as it runs without a cluster."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop
import yaml

from kube_node_ready.controller import runtime
from kube_node_ready.settings.controller import Config, Kubernetes
from lab import pki
from tests.support.controller_process import a_config
from tests.support.signals import STOPPED_AS_SOON_AS_IT_SERVES


def test_an_error_that_only_the_event_loop_sees_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    async def meet_it() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(runtime.log_loop_error)
        loop.call_soon(int, "none")
        await asyncio.sleep(0)

    uvloop.run(meet_it())
    output = capfd.readouterr()
    assert output.err == ""
    (line,) = output.out.splitlines()
    assert json.loads(line)["error"] == """ValueError("invalid literal for int() with base 10: 'none'")"""


def test_sigterm_stops_it_as_soon_as_it_serves(tmp_path: Path) -> None:
    """Its last line is that it stopped: what the watches log while they end comes before that."""
    authority = pki.Authority(tmp_path / "pki").certificate
    nowhere = pki.kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", authority, "a-token")
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(a_config("default")))
    ending = 'serve.ProbeServer.stop = lambda _: print(\'{"msg": "Ending"}\')\n'
    program = STOPPED_AS_SOON_AS_IT_SERVES + ending + "from kube_node_ready.entrypoints import controller; controller()"
    argv = [sys.executable, "-c", program, f"--config={config}", f"--kubeconfig={nowhere}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[-1])["msg"] == "Controller stopped"


def test_the_variable_is_not_an_explicit_kubeconfig() -> None:
    """Because files that it names, and that do not exist, are skipped."""
    config = Config(kubernetes=Kubernetes(kubeconfig_path="/a:/b"))
    assert runtime._kubeconfig(config, {}) == Path("/a:/b")
    assert runtime._kubeconfig(config, {"KUBECONFIG": "/c"}) == Path("/a:/b")
    assert runtime._kubeconfig(config, {"KUBECONFIG": "/a:/b"}) is None
    assert runtime._kubeconfig(Config(), {}) is None
