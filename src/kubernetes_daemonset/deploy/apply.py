# ruff: noqa: N818 - named for conditions, not all of which are errors
"""Apply rendered objects to a cluster with server-side apply.

Nothing changes before everything passed a dry run: each object is sent as a dry run first, and a rejection, a conflict
with another manager or an object of another owner stops the deployment. Only missing namespaces are created before the
final dry run, because a dry run needs its namespace. Every write is idempotent, so an interrupted deployment is
completed by running it again.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.deploy import limits
from kubernetes_daemonset.deploy.api_client import (
    KINDS,
    Cluster,
    ClusterError,
    Conflict,
    Forbidden,
    Invalid,
    NamespaceNotFound,
    NamespaceTerminating,
    NotFound,
    Unreachable,
    Unreadable,
)
from kubernetes_daemonset.deploy.ownership import belongs_to, managed_by_us, other_managers, takeover_blockers
from kubernetes_daemonset.deploy.plan import Change, Plan, Ref, referenced_objects
from kubernetes_daemonset.deploy.rollout import Rollout, complaints, pod_problems, rollout
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.types import Json

_POLL: Final = 0.5  # seconds; one small object is read
_PROBLEMS_EVERY: Final = 4  # polls; there are many pods, and their problems persist
_PRUNED: Final = ("ConfigMap", "Secret", "ServiceAccount", "RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole")
# The namespace for dry runs of objects whose own namespace does not exist yet. Every cluster has it.
_STAND_IN: Final = "default"
_TO_APPLY: Final = ("create", "patch")  # the permissions that an apply needs to create an object
_LONGEST_NAME: Final = 253
# For the lists that only explain why a rollout takes long. A kubelet can fill them.
_EXPLANATION_PAGE: Final = 16 * 2**20  # bytes, three times what 500 pods have
_EXPLANATION_SECONDS: Final = 30.0
_LEAST_SECONDS: Final = 2.0  # also if the rollout has less left

Report = Callable[[str], None]


class ApplyRejected(Exception):
    """The cluster rejects the objects. Nothing was changed, except namespaces that were created for the dry run."""

    def __init__(self, reasons: Sequence[str], created: Sequence[Ref] = ()) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons
        self.created = created


class RolloutTimeout(Exception):
    """The rollout did not finish in time. The objects are in the cluster."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A component, its objects, and which conflicts to override."""

    manifest: KubernetesDaemonSet
    objects: Sequence[Json]
    force: bool = False  # take over fields that another manager owns
    adopt: bool = False  # take over objects of another owner


@dataclass(frozen=True, slots=True)
class OwnedObjects:
    """Objects of a manifest to delete, in order; those that remain and why; and warnings about kinds not listed."""

    ours: Sequence[Json]
    left: Sequence[str] = ()
    unlistable: Sequence[str] = ()


def plans(cluster: Cluster, requests: Sequence[ApplyRequest], *, despite_conflicts: bool = False) -> list[Plan]:
    """Plan all requests by dry run. Raises ApplyRejected with the reasons of all of them.

    With `despite_conflicts`, which `diff` uses, conflicts are reported in the plans instead.
    """
    requests = list(_each_namespace_once(requests))
    namespaces = {Ref.of(body).name for request in requests for body in request.objects if body["kind"] == "Namespace"}
    to_come = {name for name in namespaces if cluster.get(Ref("Namespace", name)) is None}
    reasons: list[str] = []
    result = [_plan(cluster, request, to_come, reasons) for request in requests]
    conflicts = [] if despite_conflicts else [conflict for planned in result for conflict in planned.conflicts]
    if conflicts:
        conflicts.append("use --force-conflicts to take over these fields")
    if reasons or conflicts:
        raise ApplyRejected(list(dict.fromkeys([*reasons, *conflicts])))
    return result


def _each_namespace_once(requests: Sequence[ApplyRequest]) -> Iterator[ApplyRequest]:
    """Remove duplicate namespaces: several components can share one, and it has no fields of any of them."""
    seen: set[Ref] = set()
    for request in requests:
        yield replace(request, objects=[body for body in request.objects if Ref.of(body) not in seen])
        seen |= {Ref.of(body) for body in request.objects if body["kind"] == "Namespace"}


