"""Pods on other nodes, reached or not; and that one broken node does not condemn the others."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready.checks import matrix, plan
from kube_node_ready.checks.matrix import Peer, Wanted
from kube_node_ready.checks.model import PASSED, CheckFailedError, Deadline, Here, NotApplicableError, NotJudgedError
from kube_node_ready.checks.run import Limits, Observer, Runner
from kube_node_ready.checks.settings import Settings
from tests.check_servers import LOOPBACK, FakeApi, http_json

PODS = "/api/v1/namespaces/kube-system/pods"
SELECTOR = Settings().connectivity_selector
HERE = Here("node-0", "kube-system")
NOBODY = "127.0.0.2"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path / "pki").running() as running:
        yield running


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody listens on it, on the loopback address and on no other."""
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
    proof = matrix.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, port, sample), Deadline(30))
    return dict(proof.facts)


def test_pods_on_other_nodes_are_reached(fake: FakeApi, port: int) -> None:
    assert run(fake, port, *(a_pod(number) for number in range(4))) == {"reached": 3}


def test_the_list_is_short_and_of_pods_that_serve(fake: FakeApi, port: int) -> None:
    run(fake, port, a_pod(1), sample=3)
    selectors = "fieldSelector=status.phase%3DRunning&labelSelector=app%3Dkube-node-ready%2Ccomponent%21%3Dworker"
    assert fake.asked[0][0] == f"{PODS}?{selectors}&limit=12"


def test_no_more_than_the_sample_are_tried(fake: FakeApi, port: int) -> None:
    assert run(fake, port, *(a_pod(number) for number in range(50)), sample=2) == {"reached": 2}


def test_nodes_try_different_others_and_each_the_same_again() -> None:
    peers = {f"node-{number}": Peer(f"node-{number}", f"pod-{number}", LOOPBACK) for number in range(40)}
    samples = [tuple(matrix.sample(peers, Wanted(Here(f"node-{number}", ""), SELECTOR, 1, 5))) for number in range(40)]
    assert len(set(samples)) > 30
    assert samples[7] == tuple(matrix.sample(dict(reversed(peers.items())), Wanted(Here("node-7", ""), SELECTOR, 1, 5)))


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [a_pod(0)],
        [a_pod(1, ready="False")],
        [a_pod(1, deletionTimestamp="2026-01-01T00:00:00Z")],
        [{**a_pod(1), "status": {}}],
    ],
    ids=["none", "only ours", "not ready", "going", "no address yet"],
)
def test_where_there_is_nobody_to_reach_it_does_not_apply(fake: FakeApi, port: int, pods: list[dict[str, Any]]) -> None:
    with pytest.raises(
        NotApplicableError, match="no other node runs a pod with app=kube-node-ready,component!=worker that is ready"
    ):
        run(fake, port, *pods)


def test_one_that_cannot_be_reached_is_told_and_condemns_nobody(fake: FakeApi, port: int) -> None:
    facts = run(fake, port, a_pod(1), a_pod(2, NOBODY), a_pod(3))
    assert facts["reached"] == 2
    assert f"node-2: no TCP connection to {NOBODY}:{port}" in str(facts["unreachable"])


def test_when_most_cannot_be_reached_this_node_fails(fake: FakeApi, port: int) -> None:
    with pytest.raises(CheckFailedError, match=r"2 of 3 cannot be reached: node-\d: no TCP connection") as why:
        run(fake, port, a_pod(1), a_pod(2, NOBODY), a_pod(3, NOBODY))
    assert not isinstance(why.value, NotJudgedError)


def test_a_single_one_decides_nothing(fake: FakeApi, port: int) -> None:
    assert run(fake, port, a_pod(1, NOBODY))["reached"] == 0


def test_a_pod_that_went_away_meanwhile_need_not_answer(fake: FakeApi, port: int) -> None:
    lists = iter([[a_pod(1, NOBODY), a_pod(2, NOBODY)], [a_pod(1, "127.0.0.3")]])
    answer = FakeApi._answer

    def changing(path: str) -> bytes:
        return http_json({"items": next(lists)}) if path.startswith(PODS) else answer(fake, path)

    fake._answer = changing  # type: ignore[method-assign]
    proof = matrix.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, port, 5), Deadline(30))
    assert proof.facts == {"reached": 2}


def test_a_missing_right_is_named(fake: FakeApi) -> None:
    fake.answers[PODS] = http_json({"message": "no"}, 403)
    with pytest.raises(CheckFailedError, match="the right to list pods in namespace kube-system is missing: no"):
        matrix.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, 1, 5), Deadline(30))


@pytest.mark.parametrize(
    "found", [{}, {"items": [{}]}, {"items": [{"spec": {"nodeName": "a"}, "status": {"podIP": "10.0.0.1"}}]}], ids=str
)
def test_a_list_that_is_none_is_not_judged(fake: FakeApi, found: dict[str, Any]) -> None:
    fake.answers[PODS] = http_json(found)
    with pytest.raises(NotJudgedError, match="malformed"):
        matrix.reaches_other_nodes(fake.access, Wanted(HERE, SELECTOR, 1, 5), Deadline(30))


def test_it_is_a_check_like_the_others_and_off_unless_asked_for(fake: FakeApi, port: int) -> None:
    fake.answers[PODS] = http_json({"items": [a_pod(1)]})
    quick = Settings()._replace(dns_test_domains=("localhost",), dns_service="")
    asked = quick._replace(connectivity_matrix=True, connectivity_port=port)
    assert "matrix" not in [job.name for job in plan.in_pod(quick, fake.access, HERE)]
    results = Runner(Limits(5, 5), Observer()).run(plan.in_pod(asked, fake.access, HERE))
    assert [result.verdict for result in results if result.name == "matrix"] == [PASSED]
    outside = {job.name for job in plan.on_this_machine(asked, None, "no cluster")}
    assert "matrix" in outside
