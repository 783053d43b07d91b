"""The documents: links that lead somewhere, lines that fit, and words that the code still says."""

import re
from pathlib import Path

import pytest

from kube_node_ready.metrics import EVENTS
from kube_node_ready.verify import patches
from tests import readme

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
HAND_WRITTEN = ["README.md", "docs/ARCHITECTURE_CONTROLLER.md", "docs/troubleshooting.md", "docs/upgrading.md"]
LONGEST = 120


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_lines_fit(name: str) -> None:
    """Rows of tables cannot be broken, nor can a single word."""
    lines = (ROOT / name).read_text().splitlines()
    too_long = [line for line in lines if len(line) > LONGEST and " " in line.strip()]
    assert [line for line in too_long if not line.startswith("|")] == []


def test_every_reason_of_an_event_is_named() -> None:
    told = readme.section("What happened to one node?", of="Troubleshooting").prose
    (listed,) = re.findall(r"\*\*Events\*\* (.+?):", (ROOT / "docs" / "operator.md").read_text(), re.DOTALL)
    code = "".join(path.read_text() for path in (ROOT / "src" / "kube_node_ready").rglob("*.py"))
    named = set(re.findall(r'Announce\([\w.]+, "(\w+)"', code))
    assert sorted(named | patches.REFUSALS) == sorted(EVENTS)
    for reason in EVENTS:
        assert f"`{reason}`" in told
        assert re.search(rf"\b{reason}\b", listed), reason


def test_the_readme_frees_nodes_as_the_chart_does() -> None:
    (free,) = readme.section("Free all gated nodes by hand", of="Troubleshooting").commands
    assert free in (ROOT / "deploy" / "helm" / "kube-node-ready" / "README.md").read_text()
    assert free in readme.section("Uninstall").commands


def test_continued_lines_belong_to_their_command() -> None:
    assert all(command.startswith(("kubectl ", "helm ")) for title in readme.titles(of="Troubleshooting")
               for command in readme.section(title, of="Troubleshooting").commands)  # fmt: skip
    install, _ = readme.section("Install").commands
    assert "\n  --set image.repository=" in install
