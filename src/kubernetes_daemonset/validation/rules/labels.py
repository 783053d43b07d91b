"""Rules for labels, annotations, selectors, affinity and tolerations."""

from collections.abc import Iterator, Mapping
from typing import Final

from kubekit.names import LABEL_VALUE, QUALIFIED_NAME
from kubernetes_daemonset.api.shared.affinity_pb2 import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
)
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest.reader import map_entry
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.validation.rules.finding import Finding

_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"
_PREFERRED: Final = "preferred_during_scheduling_ignored_during_execution"

_EXPECTED_VALUE: Final = (
    "at most 63 letters, digits, hyphens, underscores and dots, with a letter or digit at both ends"
)
_EXPECTED_NAME: Final = f"{_EXPECTED_VALUE}, optionally after a domain and a slash"


def valid_labels(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, labels in _label_maps(manifest):
        for key, value in sorted(labels.items()):
            yield from _label_name(map_entry(path, key), key)
            yield from _label_value(map_entry(path, key), value)


def annotations_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, annotations in _annotation_maps(manifest):
        for key in sorted(annotations):
            # As in an API server, which allows capitals in the domain here.
            if not QUALIFIED_NAME.matches(key.lower()):
                yield Finding(
                    map_entry(path, key), f'"{key}" is invalid; expected an annotation key of {_EXPECTED_NAME}'
                )


def affinity_is_about_labels(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, expression in _expressions(manifest):
        if expression.key:
            yield from _label_name(f"{path}.key", expression.key)
        for index, value in enumerate(expression.values if expression.operator in {"In", "NotIn"} else ()):
            yield from _label_value(f"{path}.values[{index}]", value)
    for path, term in _pod_terms(manifest):
        if term.topology_key:
            yield from _label_name(f"{path}.topology_key", term.topology_key)


def own_labels_stay_ours(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    ours = naming.owned(manifest)
    for path, labels in (("metadata.labels", manifest.metadata.labels), ("spec.pod_labels", manifest.spec.pod_labels)):
        for key in sorted(labels.keys() & ours):
            if labels[key] != ours[key]:
                text = (
                    f'is reserved: the component sets it to "{ours[key]}" and selects its own objects by it; remove it'
                )
                yield Finding(map_entry(path, key), text, ("metadata.name", "spec.namespace"))


def tolerations_name_taints(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for index, toleration in enumerate(manifest.spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if toleration.key and not QUALIFIED_NAME.matches(toleration.key):
            yield Finding(f"{where}.key", f'"{toleration.key}" is invalid; expected a taint key of {_EXPECTED_NAME}')
        if not LABEL_VALUE.matches(toleration.value):
            yield Finding(
                f"{where}.value", f'"{toleration.value}" is invalid; expected a taint value of {_EXPECTED_VALUE}'
            )


def _label_name(path: str, key: str) -> Iterator[Finding]:
    if not QUALIFIED_NAME.matches(key):
        yield Finding(path, f'"{key}" is invalid; expected a label key of {_EXPECTED_NAME}')


def _label_value(path: str, value: str) -> Iterator[Finding]:
    if not LABEL_VALUE.matches(value):
        yield Finding(path, f'"{value}" is invalid; expected a label value of {_EXPECTED_VALUE}')


def _label_maps(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "metadata.labels", naming.given_labels(manifest)
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
