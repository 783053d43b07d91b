"""Read and write the agent's own Node. Every write is idempotent."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from kube_node_ready.agent.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Api
from kube_node_ready.agent.model import Observation, Rules
from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION
from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.paths import object_path
from kube_node_ready.api.record import Outcome
from kube_node_ready.checks.transport import Response  # noqa: TC001  as everywhere else
from kube_node_ready.kube.errors import AlreadyExists, KubeError, NotFound, Rejected, Unreachable
from kube_node_ready.log import log
from kube_node_ready.verification import events, messages, node_reader, patches
from kube_node_ready.verification.effects import CloseGate, EmitEvent, OpenGate, WriteStatus
from kube_node_ready.verification.model import Policy

COMPONENT = "kube-node-ready"
_FORBIDDEN = 403
_encode = msgspec.json.encode

_RETRY_CONDITIONS_AFTER = timedelta(minutes=10)
"""How long no condition is written after one was rejected. The right can be granted later."""
Write = OpenGate | WriteStatus | CloseGate | EmitEvent


class _Status(objects.Wire, frozen=True):
    conditions: tuple[objects.Condition, ...] = ()


class _Conditions(objects.Wire, frozen=True):
    """Conditions of a Node, which the controller's informer does not keep."""

    status: _Status = _Status()


_decode_node = tolerant(msgspec.json.Decoder(objects.Node).decode)
_decode_conditions = tolerant(msgspec.json.Decoder(_Conditions).decode)


class NodeClient:
    """`instance` is the pod that Events come from."""

    def __init__(self, api: Api, name: str, rules: Rules, instance: str, now: Callable[[], datetime]) -> None:
        self.name = name
        self._api = api
        self._path = object_path("v1", "nodes", name)
        self._status_path = object_path("v1", "nodes", name, subresource="status")
        self._rules = rules
        self._instance = instance
        self._now = now
        self._rejected_at: datetime | None = None
        self.response: Response | None = None
        """The response to the last read; None if it failed. In a partial run, the API and clock checks use it."""

    def read(self) -> Observation:
        self.response = None
        response = self._api.read(self._path)
        try:
            wire = _decode_node(response.body)
            conditions = _decode_conditions(response.body).status.conditions
        except msgspec.MsgspecError as error:
            raise Unreachable(0, "Garbled", f"the response is not a Node: {error}", f"GET {self._path}") from error
        self.response = response
        shown = next((known.status for known in conditions if known.type == CONDITION), "")
        return Observation(
            now=self._now(),
            node=node_reader.read_node(wire, self._rules.policy),
            version=wire.metadata.resource_version,
            condition=shown if self._can_write_conditions() else None,
            size=len(response.body),
        )

    def write(self, effect: Write, policy: Policy) -> None:
        match effect:
            case OpenGate(node, record, version):
                self._api.patch(self._path, _encode(patches.open_gate(node, record, policy, version)), JSON_PATCH)
            case CloseGate(node, record, version):
                patch = patches.close_gate(node, record, policy, self._rules.gate, version)
                self._api.patch(self._path, _encode(patch), JSON_PATCH)
            case WriteStatus():
                self._write_record(effect, policy)
            case EmitEvent():
                self._emit_event(effect)
            case _:
                assert_never(effect)

    def _write_record(self, effect: WriteStatus, policy: Policy) -> None:
        if self._can_write_conditions():
            try:
                self._write_status(effect, policy)
            except Rejected as error:
                if effect.version and error.status != _FORBIDDEN:  # the server might reject the record
                    raise
                self._pause_conditions(effect.node.name, error)
            except KubeError as error:
                if effect.record.cause not in messages.REJECTION_REASONS:
                    raise
                # Events and the log show the rejection, too, and the next step retries.
                log(
                    "Failed to write condition", level="debug", node=self.name, error=error.message, status=error.status
                )
            else:
                return
        # The record counts the retries, so it is always written. A proof was written when the gate was opened.
        if effect.version and effect.record.outcome is not Outcome.PASSED:
            body = _encode(patches.adopt_node(effect.node, effect.record, effect.version))
            self._api.patch(self._path, body, MERGE_PATCH)

    def _pause_conditions(self, node: str, error: Rejected) -> None:
        self._rejected_at = self._now()
        log("Failed to write condition", level="warn", node=node, error=error.message, status=error.status)

    def _can_write_conditions(self) -> bool:
        return self._rejected_at is None or self._now() - self._rejected_at > _RETRY_CONDITIONS_AFTER

    def _write_status(self, effect: WriteStatus, policy: Policy) -> None:
        body = _encode(patches.write_status(effect.node, effect.record, policy, effect.version))
        self._api.patch(self._status_path, body, STRATEGIC_PATCH)

    def _emit_event(self, effect: EmitEvent) -> None:
        try:
            self._api.create(events.PATH, _encode(events.event_object(effect, self._now(), COMPONENT, self._instance)))
        except AlreadyExists:
            pass
        except (Rejected, NotFound) as error:  # forbidden, or a quota: no node must wait for that
            log("Failed to write Event", level="warn", reason=effect.reason, error=error.message, status=error.status)
