# ruff: noqa: N818  what happened, and not always a mistake
"""Rendered objects -> a cluster, by server-side apply.

Nothing is changed before everything was tried: each object is sent as a dry run first, and a refusal, a conflict with
another manager or an object that belongs to someone else ends it there. Only a namespace that is missing is made before
the last try, since nothing can be tried in one that is not there. Every write is absolute and may be repeated, so
whatever interrupts a deployment, running it again finishes it.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.backends.cluster import (
    KINDS,
    Cluster,
    ClusterError,
    Conflict,
    Forbidden,
    Invalid,
    Missing,
    Unreachable,
)
from kubernetes_daemonset.backends.ownership import is_of, made_by_us, objections, other_makers
from kubernetes_daemonset.changes import Change, Plan, Ref, used_by_pods
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.rollout import Rollout, complaints, rollout, troubles

_POLL: Final = 0.5  # seconds; one small object is read
_TROUBLE_EVERY: Final = 4  # polls; pods are many, and their troubles last
_PRUNED: Final = ("ConfigMap", "Secret", "ServiceAccount", "RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole")
# Where objects for a namespace that is yet to be made are tried. Every cluster has it.
_STAND_IN: Final = "default"
_TO_APPLY: Final = ("create", "patch")  # the rights that the server wants for an apply that makes an object
_LONGEST_NAME: Final = 253

Tell = Callable[[str], None]


class Refused(Exception):
    """The cluster will not take the objects. Nothing was changed, but for namespaces that were made to try them in."""

    def __init__(self, reasons: Sequence[str], made: Sequence[Ref] = ()) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons
        self.made = made


class TooLate(Exception):
    """The rollout did not finish in time. The objects are in the cluster."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A component and its objects, and how far its owner lets us go to have them applied."""

    manifest: KubernetesDaemonSet
    objects: Sequence[Json]
    force: bool = False  # take over fields that another manager owns
    adopt: bool = False  # take over objects that someone else made


def plans(cluster: Cluster, wishes: Sequence[Wish]) -> list[Plan]:
    """Tries everything without changing anything. Raises Refused with every reason of all of them."""
    namespaces = {Ref.of(body).name for wish in wishes for body in wish.objects if body["kind"] == "Namespace"}
    to_come = {name for name in namespaces if cluster.get(Ref("Namespace", name)) is None}
    reasons: list[str] = []
    found = [_plan(cluster, wish, to_come, reasons) for wish in wishes]
    if reasons:
        raise Refused(list(dict.fromkeys(reasons)))
    return found


def _plan(cluster: Cluster, wish: Wish, to_come: set[str], reasons: list[str]) -> Plan:
    changes: list[Change] = []
    doubts: list[str] = []
    for body in wish.objects:
        ref = Ref.of(body)
        try:
            before = cluster.get(ref)
            if ref.kind == "Namespace" and before is not None and not made_by_us(before):
                continue  # someone else's: it is there, which is all that was asked for
            reasons += objections(wish.manifest, body, before, adopt=wish.adopt)
            elsewhere = ref.namespace in to_come
            after = _tried_elsewhere(cluster, body, doubts) if elsewhere else _tried(cluster, body, wish)
            changes.append(Change(ref, before, after))
        except Conflict as why:
            reasons += [f"{ref}: {one}" for one in why.fields] or [str(why)]
        except Unreachable:
            raise
        except ClusterError as why:
            reasons.append(str(why))
    leftovers, warnings = _leftovers(cluster, wish.manifest, wish.objects)
    to_apply = {change.ref for change in changes}
    changes += [Change(Ref.of(one), one, None) for one in leftovers]
    objects = tuple(body for body in wish.objects if Ref.of(body) in to_apply)
    return Plan(objects, tuple(changes), (*doubts, *warnings))


def make_namespaces(cluster: Cluster, planned: Plan, tell: Tell) -> None:
    """Those that are yet to be made: what is to be in them can be tried only when they are there."""
    _apply(cluster, [body for body in planned.objects if Ref.of(body) in planned.new_namespaces], tell)


def carry_out(cluster: Cluster, planned: Plan, *, force: bool = False, made: Sequence[Ref] = (), tell: Tell) -> None:
    """Applies the objects in their order, but for those that were made just now."""
    _apply(cluster, [body for body in planned.objects if Ref.of(body) not in made], tell, force=force)


def _apply(cluster: Cluster, objects: Sequence[Json], tell: Tell, *, force: bool = False) -> None:
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
    cluster: Cluster,
    manifest: KubernetesDaemonSet,
    seconds: float,
    tell: Callable[[Rollout, str], None],
    began: float | None = None,
) -> Rollout:
    """Until every node that should runs this version, or raises TooLate with what keeps it.

    A server that does not answer for a while is waited for too: a network agent's own rollout can be the cause.
    """
    ref = Ref("DaemonSet", manifest.metadata.name, names.namespace(manifest))
    state, trouble = Rollout(0, 0, 0, seen=False), [""]
    for look in _looks((time.monotonic() if began is None else began) + seconds):
        try:
            live = cluster.get(ref)
            if live is None:
                raise ClusterError(f"{ref} was deleted meanwhile")
            state = rollout(live)
            if look % _TROUBLE_EVERY == 0 and not state.done:
                trouble = _troubles(cluster, manifest, live) or [""]
        except Unreachable as why:
            trouble = [str(why)]
        tell(state, trouble[0])
        if state.done:
            return state
    raise TooLate("; ".join([f"{ref}: after {seconds:g} s, {state}", *filter(None, trouble)]))


