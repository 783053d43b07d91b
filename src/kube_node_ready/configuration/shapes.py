"""Other shapes that files have: Helm's wrapper, the flat section of older versions, secrets by name or as mappings."""

from msgspec.structs import replace

from kube_node_ready.configuration.document import Node, Scalar, Series, Table, is_null
from kube_node_ready.configuration.mistakes import Mistake, shown, within
from kube_node_ready.configuration.spelling import MOVED, nearest


def settle(root: Table, mistakes: list[Mistake]) -> Table:
    """The tree in the shape that the model has."""
    return _named_secrets(_without_flat_section(_unwrapped(root, mistakes), mistakes))


def _unwrapped(root: Table, mistakes: list[Mistake]) -> Table:
    """`controller: {config: …}`, as in Helm values."""
    wrapper = root.entries.get("controller")
    if not isinstance(wrapper, Table) or "config" not in wrapper.entries:
        return root
    for key, node in root.entries.items():
        if key != "controller":
            mistakes.append(Mistake(key, "stands beside `controller:`; move it into controller.config", node.where))
    for key, node in wrapper.entries.items():
        if key != "config":
            reason = "is for the Helm chart; of `controller:`, only `config:` is read here"
            mistakes.append(Mistake(within("controller", key), reason, node.where))
    config = wrapper.entries["config"]
    if isinstance(config, Table):
        return config
    if not is_null(config):
        mistakes.append(Mistake("controller.config", "must be a mapping", config.where))
    return Table({})


def _without_flat_section(root: Table, mistakes: list[Mistake]) -> Table:
    flat = root.entries.get("config")
    if not isinstance(flat, Table):
        return root
    for key, node in flat.entries.items():
        mistakes.append(Mistake(within("config", key), _replacement(key, node), node.where))
    return replace(root, entries={key: node for key, node in root.entries.items() if key != "config"})


def _replacement(key: str, node: Node) -> str:
    if key not in MOVED:
        return nearest(key, MOVED, "config")
    return f"is now {MOVED[key]}{_said(node)}"


def _said(node: Node) -> str:
    if not isinstance(node, Scalar):
        return ""
    return f": write {shown(node.text.removesuffix('s') if node.text[:-1].isdigit() else node.text)} there"


def _named_secrets(root: Table) -> Table:
    worker = root.entries.get("worker")
    secrets = worker.entries.get("imagePullSecrets") if isinstance(worker, Table) else None
    if not isinstance(worker, Table) or not isinstance(secrets, Series):
        return root
    named = replace(secrets, items=tuple(_name_in(item) for item in secrets.items))
    return replace(
        root, entries=root.entries | {"worker": replace(worker, entries=worker.entries | {"imagePullSecrets": named})}
    )


def _name_in(item: Node) -> Node:
    return item.entries["name"] if isinstance(item, Table) and item.entries.keys() == {"name"} else item
