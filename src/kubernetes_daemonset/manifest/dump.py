"""Message -> plain data and YAML, in the dialect of the .proto files. Reading it again gives the same message."""

import json
import re
from typing import Any, Final

import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.terminal import in_yaml, is_hidden

# Texts that one reader of YAML or another takes for something else: 1e3, 0o17, 1_000, y, Off, .5, ~, null.
_AMBIGUOUS: Final = re.compile(r"[-+.]?[0-9.].*|y|n|yes|no|on|off|true|false|null|~", re.IGNORECASE)
_NOT_ASCII: Final = re.compile(r"[^\n -~]")


def plain(message: Message) -> Json:
    """The fields that are set, by their names in the .proto file and in its order; numbers stay numbers."""
    found: Json = {}
    for what, value in sorted(message.ListFields(), key=lambda pair: pair[0].index):
        if what.message_type and what.message_type.GetOptions().map_entry:
            found[what.name] = {key: _value(what, value[key]) for key in sorted(value)}
        elif what.is_repeated:
            found[what.name] = [_value(what, one) for one in value]
        else:
            found[what.name] = _value(what, value)
    return found


def manifest_yaml(message: Message) -> str:
    """A manifest as a person would write it."""
    body = plain(message)
    if "api_version" in body:  # every example has it so, and kubectl wants it so
        body = {"apiVersion": body.pop("api_version")} | body
    return to_yaml(body)


def to_yaml(*documents: Json) -> str:
    """Without a character that a terminal would obey; what reads it as YAML gets every character."""
    text = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return in_yaml(text)


def ascii_yaml(document: Json) -> str:
    """JSON, but with YAML's escapes, which have no surrogate pairs: whoever reads it as YAML gets every character.

    Every text is in quotes: whether `1e3` is one if it is not depends on whom one asks.
    """
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _NOT_ASCII.sub(lambda letter: f"\\U{ord(letter[0]):08x}", text) + "\n"


def _value(what: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401 - whatever the field holds
    if isinstance(value, Message):
        return plain(value)
    if what.enum_type and (named := what.enum_type.values_by_number.get(value)):
        return named.name
    return value


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # libyaml's, ten times as fast
    """Texts of several lines as blocks; an object that appears twice written twice, not as an alias."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    hidden = any(map(is_hidden, set(text)))  # which is escaped, and only double quotes have escapes
    style = '"' if hidden or _AMBIGUOUS.fullmatch(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
