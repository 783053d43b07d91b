"""Requests smuggled into the controller's connection by the name of a Node's owner.

The attacker holds one kubelet's credentials. Its Node registers with the gate, a forged record of failures and an owner
of kind NodeClaim, and its kubelet fails every worker, so that the controller has every reason to remove the Node: that
is when it looks for the owner. The name of the owner is the attack.

The owner has an API version that the server does not serve. The garbage collector cannot look up such an owner, so it
leaves the Node alone; with a served version, it would delete the Node within a second.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from lightkube.resources.core_v1 import Pod

import lab
from tests.attacks.history import History
from tests.attacks.kubelet import Kubelet, failed_record, kubelets, short_name, worker_name
from tests.support.removal import Claims, Fleet, nodeclaims

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
    """A controller that removes failed nodes, a verified node, and kubelets of an attacker."""

    fleet: Fleet
    victim: str
    attackers: Sequence[Kubelet]

    def strike(self, owner_name: str, owner_uid: str = ANY_UID) -> None:
        """As `strike_all`, with a single Node."""
        self.strike_all((owner_name, owner_uid))

    def strike_all(self, *owners: tuple[str, str]) -> None:
        """Register a Node for each owner, and wait until the controller has considered to remove all of them."""
        for attacker, (name, uid) in zip(self.attackers, owners, strict=True):
            attacker.register(
                labels={"case": self.fleet.namespace},
                annotations={RECORD: failed_record(datetime.now(UTC).isoformat())},
                taints=[GATE],
                owners=[{"apiVersion": "karpenter.sh/v0", "kind": "NodeClaim", "name": name, "uid": uid}],
            )
        self.fleet.until("the controller handled the attacker's nodes", self._were_handled)

    def _were_handled(self) -> bool:
        handled = [self._was_handled(attacker) for attacker in self.attackers]  # no kubelet waits for another one
        return all(handled)

    def _was_handled(self, attacker: Kubelet) -> bool:
        """It was announced that the Node is removed, or why it is not."""
        attacker.run_pods(lambda _: 1)
        return any(self.fleet.event_messages(attacker.node, reason) for reason in ("Removing", "RemovalBlocked"))


@contextmanager
def besieged(fleet: Fleet, removal: Mapping[str, object] | None = None, *, attackers: int = 1) -> Iterator[Siege]:
    (victim,) = fleet.join(pool="victims", verdict=lab.PASSES)
    account = fleet.account("get", "list", "delete")
    names = [short_name(f"attacker-{number}", fleet.namespace) for number in range(attackers)]
    with kubelets(fleet.plane, *names) as hostile, fleet.operating(removal, kubeconfig=account):
        fleet.until("the victim is verified", lambda: fleet.released() == {victim})
        yield Siege(fleet, victim, hostile)


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


def survive(claims: Claims, named: Mapping[str, str]) -> None:
    """Every claim, by the spelling that was tried on it. A deleted claim does not come back."""
    time.sleep(STAYS_SECONDS)
    left = claims.names()
    assert [spelling for spelling, claim in named.items() if claim not in left] == []


def test_claims_without_a_node_are_not_deleted_for_nodes_that_name_them_as_owners(fleet: Fleet, claims: Claims) -> None:
    """Karpenter has made the claims for nodes that are yet to come: their `status.nodeName` is empty."""
    with besieged(fleet, attackers=len(SPELLINGS)) as siege:
        named = {
            spelling: claims.make(f"{fleet.namespace}-to-come-{number}", by="nothing")
            for number, spelling in enumerate(SPELLINGS)
        }
        siege.strike_all(*((SPELLINGS[spelling](claim), claims.uid(claim)) for spelling, claim in named.items()))
        survive(claims, named)


def test_claims_of_other_nodes_are_not_deleted_for_nodes_that_name_them_as_owners(fleet: Fleet, claims: Claims) -> None:
    spellings = ("its name", "a query behind its name", "a way up and back")
    with besieged(fleet, attackers=len(spellings)) as siege:
        others = fleet.join(len(spellings), pool="others", verdict=lab.PASSES)
        named = {spelling: claims.make(node, by="status") for spelling, node in zip(spellings, others, strict=True)}
        siege.strike_all(*((SPELLINGS[spelling](claim), claims.uid(claim)) for spelling, claim in named.items()))
        survive(claims, named)


@pytest.mark.usefixtures("claims")
def test_a_path_traversal_in_a_claim_name_does_not_delete_another_node(fleet: Fleet) -> None:
    """The owner has the UID of the victim's Node, so that whatever is found at the path is taken for the claim."""
    paths = ("../../../../api/v1/nodes/{}", "..%2f..%2f..%2f..%2fapi%2fv1%2fnodes%2f{}")
    with besieged(fleet, attackers=len(paths)) as siege:
        victim = History(fleet.plane, siege.victim)
        siege.strike_all(*((path.format(siege.victim), victim.uid) for path in paths))
        survives("the victim", victim.exists)
