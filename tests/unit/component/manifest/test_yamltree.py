"""YAML of manifests: what merge keys mean, and that no document costs more than its size."""

import pytest
from yaml import MappingNode, Node, ScalarNode

from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import yamltree


def read(text: str, encoding: str = "utf-8") -> dict[str, object]:
    (root,) = yamltree.documents(text.encode(encoding), "agent.yaml")
    found = plain(root)
    assert isinstance(found, dict)
    return found


def plain(node: Node) -> object:
    if isinstance(node, MappingNode):
        return {plain(key): plain(value) for key, value in yamltree.pairs(node)}
    return node.value if isinstance(node, ScalarNode) else [plain(item) for item in node.value]


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("{<<: {a: 1, b: 2}, b: 3}", {"b": "3", "a": "1"}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": "1", "b": "2"}),
        ("{<<: {<<: {a: 1, b: 1}, b: 2}}", {"b": "2", "a": "1"}),
        ("{x: &x {<<: &y {a: 1}}, z: {<<: *x}, w: {<<: *y}}", {"x": {"a": "1"}, "z": {"a": "1"}, "w": {"a": "1"}}),
        ("&x {a: 1, <<: *x}", {"a": "1"}),
        ("{<<: text, a: 1}", {"a": "1"}),
    ],
)
def test_merge_keys(text: str, merged: object) -> None:
    assert read(text) == merged


@pytest.mark.parametrize(
    "text",
    [
        "a: {<<: &b {" + "value: x," * 10_000 + "}}\n" + "".join(f"a{number}: {{<<: *b}}\n" for number in range(20)),
        "x: &b [" + "0," * 10_000 + "0]\n" + "".join(f"y{number}: {{<<: *b}}\n" for number in range(20)),
        "".join(f"---\na: {{<<: &b {{{'value: x,' * 5_000}}}}}\nc: {{<<: *b}}\n" for _ in range(11)),
    ],
    ids=["mappings", "lists", "documents"],
)
def test_merges_are_counted(text: str) -> None:
    with pytest.raises(ManifestError, match=r"agent\.yaml:\d+:\d+: merges more than 100,000 keys"):
        yamltree.documents(text.encode(), "agent.yaml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028"])
def test_directives_are_counted(encoding: str, end: str) -> None:
    def text(count: int) -> str:
        return "".join(f"%TAG !a{number}! x{end}" for number in range(count)) + "---\na: 1\n"

    with pytest.raises(ManifestError, match=r"agent\.yaml: more than 1,000 %TAG directives; remove them"):
        read(text(1_001), encoding)


def test_some_directives_are_accepted() -> None:
    assert read("".join(f"%TAG !a{number}! x\n" for number in range(100)) + "---\na: 1\n") == {"a": "1"}
