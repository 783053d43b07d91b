"""The type of a Kubernetes object, or a part of one, as JSON."""

from typing import Any

Json = dict[str, Any]
