"""Fields of messages -> fields of Kubernetes.

Zeros and falses that were written are kept; what was left out is left out, so that Kubernetes' own defaults hold.
"""

from typing import Any, Final, Protocol

from google.protobuf.message import Message

from kubernetes_daemonset.objects import Json

# Kubernetes writes these as the abbreviations that they are: hostPID.
_ABBREVIATIONS: Final = {"pid": "PID", "ipc": "IPC"}


class _Contains(Protocol):
    def HasField(self, field_name: Any, /) -> bool: ...  # noqa: N802, ANN401


def given(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}


def optional(message: _Contains, *fields: str) -> Json:
    """Fields for which zero and false mean something: there if they were written."""
    return {_camel(field): getattr(message, field) for field in fields if message.HasField(field)}


def plain(message: Message) -> Json:
    """A message whose fields are Kubernetes' own, name for name."""
    found: Json = {}
    for field, value in message.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            found[_camel(field.name)] = dict(sorted(value.items()))
        elif field.is_repeated:
            found[_camel(field.name)] = [plain(one) if isinstance(one, Message) else one for one in value]
        else:
            found[_camel(field.name)] = plain(value) if isinstance(value, Message) else value
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(_ABBREVIATIONS.get(word, word.capitalize()) for word in rest)
