"""How far a rollout is, from what the cluster shows."""

from typing import Any

import pytest

from kubernetes_daemonset.deploy.rollout import complaints, pod_problems, rollout


def a_daemon_set(*, desired: int, updated: int, available: int, observed: int = 2, **strategy: str) -> dict[str, Any]:
    return {
        "metadata": {"generation": 2},
        "spec": {"updateStrategy": strategy or {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": observed,
            "desiredNumberScheduled": desired,
            "updatedNumberScheduled": updated,
            "numberAvailable": available,
        },
    }


@pytest.mark.parametrize(
    ("live", "done", "certain"),
    [
        (a_daemon_set(desired=3, updated=3, available=3), True, 3),
        (a_daemon_set(desired=3, updated=3, available=2), False, 2),
        (a_daemon_set(desired=3, updated=2, available=3), False, 2),
        (a_daemon_set(desired=2, updated=1, available=1), False, 0),
        (a_daemon_set(desired=3, updated=3, available=3, observed=1), False, 0),
        (a_daemon_set(desired=0, updated=0, available=0), True, 0),
        (a_daemon_set(desired=3, updated=0, available=3, type="OnDelete"), True, 0),
        (a_daemon_set(desired=3, updated=0, available=2, type="OnDelete"), False, 0),
        ({"metadata": {"generation": 1}, "spec": {}}, False, 0),
    ],
)
def test_a_rollout_is_complete_when_all_nodes_run_this_version(live: dict[str, Any], done: bool, certain: int) -> None:  # noqa: FBT001
    assert rollout(live).done is done
    assert rollout(live).certain == certain


def test_an_outdated_observed_generation_is_waited_for() -> None:
    assert str(rollout(a_daemon_set(desired=3, updated=3, available=3, observed=1))) == (
        "waiting for the DaemonSet controller"
    )


def test_reasons_are_counted_and_the_most_frequent_comes_first() -> None:
    waiting = {
        "containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}]
    }
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}
    starting = {"containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
    pods: list[dict[str, Any]] = [
        {"status": waiting},
        {"status": {"conditions": [condition]}},
        {"status": waiting},
        {"status": starting},
        {},
    ]
    assert pod_problems(pods) == [
        "2 pods: agent is waiting: ErrImagePull (no)",
        "1 pod: cannot be scheduled: 0/3 nodes",
    ]


def test_an_evicted_pod_is_reported() -> None:
    assert pod_problems([{"status": {"phase": "Failed", "reason": "Evicted", "message": "disk"}}]) == [
        "1 pod: Evicted: disk"
    ]


def test_the_latest_event_comes_first_and_once() -> None:
    def event(message: str, at: str, kind: str = "Warning") -> dict[str, str]:
        return {"type": kind, "reason": "FailedCreate", "message": message, "lastTimestamp": at}

    events = [event("old", "1"), event("new", "3"), event("fine", "4", "Normal"), event("old", "2")]
    assert complaints(events) == ["FailedCreate: new", "FailedCreate: old"]


def test_of_long_and_many_reasons_a_part_is_kept() -> None:
    """Kubelets write them: 20 lines of about 1,000 characters explain enough."""
    pods = [{"status": {"phase": "Failed", "reason": f"{number}{'x' * 10_000}"}} for number in range(30)]
    lines = pod_problems(pods)
    assert lines[-1] == "and 10 more reasons"
    assert len("".join(lines)) < 21_000
    event = {"type": "Warning", "reason": "r" * 10_000, "message": "m" * 10_000}
    assert len("".join(complaints([event]))) < 2_100
