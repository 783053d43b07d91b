"""What executors share."""

from kube_node_ready.controller.execution import RecentKeys


def test_the_oldest_keys_are_forgotten_first() -> None:
    keys = RecentKeys(2)
    for key in ("a", "b", "b", "c"):
        keys.add(key)
    assert [key for key in ("a", "b", "c") if key in keys] == ["b", "c"]
