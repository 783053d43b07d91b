"""Convert messages to plain data and YAML in the dialect of the .proto files. Parsing it returns the same message."""

import json
import re
from typing import Any, Final

import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kubekit.terminal import in_yaml, is_hidden
from kubernetes_daemonset.types import Json

# Strings that some YAML parsers read as another type: 1e3, 0o17, 1_000, y, Off, .5, ~, null.
_AMBIGUOUS: Final = re.compile(r"[-+.]?[0-9.].*|y|n|yes|no|on|off|true|false|null|~", re.IGNORECASE)
_NOT_ASCII: Final = re.compile(r"[^\n -~]")


def to_json(message: Message) -> Json:
    """Return the fields that are set, by their names and in the order of the .proto file; numbers stay numbers."""
    found: Json = {}
    for what, value in sorted(message.ListFields(), key=lambda pair: pair[0].index):
        if what.message_type and what.message_type.GetOptions().map_entry:
            found[what.name] = {key: _value(what, value[key]) for key in sorted(value)}
        elif what.is_repeated:
            found[what.name] = [_value(what, item) for item in value]
        else:
            found[what.name] = _value(what, value)
    return found


def manifest_yaml(message: Message) -> str:
    """Return a manifest as a person would write it."""
    body = to_json(message)
    if "api_version" in body:  # the name in all examples, which kubectl requires
        body = {"apiVersion": body.pop("api_version")} | body
    return to_yaml(body)


def to_yaml(*documents: Json) -> str:
    """Return YAML without characters that control a terminal; a YAML parser still reads every character."""
    text = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return in_yaml(text)


def ascii_yaml(document: Json) -> str:
    """Return JSON with YAML's escapes, which have no surrogate pairs: a YAML parser reads every character.

    Every string is quoted: whether an unquoted `1e3` is a string depends on the parser.
    """
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _NOT_ASCII.sub(lambda letter: f"\\U{ord(letter[0]):08x}", text) + "\n"


def _value(what: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401 - a field of any type
    if isinstance(value, Message):
        return to_json(value)
    if what.enum_type and (named := what.enum_type.values_by_number.get(value)):
        return named.name
    return value


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # libyaml's, ten times as fast
    """Writes multi-line strings as blocks, and repeated objects in full instead of as aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    hidden = any(map(is_hidden, set(text)))  # needs escapes, which exist only in double quotes
    style = '"' if hidden or _AMBIGUOUS.fullmatch(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
