# ruff: noqa: N818  what happened, and not always a mistake
"""Rendered objects -> a cluster, by server-side apply.

Nothing is changed before everything was tried: each object is sent as a dry run first, and a refusal, a conflict with
another manager or an object that belongs to someone else ends it there. Every write is absolute and may be repeated, so
whatever interrupts a deployment, running it again finishes it.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.backends.cluster import KINDS, Cluster, ClusterError, Conflict, Forbidden, Unreachable
from kubernetes_daemonset.changes import Change, Plan, Ref
from kubernetes_daemonset.rollout import Rollout, complaints, rollout, troubles

Json = dict[str, Any]

_POLL: Final = 0.5  # seconds; one small object is read
_TROUBLE_EVERY: Final = 4  # polls; pods are many, and their troubles last
_PRUNED: Final = ("ConfigMap", "Secret", "ServiceAccount", "RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole")
# What stands in for a namespace that is yet to be made, when objects for it are tried.
_STAND_IN: Final = "default"

Tell = Callable[[str], None]


class Refused(Exception):
    """The cluster will not take the objects. Nothing was changed."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


class TooLate(Exception):
    """The rollout did not finish in time. The objects are in the cluster."""


def plan(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json], *, force: bool = False) -> Plan:
    """Tries everything without changing anything. Raises Refused with every reason."""
    reasons: list[str] = []
    changes: list[Change] = []
    missing_namespace = _missing_namespace(cluster, manifest, objects)
    for body in objects:
        ref = Ref.of(body)
        try:
            before = cluster.get(ref)
            reasons += _not_ours(manifest, body, before)
            after = _tried(cluster, body, force=force, elsewhere=missing_namespace)
            changes.append(Change(ref, before, after))
        except Conflict as why:
            reasons += [f"{ref}: {one}" for one in why.fields] or [str(why)]
        except Unreachable:
            raise
        except ClusterError as why:
            reasons.append(str(why))
    if reasons:
        raise Refused(list(dict.fromkeys(reasons)))
    leftovers, warnings = _leftovers(cluster, manifest, objects)
    return Plan((*changes, *(Change(Ref.of(one), one, None) for one in leftovers)), tuple(warnings))


def carry_out(cluster: Cluster, objects: Sequence[Json], *, force: bool = False, tell: Tell) -> None:
    """Applies the objects in their order."""
    for body in objects:
        cluster.apply(body, force=force)
        tell(f"applied {Ref.of(body)}")


def prune(cluster: Cluster, planned: Plan, tell: Tell) -> None:
    """Deletes what an earlier manifest made and this one does not."""
    for change in planned.changes:
        if change.after is None and change.before is not None:
            cluster.delete(change.ref, change.before["metadata"]["uid"])
            tell(f"deleted {change.ref}, which the manifest no longer asks for")


def wait(
    cluster: Cluster, manifest: KubernetesDaemonSet, seconds: float, tell: Callable[[Rollout, str], None]
) -> Rollout:
    """Until every node that should runs this version, or raises TooLate with what keeps it."""
    ref = Ref("DaemonSet", manifest.metadata.name, names.namespace(manifest))
    deadline = time.monotonic() + seconds
    trouble: list[str] = []
    for look in _looks(deadline):
        live = cluster.get(ref) or {}
        if not live:
            raise ClusterError(f"{ref} was deleted meanwhile")
        state = rollout(live)
        if look % _TROUBLE_EVERY == 0 and not state.done:
            trouble = _troubles(cluster, manifest, live)
        tell(state, trouble[0] if trouble else "")
        if state.done:
            return state
    trouble = _troubles(cluster, manifest, live)
    raise TooLate("; ".join([f"{ref}: after {seconds:g} s, {state}", *trouble]))


def remove(
    cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json], *, seconds: float, tell: Tell
) -> None:
    """Deletes everything that was made for the manifest, now or earlier, pods first; the namespace stays."""
    found, warnings = existing(cluster, manifest, objects)
    for warning in warnings:
        tell(warning)
    for live in found:
        cluster.delete(Ref.of(live), live["metadata"]["uid"], foreground=live["kind"] == "DaemonSet")
        if live["kind"] == "DaemonSet":
            _wait_until_gone(cluster, live, seconds)
        tell(f"deleted {Ref.of(live)}")


