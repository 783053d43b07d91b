"""What several attacks need."""

from collections.abc import Iterator

import pytest

import lab
from tests.support.site import Site


@pytest.fixture
def site(plane: lab.Plane, namespace: str) -> Iterator[Site]:
    mine = Site(plane, namespace)
    yield mine
    mine.leave()
