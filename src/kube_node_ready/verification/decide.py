"""The state machine: a node's next step, as a function of what the cluster shows.

A node with a gate taint has something to prove. A worker runs on it under a number, the attempt; the verdict of that
attempt is recorded on the Node before the next one starts, so every life of the controller counts on from there.

    waiting ──> verifying ──> verified ──(label taken off)──> verifying
                  │   ^
                  v   │ backoff
                failed ──> backing-off
                  │
                  v too many in a row
                exhausted ──(slowly)──> verifying
                  │
                  v if asked for, after one more failure, within the budget
                removing (or held)

Verified nodes may have to prove themselves again, by `reverify`, which closes the gate of those that keep failing.

Effects are absolute and may be carried out twice. A passed worker is dropped only when all that follows from its
verdict is written: the pod is the note that something is left to do. So a node is released first, and that is told by
a look of its own, which in a rush comes later. A failed worker stays, for its logs, until the next begins.
"""

import zlib
from datetime import timedelta

from msgspec.structs import replace

from kube_node_ready.verify import attempt as attempts
from kube_node_ready.verify import budget, reverify
from kube_node_ready.verify.attempt import NONE, drop_all, seconds, since_verdict, undecided
from kube_node_ready.verify.model import (
    Adopt,
    Announce,
    Cause,
    CloseGate,
    Decision,
    DropWorker,
    Effect,
    Node,
    Outcome,
    Phase,
    Policy,
    Record,
    Release,
    RemoveNode,
    Snapshot,
    Worker,
    WriteRecord,
)
from kube_node_ready.verify.report import printable

_JITTER = 0.1
_LONGEST_REFUSAL = 500
_FRESH = timedelta(minutes=1)
"""How recent a failure must be for a node to be removed on its account."""
_CONTEST = 2
"""So many undone releases in a row are a contest. One can be a wish: the label is taken off to ask for a new proof."""
_SETTLED = timedelta(minutes=10)
"""A release that stands for so long has won."""
_FIRST_CONTEST_BACKOFF = timedelta(seconds=2)
_MAX_CONTEST_BACKOFF = timedelta(minutes=5)
_MOST_DOUBLINGS = 30
_LATEST_NEWS = timedelta(minutes=1)
"""How long condition and Event of a released node may wait for other nodes' releases."""


def decide(seen: Snapshot, policy: Policy) -> Decision:
    """What this node needs next, given everything we can see of it now."""
    node = seen.node
    if node.deleting:
        return Decision(Phase.IGNORED, "it is being deleted")
    if not policy.guards(node):
        return _at_rest(seen, policy)
    if not node.registered:
        return Decision(Phase.WAITING, "Karpenter has yet to register it", _superfluous(seen))
    if node.record.outcome is Outcome.PASSED:
        return _verify_again(seen)
    if worker := undecided(seen):
        return _judge(seen, worker, policy)
    if node.record.failures >= policy.max_failures:
        return _give_up(seen, policy)
    if (wait := _backoff(node, policy) - since_verdict(seen)) > NONE:
        return Decision(Phase.BACKING_OFF, _why_backing_off(node), _superfluous(seen), recheck=wait)
    return _start(seen)


def _at_rest(seen: Snapshot, policy: Policy) -> Decision:
    """Nothing to prove for now. A worker still here may be the note that its verdict was not told to everyone."""
    node = seen.node
    if not node.labelled:
        return Decision(Phase.IGNORED, "it is not gated", drop_all(seen))
    if not node.record.attempt:
        known = Record(1, outcome=Outcome.PENDING, at=seen.now, since=seen.now, reason="labelled by someone else")
        return Decision(Phase.IGNORED, "someone else verified it", (Adopt(node, known, seen.version), *drop_all(seen)))
    if _is_untold(seen):
        return _tell_it(seen)
    if policy.reverification:
        return reverify.watch_over(seen, policy, policy.reverification)
    if node.record.outcome is not Outcome.PASSED:
        return Decision(Phase.IGNORED, "it is not gated", drop_all(seen))
    return Decision(Phase.VERIFIED, "it is verified", drop_all(seen))


def _is_untold(seen: Snapshot) -> bool:
    """A proof that only repeats another is no news, and its record was written with its condition."""
    record = seen.node.record
    is_new = record.is_proof and record.at == record.since
    return is_new and any(worker.attempt == record.attempt for worker in seen.workers)