def existing(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> tuple[list[Json], list[str]]:
    """What the manifest has in the cluster, in the order of deletion; and what could not be looked at."""
    found = [live for body in objects if body["kind"] != "Namespace" and (live := cluster.get(Ref.of(body)))]
    leftovers, warnings = _leftovers(cluster, manifest, objects)
    return [*reversed([live for live in found if _is_ours(manifest, live)]), *leftovers], warnings


def remove_namespace(cluster: Cluster, namespace: str, tell: Tell) -> None:
    """Deletes the namespace, with everything in it, if this tool made it."""
    ref = Ref("Namespace", namespace)
    live = cluster.get(ref)
    if live is None:
        return
    if live["metadata"].get("labels", {}).get(names.MANAGED_BY_LABEL) != names.MANAGED_BY:
        raise ClusterError(f"{ref} was not made by {names.MANAGED_BY}; delete it by hand if you mean to")
    cluster.delete(ref, live["metadata"]["uid"])
    tell(f"deleted {ref} and what is in it")


def _missing_namespace(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> str:
    """The namespace, if it is to be made and is not there yet."""
    namespace = names.namespace(manifest)
    made = any(body["kind"] == "Namespace" for body in objects)
    return namespace if made and cluster.get(Ref("Namespace", namespace)) is None else ""


def _tried(cluster: Cluster, body: Json, *, force: bool, elsewhere: str) -> Json:
    """What the server would make of an object. For a namespace that is yet to be made, another one stands in."""
    if not elsewhere or body["metadata"].get("namespace") != elsewhere:
        return cluster.apply(body, force=force, dry_run=True)
    moved = copy.deepcopy(body)
    moved["metadata"] |= {"namespace": _STAND_IN, "name": f"{elsewhere}-{body['metadata']['name']}"[:253].rstrip("-.")}
    try:
        result = cluster.apply(moved, force=True, dry_run=True)
    except Forbidden:  # rights in the stand-in say nothing about rights in the namespace
        return body
    result["metadata"] |= {"namespace": elsewhere, "name": body["metadata"]["name"]}
    return result


def _not_ours(manifest: KubernetesDaemonSet, body: Json, live: Json | None) -> Iterator[str]:
    if live is None or body["kind"] == "Namespace":
        return
    labels = live["metadata"].get("labels", {})
    ref = Ref.of(body)
    if labels.get(names.MANAGED_BY_LABEL) == names.MANAGED_BY and not _is_ours(manifest, live):
        yield f"{ref}: belongs to the component {labels.get(names.NAME, '?')}; give this one another name"
    if body["kind"] == "DaemonSet" and live["spec"]["selector"] != body["spec"]["selector"]:
        yield (
            f"{ref}: exists with the selector {live['spec']['selector'].get('matchLabels')}, which nobody can change;"
            f" run kubectl delete daemonset {ref.name} --namespace {ref.namespace} --cascade=orphan, apply again,"
            " then delete the old pods"
        )


def _is_ours(manifest: KubernetesDaemonSet, live: Json) -> bool:
    labels = live["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in names.owned(manifest).items())


def _leftovers(
    cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]
) -> tuple[list[Json], list[str]]:
    """What we made for an earlier manifest and this one does not ask for; and what we were not allowed to look for."""
    wanted = {Ref.of(body) for body in objects}
    found: list[Json] = []
    warnings = []
    for kind in _PRUNED:
        namespace = names.namespace(manifest) if KINDS[kind][2] else ""
        try:
            listed = cluster.list(kind, namespace, names.owned(manifest))
        except Forbidden as why:
            warnings.append(f"cannot look for leftovers of earlier manifests: {why}")
            continue
        bodies = [{"kind": kind} | live for live in listed]
        found += [live for live in bodies if Ref.of(live) not in wanted and _made_by_us(live)]
    return found, warnings


def _made_by_us(live: Json) -> bool:
    """Labels can be copied, and other tools deploy the same objects; what they made is theirs to delete."""
    return any(one.get("manager") == names.MANAGED_BY for one in live["metadata"].get("managedFields", []))


def _troubles(cluster: Cluster, manifest: KubernetesDaemonSet, live: Json) -> list[str]:
    """What keeps the rollout, as far as the caller may look: pods in trouble, or else pods that cannot be made."""
    ref = Ref.of(live)
    about = {"involvedObject.uid": live["metadata"]["uid"]}
    with suppress(Forbidden):
        if found := troubles(cluster.list("Pod", ref.namespace, names.selector(manifest))):
            return found
        return complaints(cluster.list("Event", ref.namespace, {}, about))[:1]
    return []


def _wait_until_gone(cluster: Cluster, live: Json, seconds: float) -> None:
    ref = Ref.of(live)
    for _ in _looks(time.monotonic() + seconds):
        now = cluster.get(ref)
        if now is None or now["metadata"]["uid"] != live["metadata"]["uid"]:
            return
    raise TooLate(f"{ref}: after {seconds:g} s its pods have not ended yet; it will be gone when they have")


def _looks(deadline: float) -> Iterator[int]:
    """0, 1, 2, … with a pause in between, until the deadline; at least one."""
    look = 0
    while True:
        yield look
        if time.monotonic() >= deadline:
            return
        time.sleep(_POLL)
        look += 1
