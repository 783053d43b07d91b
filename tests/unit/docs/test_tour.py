"""CONTRIBUTING.md's tour: its tables say what the modules say, and every path in it exists."""

import re

import pytest

from tests.support.shell import ROOT
from tools.docs import tour

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = re.compile(
    r"(?:`|^    )((?:bench|demo|deploy|docs|lab|release|requirements|scripts|src|tests|tools)/[\w./-]*)", re.MULTILINE
)
FILES = re.compile(r"`([\w/-]+(?:\.py|/))`")
FOLDERS = [
    *(f"src/{folder.name}" for folder in sorted((ROOT / "src").iterdir()) if (folder / "__init__.py").exists()),
    *("lab", "release", "bench", "tests/support", "tools/docs"),
]


def test_the_tables_of_modules_are_up_to_date() -> None:
    assert tour.rewritten(PAGE) == PAGE, "run `make docs`"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_has_a_row(folder: str) -> None:
    assert folder in tour.folders(PAGE)
    modules = [module for module in tour.modules(ROOT / folder) if not module.stem.startswith("__")]
    assert [module for module in modules if not tour.summary(module)] == []


def test_every_path_exists() -> None:
    paths = set(PATHS.findall(tour.without_tables(PAGE)))
    assert len(paths) > 30
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_every_file_of_a_journey_exists() -> None:
    """A section names files relative to the folder of its table."""
    sections = [section for section in PAGE.split("\n## ") if tour.folders(section)]
    named = {
        (tour.folders(section)[0], path) for section in sections for path in FILES.findall(tour.without_tables(section))
    }
    assert len(named) > 10
    assert [
        path for folder, path in sorted(named) if not any((at / path).exists() for at in (ROOT / folder, ROOT))
    ] == []