def _tell_it(seen: Snapshot) -> Decision:
    if seen.rush and (wait := _LATEST_NEWS - since_verdict(seen)) > NONE:
        return Decision(Phase.VERIFIED, "it is verified, which is told after the rush", recheck=wait)
    return Decision(Phase.VERIFIED, "it is verified", (*_tell(seen.node, seen.node.record), *drop_all(seen)))


def _verify_again(seen: Snapshot) -> Decision:
    """The gate is there, or the label is not, so the proof on record no longer counts.

    The gate is never opened for the record's sake: a kubelet can write both the record and the label of its own Node.
    """
    node = seen.node
    contested = node.record.contested + 1 if since_verdict(seen) < _SETTLED else 0
    why = _why_again(node)
    if contested >= _CONTEST:
        why = f"another client undid the release {contested} times in a row, soon after it: {why}"
    pending = Record(
        node.record.attempt, outcome=Outcome.PENDING, at=seen.now, since=seen.now, reason=why, contested=contested
    )
    # At 2, 4, 8, …: a contest that lasts for days must not fill the list of Events.
    is_news = contested >= _CONTEST and contested.bit_count() == 1
    news = (Announce(node, "GateContested", why, node.record.attempt, warning=True),) if is_news else ()
    effects = (*news, WriteRecord(node, pending, seen.version))
    return Decision(Phase.VERIFYING, f"to be verified again: {why}", effects)


def _why_again(node: Node) -> str:
    if not node.labelled:
        return "its label was taken off"
    if not node.record.is_proof:
        return "the gate came back, and the last check had not passed"
    return "the gate came back" if node.record.boot == node.boot else "the gate came back after a reboot"


def _start(seen: Snapshot) -> Decision:
    node = seen.node
    if not seen.slot_free:
        return Decision(Phase.WAITING, "as many verifications run as may run at a time", _superfluous(seen))
    attempt = node.record.attempt + 1
    # The first attempt goes without saying: a burst of nodes should not cost an Event each.
    news = (Announce(node, "Verifying", f"attempt {attempt} begins", attempt),) if attempt > 1 else ()
    return Decision(Phase.VERIFYING, f"attempt {attempt} begins", attempts.begin(seen, attempt, *news))


def _superfluous(seen: Snapshot) -> tuple[DropWorker, ...]:
    return attempts.superfluous(seen, logs_of_last=seen.node.record.outcome is Outcome.FAILED)


def _judge(seen: Snapshot, worker: Worker, policy: Policy) -> Decision:
    verdict = attempts.verdict(seen, worker, policy)
    if verdict is None:
        left = attempts.time_left(seen, worker, policy)
        return Decision(Phase.VERIFYING, attempts.progress(worker), _superfluous(seen), left)
    if not worker.genuine:
        return attempts.to_confirm(seen, worker, Phase.VERIFYING)
    if verdict.passed:
        return _pass(seen, worker)
    return _fail(seen, worker, policy, verdict)


def _pass(seen: Snapshot, worker: Worker) -> Decision:
    checks = worker.report.by_check if worker.report else ()
    record = Record(
        worker.attempt,
        outcome=Outcome.PASSED,
        at=seen.now,
        since=seen.now,
        boot=seen.node.boot,
        seconds=seconds(seen, worker),
        checks=checks,
        contested=seen.node.record.contested,
    )
    return Decision(Phase.VERIFIED, f"attempt {worker.attempt} passed", (Release(seen.node, record),), verdict=worker)


def _tell(node: Node, record: Record) -> tuple[Effect, ...]:
    slowest = max((check.ms for check in record.checks), default=0)
    passed = f"{len(record.checks)} checks passed, the slowest in {slowest} ms" if record.checks else "it passed"
    return (
        WriteRecord(node, record),
        Announce(node, "Verified", f"attempt {record.attempt}: {passed}", record.attempt),
    )


def _fail(seen: Snapshot, worker: Worker, policy: Policy, verdict: attempts.Verdict) -> Decision:
    record = _failure(seen, worker.attempt, policy, verdict, worker)
    effects = _record_failure(seen, record, policy)
    if not worker.finished:
        effects += (DropWorker(worker.name, worker.uid),)
    return Decision(Phase.FAILED, verdict.reason, effects, verdict=worker)


