"""Clusters for tests: one shared plane a run, fresh ones for tests that break things."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import hypothesis
import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, ServiceAccount

import lab
from lab import waiting

# A slow example on a busy machine is not a failure.
hypothesis.settings.register_profile("patient", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("patient")

LONGEST_FIRST = (
    "cluster/test_component_apply.py",
    "cluster/test_component_terraform.py",
    "cluster/test_controller_process.py",
    "cluster/test_killed.py",
    "cluster/test_removal.py",
    "cluster/test_chart_rights.py",
    "attacks/test_agents_contested_gate.py",
    "cluster/test_controller_faults.py",
    "attacks/test_controller_limits.py",
    "cluster/test_console.py",
    "cluster/test_daemonset_scenarios.py",
    "cluster/test_replicas.py",
    "attacks/test_forged_workers.py",
    "cluster/test_component_pulumi.py",
    "cluster/test_cli.py",
    "cluster/test_simulated_nodes.py",
    "e2e/test_daemonset_rounds.py",
    "e2e/test_chart_matrix.py",
    "e2e/test_chart_daemonset.py",
    "e2e/test_chart_controller.py",
    "e2e/test_troubleshooting.py",
    "e2e/test_demo.py",
    "e2e/test_component.py",
)
"""Files that take a minute or more. Files run in parallel, and one that starts last would run alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path))


def _rank(path: Path) -> int:
    name = f"{path.parent.name}/{path.name}"
    return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)


@pytest.fixture(scope="session")
def plane() -> Iterator[lab.Plane]:
    """The run's shared plane. Use `namespace` or `prefix` for what you create, and break nothing."""
    with lab.plane() as shared:
        yield shared


@pytest.fixture
def fresh_plane() -> Iterator[Callable[..., lab.Plane]]:
    """`fresh_plane(…)` starts a plane of this test's own; it can start several, and break them."""
    with ExitStack() as stack:

        def start(*arguments: object, **options: object) -> lab.Plane:
            context: AbstractContextManager[lab.Plane] = lab.plane(*arguments, **options)  # type: ignore[arg-type]
            return stack.enter_context(context)

        yield start


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, short enough to put a number behind it."""
    plain = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
    return f"{plain}-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:6]}"


@pytest.fixture
def namespace(plane: lab.Plane, prefix: str) -> Iterator[str]:
    """A namespace of the test's own in the shared plane, in which pods can be created."""
    plane.client.create(Namespace(metadata=ObjectMeta(name=prefix)))
    waiting.until(
        f"{prefix} has a ServiceAccount", lambda: plane.client.get(ServiceAccount, "default", namespace=prefix), 60
    )
    yield prefix
    plane.client.delete(Namespace, prefix)


@pytest.fixture
def as_root() -> None:
    """Skip what needs root, loudly; in CI, where root is a given, fail."""
    if os.geteuid() == 0:
        return
    reason = "real nodes and namespaces need root"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
