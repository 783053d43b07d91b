"""Everything that happened to a Node since a moment, so that a test can assert what never happened."""

import json
from typing import Any

from lightkube.resources.core_v1 import Node

import lab

Json = dict[str, Any]
RECORD = "node-ready/verification"


class History:
    """The versions of one Node from now on, replayed by the API server. Nothing is missed between two looks."""

    def __init__(self, plane: lab.Plane, node: str) -> None:
        self._client = plane.client
        self._node = node
        (found,) = self._now()
        self.uid = str(found["metadata"]["uid"])
        self._since = str(found["metadata"]["resourceVersion"])

    def versions(self) -> list[Json]:
        """Every version, oldest first, up to the present one or the last one before the Node was deleted."""
        last = next((node["metadata"]["resourceVersion"] for node in self._now()), None)
        if last == self._since:
            return []
        found: list[Json] = []
        watched = self._client.watch(Node, fields={"metadata.name": self._node}, resource_version=self._since)
        for kind, version in watched:
            found.append(version.to_dict())
            if kind == "DELETED" or found[-1]["metadata"]["resourceVersion"] == last:
                break
        return found

    def records(self) -> list[Json]:
        """The verification records that the Node had, oldest first."""
        return [record for version in self.versions() if (record := record_of(version))]

    def was_ever_blamed(self) -> bool:
        """Whether a failure was ever attributed to the node itself."""
        return any(record.get("blamed", 0) or record.get("cause") in ("checks", "late") for record in self.records())

    def was_ever_gated(self, gate: str) -> bool:
        return any(is_gated(version, gate) for version in self.versions())

    def was_ever_open(self, gate: str) -> bool:
        return any(not is_gated(version, gate) for version in self.versions())

    def exists(self) -> bool:
        """Whether the Node is still there, and is the same one."""
        return any(node["metadata"]["uid"] == self.uid for node in self._now())

    def _now(self) -> list[Json]:
        return [node.to_dict() for node in self._client.list(Node, fields={"metadata.name": self._node})]


def record_of(node: Json) -> Json:
    """The Node's verification record; empty if it has none."""
    annotations = node["metadata"].get("annotations", {})
    record: Json = json.loads(annotations.get(RECORD, "{}"))
    return record


def is_gated(node: Json, gate: str) -> bool:
    return any(taint["key"] == gate for taint in node["spec"].get("taints", []))
