"""Text for a terminal: nothing that controls it or hides text gets through, and documents keep their meaning."""

import io
import json

import pytest
import yaml

from kubekit.terminal import can_redraw, has_colors, in_json, in_yaml, is_hidden, on_one_line, replaced

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\r\u202e\u2028\x85\u200b\U000e0041"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve 節点 🙂", "plain text, naïve 節点 🙂"),
        ("two\nlines", r"two\nlines"),
        ("a\tb", r"a\tb"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202e", r"\u202e"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
    ],
)
def test_a_line_has_printable_characters_only(text: str, shown: str) -> None:
    assert on_one_line(text) == shown


@pytest.mark.parametrize("letter", ["\x1b", "\n", "\u202e", "\u3164", "\u2800", "\ud800"])
def test_replaced_text_keeps_its_positions(letter: str) -> None:
    assert replaced(f"a節{letter}b") == "a節\ufffdb"


@pytest.mark.parametrize("letter", "\n\t a節")
def test_printable_characters_are_not_hidden(letter: str) -> None:
    assert not is_hidden(letter)


@pytest.mark.parametrize("letter", HOSTILE.replace("]0;title", "").replace("[2J", "").replace("31m", ""))
def test_control_characters_are_hidden(letter: str) -> None:
    assert is_hidden(letter)


INVISIBLE = "\u3164\uffa0\u115f\u1160\u2800\u034f\ufe0f\U000e0100\U000e0fff\u180b\u17b4\u17b5\ufff0\u2065"


@pytest.mark.parametrize("letter", INVISIBLE)
def test_invisible_characters_are_hidden(letter: str) -> None:
    """Although `str.isprintable` holds for most of them."""
    assert is_hidden(letter)
    assert on_one_line(f"a{letter}b").isascii()
    assert json.loads(in_json(f'"a{letter}b"')) == f"a{letter}b"
    assert in_json(letter).isascii()
    assert yaml.safe_load(in_yaml(f'"a{letter}b"')) == f"a{letter}b"
    assert in_yaml(letter).isascii()


def test_json_reads_the_same_after_it_was_escaped() -> None:
    written = json.dumps({"key\x9b": HOSTILE}, ensure_ascii=False)
    shown = in_json(written)
    assert not any(map(is_hidden, shown))
    assert json.loads(shown) == {"key\x9b": HOSTILE}


def test_yaml_in_double_quotes_reads_the_same_after_it_was_escaped() -> None:
    shown = in_yaml('"a\u202eb\U000e0041"')
    assert not any(map(is_hidden, shown))
    assert yaml.safe_load(shown) == "a\u202eb\U000e0041"


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("is_terminal", "environ", "expected"),
    [
        (True, {"TERM": "xterm"}, (True, True)),
        (True, {}, (True, True)),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, (True, True)),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, (False, True)),
        (True, {"TERM": "dumb"}, (False, False)),
        (True, {"TERM": "unknown"}, (False, False)),
        (False, {"TERM": "xterm"}, (False, False)),
    ],
)
def test_escape_sequences_are_for_terminals_that_support_them(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, environ: dict[str, str], expected: tuple[bool, bool]
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    stream = Stream(terminal=is_terminal)
    assert (has_colors(stream), can_redraw(stream)) == expected
