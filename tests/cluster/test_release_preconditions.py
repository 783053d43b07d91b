"""The patch that opens a gate, on a real API server: it fails as a whole if its decision is outdated."""

import uuid
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.types import PatchType

import lab
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import Outcome, VerificationRecord, encode_record
from kube_node_ready.verification import patches
from kube_node_ready.verification.model import Node
from tests.support.site import Site, a_site

LONG = "x" * 100_000


@pytest.fixture(scope="module")
def site(plane: lab.Plane) -> Iterator[Site]:
    with a_site(plane, "preconditions") as site:
        yield site


@pytest.fixture
def group() -> str:
    return uuid.uuid4().hex[:8]


def open_gate(site: Site, node: Node) -> bool:
    """Whether the server accepts the patch."""
    proof = VerificationRecord(1, outcome=Outcome.PASSED)
    patch = patches.open_gate(node, proof, site.policy, version(site, node.name))
    try:
        site.plane.client.patch(NodeObject, node.name, patch, patch_type=PatchType.JSON)
    except ApiError as error:
        if error.status.code != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        return False
    return True


def version(site: Site, name: str) -> str:
    metadata = site.plane.client.get(NodeObject, name).metadata
    assert metadata
    return str(metadata.resourceVersion)


def annotate(site: Site, name: str, text: str | None) -> None:
    metadata = {"annotations": {RECORD_ANNOTATION: text}}
    site.plane.client.patch(NodeObject, name, {"metadata": metadata}, patch_type=PatchType.MERGE)


@pytest.mark.parametrize("text", [None, encode_record(VerificationRecord(1)), "not a record", "", LONG])
def test_the_gate_of_a_node_that_did_not_change_opens(
    site: Site, text: str | None, request: pytest.FixtureRequest
) -> None:
    (name,) = site.join(group=f"same-{request.node.callspec.indices['text']}").names
    annotate(site, name, text)
    # While it joins, the node lifecycle controller can change its taints between reading and writing.
    assert any(open_gate(site, site.node(name)) for _ in range(3))
    assert site.released(name)


FIRST, SECOND = encode_record(VerificationRecord(1)), encode_record(VerificationRecord(2))


@pytest.mark.parametrize(
    ("before", "after"), [(None, FIRST), (None, ""), (None, LONG), (FIRST, None), (FIRST, SECOND), (FIRST, LONG)]
)
def test_the_gate_stays_closed_if_another_controller_has_written_a_record(
    site: Site, before: str | None, after: str | None, group: str
) -> None:
    (name,) = site.join(group=group).names
    annotate(site, name, before)
    outdated = site.node(name)
    annotate(site, name, after)
    assert not open_gate(site, outdated)
    assert not site.released(name)


def test_a_heartbeat_does_not_delay_a_release(site: Site) -> None:
    (name,) = site.join(group="heartbeat").names
    seen = site.node(name)
    site.kubectl("label", "node", name, "example.com/other=writer")
    assert open_gate(site, seen)