def remove(
    cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json], *, seconds: float, tell: Tell
) -> None:
    """Deletes everything that we made for the manifest, now or earlier, pods first; the namespace stays."""
    found, warnings = existing(cluster, manifest, objects)
    for warning in warnings:
        tell(warning)
    for live in found:
        cluster.delete(Ref.of(live), live["metadata"]["uid"], foreground=live["kind"] == "DaemonSet")
        if live["kind"] == "DaemonSet":
            _wait_until_gone(cluster, live, seconds)
        tell(f"deleted {Ref.of(live)}")


def existing(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> tuple[list[Json], list[str]]:
    """What we made for the manifest, in the order of deletion; and what is left, or could not be looked at."""
    there = [live for body in objects if body["kind"] != "Namespace" and (live := cluster.get(Ref.of(body)))]
    found = [live for live in reversed(there) if is_of(manifest, live)]
    left = [_left(live, "which was made by") for live in found if not made_by_us(live)]
    leftovers, warnings = _leftovers(cluster, manifest, objects)
    return [*(live for live in found if made_by_us(live)), *leftovers], [*left, *warnings]


def _left(live: Json, why: str) -> str:
    return f"left {Ref.of(live)}, {why} {', '.join(other_makers(live)) or 'someone else'}"


def remove_namespace(cluster: Cluster, namespace: str, tell: Tell) -> None:
    """Deletes the namespace, with everything in it, if this tool made it."""
    ref = Ref("Namespace", namespace)
    live = cluster.get(ref)
    if live is None:
        return
    if not made_by_us(live):
        raise ClusterError(f"{ref} was not made by {names.MANAGED_BY}; delete it by hand if you mean to")
    cluster.delete(ref, live["metadata"]["uid"])
    tell(f"deleted {ref} and what is in it")


def _tried(cluster: Cluster, body: Json, wish: Wish) -> Json:
    """What the server would make of an object."""
    ref = Ref.of(body)
    try:
        return cluster.apply(body, force=wish.force, dry_run=True)
    except Missing:
        # To whoever is not an administrator, a binding's role must exist; in a dry run, one that comes along does not.
        role = Ref(ref.kind.removesuffix("Binding"), ref.name, ref.namespace)
        if role == ref or role not in map(Ref.of, wish.objects):
            raise
        return body


def _tried_elsewhere(cluster: Cluster, body: Json, doubts: list[str]) -> Json:
    """The same for a namespace that is yet to be made, as far as can be known: another one stands in for it.

    Rights can be asked for. Whether the object itself is right does not depend on the namespace. All else that the
    server says is said of the stand-in: its policies and quotas, which are told and stop nothing.
    """
    ref = Ref.of(body)
    for verb in _TO_APPLY:
        if not cluster.may(verb, ref):
            where = f"{KINDS[ref.kind][1]} in {ref.namespace}"
            raise Forbidden(f"{ref}: you may not {verb} {where}; if whoever makes the namespace may, make it first")
    moved = copy.deepcopy(body)
    stand_in = Ref(ref.kind, f"{ref.namespace}-{ref.name}"[:_LONGEST_NAME].rstrip("-."), _STAND_IN)
    moved["metadata"] |= {"namespace": stand_in.namespace, "name": stand_in.name}
    try:
        result = cluster.apply(moved, force=True, dry_run=True)
    except Missing:  # the role of a binding, which comes along
        return body
    except Unreachable:
        raise
    except ClusterError as why:
        said = str(why).replace(f'"{stand_in.name}"', f'"{ref.name}"').removeprefix(f"{stand_in}: ")
        if isinstance(why, Invalid):
            raise Invalid(f"{ref}: {said}") from why
        doubts.append(f"{ref}: Namespace {ref.namespace} is yet to be made; in {_STAND_IN} it would be refused: {said}")
        return body
    result["metadata"] |= {"namespace": ref.namespace, "name": ref.name}
    return result


def _leftovers(
    cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]
) -> tuple[list[Json], list[str]]:
    """What we alone made for an earlier manifest and this one does not ask for; and what stays or was not seen."""
    wanted = {Ref.of(body) for body in objects}
    used = used_by_pods(objects)  # no longer made by us, perhaps, but needed all the same
    found: list[Json] = []
    warnings: list[str] = []
    for kind in _PRUNED:
        namespace = names.namespace(manifest) if KINDS[kind][2] else ""
        try:
            listed = cluster.list(kind, namespace, names.owned(manifest))
        except Forbidden as why:
            warnings.append(f"cannot look for leftovers of earlier manifests: {why}")
            continue
        bodies = [{"kind": kind} | live for live in listed]
        unwanted = [live for live in bodies if Ref.of(live) not in wanted and (kind, Ref.of(live).name) not in used]
        mine = [live for live in unwanted if made_by_us(live)]
        warnings += [_left(live, "which was also made by") for live in mine if other_makers(live)]
        found += [live for live in mine if not other_makers(live)]
    return found, warnings


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
