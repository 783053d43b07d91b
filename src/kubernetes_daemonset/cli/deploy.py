"""The commands that need a cluster: diff, apply, delete, outputs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from kubekit.terminal import on_one_line
from kubernetes_daemonset.cli import common, exit_codes, output
from kubernetes_daemonset.deploy import apply
from kubernetes_daemonset.deploy.api_client import Cluster, ClusterError
from kubernetes_daemonset.deploy.confirmed_context import confirmed_context
from kubernetes_daemonset.deploy.kubeconfig import connect
from kubernetes_daemonset.deploy.outputs import with_outputs
from kubernetes_daemonset.deploy.plan import Change, Plan, Ref
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest.dump import manifest_yaml, to_json, to_yaml
from kubernetes_daemonset.manifest.reader import Loaded
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.render.resources import render
from kubernetes_daemonset.types import Json

Pairs = list[tuple[Loaded, Cluster]]


def run(verb: str, arguments: SimpleNamespace) -> int:
    try:
        return {"diff": _diff, "apply": _apply, "delete": _delete, "outputs": _outputs}[verb](arguments)
    except ManifestError as error:
        return common.report_invalid(error)
    except apply.ApplyRejected as error:
        created = "".join(f", except that {ref} was created" for ref in error.created)
        common.say(f"kubernetes-daemonset: the cluster rejected this, and nothing was changed{created}:")
        for reason in error.reasons:
            common.say(f"  {reason}")
        return exit_codes.CLUSTER
    except ClusterError as error:
        return common.end(common.Ended(str(error), exit_codes.CLUSTER))
    except apply.RolloutTimeout as error:
        return common.end(common.Ended(str(error), exit_codes.LATE))
    except common.Ended as error:
        return common.end(error)


def _diff(arguments: SimpleNamespace) -> int:
    with _connected(arguments, common.valid(arguments)) as pairs:
        changes = _tried_out(_plans(pairs, arguments, despite_conflicts=True))
    if arguments.output == "table":
        print(output.changes(changes))
    else:
        for change in changes:
            if text := output.difference(change):
                print(text)
    return exit_codes.FOUND if any(change.verb != "unchanged" for change in changes) else exit_codes.OK


def _apply(arguments: SimpleNamespace) -> int:
    """Apply all manifests step by step: none if one is rejected; a slow rollout does not stop the others."""
    with _connected(arguments, common.valid(arguments)) as pairs:
        plans = _plans(pairs, arguments)
        if arguments.dry_run:
            print(output.changes(_tried_out(plans)))
            return exit_codes.OK
        created = _new_namespaces(plans)
        if created:
            plans = _plans_in_new_namespaces(pairs, plans, arguments)
        for (_, cluster), planned in zip(pairs, plans, strict=True):
            for warning in planned.warnings:
                common.say(warning)
            apply.apply_plan(cluster, planned, force=arguments.force_conflicts, created=created, report=common.say)
        if arguments.wait:
            _wait(pairs, arguments.timeout)
        # Last, because pods of the previous version still use these objects.
        if arguments.prune:
            for (_, cluster), planned in zip(pairs, plans, strict=True):
                apply.prune(cluster, planned, common.say)
    return exit_codes.OK


def _tried_out(plans: list[Plan]) -> list[Change]:
    """Return all changes. Warnings and what could not be checked go to standard error."""
    for ref in _new_namespaces(plans):
        common.say(f"{ref} does not exist yet, so its policies and quotas were not checked")
    for planned in plans:
        for warning in planned.warnings:
            common.say(warning)
    if conflicts := [conflict for planned in plans for conflict in planned.conflicts]:
        for conflict in conflicts:
            common.say(conflict)
        common.say("apply does not change these fields; use --force-conflicts to take them over")
    return [change for planned in plans for change in planned.changes]


def _plans_in_new_namespaces(pairs: Pairs, plans: list[Plan], arguments: SimpleNamespace) -> list[Plan]:
    """Create the namespaces, now that no error is known, and repeat the dry run in them."""
    for (_, cluster), planned in zip(pairs, plans, strict=True):
        apply.make_namespaces(cluster, planned, common.say)
    try:
        return _plans(pairs, arguments)
    except apply.ApplyRejected as error:
        raise apply.ApplyRejected(error.reasons, _new_namespaces(plans)) from error


def _new_namespaces(plans: list[Plan]) -> list[Ref]:
    return list(dict.fromkeys(ref for planned in plans for ref in planned.new_namespaces))


def _wait(pairs: Pairs, seconds: float) -> None:
    """Wait for all rollouts, which run in parallel: each has the whole time."""
    began = time.monotonic()
    late: list[str] = []
    for document, cluster in pairs:
        progress = output.Progress(document.manifest.metadata.name)
        try:
            apply.wait(cluster, document.manifest, seconds, progress, began=began)
        except apply.RolloutTimeout as error:
            late.append(str(error))
        finally:
            progress.end()
    if late:
        raise apply.RolloutTimeout("\n".join(late))


def _delete(arguments: SimpleNamespace) -> int:
    """Delete namespaces last and each once, because manifests can share one; their owner is checked first."""
    with _connected(arguments, common.valid(arguments)) as pairs:
        namespaces = _namespaces_to_delete(pairs) if arguments.delete_namespace else []
        left = _namespaces_left(pairs, delete=arguments.delete_namespace)
        if arguments.dry_run:
            _report_deletion(pairs, namespaces, left)
            return exit_codes.OK
        for document, cluster in pairs:
            apply.remove(
                cluster, document.manifest, render(document.input), seconds=arguments.timeout, report=common.say
            )
        for cluster, live in namespaces:
            apply.remove_namespace(cluster, live, common.say)
        for text in left:
            common.say(f"kept {text}")
    return exit_codes.OK


def _report_deletion(pairs: Pairs, namespaces: list[tuple[Cluster, Json]], left: list[str]) -> None:
    staying: list[str] = []
    for document, cluster in pairs:
        owned = apply.existing(cluster, document.manifest, render(document.input))
        for warning in owned.unlistable:
            common.say(warning)
        for live in owned.ours:
            print(on_one_line(f"would delete {Ref.of(live)}"))
        staying += owned.left
    for _, live in namespaces:
        print(on_one_line(f"would delete {Ref.of(live)} and everything in it"))
    for text in (*staying, *left):
        print(on_one_line(f"would keep {text}"))


def _namespaces_to_delete(pairs: Pairs) -> list[tuple[Cluster, Json]]:
    """Return the existing namespaces of manifests that create them. Raises ClusterError if one has another owner."""
    makers = {
        (id(cluster), naming.namespace(document.manifest)): cluster
        for document, cluster in pairs
        if document.manifest.spec.create_namespace
    }
    candidates = [(cluster, apply.our_namespace(cluster, namespace)) for (_, namespace), cluster in makers.items()]
    return [(cluster, live) for cluster, live in candidates if live is not None]


def _namespaces_left(pairs: Pairs, *, delete: bool) -> list[str]:
    """Return the namespaces that remain, and why. With `delete`, these are the ones that no manifest creates."""
    used = dict.fromkeys(naming.namespace(document.manifest) for document, _ in pairs)
    created = {naming.namespace(document.manifest) for document, _ in pairs if document.manifest.spec.create_namespace}
    if delete:
        return [f"Namespace {name}, which the manifest does not create" for name in used if name not in created]
    reason = "which can contain other objects; use --delete-namespace to delete it and everything in it"
    return [f"Namespace {name}, {reason}" for name in used if name in created]


def _outputs(arguments: SimpleNamespace) -> int:
    manifests = []
    with _connected(arguments, common.valid(arguments)) as pairs:
        for document, cluster in pairs:
            ref = Ref("DaemonSet", document.manifest.metadata.name, naming.namespace(document.manifest))
            live = cluster.get(ref)
            if live is None:
                raise common.Ended(f"{ref} does not exist in the cluster", exit_codes.CLUSTER)
            manifests.append(with_outputs(document.manifest, live))
    if arguments.output == "manifest":
        print("---\n".join(map(manifest_yaml, manifests)), end="")
        return exit_codes.OK
    values = [to_json(manifest.status.outputs) for manifest in manifests]
    if arguments.output == "json":
        print(output.as_json(values[0] if len(values) == 1 else values))
    elif arguments.output == "table":
        print(output.table([key.upper() for key in values[0]], [list(row.values()) for row in values]))
    else:
        print(to_yaml(*values), end="")
    return exit_codes.OK


def _plans(pairs: Pairs, arguments: SimpleNamespace, *, despite_conflicts: bool = False) -> list[Plan]:
    """Plan all manifests of a cluster together: one can create the namespace that another one needs."""
    plans: dict[int, Plan] = {}
    for cluster in {id(cluster): cluster for _, cluster in pairs}.values():
        mine = {at: document for at, (document, other) in enumerate(pairs) if other is cluster}
        requests = [
            apply.ApplyRequest(document.manifest, render(document.input), arguments.force_conflicts, arguments.adopt)
            for document in mine.values()
        ]
        plans |= dict(zip(mine, apply.plans(cluster, requests, despite_conflicts=despite_conflicts), strict=True))
    return [plans[at] for at in range(len(pairs))]


@contextmanager
def _connected(arguments: SimpleNamespace, loaded: list[Loaded]) -> Iterator[Pairs]:
    """Yield each manifest with its cluster: that of --kube-context, or of the kubeconfig's current context."""
    context = arguments.kube_context or confirmed_context(arguments.kubeconfig, loaded)
    with connect(arguments.kubeconfig, context) as cluster:
        for warning in cluster.warnings:
            common.say(warning)
        yield [(document, cluster) for document in loaded]
