"""A dry run: it logs each effect once, and continues with what would follow."""

import asyncio
import json
from typing import TYPE_CHECKING, cast

import pytest

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import VerificationRecord
from kube_node_ready.controller.dry_run import DryRun
from kube_node_ready.verification.effects import (
    ConfirmAttempt,
    DiscardAttempt,
    Effect,
    EmitEvent,
    OpenGate,
    StartAttempt,
)
from kube_node_ready.verification.model import Node, Worker

if TYPE_CHECKING:
    from kube_node_ready.controller.execution import CacheSink

NODE = Node("a", "uid-a")


class Sink:
    def __init__(self) -> None:
        self.admitted: list[str] = []
        self.assumed = 0

    def worker_admitted(self, fingerprint: str) -> None:
        self.admitted.append(fingerprint)

    def assume_empty_ledger(self) -> None:
        self.assumed += 1


def test_a_worker_counts_as_genuine_so_that_its_verdict_is_logged() -> None:
    sink = Sink()
    worker = Worker("w", "w-uid", "uid-a", number=1, fingerprint="what it runs")
    assert asyncio.run(DryRun(cast("CacheSink", sink)).apply(ConfirmAttempt(NODE, worker)))
    assert sink.admitted == ["what it runs"]


def test_each_effect_is_logged_once_and_none_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    executor = DryRun(cast("CacheSink", Sink()))
    effects: tuple[Effect, ...] = (
        StartAttempt(NODE, 1),
        StartAttempt(NODE, 2),
        OpenGate(NODE, VerificationRecord(1)),
        DiscardAttempt(Worker("w", "w-uid", "uid-a", number=1)),
    )
    for effect in effects * 2:
        assert not asyncio.run(executor.apply(effect))
    assert capsys.readouterr().out.count("Dry run: effect skipped") == len(effects)


def test_a_line_names_the_effect_its_object_and_the_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    executor = DryRun(cast("CacheSink", Sink()))
    effects: dict[Effect, tuple[str, str, int | str]] = {
        StartAttempt(NODE, 2): ("StartAttempt", "a", 2),
        EmitEvent(NODE, EventReason.VERIFYING, "attempt 2 begins", 2): ("EmitEvent", "a", 2),
        OpenGate(NODE, VerificationRecord(1)): ("OpenGate", "a", ""),
        DiscardAttempt(Worker("w", "w-uid", "uid-a", number=1)): ("DiscardAttempt", "w", ""),
    }
    for effect in effects:
        asyncio.run(executor.apply(effect))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["effect"], line["on"], line["attempt"]) for line in lines] == list(effects.values())


def test_the_ledger_counts_as_empty() -> None:
    sink = Sink()
    asyncio.run(DryRun(cast("CacheSink", sink)).ensure_ledger())
    assert sink.assumed == 1
