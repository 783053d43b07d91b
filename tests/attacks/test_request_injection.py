"""Requests smuggled into the controller's connection by the name of a Node's owner (C1 of the security review).

The attacker holds one kubelet's credentials. Its Node registers with the gate, a forged record of failures and an owner
of kind NodeClaim, and its kubelet fails every worker, so that the controller has every reason to remove the Node: that
is when it looks for the owner. The name of the owner is the attack.

The owner has an API version that the server does not serve. The garbage collector cannot look up such an owner, so it
leaves the Node alone; with a served version, it would delete the Node within a second.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from lightkube.resources.core_v1 import Pod

import lab
from tests.attacks.history import History
from tests.attacks.kubelet import Kubelet, failed_record, kubelets, short_name, worker_name
from tests.removal import Claims, Fleet, nodeclaims

GATE = lab.Taint("node-ready/unverified", value="true")
RECORD = "node-ready/verification"
ANY_UID = "11111111-2222-3333-4444-555555555555"
STAYS_SECONDS = 3


@pytest.fixture(scope="module")
def claims(plane: lab.Plane) -> Iterator[Claims]:
    """NodeClaims are served during all tests of this module."""
    with nodeclaims(plane) as served:
        yield served


@pytest.fixture
def fleet(plane: lab.Plane, namespace: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(plane, namespace, tmp_path)
    yield fleet
    fleet.forget()


class Siege(NamedTuple):
    """A controller that removes failed nodes, a verified node, and a kubelet that is not on our side."""

    fleet: Fleet
    victim: str
    attacker: Kubelet

    def strike(self, owner_name: str, owner_uid: str = ANY_UID) -> None:
        """Register the attacker's Node, and wait until the controller has considered to remove it."""
        owner = {"apiVersion": "karpenter.sh/v0", "kind": "NodeClaim", "name": owner_name, "uid": owner_uid}
        self.attacker.register(
            labels={"case": self.fleet.namespace},
            annotations={RECORD: failed_record(datetime.now(UTC).isoformat())},
            taints=[GATE],
            owners=[owner],
        )
        self.fleet.until("the controller handled the attacker's node", self._was_handled)

    def _was_handled(self) -> bool:
        """It was announced that the Node is removed, or why it is not."""
        self.attacker.run_pods(lambda _: 1)
        return any(self.fleet.told(self.attacker.node, reason) for reason in ("Removing", "RemovalBlocked"))


@contextmanager
def besieged(fleet: Fleet, removal: Mapping[str, object] | None = None) -> Iterator[Siege]:
    (victim,) = fleet.join(pool="victims", verdict=lab.PASSES)
    account = fleet.account("get", "list", "delete")
    name = short_name("attacker", fleet.namespace)
    with kubelets(fleet.plane, name) as (attacker,), fleet.operating(removal, kubeconfig=account):
        fleet.until("the victim is verified", lambda: fleet.released() == {victim})
        yield Siege(fleet, victim, attacker)


def smuggled(method: str, path: str) -> str:
    """A name that ends the request it is in, and begins another one, which takes over the Authorization header."""
    return f"x HTTP/1.1\r\nHost: h\r\n\r\n{method} {path} HTTP/1.1\r\nX-Rest: "


def survives(what: str, is_there: Callable[[], bool]) -> None:
    """A smuggled request is answered in milliseconds, and is sent again with each resync, every second."""
    deadline = time.monotonic() + STAYS_SECONDS
    while time.monotonic() < deadline:
        assert is_there(), f"{what} was deleted"
        time.sleep(0.2)


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize("dry_run", [False, True], ids=["removal", "dry run"])
def test_an_owners_name_cannot_delete_another_node(fleet: Fleet, *, dry_run: bool) -> None:
    with besieged(fleet, {"dryRun": dry_run}) as siege:
        victim = History(fleet.plane, siege.victim)
        siege.strike(smuggled("DELETE", f"/api/v1/nodes/{siege.victim}"))
        survives("the victim", victim.exists)


def test_an_owners_name_cannot_delete_another_nodes_claim(fleet: Fleet, claims: Claims) -> None:
    with besieged(fleet) as siege:
        claim = claims.make(siege.victim, by="status")
        siege.strike(smuggled("DELETE", f"/apis/karpenter.sh/v1/nodeclaims/{claim}"))
        survives("the claim", lambda: claim in claims.names())


@pytest.mark.usefixtures("claims")
def test_an_owners_name_cannot_delete_another_nodes_worker(fleet: Fleet) -> None:
    with besieged(fleet) as siege:
        (busy,) = fleet.join(pool="busy", verdict=lab.HANGS)
        name = worker_name(fleet.uid(busy), 1)
        uid = fleet.until("a worker runs", lambda: uid_of_pod(fleet, name))
        siege.strike(smuggled("DELETE", f"/api/v1/namespaces/{fleet.namespace}/pods/{name}"))
        survives("the worker", lambda: uid_of_pod(fleet, name) == uid)


def uid_of_pod(fleet: Fleet, name: str) -> str:
    """Empty if the pod does not exist."""
    found = fleet.plane.client.list(Pod, namespace=fleet.namespace, fields={"metadata.name": name})
    return "".join(str(pod.metadata.uid) for pod in found if pod.metadata)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "its name": lambda claim: claim,
    "a query behind its name": lambda claim: f"{claim}?pretty=true",
    "a fragment behind its name": lambda claim: f"{claim}#x",
    "an encoded name": lambda claim: f"%{ord(claim[0]):02x}{claim[1:]}",
    "a slash behind its name": lambda claim: f"{claim}/",
    "a way up and back": lambda claim: f"../nodeclaims/{claim}",
    "a way through the root": lambda claim: f"../../../../apis/karpenter.sh/v1/nodeclaims/{claim}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_claim_without_a_node_is_not_deleted_for_a_node_that_names_it_as_owner(
    fleet: Fleet, claims: Claims, spelling: str
) -> None:
    """Karpenter has made the claim for a node that is yet to come: its `status.nodeName` is empty."""
    with besieged(fleet) as siege:
        claim = claims.make(f"{fleet.namespace}-to-come", by="nothing")
        siege.strike(SPELLINGS[spelling](claim), claims.uid(claim))
        survives("the claim", lambda: claim in claims.names())


@pytest.mark.parametrize("spelling", ["its name", "a query behind its name", "a way up and back"])
def test_another_nodes_claim_is_not_deleted_for_a_node_that_names_it_as_owner(
    fleet: Fleet, claims: Claims, spelling: str
) -> None:
    with besieged(fleet) as siege:
        claim = claims.make(siege.victim, by="status")
        siege.strike(SPELLINGS[spelling](claim), claims.uid(claim))
        survives("the claim", lambda: claim in claims.names())


@pytest.mark.parametrize("path", ["../../../../api/v1/nodes/{}", "..%2f..%2f..%2f..%2fapi%2fv1%2fnodes%2f{}"])
@pytest.mark.usefixtures("claims")
def test_a_way_out_of_the_claims_does_not_delete_another_node(fleet: Fleet, path: str) -> None:
    """The owner has the UID of the victim's Node, so that whatever is found at the path is taken for the claim."""
    with besieged(fleet) as siege:
        victim = History(fleet.plane, siege.victim)
        siege.strike(path.format(siege.victim), victim.uid)
        survives("the victim", victim.exists)
