"""Count API requests per client from the audit log."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


class Call(NamedTuple):
    """One kind of request."""

    agent: str
    """The start of the user agent, up to the first slash or blank: `kube-scheduler`, `lightkube`."""
    verb: str
    resource: str
    """With its subresource: `pods/binding`. A path such as `/readyz` for requests without a resource."""
    code: int


@dataclass
class Calls:
    """Requests during a period. Complete when the period has ended."""

    by_kind: Counter[Call] = field(default_factory=Counter)

    def count(
        self, *, agent: str | None = None, verb: str | None = None, resource: str | None = None, code: int | None = None
    ) -> int:
        """Return how many requests match all arguments."""
        wanted = (agent, verb, resource, code)
        return sum(
            number
            for call, number in self.by_kind.items()
            if all(expected is None or expected == value for expected, value in zip(wanted, call, strict=True))
        )


class AuditLog:
    def __init__(self, path: Path) -> None:
        self._path = path

    def calls(self, start: int = 0) -> Calls:
        """Return all requests answered so far, or those after the byte offset `start`."""
        return Calls(Counter(call for event in self._events(start) if (call := _call(event))))

    @contextlib.contextmanager
    def window(self) -> Iterator[Calls]:
        """Yield the requests that are answered while the block runs."""
        start = self._path.stat().st_size if self._path.exists() else 0
        calls = Calls()
        yield calls
        calls.by_kind.update(self.calls(start).by_kind)

    def _events(self, start: int) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            log.seek(start)
            for line in log:
                # An incomplete line is still being written; it is read the next time.
                if line.endswith(b"\n"):
                    yield json.loads(line)


def _call(event: dict[str, Any]) -> Call | None:
    """Return the request of a record: a watch when it starts, because it might never end; others when answered."""
    if event["stage"] != ("ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"):
        return None
    asked = event.get("objectRef", {})
    resource = "/".join(filter(None, [asked.get("resource"), asked.get("subresource")]))
    path = event["requestURI"].partition("?")[0]
    agent = event.get("userAgent", "").replace("/", " ").partition(" ")[0]
    return Call(agent, event["verb"], resource or path, event.get("responseStatus", {}).get("code", 0))
