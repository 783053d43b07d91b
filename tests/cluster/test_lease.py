"""Leases on a real API server, in real time: the scenarios of tests/unit/kube/test_leader_election.py."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import lab
from kube_node_ready.kube.access import access
from kube_node_ready.kube.client import KubeClient
from tests.support.scenarios import lease
from tests.support.scenarios.lease import Outage, Stage

Scenario = Callable[[Stage], Awaitable[None]]


class Paused:
    """The API server keeps its connections and answers nothing."""

    def __init__(self, plane: lab.Plane) -> None:
        self._plane = plane

    async def begin(self) -> None:
        self._plane.apiserver.pause()

    async def end(self) -> None:
        self._plane.apiserver.resume()


def play(scenario: Scenario, kubeconfig: Path, namespace: str, outage: Outage | None = None) -> None:
    async def main() -> None:
        async with KubeClient(access(kubeconfig)) as kube:
            path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/leader"
            await scenario(Stage(kube, namespace, "leader", lambda: kube.delete(path), outage))

    asyncio.run(main())


@pytest.mark.parametrize("scenario", lease.ALONE, ids=lambda scenario: scenario.__name__)
def test_on_a_real_server(plane: lab.Plane, namespace: str, scenario: Scenario) -> None:
    play(scenario, plane.kubeconfig(), namespace)


def test_a_holder_that_cannot_renew_stops_before_another_starts(fresh_plane: Callable[..., lab.Plane]) -> None:
    plane = fresh_plane()
    scenario = lease.a_holder_that_cannot_renew_stops_before_another_starts
    play(scenario, plane.kubeconfig(), "default", Paused(plane))
