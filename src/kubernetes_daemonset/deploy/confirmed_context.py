"""Which context of the kubeconfig manifests are deployed to. A manifest cannot choose it, only confirm it.

A manifest can come from another party. It must not choose a cluster: connecting runs that context's login program and
uses its credentials. And a manifest that names one cluster must not be deployed to another one silently.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kubekit.diagnostics import Diagnostic
from kubernetes_daemonset.deploy.kubeconfig import Contexts, contexts
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest.reader import Loaded, map_entry

# The label with which manifests of the original name their cluster.
_LABEL: Final = "kubernetes.project-planton.org/context"
_TARGET: Final = "spec.target_cluster.cluster_name"


def confirmed_context(kubeconfig: Path | None, loaded: Sequence[Loaded]) -> str | None:
    """Return the current context if a manifest names a cluster; otherwise None, without reading the kubeconfig.

    Raises ManifestError if a manifest names a cluster other than the current one.
    """
    if not any(_label(document) or _target(document) for document in loaded):
        return None
    known = contexts(kubeconfig)
    if diagnostics := [diagnostic for document in loaded for diagnostic in _diagnostics(document, known)]:
        raise ManifestError(diagnostics)
    return known.current


def _diagnostics(document: Loaded, known: Contexts) -> Iterator[Diagnostic]:
    if (label := _label(document)) and label != known.current:
        path = map_entry("metadata.labels", _LABEL)
        yield Diagnostic(path, _refusal(f'"{label}" is not allowed', known), document.location(path))
    target = _target(document)
    if target and (what := _other(target, known)):
        text = f'"{target}" is not allowed, because it is another {what} of the kubeconfig'
        yield Diagnostic(_TARGET, _refusal(text, known), document.location(_TARGET))


def _other(target: str, known: Contexts) -> str:
    """Return what else the kubeconfig has under this name; "" for a name that only a platform uses."""
    if target == known.current:
        return ""
    if target in known.names:
        return "context"
    return "cluster" if target in known.clusters and target != known.current_cluster else ""


def _refusal(text: str, known: Contexts) -> str:
    current = f'the current context, "{known.current}"' if known.current else "the current context, and there is none"
    return f"{text}; expected {current}; use --kube-context to choose the cluster"


def _label(document: Loaded) -> str:
    return str(document.manifest.metadata.labels.get(_LABEL, ""))


def _target(document: Loaded) -> str:
    return document.manifest.spec.target_cluster.cluster_name
