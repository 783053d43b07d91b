"""`python -m tools.docs.component_reference`: every field of a manifest, from the .proto files, as Markdown."""

import sys
from collections.abc import Iterator
from typing import Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest.explain import comment, message_below, type_of

_HEAD: Final = """\
# Reference

<!-- Written by `make docs` from the .proto files; change those, not this page. -->

This page is for authors of manifests: it lists every field of a KubernetesDaemonSet manifest. `kubernetes-daemonset
explain spec.container.app` prints the same on the command line. Names can be in snake_case or camelCase. Numbers are
those of the protobuf messages (`src/kubernetes_daemonset/api`); fields from 101 on are not in the original.
"""


def page() -> str:
    # A reader looks for the manifest; the stack input around it is for tools, and comes last.
    roots = [KubernetesDaemonSet.DESCRIPTOR, KubernetesDaemonSetStackInput.DESCRIPTOR]
    messages = {message.full_name: message for root in roots for message in _reachable(cast("Descriptor", root))}
    return "\n".join([_HEAD, *map(_section, messages.values())])


def _reachable(root: Descriptor) -> Iterator[Descriptor]:
    """Every message that a field leads to, nearest first."""
    seen: set[str] = {root.full_name}
    queue = [root]
    while queue:
        message = queue.pop(0)
        yield message
        for field in message.fields:
            below = message_below(field)
            if below is not None and below.full_name not in seen:
                seen.add(below.full_name)
                queue.append(below)


def _section(message: Descriptor) -> str:
    rows = [
        f"| `{field.name}` | {field.number} | {_linked(field)} | {_cell(message, field)} |" for field in message.fields
    ]
    table = ["| field | number | type | meaning |", "|---|---|---|---|", *rows] if rows else ["No fields yet."]
    return "\n".join([f"## {message.name}", "", comment(message.full_name), "", *table, ""])


def _cell(message: Descriptor, field: FieldDescriptor) -> str:
    return comment(f"{message.full_name}.{field.name}").replace("|", "\\|").replace("<", "&lt;")


def _linked(field: FieldDescriptor) -> str:
    below = message_below(field)
    words = type_of(field)
    return words.replace(below.name, f"[{below.name}](#{below.name.lower()})") if below is not None else words


if __name__ == "__main__":
    sys.stdout.write(page())
