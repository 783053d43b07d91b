"""The verbs that need a cluster: diff, apply, delete, outputs."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubernetes_daemonset import exits, names, show, verbs
from kubernetes_daemonset.backends import direct
from kubernetes_daemonset.backends.cluster import Cluster, ClusterError, connect, current_context
from kubernetes_daemonset.changes import Change, Plan, Ref
from kubernetes_daemonset.dump import plain, to_yaml
from kubernetes_daemonset.manifest import Loaded, entry
from kubernetes_daemonset.mistakes import ManifestError, Mistake
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.outputs import outputs
from kubernetes_daemonset.resources import render
from kubernetes_daemonset.terminal import on_one_line

Pairs = list[tuple[Loaded, Cluster]]

# The original's way to say in the manifest which cluster it is for.
_CONTEXT_LABEL: Final = "kubernetes.project-planton.org/context"


def run(verb: str, arguments: argparse.Namespace) -> int:
    try:
        return {"diff": _diff, "apply": _apply, "delete": _delete, "outputs": _outputs}[verb](arguments)
    except ManifestError as why:
        return verbs.refuse(why)
    except direct.Refused as why:
        made = "".join(f", but that {ref} was made" for ref in why.made)
        verbs.say(f"kubernetes-daemonset: the cluster will not take this, and nothing was changed{made}:")
        for reason in why.reasons:
            verbs.say(f"  {reason}")
        return exits.CLUSTER
    except ClusterError as why:
        return verbs.end(verbs.Ended(str(why), exits.CLUSTER))
    except direct.TooLate as why:
        return verbs.end(verbs.Ended(str(why), exits.LATE))
    except verbs.Ended as why:
        return verbs.end(why)


def _diff(arguments: argparse.Namespace) -> int:
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        changes = _tried_out(_plans(pairs, arguments, despite_conflicts=True))
    if arguments.output == "table":
        print(show.changes(changes))
    else:
        for change in changes:
            if text := show.difference(change):
                print(text)
    return exits.FOUND if any(one.verb != "unchanged" for one in changes) else exits.OK


def _apply(arguments: argparse.Namespace) -> int:
    """Step by step for all manifests: none is applied if one is refused, and a rollout that is late stops no other."""
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        plans = _plans(pairs, arguments)
        if arguments.dry_run:
            print(show.changes(_tried_out(plans)))
            return exits.OK
        made = _new_namespaces(plans)
        if made:
            plans = _plans_in_new_namespaces(pairs, plans, arguments)
        for (_, cluster), planned in zip(pairs, plans, strict=True):
            for warning in planned.warnings:
                verbs.say(warning)
            direct.carry_out(cluster, planned, force=arguments.force_conflicts, made=made, tell=verbs.say)
        if arguments.wait:
            _wait(pairs, arguments.timeout)
        # Last, since pods of the former version still use what is deleted here.
        if arguments.prune:
            for (_, cluster), planned in zip(pairs, plans, strict=True):
                direct.prune(cluster, planned, verbs.say)
    return exits.OK


def _tried_out(plans: list[Plan]) -> list[Change]:
    """All changes; what could not be tried, and what was said of it, goes to whoever reads along."""
    for ref in _new_namespaces(plans):
        verbs.say(f"{ref} is yet to be made, so its policies and quotas could not be asked")
    for planned in plans:
        for warning in planned.warnings:
            verbs.say(warning)
    if conflicts := [one for planned in plans for one in planned.conflicts]:
        for one in conflicts:
            verbs.say(one)
        verbs.say("apply refuses to change these fields; --force-conflicts takes them over")
    return [change for planned in plans for change in planned.changes]


def _plans_in_new_namespaces(pairs: Pairs, plans: list[Plan], arguments: argparse.Namespace) -> list[Plan]:
    """Now that nothing is wrong as far as could be known, the namespaces are made and all is tried where it will be."""
    for (_, cluster), planned in zip(pairs, plans, strict=True):
        direct.make_namespaces(cluster, planned, verbs.say)
    try:
        return _plans(pairs, arguments)
    except direct.Refused as why:
        raise direct.Refused(why.reasons, _new_namespaces(plans)) from why


def _new_namespaces(plans: list[Plan]) -> list[Ref]:
    return list(dict.fromkeys(ref for planned in plans for ref in planned.new_namespaces))


def _wait(pairs: Pairs, seconds: float) -> None:
    """They all roll at the same time, and each has all of it."""
    began = time.monotonic()
    late: list[str] = []
    for one, cluster in pairs:
        progress = show.Progress(one.manifest.metadata.name)
        try:
            direct.wait(cluster, one.manifest, seconds, progress, began=began)
        except direct.TooLate as why:
            late.append(str(why))
        finally:
            progress.end()
    if late:
        raise direct.TooLate("\n".join(late))


def _delete(arguments: argparse.Namespace) -> int:
    """Namespaces last and each once, since manifests may share one; but whose they are is asked first."""
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        namespaces = _namespaces_to_delete(pairs) if arguments.delete_namespace else []
        left = _namespaces_left(pairs, delete=arguments.delete_namespace)
        if arguments.dry_run:
            _tell_deletion(pairs, namespaces, left)
            return exits.OK
        for one, cluster in pairs:
            direct.remove(cluster, one.manifest, render(one.input), seconds=arguments.timeout, tell=verbs.say)
        for cluster, live in namespaces:
            direct.remove_namespace(cluster, live, verbs.say)
        for text in left:
            verbs.say(f"left {text}")
    return exits.OK


def _tell_deletion(pairs: Pairs, namespaces: list[tuple[Cluster, Json]], left: list[str]) -> None:
    staying: list[str] = []
    for one, cluster in pairs:
        made = direct.existing(cluster, one.manifest, render(one.input))
        for warning in made.unseen:
            verbs.say(warning)
        for live in made.ours:
            print(on_one_line(f"would delete {Ref.of(live)}"))
        staying += made.left
    for _, live in namespaces:
        print(on_one_line(f"would delete {Ref.of(live)} and what is in it"))
    for text in (*staying, *left):
        print(on_one_line(f"would leave {text}"))


def _namespaces_to_delete(pairs: Pairs) -> list[tuple[Cluster, Json]]:
    """Those that are there, of manifests that make them. Raises ClusterError if one was made by someone else."""
    makers = {
        (id(cluster), names.namespace(one.manifest)): cluster
        for one, cluster in pairs
        if one.manifest.spec.create_namespace
    }
    found = [(cluster, direct.our_namespace(cluster, namespace)) for (_, namespace), cluster in makers.items()]
    return [(cluster, live) for cluster, live in found if live is not None]


def _namespaces_left(pairs: Pairs, *, delete: bool) -> list[str]:
    """Each, and why: one that no manifest makes needs no word unless it was to be deleted."""
    used = dict.fromkeys(names.namespace(one.manifest) for one, _ in pairs)
    made = {names.namespace(one.manifest) for one, _ in pairs if one.manifest.spec.create_namespace}
    if delete:
        return [f"Namespace {name}, which the manifest does not make" for name in used if name not in made]
    why = "which may hold more; --delete-namespace deletes it and all in it"
    return [f"Namespace {name}, {why}" for name in used if name in made]


def _outputs(arguments: argparse.Namespace) -> int:
    found = []
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        for one, cluster in pairs:
            ref = Ref("DaemonSet", one.manifest.metadata.name, names.namespace(one.manifest))
            live = cluster.get(ref)
            if live is None:
                raise verbs.Ended(f"{ref} is not in the cluster", exits.CLUSTER)
            found.append(plain(outputs(one.manifest, live)))
    if arguments.output == "json":
        print(show.as_json(found[0] if len(found) == 1 else found))
    elif arguments.output == "table":
        print(show.table([key.upper() for key in found[0]], [list(one.values()) for one in found]))
    else:
        print(to_yaml(*found), end="")
    return exits.OK


def _plans(pairs: Pairs, arguments: argparse.Namespace, *, despite_conflicts: bool = False) -> list[Plan]:
    """Of all manifests of a cluster together: one may make the namespace that another one needs."""
    found: dict[int, Plan] = {}
    for cluster in {id(cluster): cluster for _, cluster in pairs}.values():
        mine = {at: one for at, (one, other) in enumerate(pairs) if other is cluster}
        wishes = [
            direct.Wish(one.manifest, render(one.input), arguments.force_conflicts, arguments.adopt)
            for one in mine.values()
        ]
        found |= dict(zip(mine, direct.plans(cluster, wishes, despite_conflicts=despite_conflicts), strict=True))
    return [found[at] for at in range(len(pairs))]


@contextmanager
def _connected(arguments: argparse.Namespace, loaded: list[Loaded]) -> Iterator[Pairs]:
    """Each manifest with its cluster: that of --kube-context, else of the kubeconfig's current context."""
    context = arguments.kube_context or _context_of_labels(arguments.kubeconfig, loaded)
    with connect(arguments.kubeconfig, context) as cluster:
        yield [(one, cluster) for one in loaded]


def _context_of_labels(kubeconfig: Path | None, loaded: list[Loaded]) -> str | None:
    """The current context, which every label must name; None if no manifest has the label.

    A manifest can come from another party. It must not choose a cluster: connecting runs that context's login program
    and uses its credentials.
    """
    labeled = [one for one in loaded if one.manifest.metadata.labels.get(_CONTEXT_LABEL)]
    if not labeled:
        return None
    current = current_context(kubeconfig)
    if others := [one for one in labeled if one.manifest.metadata.labels[_CONTEXT_LABEL] != current]:
        raise ManifestError([_another_context(one, current) for one in others])
    return current


def _another_context(one: Loaded, current: str | None) -> Mistake:
    label = one.manifest.metadata.labels[_CONTEXT_LABEL]
    path = entry("metadata.labels", _CONTEXT_LABEL)
    there = f'the current context, "{current}"' if current else "the current context, and there is none"
    text = f'"{label}" is not allowed; expected {there}; use --kube-context to choose the cluster'
    return Mistake(path, text, one.place(path))
