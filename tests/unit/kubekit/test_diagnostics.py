"""Diagnostics: how values, locations and errors are rendered."""

import pytest

from kubekit import diagnostics
from kubekit.diagnostics import Diagnostic, DiagnosticsError, Location, invalid, missing, quoted, unknown
from kubekit.yaml_nodes import Scalar


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (Location("LOG_LEVEL"), "LOG_LEVEL"),
        (Location("config.yaml", 7), "config.yaml:7"),
        (Location("agent.yaml", 7, 3), "agent.yaml:7:3"),
    ],
)
def test_a_location_is_rendered_as_compilers_do(location: Location, text: str) -> None:
    assert str(location) == text


@pytest.mark.parametrize(
    ("diagnostic", "text"),
    [
        (invalid("a.b", "loud", "debug or info"), 'a.b: "loud" is invalid; expected debug or info'),
        (missing("a.b", "a name", Location("c.yaml", 1)), "c.yaml:1: a.b: is missing; expected a name"),
        (unknown("key", "a.bb", "b", ["b", "c"]), "a.bb: unknown key; did you mean b?"),
        (unknown("key", "a.x", None, ["c", "b"]), "a.x: unknown key; known keys: b, c"),
        (unknown("flag", "--x", None, ()), "--x: unknown flag"),
        (Diagnostic("", "not YAML", Location("c.yaml", 2)), "c.yaml:2: not YAML"),
        (Diagnostic("a\n\x1b[31m", "b"), "a\\n\\x1b[31m: b"),
    ],
)
def test_a_diagnostic_is_one_line(diagnostic: Diagnostic, text: str) -> None:
    assert str(diagnostic) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (2.5, "2.5"),
        (None, "null"),
        (True, "true"),
        ("5", '"5"'),
        (Scalar("5"), "5"),
        (Scalar("5", quoted=True), '"5"'),
        (Scalar("~"), "null"),
        (Scalar("loud"), '"loud"'),
        (["a", ["b"], {"c": 1}], '["a", […], {…}]'),
        ({"a": 1}, "{…}"),
        ("x" * 81, f'"{"x" * 80}…"'),
        pytest.param(10**5000, "a number with too many digits", id="many digits"),
        ("a\x00", '"a\\x00"'),
    ],
)
def test_a_value_is_quoted_in_short(value: object, text: str) -> None:
    assert quoted(value) == text


def test_an_error_has_all_diagnostics_and_shows_the_first_of_them() -> None:
    error = DiagnosticsError(Diagnostic(f"key{number}", "is wrong") for number in range(200))
    assert len(error.diagnostics) == 200
    assert str(error).endswith("key19: is wrong; and 180 more")
    lines = error.listed("settings").splitlines()
    assert lines[0] == "200 errors in the settings:"
    assert lines[-1] == "  - and 100 more"
    assert len(lines) == 102


def test_one_error_is_listed_as_it_is() -> None:
    assert DiagnosticsError([Diagnostic("a", "is wrong")]).listed("settings") == "a: is wrong"


def test_paths_have_dots_and_indexes() -> None:
    assert diagnostics.join_path(diagnostics.join_path("a", "b"), 0) == "a.b[0]"
    assert diagnostics.join_path("", "a") == "a"
