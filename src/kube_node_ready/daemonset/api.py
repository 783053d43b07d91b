"""Requests to the API server, one at a time and each bounded in time: bytes in, bytes out, the controller's errors."""

from collections.abc import Callable

from kube_node_ready import __version__
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.model import CheckFailedError, Deadline
from kube_node_ready.checks.wire import Answer
from kube_node_ready.kube import errors
from kube_node_ready.kube.errors import Unreachable

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
CALL_SECONDS = 8.0
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
            answer = self._answer(method, path, body, kind)
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
            return conversation.send(f"{method} {access.path}{path}", body, kind, deadline)
