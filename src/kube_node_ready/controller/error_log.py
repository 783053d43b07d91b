"""Log errors of the controller, at a limited rate."""

import time
import traceback
from pathlib import Path

from kube_node_ready.kube.errors import KubeError
from kube_node_ready.log import log

_API_ERROR_SECONDS = 10


class ErrorLog:
    def __init__(self) -> None:
        self._last_api_error = 0.0
        self._logged: set[str] = set()

    def api_error(self, error: KubeError) -> None:
        """Log at most one per ten seconds: if the API server is unavailable, the requests of all nodes fail."""
        if (now := time.monotonic()) - self._last_api_error > _API_ERROR_SECONDS:
            self._last_api_error = now
            log("API request failed", level="warn", **error.fields)

    def unexpected(self, node: str, error: Exception) -> None:
        """Log an unexpected error once per line of code."""
        *_, place = traceback.extract_tb(error.__traceback__)
        at = f"{Path(place.filename).name}:{place.lineno}"
        if at not in self._logged:
            self._logged.add(at)
            log("Reconcile failed unexpectedly", level="error", node=node, error=repr(error), at=at)
