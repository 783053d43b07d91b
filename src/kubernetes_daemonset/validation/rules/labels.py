"""Labels, annotations, and what chooses by them: selectors, affinity, tolerations."""

from collections.abc import Iterator, Mapping
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.shared.affinity_pb2 import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
)
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest import entry
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.syntax import LABEL_NAME, LABEL_VALUE

_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"
_PREFERRED: Final = "preferred_during_scheduling_ignored_during_execution"

_WRITE_A_VALUE: Final = (
    "write letters, digits, hyphens, underscores and dots, at most 63, with a letter or digit at both ends"
)
_WRITE_A_NAME: Final = f"{_WRITE_A_VALUE}, after a domain and a slash if you like"


def labels_are_labels(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, labels in _label_maps(manifest):
        for key, value in sorted(labels.items()):
            yield from _label_name(entry(path, key), key)
            yield from _label_value(entry(path, key), value)


def annotations_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, annotations in _annotation_maps(manifest):
        for key in sorted(annotations):
            if not LABEL_NAME.fullmatch(key.lower()):  # as an API server does, which lets capitals be in a domain here
                yield Finding(entry(path, key), f'"{key}" cannot name an annotation; {_WRITE_A_NAME}')


def affinity_is_about_labels(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, one in _expressions(manifest):
        if one.key:
            yield from _label_name(f"{path}.key", one.key)
        for index, value in enumerate(one.values if one.operator in {"In", "NotIn"} else ()):
            yield from _label_value(f"{path}.values[{index}]", value)
    for path, term in _pod_terms(manifest):
        if term.topology_key:
            yield from _label_name(f"{path}.topology_key", term.topology_key)


def own_labels_stay_ours(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    ours = names.owned(manifest)
    for path, labels in (("metadata.labels", manifest.metadata.labels), ("spec.pod_labels", manifest.spec.pod_labels)):
        for key in sorted(labels.keys() & ours):
            if labels[key] != ours[key]:
                text = f'is how the component finds its own pods and objects, and is "{ours[key]}"; leave it out'
                yield Finding(entry(path, key), text, ("metadata.name", "spec.namespace"))


def tolerations_name_taints(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for index, one in enumerate(manifest.spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if one.key and not LABEL_NAME.fullmatch(one.key):
            yield Finding(f"{where}.key", f'"{one.key}" cannot be a taint\'s key; {_WRITE_A_NAME}')
        if not LABEL_VALUE.fullmatch(one.value):
            yield Finding(f"{where}.value", f'"{one.value}" cannot be a taint\'s value; {_WRITE_A_VALUE}')


def _label_name(path: str, key: str) -> Iterator[Finding]:
    if not LABEL_NAME.fullmatch(key):
        yield Finding(path, f'"{key}" cannot name a label; {_WRITE_A_NAME}')


def _label_value(path: str, value: str) -> Iterator[Finding]:
    if not LABEL_VALUE.fullmatch(value):
        yield Finding(path, f'"{value}" cannot be a label\'s value; {_WRITE_A_VALUE}')


def _label_maps(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "metadata.labels", names.given_labels(manifest)
    yield "spec.pod_labels", manifest.spec.pod_labels
    yield "spec.node_selector", manifest.spec.node_selector
    for path, selector in _selectors(manifest):
        yield f"{path}.match_labels", selector.match_labels


def _annotation_maps(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "metadata.annotations", manifest.metadata.annotations
    yield "spec.pod_annotations", manifest.spec.pod_annotations
    yield "spec.service_account_annotations", manifest.spec.service_account_annotations


def _expressions(
    manifest: KubernetesDaemonSet,
) -> Iterator[tuple[str, NodeSelectorRequirement | LabelSelectorRequirement]]:
    for path, term in _node_terms(manifest):
        for at, of_nodes in enumerate(term.match_expressions):
            yield f"{path}.match_expressions[{at}]", of_nodes
    for path, selector in _selectors(manifest):
        for at, of_labels in enumerate(selector.match_expressions):
            yield f"{path}.match_expressions[{at}]", of_labels


def _selectors(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, LabelSelector]]:
    for path, term in _pod_terms(manifest):
        yield f"{path}.label_selector", term.label_selector
        yield f"{path}.namespace_selector", term.namespace_selector


def _pod_terms(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, PodAffinityTerm]]:
    for kind in ("pod_affinity", "pod_anti_affinity"):
        affinity: PodAffinity = getattr(manifest.spec.affinity, kind)
        for at, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
            yield f"spec.affinity.{kind}.{_REQUIRED}[{at}]", term
        for at, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
            yield f"spec.affinity.{kind}.{_PREFERRED}[{at}].pod_affinity_term", weighted.pod_affinity_term


def _node_terms(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, NodeSelectorTerm]]:
    affinity, path = manifest.spec.affinity.node_affinity, "spec.affinity.node_affinity"
    needed = affinity.required_during_scheduling_ignored_during_execution
    for at, term in enumerate(needed.node_selector_terms):
        yield f"{path}.{_REQUIRED}.node_selector_terms[{at}]", term
    for at, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield f"{path}.{_PREFERRED}[{at}].preference", weighted.preference
