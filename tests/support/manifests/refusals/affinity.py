"""Invalid affinity."""

from typing import Final

from tests.support.manifests.builders import Json
from tests.support.manifests.refusals.case import Refusal, rows


def near(**term: object) -> Json:
    terms = [{"topology_key": "kubernetes.io/hostname"} | term]
    return {"pod_affinity": {"required_during_scheduling_ignored_during_execution": terms}}


def on_nodes(**term: object) -> Json:
    terms = {"node_selector_terms": [term]}
    return {"node_affinity": {"required_during_scheduling_ignored_during_execution": terms}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


_NODES: Final = "spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms"

_LIKED_NODES: Final = "spec.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution"

_PODS: Final = "spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution"

AFFINITY: Final = [
    Refusal(what, {"spec.affinity": affinity}, path, says)
    for what, affinity, path, says in rows(
        (
            "no terms",
            {"node_affinity": {"required_during_scheduling_ignored_during_execution": {}}},
            _NODES,
            "at least one term is required",
        ),
        (
            "In without values",
            on_nodes(match_expressions=[expression("a", "In")]),
            f"{_NODES}[0].match_expressions[0]",
            "operator In requires values",
        ),
        (
            "Exists with values",
            on_nodes(match_expressions=[expression("a", "Exists", "b")]),
            f"{_NODES}[0].match_expressions[0]",
            "operator Exists does not accept values",
        ),
        (
            "Gt of a word",
            on_nodes(match_expressions=[expression("a", "Gt", "b")]),
            f"{_NODES}[0].match_expressions[0]",
            "operator Gt requires one whole number",
        ),
        (
            "Lt of a number below 0",
            on_nodes(match_expressions=[expression("a", "Lt", "-1")]),
            f"{_NODES}[0].match_expressions[0]",
            "operator Lt requires one whole number",
        ),
        (
            "another operator of nodes",
            on_nodes(match_expressions=[expression("a", "Equal", "b")]),
            f"{_NODES}[0].match_expressions[0].operator",
            '"Equal" is invalid; expected In, NotIn, Exists, DoesNotExist, Gt or Lt',
        ),
        (
            "no key of nodes",
            on_nodes(match_expressions=[expression("", "Exists")]),
            f"{_NODES}[0].match_expressions[0].key",
            "is required",
        ),
        (
            "a key of nodes that is none",
            on_nodes(match_expressions=[expression("a b", "Exists")]),
            f"{_NODES}[0].match_expressions[0].key",
            '"a b" is invalid; expected a label key',
        ),
        (
            "a value of nodes that is none",
            on_nodes(match_expressions=[expression("a", "In", "b c")]),
            f"{_NODES}[0].match_expressions[0].values[0]",
            '"b c" is invalid; expected a label value',
        ),
        (
            "another field of nodes",
            on_nodes(match_fields=[expression("spec.unschedulable", "In", "true")]),
            f"{_NODES}[0].match_fields[0]",
            "expected key metadata.name",
        ),
        (
            "a node that cannot be",
            on_nodes(match_fields=[expression("metadata.name", "In", "A B")]),
            f"{_NODES}[0].match_fields[0]",
            "the name of one node",
        ),
        (
            "a node with an empty part in its name",
            on_nodes(match_fields=[expression("metadata.name", "In", "a..b")]),
            f"{_NODES}[0].match_fields[0]",
            "the name of one node",
        ),
        (
            "a weight of 0",
            {
                "node_affinity": {
                    "preferred_during_scheduling_ignored_during_execution": [
                        {"weight": 0, "preference": {"match_expressions": [expression("a", "Exists")]}}
                    ]
                }
            },
            f"{_LIKED_NODES}[0].weight",
            "0 is invalid; expected a weight from 1 to 100",
        ),
        (
            "no preference",
            {"node_affinity": {"preferred_during_scheduling_ignored_during_execution": [{"weight": 1}]}},
            f"{_LIKED_NODES}[0].preference",
            "is required",
        ),
        (
            "pods of no place",
            near(topology_key=""),
            f"{_PODS}[0].topology_key",
            "is required",
        ),
        (
            "a place that is none",
            near(topology_key="a b"),
            f"{_PODS}[0].topology_key",
            '"a b" is invalid; expected a label key',
        ),
        (
            "another operator of pods",
            near(label_selector={"match_expressions": [expression("a", "Gt", "1")]}),
            f"{_PODS}[0].label_selector.match_expressions[0].operator",
            '"Gt" is invalid; expected In, NotIn, Exists or DoesNotExist',
        ),
        (
            "NotIn without values",
            near(label_selector={"match_expressions": [expression("a", "NotIn")]}),
            f"{_PODS}[0].label_selector.match_expressions[0]",
            "operator NotIn requires values",
        ),
        (
            "a key of pods that is none",
            near(label_selector={"match_expressions": [expression("a b", "Exists")]}),
            f"{_PODS}[0].label_selector.match_expressions[0].key",
            '"a b" is invalid; expected a label key',
        ),
        (
            "a value of pods that is none",
            near(label_selector={"match_expressions": [expression("a", "In", "b c")]}),
            f"{_PODS}[0].label_selector.match_expressions[0].values[0]",
            '"b c" is invalid; expected a label value',
        ),
        (
            "pods' labels that are none",
            near(label_selector={"match_labels": {"a b": "c"}}),
            f'{_PODS}[0].label_selector.match_labels["a b"]',
            '"a b" is invalid; expected a label key',
        ),
        (
            "a namespace of pods that is none",
            near(namespaces=["A"]),
            f"{_PODS}[0].namespaces[0]",
            '"A" is invalid; expected a namespace name',
        ),
        (
            "a weight of 101",
            {
                "pod_anti_affinity": {
                    "preferred_during_scheduling_ignored_during_execution": [
                        {"weight": 101, "pod_affinity_term": {"topology_key": "a"}}
                    ]
                }
            },
            "spec.affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution[0].weight",
            "101 is invalid; expected a weight",
        ),
        (
            "a value that is liked and cannot be",
            {
                "node_affinity": {
                    "preferred_during_scheduling_ignored_during_execution": [
                        {"weight": 1, "preference": {"match_expressions": [expression("a", "In", "b c")]}}
                    ]
                }
            },
            f"{_LIKED_NODES}[0].preference.match_expressions[0].values[0]",
            '"b c" is invalid; expected a label value',
        ),
    )
]
