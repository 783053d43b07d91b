"""Rounds of checks in DaemonSet mode: after a failed one, DNS is asked more often."""

from datetime import UTC, datetime

import pytest

from kube_node_ready.checks.model import CheckFailedError, Deadline, Here, Job, Proof
from kube_node_ready.checks.settings import Settings
from kube_node_ready.daemonset.model import RunChecks
from kube_node_ready.daemonset.reach import InPod
from kube_node_ready.daemonset.rounds import Rounds


class Scripted(InPod):
    """A way to the cluster where each round passes or fails as told; it remembers how often DNS was to be asked."""

    def __init__(self, *passes: bool) -> None:
        super().__init__({}, "")
        self._passes = iter(passes)
        self.samples: list[int] = []

    def jobs(self, settings: Settings, here: Here) -> tuple[Job, ...]:  # noqa: ARG002  as the others'
        self.samples.append(settings.dns_samples)
        return (Job("dns", "example.com", self._prove),)

    def _prove(self, _deadline: Deadline) -> Proof:
        if not next(self._passes):
            raise CheckFailedError("9 of 24 queries lost")
        return Proof()


@pytest.mark.parametrize(
    ("attempts", "passes", "samples"),
    [
        ((1, 2, 3), (False, False, True), [24, 48, 48]),
        ((5,), (True,), [48]),
        ((0, 0, 0, 0), (True, False, True, True), [24, 24, 48, 24]),
        ((1, 0), (False, True), [24, 48]),
    ],
    ids=["attempts", "an attempt after a restart", "rounds over a verified node", "a round after a failed attempt"],
)
def test_after_a_failure_dns_is_asked_more_often(
    attempts: tuple[int, ...], passes: tuple[bool, ...], samples: list[int]
) -> None:
    script = Scripted(*passes)
    rounds = Rounds(Settings(), Here("node-1", "kube-system"), script, lambda: datetime.now(UTC))
    done = [rounds.run(RunChecks(attempt)) for attempt in attempts]
    assert [round_ is not None and round_.passed for round_ in done] == list(passes)
    assert script.samples == samples
