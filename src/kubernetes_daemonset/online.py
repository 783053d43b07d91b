"""The verbs that need a cluster: diff, apply, delete, outputs."""

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from kubernetes_daemonset import names, show, verbs
from kubernetes_daemonset.backends import direct
from kubernetes_daemonset.backends.cluster import Cluster, ClusterError, connect
from kubernetes_daemonset.changes import Plan, Ref
from kubernetes_daemonset.dump import plain, to_yaml
from kubernetes_daemonset.manifest import Loaded
from kubernetes_daemonset.mistakes import ManifestError
from kubernetes_daemonset.outputs import outputs
from kubernetes_daemonset.resources import render

Pairs = list[tuple[Loaded, Cluster]]

# The original's way to say in the manifest which cluster it is for.
_CONTEXT_LABEL: Final = "kubernetes.project-planton.org/context"


def run(verb: str, arguments: argparse.Namespace) -> int:
    try:
        return {"diff": _diff, "apply": _apply, "delete": _delete, "outputs": _outputs}[verb](arguments)
    except ManifestError as why:
        return verbs.refuse(why)
    except direct.Refused as why:
        verbs.say("kubernetes-daemonset: the cluster will not take this, and nothing was changed:")
        for reason in why.reasons:
            verbs.say(f"  {reason}")
        return verbs.CLUSTER
    except ClusterError as why:
        return verbs.end(verbs.Ended(str(why), verbs.CLUSTER))
    except direct.TooLate as why:
        return verbs.end(verbs.Ended(str(why), verbs.LATE))
    except verbs.Ended as why:
        return verbs.end(why)


def _diff(arguments: argparse.Namespace) -> int:
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        changes = [change for planned in _plans(pairs, arguments) for change in planned.changes]
    if arguments.output == "table":
        print(show.changes(changes))
    else:
        for change in changes:
            if text := show.difference(change):
                print(text)
    return verbs.FOUND if any(one.verb != "unchanged" for one in changes) else verbs.OK


def _apply(arguments: argparse.Namespace) -> int:
    """Step by step for all manifests: none is applied if one is refused, and a rollout that is late stops no other."""
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        plans = _plans(pairs, arguments)
        if arguments.dry_run:
            print(show.changes([change for planned in plans for change in planned.changes]))
            return verbs.OK
        for (_, cluster), planned in zip(pairs, plans, strict=True):
            for warning in planned.warnings:
                verbs.say(warning)
            direct.carry_out(cluster, planned, force=arguments.force_conflicts, tell=verbs.say)
        if arguments.wait:
            _wait(pairs, arguments.timeout)
        # Last, since pods of the former version still use what is deleted here.
        if arguments.prune:
            for (_, cluster), planned in zip(pairs, plans, strict=True):
                direct.prune(cluster, planned, verbs.say)
    return verbs.OK


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
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        for one, cluster in pairs:
            objects = render(one.input)
            if arguments.dry_run:
                for live in direct.existing(cluster, one.manifest, objects)[0]:
                    print(f"would delete {Ref.of(live)}")
                continue
            direct.remove(cluster, one.manifest, objects, seconds=arguments.timeout, tell=verbs.say)
            _namespace_after(one, cluster, arguments)
    return verbs.OK


def _namespace_after(one: Loaded, cluster: Cluster, arguments: argparse.Namespace) -> None:
    namespace = names.namespace(one.manifest)
    if not one.manifest.spec.create_namespace:
        return
    if arguments.delete_namespace:
        direct.remove_namespace(cluster, namespace, verbs.say)
    else:
        verbs.say(f"left Namespace {namespace}, which may hold more; --delete-namespace deletes it and all in it")


def _outputs(arguments: argparse.Namespace) -> int:
    found = []
    with _connected(arguments, verbs.valid(arguments)) as pairs:
        for one, cluster in pairs:
            ref = Ref("DaemonSet", one.manifest.metadata.name, names.namespace(one.manifest))
            live = cluster.get(ref)
            if live is None:
                raise verbs.Ended(f"{ref} is not in the cluster", verbs.CLUSTER)
            found.append(plain(outputs(one.manifest, live)))
    if arguments.output == "json":
        print(show.as_json(found[0] if len(found) == 1 else found))
    elif arguments.output == "table":
        print(show.table([key.upper() for key in found[0]], [list(one.values()) for one in found]))
    else:
        print(to_yaml(*found), end="")
    return verbs.OK


def _plans(pairs: Pairs, arguments: argparse.Namespace) -> list[Plan]:
    """Of all manifests of a cluster together: one may make the namespace that another one needs."""
    found: dict[int, Plan] = {}
    for cluster in {id(cluster): cluster for _, cluster in pairs}.values():
        mine = {at: one for at, (one, other) in enumerate(pairs) if other is cluster}
        wishes = [
            direct.Wish(one.manifest, render(one.input), arguments.force_conflicts, arguments.adopt)
            for one in mine.values()
        ]
        found |= dict(zip(mine, direct.plans(cluster, wishes), strict=True))
    return [found[at] for at in range(len(pairs))]


@contextmanager
def _connected(arguments: argparse.Namespace, loaded: list[Loaded]) -> Iterator[Pairs]:
    """Each manifest with its cluster: of --kube-context, of the manifest's own label, or of the kubeconfig."""
    clusters: dict[str | None, Cluster] = {}
    with ExitStack() as open_connections:
        pairs = []
        for one in loaded:
            context = arguments.kube_context or one.manifest.metadata.labels.get(_CONTEXT_LABEL)
            if context not in clusters:
                clusters[context] = open_connections.enter_context(connect(arguments.kubeconfig, context))
            pairs.append((one, clusters[context]))
        yield pairs
