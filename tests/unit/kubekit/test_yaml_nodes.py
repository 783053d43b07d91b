"""YAML with locations: where values were written, and how trees are changed."""

import pytest

from kubekit import yaml_nodes
from kubekit.diagnostics import Diagnostic, DiagnosticsError, Location
from kubekit.yaml_nodes import Mapping, Node, Scalar, Sequence

TEXT = """\
a: 1
b:
  c: "x"
  d: [y, z]
e: ~
"""


def parsed(text: str) -> Mapping:
    diagnostics: list[Diagnostic] = []
    root = yaml_nodes.parse(text, "file", diagnostics)
    assert isinstance(root, Mapping)
    assert not diagnostics
    return root


@pytest.mark.parametrize(
    ("paths", "line"),
    [(("a",), 1), (("b.c",), 3), (("b.d[1]",), 4), (("b.x",), 2), (("x", "b.c"), 3), (("b.c.x", "y"), 3)],
)
def test_a_path_has_the_line_of_its_key_or_of_what_is_nearest(paths: tuple[str, ...], line: int) -> None:
    assert yaml_nodes.locate(parsed(TEXT), *paths) == Location("file", line)


def test_a_scalar_is_its_text() -> None:
    node = parsed(TEXT)["a"]
    assert isinstance(node, Scalar)
    assert node == "1"
    assert not node.quoted


@pytest.mark.parametrize(
    ("path", "is_there"), [("a", True), ("b.c", True), ("e", False), ("b.x", False), ("x.y", False)]
)
def test_has_path_ignores_what_is_empty(path: str, is_there: bool) -> None:  # noqa: FBT001
    assert yaml_nodes.has_path(parsed(TEXT), path) == is_there


def test_set_path_adds_sections_and_changes_nothing_else() -> None:
    root = parsed(TEXT)
    changed = yaml_nodes.set_path(root, "f.g", Scalar("5"))
    assert changed == {**root, "f": {"g": "5"}}
    assert "f" not in root
    assert yaml_nodes.set_path(root, "a.b", Scalar("5")) == root, "a text is no section"


def test_a_repeated_key_is_reported_and_the_first_one_stays() -> None:
    diagnostics: list[Diagnostic] = []
    root = yaml_nodes.parse("a: 1\nb: 2\na: 3\n", "file", diagnostics)
    assert root == {"a": "1", "b": "2"}
    assert list(map(str, diagnostics)) == ["file:3: a: is repeated; first at file:1"]


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: *b", "a: !!python/name:os {}", "---\n---\n", "{", "? [a]\n: b"])
def test_what_is_not_supported_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(DiagnosticsError) as error:
        yaml_nodes.parse(text, "file", [])
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.location is not None
    assert diagnostic.location.line


@pytest.mark.parametrize(("text", "node"), [("[a, b]", Sequence([Scalar("a"), Scalar("b")])), ("a", Scalar("a"))])
def test_a_document_can_be_any_node(text: str, node: Node) -> None:
    assert yaml_nodes.parse(text, "file", []) == node


def test_a_key_cannot_be_longer_than_any_setting_needs() -> None:
    """An alias repeats it, so a file of 150 KB could stand for 200 MB of keys, each of which is reported."""
    assert yaml_nodes.parse(f"{'k' * 1024}: 1\n", "file", []) == {"k" * 1024: "1"}
    text = f"- &key {'k' * 130_000}\n" + "- {*key : 1}\n" * 1_500
    with pytest.raises(DiagnosticsError, match=r"^file:2: a key has more than 1024 characters$"):
        yaml_nodes.parse(text, "file", [])


@pytest.mark.parametrize("anchored", ['"{}"', '["{}", b]', '{{"c": "{}"}}'], ids=["text", "sequence", "mapping"])
def test_aliases_do_not_multiply_long_texts(anchored: str) -> None:
    """A file of 250 KiB became 1.5 GB."""
    uses = "".join(f" {number}: *long\n" for number in range(100))
    text = f"a: &long {anchored.format('x' * 100_000)}\nb:\n{uses}"
    with pytest.raises(DiagnosticsError, match="file:12: more than 1048576 characters once aliases are expanded"):
        parsed(text)
