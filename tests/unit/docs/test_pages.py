"""Generated pages and pictures are up to date."""

from xml.etree import ElementTree as ET

import pytest

from demo import __main__ as demo
from demo import stage
from lab import runs
from tests.support import pages
from tests.support.shell import ROOT
from tools.docs import __main__ as docs
from tools.docs import terminal


@pytest.mark.parametrize("name", docs.WHOLE)
def test_generated_pages_have_no_diff(name: str) -> None:
    assert (ROOT / name).read_text() == docs.WHOLE[name](), "run `make docs`"


@pytest.mark.parametrize("name", docs.PARTLY)
def test_generated_tables_have_no_diff(name: str) -> None:
    page = (ROOT / name).read_text()
    assert page == docs.PARTLY[name](page), "run `make docs`"


def test_the_picture_shows_the_recorded_session() -> None:
    drawn = ET.fromstring(terminal.svg())  # noqa: S314
    lines = ["".join(text.itertext()) for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert lines[0] == "$ make run"
    assert f"{stage.REAL.broken} stays gated: pods there would find no DNS." in lines
    assert {part.tag.rpartition("}")[2] for part in drawn.iter()} == {
        "svg",
        "g",
        "title",
        "rect",
        "circle",
        "text",
        "tspan",
    }


@pytest.mark.parametrize(
    ("output", "rows"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("50 %\r100 %", ["100 %"]),
        ("old\x1b[2K\rnew", ["new"]),
        ("a\nb\nc\x1b[1A\r\x1b[JB", ["a", "B"]),
        ("before\x1b[?1049hhidden\x1b[?1049l after", ["before after"]),
    ],
    ids=["lines", "carriage return", "erased line", "cursor up", "alternate screen"],
)
def test_the_final_screen_of_a_session_is_kept(output: str, rows: list[str]) -> None:
    assert ["".join(character for character, _ in row) for row in terminal.screen(output)] == rows


def test_styles_survive_the_recording() -> None:
    assert terminal.cells("a\x1b[1m\x1b[31mb\x1b[0m") == [("a", ""), ("b", "1;31")]


def test_the_tutorial_has_the_commands_that_the_demonstration_prints(capsys: pytest.CaptureFixture[str]) -> None:
    demo._tell_what_to_try(runs.DEFAULT_NAME, stage.REAL)
    printed = capsys.readouterr().out
    tutorial = (ROOT / pages.TUTORIAL).read_text().partition("## On your cluster")[0]
    commands = [line.strip() for line in tutorial.splitlines() if line.startswith("    ")]
    assert commands[0] == "make run"
    for command in commands[1:]:
        assert command.removeprefix(".venv/bin/") in printed
