"""JSON of any depth: what is nested too deeply is null, and everything else is unchanged."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_node_ready.api.nesting import MAX_LEVELS, flattened, tolerant
from kube_node_ready.api.objects import Node

DEEP = b'{"f:a":' * 5000 + b"{}" + b"}" * 5000
BRACKETS = st.text(alphabet='{}[]"\\,:a', max_size=20)
LEAVES = st.none() | st.booleans() | st.integers() | BRACKETS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(BRACKETS, inner, max_size=4),
    max_leaves=30,
)


def a_node(fields: bytes) -> bytes:
    metadata = b'{"name":"a","uid":"b","resourceVersion":"1","managedFields":[{"fieldsV1":%s}]}' % fields
    return b'{"metadata":%s,"spec":{"taints":[{"key":"gate","effect":"NoSchedule"}]}}' % metadata


@pytest.mark.parametrize("deep", [DEEP, b"[" * 5000 + b"]" * 5000], ids=["mappings", "lists"])
def test_an_object_with_deeply_nested_fields_is_read(deep: bytes) -> None:
    decode = msgspec.json.Decoder(Node).decode
    with pytest.raises(RecursionError):
        decode(a_node(deep))
    assert tolerant(decode)(a_node(deep)) == decode(a_node(b"{}"))


def test_the_workers_decoder_reads_it_too() -> None:
    assert tolerant(json.loads)(a_node(DEEP))["metadata"]["name"] == "a"


@given(VALUES, st.sampled_from([None, 1]))
def test_shallow_json_is_unchanged(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert flattened(text) == text


@given(VALUES, VALUES)
def test_the_neighbors_of_a_deep_value_are_unchanged(before: object, after: object) -> None:
    around = [json.dumps(value).encode() for value in (before, after)]
    found = json.loads(flattened(b"[%s,%s,%s]" % (around[0], DEEP, around[1])))
    assert [found[0], found[2]] == [before, after]


@pytest.mark.parametrize("levels", [MAX_LEVELS - 1, MAX_LEVELS, MAX_LEVELS + 1])
def test_the_limit_is_exact(levels: int) -> None:
    text = b"[" * levels + b"1" + b"]" * levels
    expected = text if levels <= MAX_LEVELS else b"[" * MAX_LEVELS + b"null" + b"]" * MAX_LEVELS
    assert flattened(text) == expected


@pytest.mark.parametrize(
    "text",
    [b'{"a":' * 5000, b'"' + b"a" * 2**20, b'{"a":' * 5000 + b'"' + b"[" * 2**20, b"]" * 5000, b"[" * 2**20, b""],
    ids=["no end", "no end of a text", "no end of a deep text", "no beginning", "only beginnings", "nothing"],
)
def test_malformed_json_is_rejected_in_time(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(flattened(text))
