"""The connectivity matrix: peers reached or not, and that a broken or hostile node cannot hold the others."""

import itertools
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import connectivity, plan
from kube_node_ready.checks.check import CheckFailedError, Deadline, InconclusiveError, NotApplicableError, PodIdentity
from kube_node_ready.checks.connectivity import Peer, Wanted
from kube_node_ready.checks.runner import Limits, Observer, Runner
from kube_node_ready.checks.settings import Settings
from tests.support.check_servers import LOOPBACK, FakeApi, http_json

PODS = "/api/v1/namespaces/kube-system/pods"
SELECTOR = Settings().connectivity_selector
HERE = PodIdentity("node-0", "kube-system")
CLOSED = "127.0.0.2"
FORBIDDEN = http_json({"message": "no"}, 403)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path / "pki").running() as running:
        yield running


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Open on the loopback address and on no other. Peers of these tests have loopback addresses, so those count."""
    monkeypatch.setattr(connectivity, "_NEVER_IPV4", ())
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield int(listener.getsockname()[1])


def a_pod(number: int, address: str = LOOPBACK, *, ready: str = "True", **metadata: object) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{number}", **metadata},
        "spec": {"nodeName": f"node-{number}"},
        "status": {"podIP": address, "conditions": [{"type": "Ready", "status": ready}]},
    }


def run(fake: FakeApi, port: int, *pods: dict[str, Any], sample: int = 5) -> dict[str, object]:
    fake.answers[PODS] = http_json({"items": list(pods)})
    proof = connectivity.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, port, sample), Deadline(30))
    return dict(proof.details)


def without_peers(port: int) -> Wanted:
    """As of plain manifests, whose pods leave verified nodes."""
    return Wanted(HERE, SELECTOR, port, 5, are_peers_expected=False)


def test_pods_on_other_nodes_are_reached(fake: FakeApi, port: int) -> None:
    assert run(fake, port, *(a_pod(number) for number in range(4))) == {"reached": 3}


def test_the_list_is_short_and_of_pods_that_serve(fake: FakeApi, port: int) -> None:
    run(fake, port, a_pod(1), a_pod(2), sample=3)
    fields = "status.phase%3DRunning%2Cspec.nodeName%21%3Dnode-0%2Cspec.serviceAccountName%21%3D"
    labels = "app%3Dkube-node-ready%2Ccomponent%21%3Dworker"
    assert fake.asked[0][0] == f"{PODS}?fieldSelector={fields}&labelSelector={labels}&limit=12"


def test_at_most_the_sample_is_tried(fake: FakeApi, port: int) -> None:
    assert run(fake, port, *(a_pod(number) for number in range(50)), sample=2) == {"reached": 2}


def test_each_run_draws_other_peers() -> None:
    """Otherwise a node whose peers are broken would be held as long as they are."""
    peers = {f"node-{number}": Peer(f"node-{number}", f"pod-{number}", f"10.0.0.{number}") for number in range(1, 40)}
    samples = {tuple(connectivity.sample(peers, Wanted(HERE, SELECTOR, 1, 5))) for _ in range(40)}
    assert len(samples) > 30
    assert all(len(set(drawn)) == 5 for drawn in samples)


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [a_pod(0), a_pod(0)],
        [a_pod(1, ready="False"), a_pod(2, ready="False")],
        [a_pod(number, deletionTimestamp="2026-01-01T00:00:00Z") for number in (1, 2)],
        [{**a_pod(number), "status": {}} for number in (1, 2)],
        [a_pod(number, "169.254.169.256") for number in (1, 2)],
    ],
    ids=["none", "only ours", "not ready", "deleted", "no address yet", "no address at all"],
)
def test_without_peers_it_does_not_apply(fake: FakeApi, port: int, pods: list[dict[str, Any]]) -> None:
    with pytest.raises(NotApplicableError) as error:
        run(fake, port, *pods)
    assert str(error.value) == (
        "not enough peers: 0 of 2 other nodes have a ready pod with app=kube-node-ready,component!=worker "
        "in namespace kube-system"
    )


@pytest.mark.parametrize("address", [LOOPBACK, CLOSED], ids=["reached", "unreachable"])
def test_pods_of_a_single_other_node_decide_nothing(fake: FakeApi, port: int, address: str) -> None:
    pods = [{**a_pod(1, address), "metadata": {"name": f"pod-{number}"}} for number in range(9)]
    with pytest.raises(NotApplicableError, match="not enough peers: 1 of 2 "):
        run(fake, port, *pods)


def test_one_unreachable_peer_is_reported_and_does_not_fail_the_node(fake: FakeApi, port: int) -> None:
    facts = run(fake, port, a_pod(1), a_pod(2, CLOSED), a_pod(3))
    assert facts["reached"] == 2
    assert facts["unreachable"] == [f"node-2 ({CLOSED}): Connection refused"]


def test_a_node_that_cannot_reach_most_peers_fails_and_names_them(fake: FakeApi, port: int) -> None:
    with pytest.raises(CheckFailedError) as error:
        run(fake, port, a_pod(1), a_pod(2, CLOSED), a_pod(3, CLOSED))
    assert not isinstance(error.value, InconclusiveError)
    output = str(error.value)
    assert output.startswith("2 of 3 cannot be reached: node-")
    assert {f"node-2 ({CLOSED})", f"node-3 ({CLOSED})"} == set(output.partition(": ")[2].partition(";")[0].split(", "))
    assert output.endswith(f"; TCP port {port}: Connection refused")


def test_half_of_them_do_not_fail_the_node(fake: FakeApi, port: int) -> None:
    pods = [a_pod(1), a_pod(2), a_pod(3, CLOSED), a_pod(4, CLOSED)]
    assert run(fake, port, *pods)["reached"] == 2


def test_many_pods_of_one_node_have_one_vote(fake: FakeApi, port: int) -> None:
    """So one node cannot make up a majority."""
    many = [{**a_pod(3, CLOSED), "metadata": {"name": f"pod-{number}"}} for number in range(20)]
    assert run(fake, port, *many, a_pod(1), a_pod(2))["reached"] == 2


def test_a_list_that_is_cut_short_is_continued_without_the_nodes_in_it(fake: FakeApi, port: int) -> None:
    """Pods of one node can fill a list, so a second page could be of the same node again."""
    flood = [{**a_pod(1), "metadata": {"name": f"a-{number}"}} for number in range(8)]
    lists: list[dict[str, Any]] = [{"metadata": {"continue": "token"}, "items": flood}, {"items": [a_pod(2), a_pod(3)]}]
    assert _listing(fake, port, *lists) == {"reached": 2}
    assert len(fake.asked) == 2
    assert "nodeName%21%3Dnode-0%2Cspec.nodeName%21%3Dnode-1%2C" in fake.asked[1][0]


def test_a_list_that_is_too_large_is_paged(fake: FakeApi, port: int) -> None:
    huge = {**a_pod(1), "filler": "x" * 2_000_000}
    cut_short = {"metadata": {"continue": "token"}, "items": [huge]}
    assert _listing(fake, port, {"items": [huge]}, cut_short, {"items": [a_pod(2), a_pod(3)]}) == {"reached": 2}
    assert [path.rpartition("=")[2] for path, _ in fake.asked] == ["8", "1", "8"]


def test_an_endless_list_is_abandoned(fake: FakeApi, port: int) -> None:
    endless: dict[str, Any] = {"metadata": {"continue": "token"}, "items": [a_pod(1, ready="False")]}
    with pytest.raises(NotApplicableError):
        _listing(fake, port, *[endless] * 50)
    assert len(fake.asked) == 10


def _listing(fake: FakeApi, port: int, *lists: dict[str, Any]) -> dict[str, object]:
    """What the node finds with a sample of 2, of which the API server lists 8 pods."""
    following = iter(lists)
    fake._answer = lambda path: http_json(next(following))  # type: ignore[method-assign]  # noqa: ARG005
    proof = connectivity.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, port, 2), Deadline(30))
    return dict(proof.details)


def test_deleted_peers_do_not_count(fake: FakeApi, port: int) -> None:
    before = [a_pod(1, CLOSED), a_pod(2, CLOSED), a_pod(3), a_pod(4)]
    assert _changing(fake, port, before, [a_pod(2, "127.0.0.3"), a_pod(3), a_pod(4)]) == {"reached": 2}
    with pytest.raises(NotApplicableError, match="not enough peers: 1 of 2 "):
        _changing(fake, port, [a_pod(1, CLOSED), a_pod(2, CLOSED), a_pod(3)], [a_pod(3)])


def _changing(fake: FakeApi, port: int, *lists: list[dict[str, Any]]) -> dict[str, object]:
    """The pods change while the node connects to them."""
    following = iter(lists)
    answer = FakeApi._answer

    def changing(path: str) -> bytes:
        return http_json({"items": next(following)}) if path.startswith(PODS) else answer(fake, path)

    fake._answer = changing  # type: ignore[method-assign]
    proof = connectivity.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, port, 5), Deadline(30))
    return dict(proof.details)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.1", "169.254.169.254", "169.254.20.10", "100.100.100.200", "224.0.0.1"),
        *("255.255.255.255", "::", "::1", "fe80::1", "febf::1", "ff02::1", "fd00:ec2::254", "::ffff:127.0.0.1"),
        *("::ffff:169.254.169.254", "", "10.0.0.1 ", "10.0.0.256", "010.0.0.1", "kubernetes.default", "10.0.0.1:22"),
        *("10.0.0.1\r\nHost: x", "fe80::1%eth0", "\uff11\uff10.0.0.1", "\0"),
    ],
    ids=ascii,
)
def test_addresses_that_no_peer_can_have_are_ignored(fake: FakeApi, address: str) -> None:
    """Kubelets write them. The API server asks only for an IP address."""
    assert not connectivity.is_peer_address(address)
    fake.answers[PODS] = http_json({"items": [a_pod(1, address), a_pod(2, address)]})
    with pytest.raises(NotApplicableError, match="not enough peers: 0 of 2"):
        connectivity.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, 1, 5), Deadline(30))


@pytest.mark.parametrize(
    "address", ["10.244.1.7", "100.64.0.9", "192.168.1.1", "203.0.113.9", "fd00::5", "2001:db8::7"]
)
def test_addresses_of_pods_are_used(address: str) -> None:
    assert connectivity.is_peer_address(address)


def test_an_ignored_address_is_reported(fake: FakeApi, port: int) -> None:
    facts = run(fake, port, a_pod(1), a_pod(2), a_pod(3, "fe80::1"))
    assert facts == {"reached": 2, "ignored": ["node-3: fe80::1"]}


def test_a_missing_right_is_named(fake: FakeApi) -> None:
    fake.answers[PODS] = FORBIDDEN
    with pytest.raises(CheckFailedError) as refused:
        connectivity.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, 1, 5), Deadline(30))
    assert str(refused.value) == (
        "permission to list pods in namespace kube-system is missing: no; "
        'add the RBAC rule apiGroups: [""], resources: ["pods"], verbs: ["list"]'
    )


def test_without_the_right_and_without_peers_there_is_nothing_to_check(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connectivity, "_warnings", itertools.count())
    fake.answers[PODS] = FORBIDDEN
    for _ in range(2):
        with pytest.raises(NotApplicableError, match=r"set connectivitySelector and add the RBAC rule .*\[\"pods\"\]"):
            connectivity.reaches_other_nodes(fake.access, without_peers(1), Deadline(30))
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["level"], line["msg"]) == ("warn", "Connectivity check skipped")
    fake.answers[PODS] = http_json({"message": "down"}, 503)
    with pytest.raises(InconclusiveError):
        connectivity.reaches_other_nodes(fake.access, without_peers(1), Deadline(30))


def test_a_right_that_is_lost_meanwhile_does_not_hide_a_failure(fake: FakeApi, port: int) -> None:
    following = iter([http_json({"items": [a_pod(1, CLOSED), a_pod(2, CLOSED)]}), FORBIDDEN])

    def changing(path: str) -> bytes:
        return next(following) if path.startswith(PODS) else b""

    fake._answer = changing  # type: ignore[method-assign]
    with pytest.raises(CheckFailedError, match="2 of 2 cannot be reached"):
        connectivity.reaches_other_nodes(fake.access, without_peers(port), Deadline(30))


@pytest.mark.parametrize(
    "found", [{}, {"items": [{}]}, {"items": [{"spec": {"nodeName": "a"}, "status": {"podIP": "10.0.0.1"}}]}], ids=str
)
def test_an_invalid_list_is_inconclusive(fake: FakeApi, found: dict[str, Any]) -> None:
    fake.answers[PODS] = http_json(found)
    with pytest.raises(InconclusiveError, match="malformed"):
        connectivity.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, 1, 5), Deadline(30))


def test_it_is_off_by_default(fake: FakeApi, port: int) -> None:
    fake.answers[PODS] = http_json({"items": [a_pod(1), a_pod(2)]})
    quick = Settings()._replace(dns_test_domains=("localhost",), dns_service="")
    asked = quick._replace(connectivity_matrix=True, connectivity_port=port)
    assert "matrix" not in [job.name for job in plan.in_pod(quick, fake.access, HERE)]
    results = Runner(Limits(5, 5), Observer()).run(plan.in_pod(asked, fake.access, HERE))
    assert [result.verdict for result in results if result.name == "matrix"] == [Verdict.PASSED]
    outside = {job.name for job in plan.on_this_machine(asked, None, "no cluster")}
    assert "matrix" in outside
