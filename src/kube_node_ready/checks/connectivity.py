"""Connect to a random sample of ready pods on other nodes. This node fails only if most cannot be reached.

An unreachable peer might itself be broken or hostile, so a node has one vote, and fewer than two nodes decide nothing.
Why these peers, and what a hostile node can still do: docs/decisions/0012-peers-of-the-connectivity-matrix.md.
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from kube_node_ready import log
from kube_node_ready.api.paths import collection_path
from kube_node_ready.checks import access, transport
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.check import (
    CheckFailedError,
    Deadline,
    Evidence,
    InconclusiveError,
    NotApplicableError,
    PodIdentity,
)
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.checks.transport import NoAnswerError, TooLargeError, UnreachableError

MIN_PEERS = 2
# The server limits the list: in a large cluster, all peers would be megabytes per node.
_LISTED_PER_PEER = 4
_MOST_LISTS = 10
# Pods have a few KiB. A kubelet can make those of its node a thousand times as large.
_LARGEST_POD = 64 * 1024
_LARGEST_LIST = 4 * 1024 * 1024
_TO_CONNECT = 0.6
_RULE = 'apiGroups: [""], resources: ["pods"], verbs: ["list"]'
_warnings = itertools.count()
"""How often the right was missing where no peers are expected. `next` on it is atomic, and checks run in threads."""
_V4_MAPPED = bytes(10) + b"\xff\xff"
# Beginnings of packed addresses at which no pod of another node can be.
# IPv4: "this" network, loopback, link-local, Alibaba metadata.
_NEVER_IPV4 = (b"\x00", b"\x7f", b"\xa9\xfe", b"\x64\x64\x64\xc8")
# IPv6: :: and ::1, multicast, AWS metadata.
_NEVER_IPV6 = (bytes(15), b"\xff", b"\xfd\x00\x0e\xc2")
_FIRST_MULTICAST_IPV4 = 224


class Wanted(FastTuple):
    identity: PodIdentity
    selector: str
    port: int
    sample: int
    are_peers_expected: bool = True


class Peer(FastTuple):
    node: str
    pod: str
    address: str


def reaches_other_nodes(api: Access, wanted: Wanted, deadline: Deadline) -> Evidence:
    listed = _ready(api, wanted, deadline)
    ignored = [f"{peer.node}: {peer.address}" for peer in listed.values() if not is_peer_address(peer.address)]
    peers = sample(listed, wanted)
    _require_enough(peers, wanted)
    failures = _connect(peers, wanted.port, deadline.part(_TO_CONNECT))
    if failures:
        peers = _still_there(peers, failures, api, wanted, deadline)
        _require_enough(peers, wanted)
    lost = {peer: failures[peer] for peer in peers if peer in failures}
    if len(lost) >= MIN_PEERS and 2 * len(lost) > len(peers):
        raise CheckFailedError(f"{len(lost)} of {len(peers)} cannot be reached: {_shown(lost, wanted.port)}")
    details: dict[str, object] = {"reached": len(peers) - len(lost)}
    if lost:
        details["unreachable"] = [f"{peer.node} ({peer.address}): {error}" for peer, error in lost.items()]
    if ignored:
        details["ignored"] = ignored
    return Evidence(details)


def sample(peers: Mapping[str, Peer], wanted: Wanted, draw: Callable[[], bytes] = lambda: os.urandom(8)) -> list[Peer]:
    """Return peers on other nodes, selected again for each run: broken ones must not hold a node indefinitely."""
    usable = [peer for peer in peers.values() if peer.node != wanted.identity.node and is_peer_address(peer.address)]
    return sorted(usable, key=lambda _: draw())[: wanted.sample]


def is_peer_address(text: str) -> bool:
    """Whether a pod of another node can have this address. Its kubelet can write any address."""
    packed = transport.ip_bytes(text)
    if packed is None:
        return False
    packed = packed.removeprefix(_V4_MAPPED)
    if len(packed) == 4:  # noqa: PLR2004  IPv4
        return packed[0] < _FIRST_MULTICAST_IPV4 and not packed.startswith(_NEVER_IPV4)
    is_link_local = packed[0] == 0xFE and packed[1] & 0xC0 == 0x80  # noqa: PLR2004  fe80::/10
    return not is_link_local and not packed.startswith(_NEVER_IPV6)


def _require_enough(peers: list[Peer], wanted: Wanted) -> None:
    if len(peers) < MIN_PEERS:
        raise NotApplicableError(
            f"not enough peers: {len(peers)} of {MIN_PEERS} other nodes have a ready pod with {wanted.selector} "
            f"in namespace {wanted.identity.namespace}"
        )


def _shown(lost: Mapping[Peer, str], port: int) -> str:
    """Describe the failures, names first: messages are truncated."""
    peers = ", ".join(f"{peer.node} ({peer.address})" for peer in lost)
    return f"{peers}; TCP port {port}: {', '.join(dict.fromkeys(lost.values()))}"


def _connect(peers: list[Peer], port: int, deadline: Deadline) -> dict[Peer, str]:
    """Connect to all simultaneously. Return those that could not be reached, each with the error."""
    failures: dict[Peer, str] = {}

    def reach(peer: Peer) -> None:
        try:
            transport.connect(peer.address, port, deadline).close()
        except (UnreachableError, OSError) as error:
            cause = error.__cause__ or error
            is_late = isinstance(cause, TimeoutError)
            failures[peer] = f"no answer within {deadline}" if is_late else getattr(cause, "strerror", "") or str(cause)

    threads = [threading.Thread(target=reach, args=(peer,), daemon=True) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def _still_there(
    peers: list[Peer], failures: Mapping[Peer, str], api: Access, wanted: Wanted, deadline: Deadline
) -> list[Peer]:
    """Return the peers without the unreachable ones whose pod was deleted meanwhile."""
    try:
        listed = _ready(api, wanted, deadline)
    except (CheckFailedError, NotApplicableError, TimeoutError):
        return peers
    return [peer for peer in peers if peer not in failures or peer == listed.get(peer.node)]


def _ready(api: Access, wanted: Wanted, deadline: Deadline) -> dict[str, Peer]:
    """Return one ready pod per node, of enough nodes for a sample if there are enough.

    The pods of one hostile kubelet must not displace the others:

    - It can create mirror pods with any name and labels. They cannot have a ServiceAccount, which every other pod has,
      so the server leaves them out.
    - It can collect pods of a DaemonSet: it deletes one, reports it as failed until its successor exists, and then as
      running again. So if the list is cut short, the next one leaves out the nodes that were seen.
    - It can make the status of its pods huge. So if the list is too large, the next one is of fewer pods.
    """
    peers: dict[str, Peer] = {}
    seen = {wanted.identity.node}
    limit = full = _LISTED_PER_PEER * wanted.sample
    for _ in range(_MOST_LISTS):
        try:
            pod_list = _list(api, wanted, sorted(seen), limit, deadline)
        except TooLargeError:
            limit = max(1, limit // 5)
            continue
        except (UnreachableError, NoAnswerError) as error:
            raise InconclusiveError(f"cannot connect to the API server: {error}") from error
        try:
            peers |= {peer.node: peer for peer in _peers(pod_list)}
            seen |= {str(pod["spec"]["nodeName"]) for pod in _pods(pod_list)}
            is_cut_short = bool(pod_list.get("metadata", {}).get("continue"))  # type: ignore[attr-defined]
        except (AttributeError, KeyError, TypeError) as error:
            raise InconclusiveError(f"the API server's list of pods is malformed: {error!r}") from error
        if not is_cut_short or len(peers) >= wanted.sample:
            break
        limit = full
    return peers


def _list(api: Access, wanted: Wanted, without: list[str], limit: int, deadline: Deadline) -> dict[str, object]:
    """Return running pods, at most `limit`, on other nodes than `without`."""
    namespace = wanted.identity.namespace
    nodes = ",".join(f"spec.nodeName!={node}" for node in without)
    fields = f"status.phase=Running,{nodes},spec.serviceAccountName!="
    query = f"fieldSelector={quote(fields)}&labelSelector={quote(wanted.selector)}&limit={limit}"
    path = f"{api.path}{collection_path('v1', 'pods', namespace=namespace)}?{query}"
    largest = min(limit * _LARGEST_POD, _LARGEST_LIST) if limit > 1 else 0
    with api.open(deadline) as connection:
        response = connection.get(path, deadline, largest=largest)
    what = f"list pods in namespace {namespace}"
    if response.status == access.FORBIDDEN and not wanted.are_peers_expected:
        if next(_warnings) == 0:
            log.log("Connectivity check skipped", level="warn", reason=f"permission to {what} is missing", rule=_RULE)
        raise NotApplicableError(
            f"no peers are configured, and permission to {what} is missing; to check connectivity, set "
            f"connectivitySelector and add the RBAC rule {_RULE}"
        )
    return access.json_of(response, what, _RULE)


def _pods(pod_list: dict[str, object]) -> list[dict[str, dict[str, object]]]:
    return pod_list["items"] or []  # type: ignore[return-value]


def _peers(pod_list: dict[str, object]) -> Iterator[Peer]:
    for pod in _pods(pod_list):
        node, address = pod["spec"].get("nodeName"), pod["status"].get("podIP")
        if node and address and "deletionTimestamp" not in pod["metadata"] and _is_ready(pod["status"]):
            yield Peer(str(node), str(pod["metadata"]["name"]), str(address))


def _is_ready(status: dict[str, object]) -> bool:
    conditions: list[dict[str, object]] = status.get("conditions") or []  # type: ignore[assignment]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
