"""The order in which files with tests start."""

import pytest

from tests.conftest import LONGEST_FIRST
from tests.support.shell import ROOT


@pytest.mark.parametrize("name", LONGEST_FIRST)
def test_every_file_that_starts_early_exists(name: str) -> None:
    """A renamed file would silently start late."""
    assert (ROOT / "tests" / name).is_file()
