"""Pods on other nodes can be reached: a few of those that are ready, which ours are where the node is well.

Who cannot be reached may itself be broken, and one broken node must not condemn all the others: this node fails only if
most of those it tries cannot be reached, and a single one decides nothing.
"""

import threading
import zlib
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from kube_node_ready.api_paths import collection_path
from kube_node_ready.checks import access, wire
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.model import CheckFailedError, Deadline, Here, NotApplicableError, NotJudgedError, Proof
from kube_node_ready.checks.record import Record
from kube_node_ready.checks.wire import NoAnswerError, UnreachableError

# The list is cut short by the server: in a large cluster, all pods of ours would be megabytes for each node.
_LISTED_FOR_EACH = 4
_TO_CONNECT = 0.6
_FEWEST_WITNESSES = 2


class Wanted(Record):
    here: Here
    selector: str
    port: int
    sample: int


class Peer(Record):
    node: str
    pod: str
    address: str


def reaches_other_nodes(api: Access, wanted: Wanted, deadline: Deadline) -> Proof:
    peers = sample(_ready(api, wanted, deadline), wanted)
    if not peers:
        raise NotApplicableError(f"no other node runs a pod with {wanted.selector} that is ready")
    failures = _connect(peers, wanted.port, deadline.part(_TO_CONNECT))
    if failures:
        failures = _of_those_still_there(failures, api, wanted, deadline)
    lost = [f"{peer.node}: {why}" for peer, why in failures.items()]
    if len(lost) >= _FEWEST_WITNESSES and 2 * len(lost) > len(peers):
        raise CheckFailedError(f"{len(lost)} of {len(peers)} cannot be reached: {'; '.join(lost)}")
    return Proof({"reached": len(peers) - len(lost), **({"unreachable": lost} if lost else {})})


def sample(peers: Mapping[str, Peer], wanted: Wanted) -> list[Peer]:
    """Every node has others to try, and always the same, as long as they are there."""
    others = (peer for peer in peers.values() if peer.node != wanted.here.node)
    return sorted(others, key=lambda peer: zlib.crc32(f"{wanted.here.node} {peer.node}".encode()))[: wanted.sample]


def _connect(peers: list[Peer], port: int, deadline: Deadline) -> dict[Peer, str]:
    """All at the same time. Who could not be reached, and why."""
    failures: dict[Peer, str] = {}

    def reach(peer: Peer) -> None:
        try:
            wire.connect(peer.address, port, deadline).close()
        except (UnreachableError, OSError) as why:
            failures[peer] = str(why) or f"no TCP connection within {deadline}"

    threads = [threading.Thread(target=reach, args=(peer,), daemon=True) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def _of_those_still_there(
    failures: dict[Peer, str], api: Access, wanted: Wanted, deadline: Deadline
) -> dict[Peer, str]:
    """A pod that went away meanwhile, as they do when their node is verified, need not answer."""
    try:
        there = _ready(api, wanted, deadline)
    except (CheckFailedError, TimeoutError):
        return failures
    return {peer: why for peer, why in failures.items() if peer == there.get(peer.node)}


def _ready(api: Access, wanted: Wanted, deadline: Deadline) -> dict[str, Peer]:
    """By node, one for each."""
    namespace = wanted.here.namespace
    selectors = f"fieldSelector=status.phase%3DRunning&labelSelector={quote(wanted.selector)}"
    path = f"{api.path}{collection_path('v1', 'pods', namespace=namespace)}?{selectors}"
    try:
        with api.converse(deadline) as conversation:
            answer = conversation.get(f"{path}&limit={_LISTED_FOR_EACH * wanted.sample}", deadline)
    except (UnreachableError, NoAnswerError) as why:
        raise NotJudgedError(f"the API server cannot be asked: {why}") from why
    found = access.json_of(answer, f"list pods in namespace {namespace}")
    try:
        return {peer.node: peer for peer in _peers(found)}
    except (AttributeError, KeyError, TypeError) as why:
        raise NotJudgedError(f"the API server's list of pods is malformed: {why!r}") from why


def _peers(found: dict[str, object]) -> Iterator[Peer]:
    pods: list[dict[str, dict[str, object]]] = found["items"] or []  # type: ignore[assignment]
    for pod in pods:
        node, address = pod["spec"].get("nodeName"), pod["status"].get("podIP")
        if node and address and "deletionTimestamp" not in pod["metadata"] and _is_ready(pod["status"]):
            yield Peer(str(node), str(pod["metadata"]["name"]), str(address))


def _is_ready(status: dict[str, object]) -> bool:
    conditions: list[dict[str, object]] = status.get("conditions") or []  # type: ignore[assignment]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
