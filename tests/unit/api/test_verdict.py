"""Verdicts on the wire and for people."""

import pytest

from kube_node_ready.api.verdict import Verdict


def test_verdicts_on_the_wire_never_change() -> None:
    assert [*Verdict] == ["passed", "failed", "skipped", "inconclusive", "not-applicable"]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_failed_and_inconclusive_checks_are_not_ok(verdict: Verdict) -> None:
    assert verdict.ok is (verdict not in (Verdict.FAILED, Verdict.INCONCLUSIVE))


def test_verdicts_are_shown_as_words() -> None:
    assert [verdict.text for verdict in Verdict] == ["passed", "failed", "skipped", "not judged", "not applicable"]
