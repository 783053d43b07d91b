"""What the operator leaves in a cluster, in its log and on its metrics page, as facts.

All of these are pure functions of what `kubectl get -o json` and the like show; tests/cluster/test_contract.py gets it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests import specification
from tests.contract.golden import Facts
from tests.contract.shapes import prefixed, shape

Json = Mapping[str, Any]

_OURS: Final = "node-ready/"
_ANY_VALUE: Final = {
    *("node", "pool", "domain", "address", "taint_key", "label_key", "version", "commit_hash", "build_date"),
    *("verb", "resource", "code", "le"),
}
"""Labels of metrics whose values are the user's, or depend on what happened so far."""
_WORDS: Final = ("outcome", "cause")
"""Fields of a record that hold one of a few words."""
_SPECIFIED: Final = {
    *(json.loads(line)["msg"] for line in specification.text("operator/log-controller.jsonl").splitlines()),
    *(json.loads(line)["msg"] for line in specification.text("operator/log-worker.jsonl").splitlines()),
    *re.findall(r"INFO (.+?)  ", specification.text("operator/log-karpenter.txt")),
}


def node(found: Json) -> Facts:
    """Labels, taints, annotations with the keys of what is in them, and the condition."""
    metadata = found["metadata"]
    facts = {f"label {key}": value for key, value in metadata["labels"].items() if key.startswith(_OURS)}
    facts |= {f"taint {taint['key']}": taint["effect"] for taint in found["spec"].get("taints", ()) if _is_ours(taint)}
    for key, value in metadata["annotations"].items():
        if key.startswith(_OURS):
            facts |= prefixed(f"annotation {key}", _record(json.loads(value)))
    if verdict := condition(found):
        words = {"status and reason": f"{verdict['status']} {verdict['reason']}"}
        facts |= prefixed(f"condition {verdict['type']}", {**shape(verdict), **words})
    return facts


def condition(found: Json) -> Json:
    """Our condition of a Node; empty if it has none."""
    return next((known for known in found["status"]["conditions"] if known["type"] == "NodeVerified"), {})


def events(found: Iterable[Json]) -> Facts:
    """Reasons of our Events, their type, and who reports them."""
    return {
        f"Event {event['reason']}": f"{event['type']} by {event['reportingComponent']}"
        for event in found
        if event["reportingComponent"].startswith("kube-node-ready")
    }


def worker_pod(found: Json) -> Facts:
    """What users select and admit worker pods by, and what is in them."""
    metadata, spec = found["metadata"], found["spec"]
    (container,) = spec["containers"]
    return {
        "name": re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<UID of the Node>", metadata["name"]),
        "labels": " ".join(sorted(key for key in metadata["labels"] if not key.startswith("topology."))),
        "annotations": " ".join(sorted(metadata.get("annotations", {}))),
        "container": container["name"],
        "command": " ".join(container["command"]),
        "variables": " ".join(variable["name"] for variable in container["env"]),
        "tolerations": json.dumps(spec["tolerations"]),
        "restartPolicy": spec["restartPolicy"],
        "terminationMessagePath": container["terminationMessagePath"],
    }


def ledger(found: Json) -> Facts:
    """The ConfigMap that removals are recorded in."""
    name, labels = found["metadata"]["name"], found["metadata"]["labels"]
    facts = {"name": name, "labels": " ".join(f"{key}={labels[key]}" for key in sorted(labels))}
    for key, value in found["data"].items():
        facts |= prefixed(key, shape(json.loads(value)))
    return facts


def metrics(page: str) -> Facts:
    """Each series that is served, its type, and its labels with their values."""
    types = dict(re.findall(r"(?m)^# TYPE (\w+) (\w+)$", page))
    labels: dict[str, dict[str, set[str]]] = {name: {} for name in types}
    for series, listed in re.findall(r"(?m)^(\w+)(?:\{(.*)\})? ", page):
        name = series if series in types else re.sub("_(bucket|sum|count)$", "", series)
        for label, value in re.findall(r'(\w+)="([^"]*)"', listed):
            labels[name].setdefault(label, set()).update(() if label in _ANY_VALUE else (value,))
    return {name: " ".join([kind, *_listed(labels[name])]) for name, kind in types.items()}


def log(lines: Iterable[Json]) -> Facts:
    """Lines that the specification names: their level and their fields."""
    return {
        f'log "{line["msg"]}"': " ".join([line["level"], *sorted(line.keys() - {"level", "msg"})])
        for line in lines
        if line["msg"] in _SPECIFIED
    }


def _is_ours(taint: Json) -> bool:
    return str(taint["key"]).startswith(_OURS)


def _record(annotation: Any) -> Facts:  # noqa: ANN401  JSON
    words = annotation if isinstance(annotation, Mapping) else {}
    return {**shape(annotation), **{word: json.dumps(words[word]) for word in _WORDS if word in words}}


def _listed(labels: Mapping[str, set[str]]) -> Iterator[str]:
    for label in sorted(labels.keys() - {"le"}):
        yield "=".join(filter(None, [label, "|".join(sorted(labels[label]))]))
