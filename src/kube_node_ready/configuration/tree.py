"""Looking into the tree of written values, and adding to it."""

import re

from msgspec.structs import replace

from kube_node_ready.configuration.document import Node, Scalar, Series, Table, is_null

Override = tuple[str, Scalar]
"""The path of a field, and what is to stand there."""


def lay(root: Table, override: Override) -> Table:
    """The tree with one more value; a section that is no section stays, to be complained about."""
    path, value = override
    first, _, rest = path.partition(".")
    if not rest:
        return replace(root, entries=root.entries | {first: value})
    section = root.entries.get(first)
    if section is None or is_null(section):
        section = Table({})
    if not isinstance(section, Table):
        return root
    return replace(root, entries=root.entries | {first: lay(section, (rest, value))})


def has(root: Table, path: str) -> bool:
    """Whether something that is not empty stands there."""
    first, _, rest = path.partition(".")
    node = root.entries.get(first)
    if node is None or is_null(node):
        return False
    if rest and isinstance(node, Table):
        return has(node, rest)
    return not isinstance(node, Scalar) or node.text != ""


def where(root: Table, paths: tuple[str, ...]) -> str:
    """Where the first of these paths was written; if none was, what is nearest around the first."""
    found = [_at(root, path) for path in paths]
    return next((node.where for node, is_exact in found if is_exact), found[0][0].where)


def _at(root: Table, path: str) -> tuple[Node, bool]:
    node: Node = root
    for word in re.findall(r"[^.\[\]]+", path):
        inner = _inside(node, word)
        if inner is None:
            return node, False
        node = inner
    return node, True


def _inside(node: Node, word: str) -> Node | None:
    if isinstance(node, Table):
        return node.entries.get(word)
    if isinstance(node, Series) and word.isdecimal() and int(word) < len(node.items):
        return node.items[int(word)]
    return None
