"""The bounds of whole numbers are what the validation rules enforce."""

from collections.abc import Iterator
from typing import Any

import protovalidate
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from kubernetes_daemonset.api.buf.validate import validate_pb2
from kubernetes_daemonset.api.shared import bounds_pb2
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput

VALIDATOR = protovalidate.Validator()
HIGHEST = {FieldDescriptor.CPPTYPE_INT32: 2**31 - 1, FieldDescriptor.CPPTYPE_INT64: 2**63 - 1}


def messages(message: Any, known: set[str]) -> Iterator[Descriptor]:  # noqa: ANN401  of either implementation
    if message.full_name not in known:
        known.add(message.full_name)
        yield message
        for field in message.fields:
            if field.message_type:
                yield from messages(field.message_type, known)


def whole_numbers() -> list[FieldDescriptor]:
    every = messages(KubernetesDaemonSetStackInput.DESCRIPTOR, set())
    return [field for message in every for field in message.fields if field.cpp_type in HIGHEST]


def options(field: FieldDescriptor) -> Any:  # noqa: ANN401  the extensions that protoc generates
    return field.GetOptions().Extensions


def has_rule(field: FieldDescriptor) -> bool:
    rules = options(field)[validate_pb2.field]
    return bool(rules.cel or rules.repeated.items.cel)


RULED = [field for field in whole_numbers() if has_rule(field)]


def is_violated(field: FieldDescriptor, number: int) -> bool:
    """Whether a message with this number, and nothing else, violates a rule about it."""
    value = [number] if field.is_repeated else number
    message = GetMessageClass(field.containing_type)(**{field.name: value})
    paths = (violation.proto.field for violation in VALIDATOR.collect_violations(message))
    return any(path.elements[0].field_name == field.name for path in paths if path and path.elements)


def test_every_whole_number_with_a_rule_has_bounds() -> None:
    assert len(RULED) > 20
    assert [field.full_name for field in RULED if bounds_pb2.least not in options(field)] == []


@pytest.mark.parametrize("field", RULED, ids=lambda field: field.full_name.rpartition("kubernetes.")[2])
def test_the_rule_enforces_the_bounds(field: FieldDescriptor) -> None:
    known, highest = options(field), HIGHEST[field.cpp_type]
    most = known[bounds_pb2.most] if bounds_pb2.most in known else highest  # noqa: SIM401  it has no `get`
    least = known[bounds_pb2.least]
    # Without presence, 0 means that the field is not set, so its rule is not evaluated.
    is_unset = least == 1 and not field.has_presence and not field.is_repeated
    assert not is_violated(field, least)
    assert is_violated(field, -1 if is_unset else least - 1)
    assert not is_violated(field, most)
    assert most == highest or is_violated(field, most + 1)
