"""Send requests to the API server, one at a time, each with a timeout. Errors are those of `kube.errors`.

Each is made in a thread of its own: where the API server has a name, libc can take minutes to resolve it on a node
whose DNS is broken, and nothing can hurry it.
"""

import queue
import threading
from collections.abc import Callable

from kube_node_ready import __version__
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.transport import NotSentError, Response
from kube_node_ready.kube import errors
from kube_node_ready.kube.errors import InvalidRequest, Unreachable

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
CALL_SECONDS = 8.0
_TO_SAY_WHY = 0.5
"""Extra time for a request that times out by itself: its error is more precise."""
_AGENT = f"kube-node-ready/{__version__}"
_LOWEST_ERROR = 300


class Api:
    """`find` is called before each request for the server and the credentials, since tokens expire."""

    def __init__(self, find: Callable[[], Access]) -> None:
        self._find = find

    def get(self, path: str) -> bytes:
        return self.read(path).body

    def read(self, path: str) -> Response:
        """As `get`, with the response's headers and times."""
        return self._send("GET", path)

    def create(self, path: str, body: bytes) -> bytes:
        return self._send("POST", path, body).body

    def patch(self, path: str, body: bytes, kind: str) -> bytes:
        return self._send("PATCH", path, body, kind).body

    def _send(self, method: str, path: str, body: bytes = b"", kind: str = JSON) -> Response:
        call = f"{method} {path}"
        try:
            response = _with_timeout(lambda: self._exchange(method, path, body, kind))
        except NotSentError as error:
            raise InvalidRequest(str(error.__cause__), method) from error
        except (CheckFailedError, TimeoutError) as error:
            raise Unreachable(0, "Unreachable", str(error) or f"no response within {CALL_SECONDS:g} s", call) from error
        if response.status >= _LOWEST_ERROR:
            after = response.headers.get("retry-after", "")
            is_json_patch = kind == JSON_PATCH
            raise errors.from_response(
                response.status, response.body, call, json_patch=is_json_patch, retry_after=after
            )
        return response

    def _exchange(self, method: str, path: str, body: bytes, kind: str) -> Response:
        access, deadline = self._find(), Deadline(CALL_SECONDS)
        with access.open(deadline, _AGENT) as connection:
            if method == "GET":
                return connection.get(access.path + path, deadline)
            return connection.send(method, access.path + path, body, kind, deadline)


def _with_timeout(ask: Callable[[], Response]) -> Response:
    done: queue.SimpleQueue[Response | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(ask())
        except Exception as error:  # noqa: BLE001  raised again by the caller's thread
            done.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        response = done.get(timeout=CALL_SECONDS + _TO_SAY_WHY)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(response, Exception):
        raise response
    return response
