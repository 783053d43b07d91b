"""The controller's own reaction time, until its request reached the API server, from the audit log.

What the observer measures (a pod appears, a node is released) includes the API server's own work and its watches. On a
machine that is busy with the control plane this is most of the time, and no controller can change it.
"""

import datetime as dt
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from bench import measure, timeline
from bench.timeline import Moment, Moments

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
    """Request times of pod creations and successful node changes, in seconds since 1970."""

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
    """The sum of both per node: the time in which a node waited only for the controller."""
    all_the_rest: measure.Spread | None
    """The rest of a node's latency: the control plane, its watches, and the second that the pod runs."""


@dataclass(frozen=True)
class Waits:
    """Seconds per node until the controller sent its next request."""

    pod: Mapping[str, float]
    release: Mapping[str, float]

    @property
    def both(self) -> dict[str, float]:
        return {name: self.pod[name] + self.release[name] for name in self.pod if name in self.release}


def waits(moments: Moments, pods: Mapping[str, str], requests: Asked) -> Waits:
    """Return the reaction times. `pods` maps pod names to node names; `moments` and requests use the same clock."""
    created = {pods[pod]: at for pod, at in requests.pods.items() if pod in pods}
    return Waits(_since(moments[Moment.GATED], created), _since(moments[Moment.POD_SUCCEEDED], requests.nodes))


def reactions(moments: Moments, found: Waits) -> Reactions:
    parts = split(moments, found)
    return Reactions(
        until_pod_was_asked_for=measure.spread(list(found.pod.values())),
        until_release_was_asked_for=measure.spread(list(found.release.values())),
        until_both_were=measure.spread(list(found.both.values())),
        all_the_rest=measure.spread([rest for _, rest in parts]),
    )


def split(moments: Moments, found: Waits) -> list[tuple[float, float]]:
    """Return the latency of each released node as the controller's part and the rest, the fastest node first."""
    latency, own = timeline.between(moments, Moment.POSTED, Moment.RELEASED), found.both
    # The observer can receive an event after the controller has acted on it, but no part exceeds the total.
    parts = {name: min(own[name], whole) for name, whole in latency.items() if name in own}
    return [(parts[name], latency[name] - parts[name]) for name in sorted(parts, key=lambda name: latency[name])]


def grouped(parts: Sequence[tuple[float, float]], groups: int) -> dict[str, list[float]]:
    """Return the same for a plot: the means of equally sized groups of nodes."""
    edges = [len(parts) * number // groups for number in range(groups + 1)]
    cut = [parts[first:last] for first, last in itertools.pairwise(edges) if last > first]
    return {
        "controller": [statistics.fmean(own for own, _ in group) for group in cut],
        "control_plane": [statistics.fmean(rest for _, rest in group) for group in cut],
    }


def _since(seen: Mapping[str, float], then: Mapping[str, float]) -> dict[str, float]:
    """Return a duration, at least 0: the controller can receive an event before the observer."""
    return {name: max(then[name] - at, 0.0) for name, at in seen.items() if name in then}
