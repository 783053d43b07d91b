"""The progress of a rollout. Pure: computed from a DaemonSet and its pods as they are in the cluster."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from kubekit import durations
from kubekit.diagnostics import truncate
from kubernetes_daemonset.types import Json

# Reasons of waiting containers that are normal; all others mean a problem.
_USUAL: Final = {"ContainerCreating", "PodInitializing", ""}
_LONGEST: Final = 1_000  # characters of a reason
_MOST: Final = 20  # reasons


@dataclass(frozen=True, slots=True)
class Rollout:
    """How many nodes should run the agent, run this version of it, and have it available."""

    desired: int
    updated: int
    available: int
    seen: bool  # whether the DaemonSet controller has observed this version
    by_hand: bool = False

    @property
    def done(self) -> bool:
        if not self.seen:
            return False
        # With OnDelete nothing is updated until pods are deleted.
        return self.available >= self.desired and (self.by_hand or self.updated >= self.desired)

    @property
    def certain(self) -> int:
        """The least number of nodes with this version available: updated nodes need not be the available ones."""
        return max(0, self.updated + self.available - self.desired) if self.seen else 0

    def __str__(self) -> str:
        if not self.seen:
            return "waiting for the DaemonSet controller"
        if not self.desired:
            return "no node matches"
        by_hand = " (OnDelete: delete a pod to update it)" if self.by_hand else ""
        return f"{self.updated} of {self.desired} nodes updated, {self.available} available{by_hand}"


def rollout(daemon_set: Json) -> Rollout:
    status = daemon_set.get("status", {})
    return Rollout(
        desired=status.get("desiredNumberScheduled", 0),
        updated=status.get("updatedNumberScheduled", 0),
        available=status.get("numberAvailable", 0),
        seen=status.get("observedGeneration", 0) >= daemon_set["metadata"].get("generation", 1),
        by_hand=daemon_set["spec"].get("updateStrategy", {}).get("type") == "OnDelete",
    )


def pod_problems(pods: Iterable[Json]) -> list[str]:
    """Return why pods are not running, the most frequent reason first, as in `kubectl describe`.

    Kubelets write these texts, so of each pod only a short one is kept.
    """
    reasons = Counter(truncate(reason, _LONGEST) for pod in pods if (reason := _problem(pod)))
    lines = [f"{durations.plural(count, 'pod')}: {reason}" for reason, count in reasons.most_common(_MOST)]
    return [*lines, *([f"and {len(reasons) - _MOST} more reasons"] if len(reasons) > _MOST else [])]


def complaints(events: Iterable[Json]) -> list[str]:
    """Return the warnings of the DaemonSet controller, the latest first: mostly about pods that it cannot create."""
    warnings = [_dated(event) for event in events if event.get("type") == "Warning"]
    latest = sorted(warnings, key=itemgetter(0), reverse=True)
    return list(dict.fromkeys(text for _, text in latest))


def _dated(event: Json) -> tuple[str, str]:
    date = str(event.get("lastTimestamp") or event.get("eventTime") or "")
    reason, message = str(event.get("reason", "?")), str(event.get("message", ""))
    return truncate(date, _LONGEST), f"{truncate(reason, _LONGEST)}: {truncate(message, _LONGEST)}"


def _problem(pod: Json) -> str:
    status = pod.get("status", {})
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason", "") not in _USUAL:
            return f"{container['name']} is waiting: {_reason(waiting)}"
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"cannot be scheduled: {condition.get('message', '')}"
    return (
        f"{status['reason']}: {status.get('message', '')}"
        if status.get("phase") == "Failed" and "reason" in status
        else ""
    )


def _reason(waiting: Mapping[str, str]) -> str:
    message = waiting.get("message", "")
    return f"{waiting['reason']} ({message})" if message else waiting["reason"]
