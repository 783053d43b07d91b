"""Convert fields of messages to fields of Kubernetes.

Zeros and falses that are set are kept; unset fields are omitted, so that Kubernetes' own defaults apply.
"""

from typing import Any, Final, Protocol

from google.protobuf.message import Message

from kubernetes_daemonset.types import Json

# Kubernetes capitalizes these abbreviations: hostPID.
_ABBREVIATIONS: Final = {"pid": "PID", "ipc": "IPC"}


class _Contains(Protocol):
    def HasField(self, field_name: Any, /) -> bool: ...  # noqa: N802, ANN401


def drop_none(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}


def optional(message: _Contains, *fields: str) -> Json:
    """Return the fields that are set, including those that are zero or false."""
    return {_camel(field): getattr(message, field) for field in fields if message.HasField(field)}


def to_kubernetes(message: Message) -> Json:
    """Convert a message whose field names are those of Kubernetes."""
    body: Json = {}
    for field, value in message.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            body[_camel(field.name)] = dict(sorted(value.items()))
        elif field.is_repeated:
            body[_camel(field.name)] = [to_kubernetes(item) if isinstance(item, Message) else item for item in value]
        else:
            body[_camel(field.name)] = to_kubernetes(value) if isinstance(value, Message) else value
    return body


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(_ABBREVIATIONS.get(word, word.capitalize()) for word in rest)
