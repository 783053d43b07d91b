"""How far a rollout is. Pure: a DaemonSet and its pods as the cluster shows them -> what to tell."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kubernetes_daemonset.objects import Json

# Reasons of waiting containers that mean trouble; ContainerCreating and PodInitializing are the way it goes.
_USUAL: Final = {"ContainerCreating", "PodInitializing", ""}


@dataclass(frozen=True, slots=True)
class Rollout:
    """How many nodes should run the agent, run this version of it, and have it available."""

    desired: int
    updated: int
    available: int
    seen: bool  # whether the DaemonSet's controller has looked at this version yet
    by_hand: bool = False

    @property
    def done(self) -> bool:
        if not self.seen:
            return False
        # With OnDelete nothing is updated until someone deletes pods.
        return self.available >= self.desired and (self.by_hand or self.updated >= self.desired)

    @property
    def certain(self) -> int:
        """On how many nodes, at least, this version is available: the updated ones need not be the available ones."""
        return max(0, self.updated + self.available - self.desired) if self.seen else 0

    def __str__(self) -> str:
        if not self.seen:
            return "waiting for the DaemonSet's controller"
        if not self.desired:
            return "no node matches"
        by_hand = " (OnDelete: delete a pod to have it updated)" if self.by_hand else ""
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


def troubles(pods: Iterable[Json]) -> list[str]:
    """Why pods are not running, the most frequent reason first: what a person would look for with kubectl describe."""
    found = Counter(reason for pod in pods if (reason := _trouble(pod)))
    return [f"{count} {'pod' if count == 1 else 'pods'}: {reason}" for reason, count in found.most_common()]


def complaints(events: Iterable[Json]) -> list[str]:
    """What the DaemonSet's controller complains of, the latest first: pods that it may not create, above all."""
    warnings = [one for one in events if one.get("type") == "Warning"]
    latest = sorted(warnings, key=lambda one: one.get("lastTimestamp") or one.get("eventTime") or "", reverse=True)
    return list(dict.fromkeys(f"{one.get('reason', '?')}: {one.get('message', '')}" for one in latest))


def _trouble(pod: Json) -> str:
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
