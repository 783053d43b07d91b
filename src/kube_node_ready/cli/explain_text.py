"""One node's whole story in plain words. Pure: everything it tells was read before."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from kube_node_ready.console import words
from kube_node_ready.console.installed import Installed, Mode
from kube_node_ready.console.leader import Leader
from kube_node_ready.console.picture import Standing
from kube_node_ready.verify import attempt, budget
from kube_node_ready.verify.model import Outcome, Phase, RemovalPolicy
from kube_node_ready.verify.report import CheckResult, printable

_MOST_EVENTS = 20
HINTS = {
    "dns": "Is cluster DNS up, and does the node reach its Service (kube-proxy, CNI, NetworkPolicies)?",
    "api": "Alone, it is TLS or the token: a proxy in between, a wrong clock, another cluster's CA.",
    "network": "Dropped packets are routes, security groups, the MTU or the CNI; a refusal is the target's.",
    "services": "The Service is missing or has no ready endpoint; then every node says so, and none is at fault.",
    "payload": "Small packets pass and large ones do not: is the overlay's MTU larger than the network's?",
    "clock": "Does time synchronisation run on the node?",
    "matrix": "Most pods on other nodes cannot be reached from here: routes between nodes, or the CNI.",
}
"""What docs/troubleshooting.md says of each check, in a sentence."""


class Event(Struct, frozen=True):
    at: datetime | None
    reason: str
    message: str
    source: str = ""
    count: int = 1


class Facts(Struct, frozen=True):
    """What else was read; None is for what could not be."""

    events: tuple[Event, ...] | None = None
    leader: Leader | None = None


class Part(Struct, frozen=True):
    title: str
    lines: tuple[str, ...]


def story(standing: Standing, installed: Installed, facts: Facts) -> list[Part]:
    parts = [
        Part("Gate", tuple(_gate(standing, installed))),
        Part("Attempts", tuple(_attempts(standing, installed))),
        Part("Checks of the last attempt", tuple(_checks(standing))),
        Part("Next", tuple(_next(standing))),
        Part("Removal", tuple(_removal(standing, installed))),
        Part("Controller", tuple(_controller(standing, facts.leader))),
        Part("Events", tuple(_events(facts.events, standing.seen.now))),
        Part("Look further", tuple(_further(standing, installed))),
    ]
    return [part for part in parts if part.lines]


def headline(standing: Standing) -> str:
    why = f"waits for {standing.waits_for}" if standing.begins and standing.gates else standing.waits_for
    return f"{printable(standing.name)} is {standing.phase}{f': {why}' if why else ''}"


def _gate(standing: Standing, installed: Installed) -> Iterator[str]:
    node, policy, now = standing.node, installed.policy, standing.seen.now
    joined = standing.known.created
    label = f"{policy.label}={policy.label_value}"
    if standing.gates:
        taints = words.listed(list(standing.gates))
        yield f"Closed, by {taints}: only what tolerates that is scheduled here."
    elif node.labelled:
        yield f"Open. The node bears the label {label}."
    elif standing.guarded:
        yield f"Open, but the node has something to prove: it lacks the label {label}."
    else:
        yield f"None: {printable(standing.decision.reason, words.LONGEST)}."
    if joined:
        yield f"The node joined {words.ago(joined, now)} ({words.moment(joined)})."
    if node.deleting:
        yield "It is being deleted."


def _attempts(standing: Standing, installed: Installed) -> Iterator[str]:
    record, now = standing.node.record, standing.seen.now
    if standing.refusal:
        yield f"{printable(standing.refusal, words.LONGEST)}."
    elif not record.attempt:
        yield "None has ended yet."
    if not record.attempt:
        return
    when = f" {words.ago(record.at, now)}" if record.at else ""
    reason = printable(record.reason, words.LONGEST)
    if record.outcome is Outcome.PENDING and not standing.guarded:
        yield f"Not verified by us: {reason}{when}."
    elif record.outcome is Outcome.PENDING:
        yield f"To be verified again, {reason}{when}."
    elif record.is_proof:
        took = f", in {record.seconds:g} s" if record.seconds else ""
        yield f"Attempt {record.attempt} passed{when}{took}."
    else:
        yield f"Attempt {record.attempt} failed{when}: {reason}"
    if record.failures:
        yield _in_a_row(standing, installed)


def _in_a_row(standing: Standing, installed: Installed) -> str:
    record, most = standing.node.record, installed.policy.max_failures
    row = "" if record.failures == 1 else " in a row"
    often = f"It failed {words.times(record.failures)}{row}"
    if record.outcome is Outcome.PASSED:
        rule = installed.policy.reverification
        return f"{often} since it passed{f', and {rule.threshold} close the gate' if rule else ''}."
    since = f", for {words.span(standing.seen.now - record.since)}" if record.since and row else ""
    often += f"{since}."
    return (
        often
        if installed.assumed
        else f"{often} After {most} in a row it is given up: tried slowly, and removed if that is on."
    )


def _checks(standing: Standing) -> Iterator[str]:
    """With each target and its error while the worker is there; otherwise as they are on record."""
    record = standing.node.record
    last = next((worker for worker in standing.seen.workers if worker.attempt == record.attempt), None)
    found = last.report.checks if last and last.report and last.report.checks else record.checks
    width = max((len(_subject(check)) for check in found), default=0)
    for check in found:
        verdict = "passed" if check.ok else "FAILED"
        why = f"  {printable(check.error, words.LONGEST)}" if check.error else ""
        yield f"{_subject(check).ljust(width)}  {verdict}  {check.ms:>6} ms{why}"


def _subject(check: CheckResult) -> str:
    return printable(f"{check.name} {check.target}".strip())


def _next(standing: Standing) -> Iterator[str]:
    left, worker = standing.decision.recheck, attempt.undecided(standing.seen)
    at = f" (at {words.moment(standing.due)})" if standing.due else ""
    number = standing.node.record.attempt + 1
    if standing.refusal:
        yield "The controller writes it again, less and less often, until the API server accepts it."
    elif standing.begins:
        yield f"Attempt {standing.begins}, as soon as {standing.beginner} begins it."
    elif worker and left is not None:
        running = f"The worker of attempt {worker.attempt} is {worker.state}"
        yield f"{running}; it must be done within {words.span(left)}{at}."
    elif standing.phase in (Phase.BACKING_OFF, Phase.EXHAUSTED) and left is not None:
        yield f"Attempt {number} begins in {words.span(left)}{at}."
    elif standing.phase is Phase.HELD and left is not None:
        yield f"It is looked at again in {words.span(left)}{at}, in case it may be removed by then."
    elif standing.phase is Phase.EXHAUSTED:
        yield "Nothing, until someone asks for it: reconciliation.exhaustedRetrySeconds is 0."
    elif standing.verified and left is not None:
        yield f"It is checked again in {words.span(left)}{at}."
    elif standing.phase is Phase.REMOVING:
        yield "It is removed."
    elif standing.verified or standing.phase is Phase.IGNORED:
        yield "Nothing, as long as it stays as it is."
    else:
        yield f"{printable(standing.decision.reason, words.LONGEST)}."


def _removal(standing: Standing, installed: Installed) -> Iterator[str]:
    policy = installed.policy
    if installed.assumed:
        yield "Unknown: the configuration could not be read from here."
        return
    if installed.mode is Mode.DAEMONSET:
        yield "Never: in DaemonSet mode no node is removed."
        return
    if policy.removal is None:
        yield "Never: nodeManagement.deleteFailedNodes is false."
        return
    record = standing.node.record
    if not standing.guarded:
        yield "Not now: it has nothing to prove."
        return
    if not standing.gates:
        yield "Not now: a node that is open is spared."
    elif record.blamed < policy.max_failures:
        yield (
            f"Not yet: {words.count(record.blamed, 'failure')} in a row by its own fault, and it takes "
            f"{policy.max_failures}, and one more right before."
        )
    else:
        yield "It failed often enough, by its own fault." + (
            "" if record.blamed > policy.max_failures else " It is checked once more right before."
        )
    if held := budget.held(standing.seen, policy.removal):
        yield f"It would have to stay: {printable(held, words.LONGEST)}."
    else:
        yield f"The budget would allow it: {_spent(standing, policy.removal)}."
    if installed.removal_dry_run:
        yield "nodeManagement.removal.dryRun is on: it would only be named."


def _spent(standing: Standing, policy: RemovalPolicy) -> str:
    seen, fleet = standing.seen, standing.seen.fleet
    gone, allowed = len(budget.recent(seen, policy)), budget.limit(fleet.in_pool, policy)
    failing = fleet.failing + fleet.doubtful
    pool = f"of pool {printable(seen.node.pool)}" if seen.node.pool else "of nodes without a pool"
    return (
        f"{gone} of {allowed} removals {pool} within {words.span(policy.window)} are spent, and {failing} of "
        f"{words.count(fleet.managed, 'node')} fail at once"
    )


def _controller(standing: Standing, leader: Leader | None) -> Iterator[str]:
    if leader:
        told = leader.told(standing.seen.now)
        yield f"{told[:1].upper()}{told[1:]}."


def _events(events: Sequence[Event] | None, now: datetime) -> Iterator[str]:
    """The newest last."""
    if events is None:
        return
    if not events:
        yield "None. Kubernetes forgets them after an hour."
    for event in sorted(events, key=lambda event: event.at or now)[-_MOST_EVENTS:]:
        when = words.age(now - event.at) if event.at else "?"
        often = f" (x{event.count})" if event.count > 1 else ""
        yield f"{when:>6}  {printable(event.reason)}{often}  {printable(event.message, words.LONGEST)}"


def _further(standing: Standing, installed: Installed) -> Iterator[str]:
    failed = dict.fromkeys(check.name for check in standing.node.record.checks if not check.ok)
    for name in failed if standing.failing else ():
        if name in HINTS:
            yield f"{name}: {HINTS[name]}"
    namespace, name = installed.namespace, standing.name
    if standing.worker:
        yield f"kubectl logs --namespace={namespace} {standing.worker.name}"
    elif installed.mode is Mode.DAEMONSET and standing.guarded:
        pods = "--selector=app.kubernetes.io/component=daemonset"
        yield f"kubectl get pods --namespace={namespace} {pods} --field-selector=spec.nodeName={name}"
    if standing.failing:
        yield f"When it is mended: kube-node-ready verify {name} --wait"
