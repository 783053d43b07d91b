"""How long the controller itself took: until its request reached the API server, by that server's audit log.

What the observer sees (a pod appears, a node is released) includes the API server's own work and its watches. On a
machine that the control plane keeps busy that is most of the time, and no controller can do anything about it.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from bench import measure
from bench.journal import Moment, Moments

_OK = range(200, 300)


class _Reference(Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Response(Struct, frozen=True):
    code: int = 0


class _Event(Struct, frozen=True, rename="camel"):
    stage: str
    verb: str
    request_received_timestamp: dt.datetime
    user_agent: str = ""
    object_ref: _Reference = _Reference()
    response_status: _Response = _Response()


@dataclass(frozen=True)
class Asked:
    """When each pod's creation, and each node's change that went through, was asked for: seconds since 1970."""

    pods: Mapping[str, float]
    nodes: Mapping[str, float]


def asked(log: Iterable[bytes], agent: str) -> Asked:
    decoder = msgspec.json.Decoder(_Event)
    found: dict[tuple[str, str], dict[str, float]] = {("create", "pods"): {}, ("patch", "nodes"): {}}
    for line in log:
        event = decoder.decode(line)
        what = found.get((event.verb, event.object_ref.resource))
        if what is None or event.object_ref.subresource or not event.user_agent.startswith(agent):
            continue
        if event.stage == "ResponseComplete" and event.response_status.code in _OK:
            what[event.object_ref.name] = event.request_received_timestamp.timestamp()
    return Asked(found["create", "pods"], found["patch", "nodes"])


@dataclass(frozen=True)
class Reactions:
    until_pod_was_asked_for: measure.Spread | None
    until_release_was_asked_for: measure.Spread | None
    until_both_were: measure.Spread | None
    """Both added up, node by node: a node's time of waiting on the controller and on nothing else."""


def reactions(moments: Moments, pods: Mapping[str, str], requests: Asked) -> Reactions:
    """`pods` maps a pod's name to its node's; `moments` and requests go by the same clock."""
    created = {pods[pod]: at for pod, at in requests.pods.items() if pod in pods}
    first = _since(moments[Moment.GATED], created)
    second = _since(moments[Moment.POD_SUCCEEDED], requests.nodes)
    both = [first[name] + second[name] for name in first if name in second]
    return Reactions(measure.spread(list(first.values())), measure.spread(list(second.values())), measure.spread(both))


def _since(seen: Mapping[str, float], then: Mapping[str, float]) -> dict[str, float]:
    """The controller may see a thing before the observer does; that is no time at all."""
    return {name: max(then[name] - at, 0.0) for name, at in seen.items() if name in then}
