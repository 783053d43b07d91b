"""Data types of the checks: a check runs with a deadline, and has a result."""

import time
from collections.abc import Callable, Mapping

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.fast_tuple import FastTuple

CHECKS = ("dns", "api", "network", "services", "payload", "clock", "matrix")

# The errors of checks are more precise than the runner's timeout, so it waits this much longer.
GRACE_SECONDS = 0.5

ANY_PEER = "*"
"""The peer of a target that a DNS server on any node can answer, or of their lookup. No node has this name."""
# DNS servers on a single other node do not show that this node reaches any other.
_MIN_PEERS = 2
# The order of results: what failed, what is unknown because of it, then the rest.
_VERDICTS = (Verdict.FAILED, Verdict.INCONCLUSIVE, Verdict.SKIPPED, Verdict.NOT_APPLICABLE, Verdict.PASSED)


class CheckFailedError(Exception):
    """The check failed; the message states what was tried and what happened."""


class InconclusiveError(CheckFailedError):
    """The check could not be completed, because something that it needs does not work."""

    @property
    def error(self) -> str:
        """The result's error."""
        return not_judged(str(self))


class ElsewhereError(InconclusiveError):
    """The check failed because of the cluster, according to the API server. This node is not the cause."""

    @property
    def error(self) -> str:
        return str(self)


class SkippedError(Exception):
    """The check cannot run here; the message has the reason."""


class NotApplicableError(Exception):
    """There is nothing to check; the message has the reason."""


def not_judged(reason: str) -> str:
    """Return the error of an inconclusive result. The verdict decides; this is for people."""
    return f"not judged: {reason}"


class Deadline:
    """A deadline that several waits share: each can take what the ones before it left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left. Raises TimeoutError if there are none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def part(self, share: float) -> "Deadline":
        """Return an earlier deadline, for one of several attempts."""
        return Deadline(self.left() * share)

    def __str__(self) -> str:
        return f"{self.seconds:.3g} s"


class PodIdentity(FastTuple):
    """The node and namespace of the pod that runs the checks."""

    node: str
    namespace: str


class Check(FastTuple):
    """`run` returns evidence if the check passes, and raises otherwise. The runner measures and reports."""

    name: str
    target: str
    run: "Callable[[Deadline], Evidence]"
    peer: str = ""
    """The other node that the target runs on, if any: that node can be the cause of a failure.

    ANY_PEER if it is unknown which node: the target is a name, or the DNS servers themselves are to be looked up.
    """
    is_lookup: bool = False
    """Whether it only reads from the API server what others wrote. To read much of it takes time on every node."""


class Evidence(FastTuple):
    """Details for the log, and follow-up checks. A check with follow-ups has no result of its own."""

    details: Mapping[str, object] = {}
    follow_ups: tuple[Check, ...] = ()


class Result(FastTuple):
    name: str
    target: str
    verdict: Verdict
    ms: int
    error: str = ""
    peer: str = ""
    """As in Check."""

    @property
    def ok(self) -> bool:
        """Whether the check did not fail."""
        return self.verdict.ok


def without_fault_of_one_peer(results: list[Result]) -> list[Result]:
    """Return the results, with failures that one other node alone can explain as inconclusive.

    A kubelet can make any address a ready endpoint of cluster DNS, with a mirror pod that has the labels of DNS pods.
    If nothing answers there, the check of that endpoint fails on every node, and so do some of the queries that the
    Service distributes. If a DNS server answers there, it can answer direct queries and fail or falsify the others. So
    names that do not resolve do not count against a node that reaches DNS servers on other nodes.

    A kubelet can also add so many endpoints that the list of them cannot be read. Then no DNS server is asked directly,
    and which of them is at fault is unknown.

    In all these cases, the node is not verified, and the failure does not count against it.
    """
    unknown = [result for result in results if _is_failed_lookup_of_peers(result)]
    if unknown:
        service = unknown[0].target
        reason = f"the DNS servers of {service} could not be queried directly, and one might be at fault"
        return _not_counted(results, lambda peer: peer != "", reason)
    direct = [result for result in results if result.peer not in ("", ANY_PEER)]
    failed = {result.peer for result in direct if result.verdict is Verdict.FAILED}
    passed = {result.peer for result in direct if result.verdict is Verdict.PASSED}
    if len(failed) > 1 or len(failed | passed) < _MIN_PEERS:
        return results
    others = "DNS servers on other nodes answer"
    reason = (
        f"node {min(failed)} might be at fault, since {others}" if failed else f"{others}, and one might be at fault"
    )
    return _not_counted(results, lambda peer: peer in (*failed, ANY_PEER), reason)


def _is_failed_lookup_of_peers(result: Result) -> bool:
    """A lookup that succeeds has no result of its own, but one per DNS server."""
    return result.name == "network" and result.peer == ANY_PEER and result.verdict is Verdict.INCONCLUSIVE


def _not_counted(results: list[Result], can_explain: Callable[[str], bool], reason: str) -> list[Result]:
    return [
        result._replace(verdict=Verdict.INCONCLUSIVE, error=not_judged(f"{result.error}; {reason}"))
        if result.verdict is Verdict.FAILED and can_explain(result.peer)
        else result
        for result in results
    ]


def causes_first(results: list[Result]) -> list[Result]:
    return sorted(results, key=lambda result: (_VERDICTS.index(result.verdict), CHECKS.index(result.name)))
