"""Requests to the API server, one at a time and each bounded in time: bytes in, bytes out, the controller's errors.

Each is made in a thread of its own: where the API server has a name, libc may take minutes to resolve it on a node
whose DNS is broken, and nothing can hurry it.
"""

import queue
import threading
from collections.abc import Callable

from kube_node_ready import __version__
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.model import CheckFailedError, Deadline
from kube_node_ready.checks.wire import Answer, NotSentError
from kube_node_ready.kube import errors
from kube_node_ready.kube.errors import InvalidRequest, Unreachable

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
CALL_SECONDS = 8.0
_TO_SAY_WHY = 0.5
"""What ends by its own deadline knows better what it was waiting for."""
_AGENT = f"kube-node-ready/{__version__}"
_LOWEST_REFUSAL = 300


class Api:
    """`find` is asked before each request where the server is, and what to show it: tokens do not last."""

    def __init__(self, find: Callable[[], Access]) -> None:
        self._find = find

    def get(self, path: str) -> bytes:
        return self._ask("GET", path)

    def create(self, path: str, body: bytes) -> bytes:
        return self._ask("POST", path, body)

    def patch(self, path: str, body: bytes, kind: str) -> bytes:
        return self._ask("PATCH", path, body, kind)

    def _ask(self, method: str, path: str, body: bytes = b"", kind: str = JSON) -> bytes:
        call = f"{method} {path}"
        try:
            answer = _in_time(lambda: self._answer(method, path, body, kind))
        except NotSentError as error:
            raise InvalidRequest(str(error.__cause__), method) from error
        except (CheckFailedError, TimeoutError) as why:
            raise Unreachable(0, "Unreachable", str(why) or f"no answer within {CALL_SECONDS:g} s", call) from why
        if answer.status >= _LOWEST_REFUSAL:
            after = answer.headers.get("retry-after", "")
            is_json_patch = kind == JSON_PATCH
            raise errors.of_answer(answer.status, answer.body, call, json_patch=is_json_patch, retry_after=after)
        return answer.body

    def _answer(self, method: str, path: str, body: bytes, kind: str) -> Answer:
        access, deadline = self._find(), Deadline(CALL_SECONDS)
        with access.converse(deadline, _AGENT) as conversation:
            if method == "GET":
                return conversation.get(access.path + path, deadline)
            return conversation.send(method, access.path + path, body, kind, deadline)


def _in_time(ask: Callable[[], Answer]) -> Answer:
    done: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(ask())
        except Exception as why:  # noqa: BLE001  raised again where it is waited for
            done.put(why)

    threading.Thread(target=run, daemon=True).start()
    try:
        answer = done.get(timeout=CALL_SECONDS + _TO_SAY_WHY)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, Exception):
        raise answer
    return answer
