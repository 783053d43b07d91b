"""Our own Node: read, and written. What is there already is success."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from kube_node_ready import objects
from kube_node_ready.api_paths import object_path
from kube_node_ready.daemonset.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Api
from kube_node_ready.daemonset.model import Rules, Seen
from kube_node_ready.kube.errors import AlreadyExists, KubeError, NotFound, Refused, Unreachable
from kube_node_ready.log import log
from kube_node_ready.verify import events, nodes, patches
from kube_node_ready.verify.model import Announce, CloseGate, Outcome, Policy, Release, WriteRecord

COMPONENT = "kube-node-ready"
_FORBIDDEN = 403
_encode = msgspec.json.encode

_UNTIL_ASKED_AGAIN = timedelta(minutes=10)
"""Whoever may not write conditions may be allowed to later; a pod can live for months."""
Write = Release | WriteRecord | CloseGate | Announce


class _Status(objects.Wire, frozen=True):
    conditions: tuple[objects.Condition, ...] = ()


class _Conditions(objects.Wire, frozen=True):
    """The controller's copy of a Node does without these: it has thousands."""

    status: _Status = _Status()


class OwnNode:
    """`instance` is the pod that Events come from."""

    def __init__(self, api: Api, name: str, rules: Rules, instance: str, now: Callable[[], datetime]) -> None:
        self.name = name
        self._api = api
        self._path = object_path("v1", "nodes", name)
        self._status_path = object_path("v1", "nodes", name, subresource="status")
        self._rules = rules
        self._instance = instance
        self._now = now
        self._refused_at: datetime | None = None

    def look(self) -> Seen:
        answer = self._api.get(self._path)
        try:
            wire = msgspec.json.decode(answer, type=objects.Node)
            conditions = msgspec.json.decode(answer, type=_Conditions).status.conditions
        except msgspec.MsgspecError as why:
            raise Unreachable(0, "Garbled", f"this is no Node: {why}", f"GET {self._path}") from why
        shown = next((known.status for known in conditions if known.type == patches.CONDITION), "")
        return Seen(
            now=self._now(),
            node=nodes.read_node(wire, self._rules.policy),
            version=wire.metadata.resource_version,
            condition=shown if self._may_write_conditions() else None,
        )

    def write(self, effect: Write, policy: Policy) -> None:
        match effect:
            case Release(node, record):
                self._api.patch(self._path, _encode(patches.release(node, record, policy)), JSON_PATCH)
            case CloseGate(node, record, version):
                patch = patches.engage(node, record, policy, self._rules.gate, version)
                self._api.patch(self._path, _encode(patch), JSON_PATCH)
            case WriteRecord():
                self._write_record(effect, policy)
            case Announce():
                self._announce(effect)
            case _:
                assert_never(effect)

    def _write_record(self, effect: WriteRecord, policy: Policy) -> None:
        if self._may_write_conditions():
            try:
                self._write_status(effect, policy)
            except Refused as error:
                if effect.version and error.status != _FORBIDDEN:  # it can be the record that the server refuses
                    raise
                self._do_without_conditions(effect.node.name, error)
            except KubeError as error:
                if effect.record.cause not in patches.REFUSED:
                    raise
                # Events and the log show the refusal, too, and the next look tries again.
                log("Failed to write condition", level="debug", node=self.name, error=str(error))
            else:
                return
        # Retries are counted by the record, so it must be written in any case. A proof is on record since the release.
        if effect.version and effect.record.outcome is not Outcome.PASSED:
            body = _encode(patches.adoption(effect.node, effect.record, effect.version))
            self._api.patch(self._path, body, MERGE_PATCH)

    def _do_without_conditions(self, node: str, why: Refused) -> None:
        self._refused_at = self._now()
        log("There will be no condition on the Node", level="warn", node=node, trouble=str(why))

    def _may_write_conditions(self) -> bool:
        return self._refused_at is None or self._now() - self._refused_at > _UNTIL_ASKED_AGAIN

    def _write_status(self, effect: WriteRecord, policy: Policy) -> None:
        body = _encode(patches.status(effect.node, effect.record, policy, effect.version))
        self._api.patch(self._status_path, body, STRATEGIC_PATCH)

    def _announce(self, news: Announce) -> None:
        try:
            self._api.create(events.PATH, _encode(events.event(news, self._now(), COMPONENT, self._instance)))
        except AlreadyExists:
            pass
        except (Refused, NotFound) as why:  # no right to, or a quota: no node must wait for that
            log("An Event could not be written", level="warn", reason=news.reason, trouble=why.message)
