"""`kube-node-ready respond`: accept TCP connections and close them. The peers of the connectivity matrix are such pods.

Standard library only: a pod like this stays on every verified node. Nothing is read and nothing is sent, since the
connection itself is the answer.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from kube_node_ready import log
from kube_node_ready.exit_codes import ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FLAG = "--port="
_MOST_DIGITS = 5
_LAST_PORT = 65_535
_PAUSE_SECONDS = 0.1
_USAGE = "usage: kube-node-ready respond --port=PORT\n\nAccept TCP connections on PORT and close them.\n"


def main(words: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT, which exit with code 0. Return an exit code if it cannot run."""
    if list(words) in (["-h"], ["--help"]):
        sys.stdout.write(_USAGE)
        return ExitCode.OK
    port = _port(words)
    if port is None:
        shown = " ".join(words)[:80]
        sys.stderr.write(
            f"kube-node-ready respond: {shown!a} is invalid; expected --port=PORT with a port from 1 to 65535\n"
        )
        return ExitCode.INVALID
    # The first process of a container has no default handlers: without these, the pod would only end by SIGKILL.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(ExitCode.OK))
    try:
        listener = listen(port)
    except OSError as error:
        sys.stderr.write(f"kube-node-ready respond: cannot listen on port {port}: {error.strerror}\n")
        return ExitCode.UNEXPECTED
    log.log("Responder started", port=port)
    while True:
        answer(listener)


def listen(port: int) -> socket.socket:
    """For IPv4 and IPv6, where the node has both."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    return socket.create_server(("", port), family=family, backlog=128, dualstack_ipv6=dual)


def answer(listener: socket.socket) -> None:
    """Accept one connection and close it. A client that has given up meanwhile is not an error."""
    try:
        connection, _ = listener.accept()
        connection.close()
    except OSError as error:
        log.log("Failed to accept connection", level="debug", error=error.strerror)
        time.sleep(_PAUSE_SECONDS)  # out of memory or file descriptors: a loop without a pause would not help


def _port(words: Sequence[str]) -> int | None:
    if len(words) != 1 or not words[0].startswith(_FLAG):
        return None
    text = words[0].removeprefix(_FLAG)
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        return None
    return int(text) if 0 < int(text) <= _LAST_PORT else None
