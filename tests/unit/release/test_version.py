"""The version is in src/kube_node_ready/__init__.py. What repeats it for readers and tools must agree with it."""

import re

import yaml

from kube_node_ready import __version__
from tests.support.chart import CHART
from tests.support.shell import ROOT

PRE_RELEASE = re.compile(r"\b\d+\.\d+\.\d+-(?:alpha|beta|rc)\.\d+\b")


def test_the_chart_has_the_version_of_the_operator() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == __version__


def test_pages_and_examples_name_no_other_version() -> None:
    """The change log has earlier ones."""
    places = [ROOT / "README.md", *CHART.rglob("*"), *(ROOT / "docs").rglob("*"), *(ROOT / "examples").rglob("*")]
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in places if file.suffix in TEXTS}
    named = {name: set(PRE_RELEASE.findall(text)) for name, text in texts.items()}
    found = {name: versions for name, versions in named.items() if versions}
    assert len(found) > 5
    assert {name: versions for name, versions in found.items() if versions != {__version__}} == {}


TEXTS = (".md", ".yaml", ".sh", ".tpl", ".txt")
