"""The responder: a peer of the connectivity matrix."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.worker import responder
from tests.support.check_servers import LOOPBACK
from tests.support.ports import unused_port

PROGRAM = Path(sys.executable).with_name("kube-node-ready")


def test_it_accepts_connections_sends_nothing_and_exits_on_sigterm() -> None:
    port = unused_port()
    with subprocess.Popen([PROGRAM, "respond", f"--port={port}"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert "Responder started" in process.stdout.readline()
            for _ in range(300):  # more than wait in the backlog, one after the other
                with socket.create_connection((LOOPBACK, port), timeout=10) as connection:
                    assert connection.recv(1) == b""
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()  # otherwise a failed assertion would wait for a process that does not end


def test_a_silent_client_does_not_block_others() -> None:
    with responder.listen(0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)), socket.create_connection((LOOPBACK, port)) as other:
            responder.answer(listener)
            responder.answer(listener)
            other.settimeout(10)
            assert other.recv(1) == b""


@pytest.mark.parametrize(
    "words", [[], ["--port=0"], ["--port=65536"], ["--port=٣"], ["--port=1", "x"], ["8081"]], ids=str
)
def test_a_usage_error_is_one_line_and_exit_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert responder.main(words) == ExitCode.INVALID
    output = capsys.readouterr().err
    assert output.endswith("is invalid; expected --port=PORT with a port from 1 to 65535\n")
    assert output.count("\n") == 1


def test_a_port_in_use_is_an_error_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with responder.listen(0) as listener:
        port = listener.getsockname()[1]
        assert responder.main([f"--port={port}"]) == ExitCode.UNEXPECTED
    assert f"cannot listen on port {port}: Address already in use" in capsys.readouterr().err