def could_not_start(seen: Snapshot, attempt: int, policy: Policy, reason: str) -> Decision:
    """What follows when the API server would not have the worker pod at all."""
    refusal = f"the worker pod was refused: {printable(reason, _LONGEST_REFUSAL)}"
    verdict = attempts.Verdict(passed=False, cause=Cause.REFUSED, reason=refusal)
    if not policy.guards(seen.node):
        return reverify.not_judged(seen, attempt, verdict, policy)
    record = _failure(seen, attempt, policy, verdict)
    return Decision(Phase.FAILED, record.reason, _record_failure(seen, record, policy))


def write_rejected(seen: Snapshot, effect: Release | CloseGate | WriteRecord | Adopt, message: str) -> Decision:
    """What follows when the API server rejects a write to the Node: it is shown wherever a write still succeeds.

    The condition alone is written, since the record is part of what was rejected.
    """
    is_release = isinstance(effect, Release)
    what = "release" if is_release else "record"
    passed = f"attempt {effect.record.attempt} passed, but " if is_release else ""
    why = f"{passed}the API server rejected the {what}: {printable(message, _LONGEST_REFUSAL)}"
    shown = Record(
        effect.record.attempt,
        outcome=Outcome.PENDING,
        at=seen.now,
        since=seen.now,
        cause=Cause.NOT_RELEASED if is_release else Cause.NOT_RECORDED,
        reason=why,
    )
    reason = "ReleaseRejected" if is_release else "RecordRejected"
    news = Announce(seen.node, reason, why, effect.record.attempt, warning=True)
    return Decision(Phase.BACKING_OFF, why, (news, WriteRecord(seen.node, shown)))


def not_genuine(seen: Snapshot, attempt: int, policy: Policy, reason: str) -> Decision:
    """What follows when the pod with a worker's name is not one, or not ours: no verdict, and an attempt more.

    It causes a backoff, but never exhausts the retries: a leftover of an upgrade must not strand a node.
    """
    verdict = attempts.Verdict(passed=False, cause=Cause.STOPPED, reason=printable(reason, _LONGEST_REFUSAL))
    if not policy.guards(seen.node):
        return reverify.not_judged(seen, attempt, verdict, policy, *drop_all(seen))
    failed = _failure(seen, attempt, policy, verdict)
    before = seen.node.record.failures
    record = replace(failed, failures=max(before, min(failed.failures, policy.max_failures - 1)))
    return Decision(Phase.FAILED, record.reason, (*_record_failure(seen, record, policy), *drop_all(seen)))


def _record_failure(seen: Snapshot, record: Record, policy: Policy) -> tuple[Effect, ...]:
    """Said before it is recorded: once it is on record, nobody comes back to say it."""
    return (*_announce_failure(seen.node, record, policy), WriteRecord(seen.node, record, seen.version))


def _failure(
    seen: Snapshot, attempt: int, policy: Policy, verdict: attempts.Verdict, worker: Worker | None = None
) -> Record:
    """The record after one more failure."""
    before, in_crowd = seen.node.record, _is_in_crowd(seen, policy)
    blamed = before.blamed + 1 if verdict.cause.blames_node else 0
    if in_crowd or before.in_crowd:
        # It is no look right before a removal: nodes that have yet to be looked at when an outage ends would be removed
        # for its sake. Nor is the next one, whose worker may have begun before the end.
        blamed = min(blamed, policy.max_failures)
    return Record(
        attempt,
        failures=before.failures + 1,
        outcome=Outcome.FAILED,
        at=seen.now,
        since=before.since if before.outcome is Outcome.FAILED else seen.now,
        cause=verdict.cause,
        blamed=blamed,
        in_crowd=in_crowd,
        reason=verdict.reason,
        seconds=seconds(seen, worker) if worker else 0,
        checks=worker.report.by_check if worker and worker.report else (),
        contested=before.contested,
    )


def _is_in_crowd(seen: Snapshot, policy: Policy) -> bool:
    return policy.removal is not None and budget.crowd(seen, policy.removal) is not None


def _announce_failure(node: Node, record: Record, policy: Policy) -> tuple[Announce, ...]:
    failed = Announce(node, "VerificationFailed", told(record, policy), record.attempt, warning=True)
    if record.failures != policy.max_failures:
        return (failed,)
    then = "it is tried again slowly" if policy.slow_retry else "it is not tried again"
    exhausted = f"failed {record.failures} times in a row; {then}. Last: {record.reason}"
    return (failed, Announce(node, "VerificationExhausted", exhausted, record.attempt, warning=True))