def _plan(cluster: Cluster, request: ApplyRequest, to_come: set[str], reasons: list[str]) -> Plan:
    changes: list[Change] = []
    stand_in_warnings: list[str] = []
    conflicts: list[str] = []
    for body in request.objects:
        ref = Ref.of(body)
        try:
            before = cluster.get(ref)
            if ref.kind == "Namespace" and before is not None:
                if "deletionTimestamp" in before["metadata"]:
                    raise NamespaceTerminating(str(ref))
                if not managed_by_us(before):
                    continue  # another owner's: it exists, which is sufficient
            if against := list(takeover_blockers(request.manifest, body, before, adopt=request.adopt)):
                reasons += against
                continue  # errors of the server would be consequences
            elsewhere = ref.namespace in to_come
            after = (
                _dry_run_in_default_namespace(cluster, body, stand_in_warnings)
                if elsewhere
                else _dry_run(cluster, body, request, conflicts)
            )
            changes.append(Change(ref, before, after))
        except Unreachable:
            raise
        except ClusterError as error:
            reasons.append(_reason(error, naming.namespace(request.manifest)))
    orphans = _orphans(cluster, request.manifest, request.objects)
    to_apply = {change.ref for change in changes}
    changes += [Change(Ref.of(live), live, None) for live in orphans.ours]
    objects = tuple(body for body in request.objects if Ref.of(body) in to_apply)
    warnings = (*stand_in_warnings, *(f"kept {kept}" for kept in orphans.left), *orphans.unlistable)
    return Plan(objects, tuple(changes), warnings, tuple(conflicts))


def _reason(error: ClusterError, namespace: str) -> str:
    """Return the message of an error; that of a namespace is the same for all of its objects, and reported once."""
    ref = Ref("Namespace", namespace)
    match error:
        case NamespaceNotFound():
            return f"{ref} does not exist; set create_namespace: true or create it first"
        case NamespaceTerminating():
            return f"{ref} is being deleted; wait until it is gone and retry"
        case _:
            return str(error)


def make_namespaces(cluster: Cluster, planned: Plan, report: Report) -> None:
    """Create missing namespaces: objects can be dry-run in them only when they exist."""
    _apply(cluster, [body for body in planned.objects if Ref.of(body) in planned.new_namespaces], report)


def apply_plan(
    cluster: Cluster, planned: Plan, *, force: bool = False, created: Sequence[Ref] = (), report: Report
) -> None:
    """Apply the objects in order, except those in `created`, which exist already."""
    _apply(cluster, [body for body in planned.objects if Ref.of(body) not in created], report, force=force)


def _apply(cluster: Cluster, objects: Sequence[Json], report: Report, *, force: bool = False) -> None:
    for body in objects:
        cluster.apply(body, force=force)
        report(f"applied {Ref.of(body)}")


def prune(cluster: Cluster, planned: Plan, report: Report) -> None:
    """Delete the objects of earlier manifests that this one does not include."""
    for change in planned.changes:
        if change.after is None and change.before is not None:
            cluster.delete(change.ref, change.before["metadata"]["uid"])
            report(f"deleted {change.ref}, which the manifest no longer includes")


def wait(
    cluster: Cluster,
    manifest: KubernetesDaemonSet,
    seconds: float,
    report: Callable[[Rollout, str], None],
    began: float | None = None,
) -> Rollout:
    """Wait until all desired nodes run this version. Raises RolloutTimeout with the cause.

    Temporary failures of the API server are tolerated: the rollout of a network agent can cause them.
    """
    ref = Ref("DaemonSet", manifest.metadata.name, naming.namespace(manifest))
    state, problems = Rollout(0, 0, 0, seen=False), [""]
    deadline = (time.monotonic() if began is None else began) + seconds
    for poll in _polls(deadline):
        try:
            live = cluster.get(ref)
            if live is None:
                raise ClusterError(f"{ref} was deleted during the rollout")
            state = rollout(live)
            if poll % _PROBLEMS_EVERY == 0 and not state.done:
                problems = _problems(cluster, manifest, live, deadline) or [""]
        except Unreachable as error:
            problems = [str(error)]
        report(state, problems[0])
        if state.done:
            return state
    raise RolloutTimeout("; ".join([f"{ref}: after {seconds:g} s, {state}", *filter(None, problems)]))


