"""Encode the worker's report: at most 4,096 bytes of JSON, because the kubelet keeps no more."""

import json
from collections.abc import Iterable, Sequence

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.check import CHECKS, Result

VERSION = 2
"""Since version 2, each check has a verdict. Its other fields are those of version 1, for readers of that version."""
MOST_BYTES = 4096
_LONGEST_NODE = 253
_ELLIPSIS = "…"


def encode(node: str, results: Sequence[Result], error: str = "") -> bytes:
    """Return the report. If it is too long, shorten errors, then merge the passing targets of a check, then its failing
    ones. A failing check is always named.
    """
    candidates: Iterable[Sequence[Result]] = (
        results,
        (passing := _merged(results, ok=True)),
        (merged := _merged(passing, ok=False)),
    )
    for kept in candidates:
        for longest in (2000, 400, 200, 100, 50):
            data = _json(node, kept, error, longest)
            if len(data) <= MOST_BYTES:
                return data
    # A control character takes six bytes. What the kubelet cuts off makes the whole report unreadable.
    data = _json(node[:63], merged, error, 20)
    return data if len(data) <= MOST_BYTES else _json(node[:63], merged, error, 5)


def _json(node: str, results: Iterable[Result], error: str, longest: int) -> bytes:
    report: dict[str, object] = {"v": VERSION, "node": _short(node, _LONGEST_NODE)}
    report["checks"] = [_entry(result, longest) for result in results]
    if error:
        report["error"] = _short(error, longest)
    return json.dumps(report, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _entry(result: Result, longest: int) -> dict[str, object]:
    target = _short(result.target, longest)
    entry: dict[str, object] = {"name": result.name, "verdict": result.verdict, "ok": result.ok}
    entry |= {"ms": result.ms, "target": target}
    if result.verdict is Verdict.SKIPPED:
        entry["skipped"] = True
    elif result.verdict is Verdict.NOT_APPLICABLE:
        entry["notApplicable"] = True
    elif result.verdict is Verdict.INCONCLUSIVE:
        entry["notJudged"] = True
    if result.error:
        entry["error"] = _short(result.error, longest)
    return entry


def _merged(results: Sequence[Result], *, ok: bool) -> list[Result]:
    """Merge the passing (or failing) targets of each check into the first of them."""
    merged = []
    for name in CHECKS:
        same = [result for result in results if result.name == name and result.ok == ok]
        if same:
            target = same[0].target if len(same) == 1 else f"{same[0].target[:200]} and {len(same) - 1} more"
            merged.append(same[0]._replace(target=target, ms=max(result.ms for result in same)))
    others = [result for result in results if result.ok != ok]
    return others + merged if ok else merged + others


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + _ELLIPSIS
