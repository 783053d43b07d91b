"""The documents: links resolve, lines fit, pages are indexed, and the words and commands are those of the code."""

import re
from pathlib import Path

import pytest

from kube_node_ready.api.contract import EventReason
from tests.support import pages
from tests.support.shell import ROOT

CHART = ROOT / "deploy" / "helm" / "kube-node-ready" / "README.md"
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md"), CHART])
READ_IN_ORDER = [page for page in PAGES if page.is_relative_to(DOCS) and "decisions" not in page.parts]
HAND_WRITTEN = [
    "README.md",
    "docs/README.md",
    "docs/ARCHITECTURE_CONTROLLER.md",
    *sorted(str(page.relative_to(ROOT)) for folder in ("tutorial", "how-to") for page in (DOCS / folder).glob("*.md")),
    "docs/reference/glossary.md",
]
LONGEST = 120
LONGEST_README = 150


def missing_tests(text: str) -> list[str]:
    """Paths of tests that do not exist. Without a folder, one is in tests/attacks."""
    named = re.findall(r"`(tests/[\w/.]+|test_\w+\.py)`", text)
    return [name for name in named if not (ROOT / ("" if "/" in name else "tests/attacks") / name).exists()]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    """Inline links, pictures, and the targets of references."""
    text = without_code(page.read_text())
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[\w-]+\]: (\S+)$", text, re.MULTILINE)
    return [link for link in found if "://" not in link]


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", ["docs/explanation/security.md", "SECURITY.md"])
def test_the_tests_that_show_a_promise_exist(page: str) -> None:
    assert missing_tests((ROOT / page).read_text()) == []


def test_a_test_that_does_not_exist_is_found() -> None:
    text = "`test_no_such_attack.py`, `tests/unit/test_probes.py`, `tests/unit/test_none.py`, `tests/none/`"
    assert missing_tests(text) == ["test_no_such_attack.py", "tests/unit/test_none.py", "tests/none/"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n[a](#title) [b](#other) [c](page.md#title) [d](missing.md)\n\n[e]: lost.md\n")
    assert broken_links(page) == ["#other", "missing.md", "lost.md"]


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_lines_fit(name: str) -> None:
    """Rows of tables cannot be broken, nor can a single word."""
    lines = (ROOT / name).read_text().splitlines()
    too_long = [line for line in lines if len(line) > LONGEST and " " in line.strip()]
    assert [line for line in too_long if not line.startswith(("|", "!["))] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    listed = {(index.parent / link).resolve() for link in links(index)}
    assert [name_of(page) for page in READ_IN_ORDER if page != index and page not in listed] == []


@pytest.mark.parametrize("page", READ_IN_ORDER, ids=name_of)
def test_a_page_starts_with_its_audience_and_purpose(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    _, first, *_ = [part for part in text.split("\n\n") if part.strip()]
    assert re.match(r"This (page|tutorial) is for [\w ,-]+", first.strip()), first


def test_every_event_reason_is_listed() -> None:
    listed_for_people = pages.section("What happened to one node?", pages.TROUBLESHOOTING, of="Questions").prose
    (listed,) = re.findall(r"\*\*Events\*\* (.+?):", (DOCS / "reference" / "operator.md").read_text(), re.DOTALL)
    code = "".join(path.read_text() for path in (ROOT / "src" / "kube_node_ready").rglob("*.py"))
    for reason in EventReason:
        assert f"EventReason.{reason.name}" in code, "no Event has it"
        assert f"`{reason}`" in listed_for_people
        assert re.search(rf"\b{reason}\b", listed), reason


def test_all_pages_free_nodes_with_the_same_command() -> None:
    (free,) = pages.section("Free all gated nodes by hand", pages.TROUBLESHOOTING, of="Questions").commands
    assert free in CHART.read_text()
    assert free in pages.section("", pages.UNINSTALL).commands


def test_the_readme_installs_as_the_guide_does() -> None:
    (install,) = pages.section("Install", pages.README).commands
    assert pages.section("Controller mode", pages.INSTALL).commands == (install,)
    assert "\n  --set image.repository=" in install


def test_continued_lines_belong_to_their_command() -> None:
    questions = pages.titles(pages.TROUBLESHOOTING, of="Questions")
    sections = [pages.section(title, pages.TROUBLESHOOTING, of="Questions") for title in questions]
    assert all(command.startswith(("kubectl ", "helm ")) for section in sections for command in section.commands)