def remove(
    cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json], *, seconds: float, report: Report
) -> None:
    """Delete all objects that this tool created for the manifest, now or earlier, pods first; the namespace remains."""
    owned = existing(cluster, manifest, objects)
    for warning in (*(f"kept {kept}" for kept in owned.left), *owned.unlistable):
        report(warning)
    for live in owned.ours:
        cluster.delete(Ref.of(live), live["metadata"]["uid"], foreground=live["kind"] == "DaemonSet")
        if live["kind"] == "DaemonSet":
            _wait_until_gone(cluster, live, seconds)
        report(f"deleted {Ref.of(live)}")


def existing(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> OwnedObjects:
    """Return the existing objects of the manifest and of earlier ones."""
    live_objects = [live for body in objects if body["kind"] != "Namespace" and (live := cluster.get(Ref.of(body)))]
    own = [live for live in reversed(live_objects) if belongs_to(manifest, live)]
    left = [_left(live, "which is managed by") for live in own if not managed_by_us(live)]
    orphans = _orphans(cluster, manifest, objects)
    ours = [*(live for live in own if managed_by_us(live)), *orphans.ours]
    return OwnedObjects(ours, [*left, *orphans.left], orphans.unlistable)


def _left(live: Json, relation: str) -> str:
    return f"{Ref.of(live)}, {relation} {', '.join(other_managers(live)) or 'another tool'}"


def our_namespace(cluster: Cluster, namespace: str) -> Json | None:
    """Return the namespace, if it exists. Raises ClusterError if another owner created it."""
    ref = Ref("Namespace", namespace)
    live = cluster.get(ref)
    if live is not None and not managed_by_us(live):
        raise ClusterError(
            f"{ref} is not managed by {naming.MANAGED_BY}, so nothing was deleted; remove --delete-namespace, or delete"
            " the namespace with kubectl"
        )
    return live


def remove_namespace(cluster: Cluster, live: Json, report: Report) -> None:
    """Delete a namespace with everything in it. The cluster completes this asynchronously."""
    cluster.delete(Ref.of(live), live["metadata"]["uid"])
    report(f"{Ref.of(live)} is being deleted with everything in it")


def _dry_run(cluster: Cluster, body: Json, request: ApplyRequest, conflicts: list[str]) -> Json:
    """Return an object as the server would store it; with conflicts, as if they were overridden."""
    ref = Ref.of(body)
    try:
        return cluster.apply(body, force=request.force, dry_run=True)
    except Conflict as error:
        if not error.fields:
            raise
        conflicts += [f"{ref}: {field}" for field in error.fields]
        return cluster.apply(body, force=True, dry_run=True)
    except NamespaceNotFound:
        raise
    except NotFound:
        # For users who are not administrators, the role of a binding must exist. In a dry run, a new role does not.
        role = Ref(ref.kind.removesuffix("Binding"), ref.name, ref.namespace)
        if role == ref or role not in map(Ref.of, request.objects):
            raise
        return body


def _dry_run_in_default_namespace(cluster: Cluster, body: Json, stand_in_warnings: list[str]) -> Json:
    """Dry-run an object whose namespace does not exist yet, with the namespace `default` in its place.

    Permissions can be checked in advance, and the validity of an object does not depend on the namespace. Other errors
    come from policies and quotas of `default`: they are reported as warnings.
    """
    ref = Ref.of(body)
    for verb in _TO_APPLY:
        if not cluster.can_i(verb, ref):
            where = f"{KINDS[ref.kind][1]} in {ref.namespace}"
            raise Forbidden(
                f"{ref}: you are not allowed to {verb} {where}; if creating the namespace grants this, create it first"
            )
    moved = copy.deepcopy(body)
    stand_in = Ref(ref.kind, f"{ref.namespace}-{ref.name}"[:_LONGEST_NAME].rstrip("-."), _STAND_IN)
    moved["metadata"] |= {"namespace": stand_in.namespace, "name": stand_in.name}
    try:
        result = cluster.apply(moved, force=True, dry_run=True)
    except NotFound:  # the role of a binding, which is part of the same apply
        return body
    except Unreachable:
        raise
    except ClusterError as error:
        message = str(error).replace(f'"{stand_in.name}"', f'"{ref.name}"').removeprefix(f"{stand_in}: ")
        if isinstance(error, Invalid):
            raise Invalid(f"{ref}: {message}") from error
        stand_in_warnings.append(
            f"{ref}: Namespace {ref.namespace} does not exist yet; in {_STAND_IN} it would be rejected: {message}"
        )
        return body
    result["metadata"] |= {"namespace": ref.namespace, "name": ref.name}
    return result


def _orphans(cluster: Cluster, manifest: KubernetesDaemonSet, objects: Sequence[Json]) -> OwnedObjects:
    """Return objects of earlier manifests that this one does not include; `ours` are those with no other manager."""
    wanted = {Ref.of(body) for body in objects}
    used = referenced_objects(objects)  # might no longer be managed by us, but are still needed
    deletable: list[Json] = []
    left: list[str] = []
    unlistable: list[str] = []
    for kind in _PRUNED:
        namespace = naming.namespace(manifest) if KINDS[kind][2] else ""
        try:
            bodies = ({"kind": kind} | live for live in cluster.list(kind, namespace, naming.owned(manifest)))
            unwanted = (live for live in bodies if Ref.of(live) not in wanted and (kind, Ref.of(live).name) not in used)
            mine = [live for live in unwanted if managed_by_us(live)]
        except Forbidden:
            unlistable.append(kind)
            continue
        left += [_left(live, "which is also managed by") for live in mine if other_managers(live)]
        deletable += [live for live in mine if not other_managers(live)]
    return OwnedObjects(deletable, left, [_unlistable_warning(unlistable)] if unlistable else [])


def _unlistable_warning(kinds: Sequence[str]) -> str:
    cluster_wide = not any(KINDS[kind][2] for kind in kinds)
    what = "cluster_rules and this one has none" if cluster_wide else "more of these than this one"
    return (
        f"you are not allowed to list {', '.join(KINDS[kind][1] for kind in kinds)}: if an earlier manifest had"
        f" {what}, the objects created for them remain; otherwise nothing remains"
    )


def _problems(cluster: Cluster, manifest: KubernetesDaemonSet, live: Json, deadline: float) -> list[str]:
    """Return what blocks the rollout, as far as permissions allow: failing pods, or pods that cannot be created.

    A kubelet can create mirror pods with the agent's labels that are nested too deeply, or as large as an object can
    be. They must not fail the rollout, so these lists are read in part if they exceed their limits.
    """
    ref = Ref.of(live)
    seconds = max(_LEAST_SECONDS, min(_EXPLANATION_SECONDS, deadline - time.monotonic()))
    budget = limits.Budget(left_seconds=seconds, page_bytes=_EXPLANATION_PAGE)
    about = {"involvedObject.uid": live["metadata"]["uid"]}
    notes: list[str] = []
    found = pod_problems(_readable(cluster.list("Pod", ref.namespace, naming.selector(manifest), budget=budget), notes))
    if not found:
        found = complaints(_readable(cluster.list("Event", ref.namespace, {}, about, budget), notes))[:1]
    return found + notes


def _readable(objects: Iterator[Json], notes: list[str]) -> Iterator[Json]:
    """Yield the objects of a list up to what cannot be read, which is noted."""
    with suppress(Forbidden):
        try:
            yield from objects
        except Unreadable as error:
            notes.append(f"the list of {error}; the rest of it was not read")


def _wait_until_gone(cluster: Cluster, live: Json, seconds: float) -> None:
    ref = Ref.of(live)
    for _ in _polls(time.monotonic() + seconds):
        now = cluster.get(ref)
        if now is None or now["metadata"]["uid"] != live["metadata"]["uid"]:
            return
    raise RolloutTimeout(f"{ref}: its pods have not stopped after {seconds:g} s; it is deleted when they have")


def _polls(deadline: float) -> Iterator[int]:
    """Yield 0, 1, 2, … with a pause in between, until the deadline; at least once."""
    poll = 0
    while True:
        yield poll
        if time.monotonic() >= deadline:
            return
        time.sleep(_POLL)
        poll += 1