def told(record: Record, policy: Policy) -> str:
    """A record in words that a person can act on."""
    if record.is_proof:
        return f"verified by attempt {record.attempt}"
    if record.outcome is Outcome.PASSED:
        return f"verified before, but attempt {record.attempt} did not pass: {record.reason}"
    if record.cause in (Cause.NOT_RELEASED, Cause.NOT_RECORDED):
        return record.reason
    if record.outcome is Outcome.PENDING:
        return f"to be verified again: {record.reason}"
    if not record.failures:
        return record.reason
    if record.failures > policy.max_failures:
        return f"{record.reason} (failure {record.failures} in a row)"
    return f"{record.reason} (attempt {record.failures} of {policy.max_failures})"


def _backoff(node: Node, policy: Policy) -> timedelta:
    """After failures or a contest; spread a little, in a way that every look repeats."""
    wait = max(_backoff_after_failures(node.record, policy), _backoff_of_contest(node.record))
    spread = zlib.crc32(f"{node.uid} {node.record.attempt}".encode()) / 2**32
    return wait * (1 + _JITTER * spread)


def _backoff_after_failures(record: Record, policy: Policy) -> timedelta:
    """1, 2, 4, … times the first, or always the first; capped."""
    if not record.failures:
        return NONE
    doublings = min(record.failures - 1, _MOST_DOUBLINGS) if policy.exponential else 0
    wait: timedelta = min(policy.first_backoff * 2**doublings, policy.max_backoff)
    return wait


def is_contested(record: Record) -> bool:
    """Whether another client undoes what we do."""
    return record.contested >= _CONTEST


def _backoff_of_contest(record: Record) -> timedelta:
    """Each verification of a node whose gate comes back costs a worker pod, for nothing."""
    if not is_contested(record):
        return NONE
    doublings = min(record.contested - _CONTEST, _MOST_DOUBLINGS)
    wait: timedelta = min(_FIRST_CONTEST_BACKOFF * 2**doublings, _MAX_CONTEST_BACKOFF)
    return wait


def _why_backing_off(node: Node) -> str:
    return _failed_so_far(node) if node.record.failures else node.record.reason


def _failed_so_far(node: Node) -> str:
    times = "once" if node.record.failures == 1 else f"{node.record.failures} times in a row"
    return f"failed {times}: {node.record.reason}"


def _give_up(seen: Snapshot, policy: Policy) -> Decision:
    """Removal, if that is wanted and allowed; otherwise patience, since outages end."""
    node = seen.node
    if policy.removal and policy.gated(node) and node.record.blamed >= policy.max_failures:
        return _remove(seen, policy)
    return _be_patient(seen, policy, Phase.EXHAUSTED, _failed_so_far(node))


def _be_patient(seen: Snapshot, policy: Policy, phase: Phase, reason: str, news: tuple[Effect, ...] = ()) -> Decision:
    effects = (*news, *_superfluous(seen))
    if policy.slow_retry is None:
        return Decision(phase, reason, effects, policy.resync if phase is Phase.HELD else None)
    if (wait := policy.slow_retry - since_verdict(seen)) > NONE:
        return Decision(phase, reason, effects, min(wait, policy.resync) if phase is Phase.HELD else wait)
    return _start(seen)


def _remove(seen: Snapshot, policy: Policy) -> Decision:
    node, record, removal = seen.node, seen.node.record, policy.removal
    assert removal
    if held := budget.held(seen, removal):
        blocked = Announce(node, "RemovalBlocked", held, record.attempt, warning=True)
        return _be_patient(seen, policy, Phase.HELD, held, (blocked,))
    looked_again = record.blamed > policy.max_failures
    # The record alone removes nothing: the node's kubelet can write it. It cannot write the ledger.
    is_evident = seen.witnessed == record.attempt or budget.is_booked(node, seen.fleet.ledger, seen.now, removal)
    if looked_again and is_evident and since_verdict(seen) < _FRESH:
        remove = RemoveNode(node, record.reason, seen.fleet.ledger)
        return Decision(Phase.REMOVING, record.reason, (remove,), policy.resync)
    # One more look right before: what failed a while ago may have healed. If that did not lead to removal, then slowly.
    spacing = (policy.slow_retry or removal.window) if looked_again else _backoff(node, policy)
    if (wait := spacing - since_verdict(seen)) > NONE:
        why = f"to be checked once more before removal: {record.reason}"
        return Decision(Phase.EXHAUSTED, why, _superfluous(seen), wait)
    return _start(seen)
