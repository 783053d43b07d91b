"""A Kubernetes object, or a part of one, as JSON would have it."""

from typing import Any

Json = dict[str, Any]
