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
from dataclasses import dataclass, replace
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
    NamespaceEnding,
    NamespaceMissing,
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


@dataclass(frozen=True, slots=True)
class Made:
    """What was made for a manifest and can be deleted, in that order; what stays and why; what nobody could see."""

    ours: Sequence[Json]
    left: Sequence[str] = ()
    unseen: Sequence[str] = ()


def plans(cluster: Cluster, wishes: Sequence[Wish], *, despite_conflicts: bool = False) -> list[Plan]:
    """Tries everything without changing anything. Raises Refused with every reason of all of them.

    Conflicts are no reason for whoever only wants to look.
    """
    wishes = list(_each_namespace_once(wishes))
    namespaces = {Ref.of(body).name for wish in wishes for body in wish.objects if body["kind"] == "Namespace"}
    to_come = {name for name in namespaces if cluster.get(Ref("Namespace", name)) is None}
    reasons: list[str] = []
    found = [_plan(cluster, wish, to_come, reasons) for wish in wishes]
    conflicts = [] if despite_conflicts else [one for planned in found for one in planned.conflicts]
    if conflicts:
        conflicts.append("--force-conflicts takes these fields over")
    if reasons or conflicts:
        raise Refused(list(dict.fromkeys([*reasons, *conflicts])))
    return found


def _each_namespace_once(wishes: Sequence[Wish]) -> Iterator[Wish]:
    """Several components may share one, and it carries nothing of any of them."""
    seen: set[Ref] = set()
    for wish in wishes:
        yield replace(wish, objects=[body for body in wish.objects if Ref.of(body) not in seen])
        seen |= {Ref.of(body) for body in wish.objects if body["kind"] == "Namespace"}


def _plan(cluster: Cluster, wish: Wish, to_come: set[str], reasons: list[str]) -> Plan:
    changes: list[Change] = []
    doubts: list[str] = []
    conflicts: list[str] = []
    for body in wish.objects:
        ref = Ref.of(body)
        try:
            before = cluster.get(ref)
            if ref.kind == "Namespace" and before is not None:
                if "deletionTimestamp" in before["metadata"]:
                    raise NamespaceEnding(str(ref))
                if not made_by_us(before):
                    continue  # someone else's: it is there, which is all that was asked for
            if against := list(objections(wish.manifest, body, before, adopt=wish.adopt)):
                reasons += against
                continue  # what the server would say of it only follows
            elsewhere = ref.namespace in to_come
            after = _tried_elsewhere(cluster, body, doubts) if elsewhere else _tried(cluster, body, wish, conflicts)
            changes.append(Change(ref, before, after))
        except Unreachable:
            raise
        except ClusterError as why:
            reasons.append(_reason(why, names.namespace(wish.manifest)))
    leftovers = _leftovers(cluster, wish.manifest, wish.objects)
    to_apply = {change.ref for change in changes}
    changes += [Change(Ref.of(one), one, None) for one in leftovers.ours]
    objects = tuple(body for body in wish.objects if Ref.of(body) in to_apply)
    warnings = (*doubts, *(f"left {one}" for one in leftovers.left), *leftovers.unseen)
    return Plan(objects, tuple(changes), warnings, tuple(conflicts))


def _reason(why: ClusterError, namespace: str) -> str:
    """Of a namespace it is the same for all that should be in it, so that it is said once."""
    ref = Ref("Namespace", namespace)
    match why:
        case NamespaceMissing():
            return f"{ref} is not there; write create_namespace: true, or make it first"
        case NamespaceEnding():
            return f"{ref} is being deleted; wait until it is gone, and run this again"
        case _:
            return str(why)


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
    made = existing(cluster, manifest, objects)
    for warning in (*(f"left {one}" for one in made.left), *made.unseen):
        tell(warning)
    for live in made.ours:
        cluster.delete(Ref.of(live), live["metadata"]["uid"], foreground=live["kind"] == "DaemonSet")
        if live["kind"] == "DaemonSet":
            _wait_until_gone(cluster, live, seconds)
        tell(f"deleted {Ref.of(live)}")


def existing(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> Made:
    """What is there of the manifest, and of earlier ones."""
    there = [live for body in objects if body["kind"] != "Namespace" and (live := cluster.get(Ref.of(body)))]
    found = [live for live in reversed(there) if is_of(manifest, live)]
    left = [_left(live, "which was made by") for live in found if not made_by_us(live)]
    leftovers = _leftovers(cluster, manifest, objects)
    ours = [*(live for live in found if made_by_us(live)), *leftovers.ours]
    return Made(ours, [*left, *leftovers.left], leftovers.unseen)


def _left(live: Json, why: str) -> str:
    return f"{Ref.of(live)}, {why} {', '.join(other_makers(live)) or 'someone else'}"


def our_namespace(cluster: Cluster, namespace: str) -> Json | None:
    """The namespace, if it is there. Raises ClusterError if someone else made it."""
    ref = Ref("Namespace", namespace)
    live = cluster.get(ref)
    if live is not None and not made_by_us(live):
        raise ClusterError(
            f"{ref} was not made by {names.MANAGED_BY}, so nothing was deleted; leave --delete-namespace out, and"
            " delete it by hand if you mean to"
        )
    return live


def remove_namespace(cluster: Cluster, live: Json, tell: Tell) -> None:
    """With everything in it, which takes the cluster a while."""
    cluster.delete(Ref.of(live), live["metadata"]["uid"])
    tell(f"{Ref.of(live)} is being deleted, with what is in it")


def _tried(cluster: Cluster, body: Json, wish: Wish, conflicts: list[str]) -> Json:
    """What the server would make of an object; of one with conflicts, if they were taken over."""
    ref = Ref.of(body)
    try:
        return cluster.apply(body, force=wish.force, dry_run=True)
    except Conflict as why:
        if not why.fields:
            raise
        conflicts += [f"{ref}: {one}" for one in why.fields]
        return cluster.apply(body, force=True, dry_run=True)
    except NamespaceMissing:
        raise
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


def _leftovers(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> Made:
    """What an earlier manifest made and this one does not ask for; ours is what we alone made."""
    wanted = {Ref.of(body) for body in objects}
    used = used_by_pods(objects)  # no longer made by us, perhaps, but needed all the same
    found: list[Json] = []
    left: list[str] = []
    unseen: list[str] = []
    for kind in _PRUNED:
        namespace = names.namespace(manifest) if KINDS[kind][2] else ""
        try:
            listed = cluster.list(kind, namespace, names.owned(manifest))
        except Forbidden:
            unseen.append(kind)
            continue
        bodies = [{"kind": kind} | live for live in listed]
        unwanted = [live for live in bodies if Ref.of(live) not in wanted and (kind, Ref.of(live).name) not in used]
        mine = [live for live in unwanted if made_by_us(live)]
        left += [_left(live, "which was also made by") for live in mine if other_makers(live)]
        found += [live for live in mine if not other_makers(live)]
    return Made(found, left, [_unseen(unseen)] if unseen else [])


def _unseen(kinds: Sequence[str]) -> str:
    cluster_wide = not any(KINDS[kind][2] for kind in kinds)
    what = "cluster_rules and this one has none" if cluster_wide else "more of these than this one"
    return (
        f"you may not list {', '.join(KINDS[kind][1] for kind in kinds)}: if an earlier manifest had {what}, what it"
        f" made for them stays; otherwise nothing does"
    )


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
