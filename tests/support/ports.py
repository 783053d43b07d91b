"""Ports for programs that tests start."""

import random
import socket

_FIRST, _LAST = 24_000, 32_000
"""Above the lab's own ports, and below those that the kernel gives to clients, which any other test can have next."""


def unused_port() -> int:
    """Return a port that nothing listens on."""
    for port in random.sample(range(_FIRST, _LAST), 100):
        try:
            with socket.create_server(("", port)):
                return port
        except OSError:
            continue
    raise OSError(f"no port between {_FIRST} and {_LAST} is unused")
