"""Describe the status and history of one node as text. Pure: everything was read before."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.api.record import Outcome
from kube_node_ready.api.report import CheckResult, TargetResult, printable
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.check import CHECKS
from kube_node_ready.cli import words
from kube_node_ready.cli.fleet import NodeStatus
from kube_node_ready.cli.installation import Installed, Mode
from kube_node_ready.cli.leader import Leader
from kube_node_ready.verification import attempts, removal_budget
from kube_node_ready.verification.model import Phase, RemovalPolicy
from kubekit import durations

_MOST_EVENTS = 20
HINTS = {
    "dns": "Check that cluster DNS is up and that the node reaches its Service (kube-proxy, CNI, NetworkPolicies).",
    "api": "If only this check fails, TLS or the token is the cause: a proxy, a wrong clock, or another cluster's CA.",
    "network": "Dropped packets: check routes, security groups, the MTU and the CNI. A refusal: check the target.",
    "services": "The Service is missing or has no ready endpoint; then every node reports it, and no node is at fault.",
    "payload": "Small packets pass and large ones do not: check the overlay's MTU against the network's.",
    "clock": "Check that time synchronization runs on the node.",
    "matrix": "Most peers on other nodes cannot be reached from here: routes between nodes, the CNI, or a firewall.",
}
"""What docs/how-to/troubleshooting.md explains about each check, in a sentence."""


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


class Section(Struct, frozen=True):
    title: str
    lines: tuple[str, ...]


def sections(status: NodeStatus, installed: Installed, facts: Facts) -> list[Section]:
    all_sections = [
        Section("Gate", tuple(_gate(status, installed))),
        Section("Attempts", tuple(_attempts(status, installed))),
        Section("Checks of the last attempt", tuple(_checks(status))),
        Section("Next", tuple(_next(status))),
        Section("Removal", tuple(_removal(status, installed))),
        Section("Controller", tuple(_controller(status, facts.leader))),
        Section("Events", tuple(_events(facts.events, status.seen.now))),
        Section("Next steps", tuple(_further(status, installed))),
    ]
    return [section for section in all_sections if section.lines]


def headline(status: NodeStatus) -> str:
    reason = f"waits for {status.waits_for}" if status.begins and status.gates else status.waits_for
    return f"{printable(status.name)} is {status.phase}{f': {reason}' if reason else ''}"


def _gate(status: NodeStatus, installed: Installed) -> Iterator[str]:
    node, policy, now = status.node, installed.policy, status.seen.now
    joined = status.known.created
    label = f"{policy.label}={policy.label_value}"
    if status.gates:
        taints = durations.listed(list(status.gates))
        yield f"Closed by {taints}: only pods that tolerate it are scheduled here."
    elif node.labelled:
        yield f"Open. The node has the label {label}."
    elif status.guarded:
        yield f"Open, but the node is not verified: it does not have the label {label}."
    else:
        yield f"None: {printable(status.decision.reason, words.LONGEST)}."
    if joined:
        yield f"The node joined {durations.format_ago(joined, now)} ({durations.format_time(joined)})."
    if node.deleting:
        yield "It is being deleted."


def _attempts(status: NodeStatus, installed: Installed) -> Iterator[str]:
    record, now = status.node.record, status.seen.now
    if status.rejection:
        yield f"{printable(status.rejection, words.LONGEST)}."
    elif not record.attempt:
        yield "No attempt has completed yet."
    if not record.attempt:
        return
    when = f" {durations.format_ago(record.at, now)}" if record.at else ""
    reason = printable(record.reason, words.LONGEST)
    if record.outcome is Outcome.PENDING and not status.guarded:
        yield f"Not verified by kube-node-ready: {reason}{when}."
    elif record.outcome is Outcome.PENDING:
        yield f"To be verified again, {reason}{when}."
    elif record.is_proof:
        took = f", in {record.seconds:g} s" if record.seconds else ""
        yield f"Attempt {record.attempt} passed{when}{took}."
    else:
        yield f"Attempt {record.attempt} failed{when}: {reason}"
    if record.failures:
        yield _in_a_row(status, installed)


def _in_a_row(status: NodeStatus, installed: Installed) -> str:
    record, most = status.node.record, installed.policy.max_failures
    row = "" if record.failures == 1 else " in a row"
    often = f"It has failed {durations.times(record.failures)}{row}"
    if record.outcome is Outcome.PASSED:
        rule = installed.policy.reverification
        return f"{often} since it passed{f'; {rule.threshold} failures in a row restore the gate' if rule else ''}."
    since = f", for {durations.format_duration(status.seen.now - record.since)}" if record.since and row else ""
    often += f"{since}."
    if installed.assumed:
        return often
    exhausted = "it is exhausted: retried rarely, and removed if removal is enabled."
    return f"{often} So {exhausted}" if record.failures >= most else f"{often} After {most} in a row {exhausted}"


def _checks(status: NodeStatus) -> Iterator[str]:
    """With each target and its error while the worker is there; otherwise as they are on record."""
    checks = _last_checks(status)
    width = max((len(_subject(check)) for check in checks), default=0)
    for check in checks:
        reason = f"  {printable(check.error, words.LONGEST)}" if check.error else ""
        yield f"{_subject(check).ljust(width)}  {_verdict(check)}  {check.ms:>6} ms{reason}"


def _last_checks(status: NodeStatus) -> list[CheckResult | TargetResult]:
    record = status.node.record
    last = next((attempt for attempt in status.seen.attempts if attempt.number == record.attempt), None)
    reported = last.report.checks if last and last.report and last.report.checks else record.checks
    # The node's kubelet can write both. A line that begins with another name could look like a command of ours.
    return [check for check in reported if check.name in CHECKS]


def _verdict(check: CheckResult | TargetResult) -> str:
    """As the worker reported it. A record has no verdicts, only what passed and what applied."""
    if isinstance(check, TargetResult):
        return check.verdict.text.upper() if check.verdict is Verdict.FAILED else check.verdict.text
    if not check.applies:
        return "not applicable"
    return "passed" if check.ok else "FAILED"


def _subject(check: CheckResult | TargetResult) -> str:
    return printable(f"{check.name} {check.target}".strip())


def _next(status: NodeStatus) -> Iterator[str]:
    left, current = status.decision.recheck, attempts.current(status.seen)
    at = f" (at {durations.format_time(status.due)})" if status.due else ""
    number = status.node.record.attempt + 1
    if status.rejection:
        initiator = status.initiator.capitalize()
        yield f"{initiator} retries the write with increasing backoff until the API server accepts it."
    elif status.begins:
        yield f"Attempt {status.begins}, as soon as {status.initiator} begins it."
    elif current and left is not None:
        running = f"The worker of attempt {current.number} is {current.state}"
        yield f"{running}; it must finish within {durations.format_duration(left)}{at}."
    elif status.phase in (Phase.BACKING_OFF, Phase.EXHAUSTED) and left is not None:
        yield f"Attempt {number} begins in {durations.format_duration(left)}{at}."
    elif status.phase is Phase.HELD and left is not None:
        yield f"It is reconciled again in {durations.format_duration(left)}{at}, in case it can be removed by then."
    elif status.phase is Phase.EXHAUSTED:
        yield "Nothing, until you request it: reconciliation.exhaustedRetrySeconds is 0."
    elif status.verified and left is not None:
        yield f"It is checked again in {durations.format_duration(left)}{at}."
    elif status.phase is Phase.REMOVING:
        yield "It is being removed."
    elif status.verified or status.phase is Phase.IGNORED:
        yield "Nothing, unless the node changes."
    else:
        yield f"{printable(status.decision.reason, words.LONGEST)}."


def _removal(status: NodeStatus, installed: Installed) -> Iterator[str]:
    policy = installed.policy
    if installed.assumed:
        yield "Unknown: the configuration cannot be read."
        return
    if installed.mode is Mode.DAEMONSET:
        yield "Never: in DaemonSet mode no node is removed."
        return
    if policy.removal is None:
        yield "Never: nodeManagement.deleteFailedNodes is false."
        return
    record = status.node.record
    if not status.guarded:
        yield "Not now: it does not have to be verified."
        return
    if not status.gates:
        yield "Not now: a node without a gate is not removed."
    elif record.node_failures < policy.max_failures:
        failures = durations.plural(record.node_failures, "failure", thousands=",")
        yield (
            f"Not yet: {failures} in a row are caused by the node; "
            f"{policy.max_failures} are needed, and one more immediately before the removal."
        )
    else:
        yield "It has failed often enough to be removed." + (
            "" if record.node_failures > policy.max_failures else " It is checked once more immediately before."
        )
    if held := removal_budget.blocked_reason(status.seen, policy.removal):
        yield f"Blocked: {printable(held, words.LONGEST)}."
    else:
        yield f"The removal budget allows it: {_spent(status, policy.removal)}."
    if installed.removal_dry_run:
        yield "nodeManagement.removal.dryRun is on: the removal would only be logged."


def _spent(status: NodeStatus, policy: RemovalPolicy) -> str:
    seen, fleet = status.seen, status.seen.fleet
    gone, allowed = len(removal_budget.recent(seen, policy)), removal_budget.limit(fleet.in_pool, policy)
    failing = fleet.failing + fleet.degraded
    pool = f"of pool {printable(seen.node.pool)}" if seen.node.pool else "of nodes without a pool"
    window, nodes = durations.format_duration(policy.window), durations.plural(fleet.managed, "node", thousands=",")
    return f"{gone} of {allowed} removals {pool} are used within {window}, and {failing} of {nodes} are failing"


def _controller(status: NodeStatus, leader: Leader | None) -> Iterator[str]:
    if leader:
        text = leader.describe(status.seen.now)
        yield f"{text[:1].upper()}{text[1:]}."


def _events(events: Sequence[Event] | None, now: datetime) -> Iterator[str]:
    """The newest last."""
    if events is None:
        return
    if not events:
        yield "None. Kubernetes deletes Events after an hour."
    for event in sorted(folded(events), key=lambda event: event.at or now)[-_MOST_EVENTS:]:
        when = durations.format_age(now - event.at) if event.at else "?"
        often = f" (x{event.count})" if event.count > 1 else ""
        yield f"{when:>6}  {printable(event.reason)}{often}  {printable(event.message, words.LONGEST)}"


def folded(events: Iterable[Event]) -> list[Event]:
    """Return repeated Events as one each, with their number and the time of the last. None counts as unknown."""
    by_key: dict[tuple[str, str, str], Event] = {}
    for event in events:
        key = (event.source, event.reason, event.message)
        before = by_key.get(key)
        by_key[key] = _folded(before, event) if before else event
    return list(by_key.values())


def _folded(event: Event, other: Event) -> Event:
    times = [at for at in (event.at, other.at) if at]
    return replace(event, at=max(times, default=None), count=event.count + other.count)


def _further(status: NodeStatus, installed: Installed) -> Iterator[str]:
    checks = _last_checks(status)
    failed = dict.fromkeys(check.name for check in checks if _verdict(check) == "FAILED")
    for name in failed if status.failing else ():
        if name in HINTS:
            yield f"{name}: {HINTS[name]}"
    namespace, name = installed.namespace, status.name
    if status.worker:
        yield f"kubectl logs --namespace={namespace} {status.worker.name}"
    elif installed.mode is Mode.DAEMONSET and status.guarded:
        pods = "--selector=app.kubernetes.io/component=daemonset"
        yield f"kubectl get pods --namespace={namespace} {pods} --field-selector=spec.nodeName={name}"
    if status.failing:
        yield f"When it is fixed: kube-node-ready verify {name} --wait"
