"""The controller, killed at a chosen write: `python -m tests.support.killable_controller --die-at=3:before --config=…`.

The signal is SIGKILL, so nothing of it has a chance to tidy up. "before" is when the request is ready to be sent,
"after" when its response has arrived and was not yet processed.
"""

import os
import signal
import sys
from typing import Any

from kube_node_ready import entrypoints
from kube_node_ready.kube.client import KubeClient

_READS = {"get", "watch"}


def mortal(write: int, moment: str) -> None:
    """From now on, this process does not survive its so-and-so-manieth write."""
    real = KubeClient._call
    count = 0

    async def call(self: KubeClient, request: Any, timeout_seconds: float) -> bytes:  # noqa: ANN401  the client's own
        nonlocal count
        if request.verb in _READS or "/leases" in request.path:
            return await real(self, request, timeout_seconds)
        count += 1
        mine = count
        if mine == write and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return await real(self, request, timeout_seconds)
        finally:
            if mine == write:
                os.kill(os.getpid(), signal.SIGKILL)

    KubeClient._call = call  # type: ignore[method-assign]


if __name__ == "__main__":
    chosen, *rest = sys.argv[1:]
    number, _, when = chosen.removeprefix("--die-at=").partition(":")
    mortal(int(number), when)
    entrypoints.controller(rest)
