"""Whatever is written, a configuration comes out or every mistake is named."""

import string
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from kube_node_ready.config import Config, ConfigError
from kube_node_ready.configuration import checks, environment
from kube_node_ready.configuration.flags import FIELDS
from kube_node_ready.configuration.pods import Part
from kube_node_ready.configuration.scalars import UNUSABLE, meaning
from kube_node_ready.configuration.schema import Field, fields, is_scalar, leaves
from tests.configs import load

FAST = settings(max_examples=300)
LEAVES = list(leaves(Config))
SCALARS = [(path, field) for path, _, field in LEAVES if is_scalar(field.kind)]
PATHS = [path for path, _, _ in LEAVES] + [f"worker.{name}" for name in checks.NAMES]

ODD = (
    """null ~ yes no on off true 0 -1 1e3 1e99 .inf .nan 010 0x10 1_000 1:30 15s 1m30s 50m 64Mi a/b a,b [] {} '' \\t"""
)
odd_texts = st.sampled_from([*ODD.split(), "", "\t", " "]) | st.text(max_size=8)
keys = st.sampled_from(sorted({key for part in Part.__subclasses__() for key in fields(part)})) | odd_texts
scalars = odd_texts | st.none() | st.booleans() | st.integers() | st.floats()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=8
)


def outcome(loading: Callable[[], Config]) -> ConfigError | Config:
    try:
        return loading()
    except ConfigError as refused:
        return refused


def settle(loading: Callable[[], Config]) -> Config | None:
    """The configuration, or None when it was refused as it should be: in sentences, each on its line."""
    result = outcome(loading)
    if isinstance(result, Config):
        return result
    lines = str(result).splitlines()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == (1 if len(result.mistakes) == 1 else len(result.mistakes) + 1) > 0
    return None


def nested(path: str, value: object) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = [key for key in one.keys() & other.keys() if isinstance(one[key], dict) and isinstance(other[key], dict)]
    return one | other | {key: merged(one[key], other[key]) for key in both}


def right(field: Field) -> st.SearchStrategy[Any]:
    """Values that the field may have."""
    match field.kind.type:
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=least, le=most):
            return st.integers(least, most)
        case inspect.FloatType(ge=least, le=most):
            return st.integers(0 if least is not None else 1, int(most or 0) * 1000).map(
                lambda thousandths: thousandths / 1000
            )
        case inspect.LiteralType(choices):
            return st.sampled_from(choices)
        case inspect.TimeDeltaType():
            return st.integers(1, 10_000).map(lambda ms: f"{ms}ms")
        case _:
            return st.just(field.default)


@FAST
@given(st.text(alphabet=string.printable + "é\x00\x85\ufeff🙂", max_size=200))
def test_any_text_is_a_configuration_or_mistakes(text: str) -> None:
    settle(lambda: load(text))


@FAST
@given(
    st.lists(
        st.sampled_from([*"{}[]:,-?&*!|>'\"%@`#\t\n ", "worker", "<<", "&a", "*a", "- ", ": ", "!!str", "---\n"]),
        max_size=40,
    )
)
def test_any_heap_of_yamls_own_marks_is_a_configuration_or_mistakes(marks: list[str]) -> None:
    settle(lambda: load("".join(marks)))


@FAST
@given(st.binary(max_size=100))
def test_any_bytes_are_a_configuration_or_mistakes(content: bytes) -> None:
    settle(lambda: load(content))


@FAST
@given(st.lists(st.tuples(st.sampled_from(PATHS) | odd_texts, values), max_size=4), st.booleans())
def test_any_value_of_any_field_is_taken_or_named(written: list[tuple[str, object]], wrapped: bool) -> None:  # noqa: FBT001
    tree: dict[str, Any] = {}
    for path, value in written:
        tree = merged(tree, nested(path, value))
    settle(lambda: load(yaml.safe_dump({"controller": {"config": tree}} if wrapped else tree)))


@FAST
@given(st.dictionaries(st.sampled_from([*environment.variables(), *environment.ORIGINAL, "POD_NAMESPACE"]), odd_texts))
def test_any_environment_is_taken_or_named(variables: dict[str, str]) -> None:
    settle(lambda: load("", variables))


@FAST
@given(st.dictionaries(st.sampled_from([*FIELDS, "zap-devel", "v"]) | odd_texts, odd_texts | st.booleans()))
@example({"text": "null", "variables": "null"})
def test_any_flags_are_taken_or_named(flags: dict[str, object]) -> None:
    settle(lambda: load("", {}, **flags))


@FAST
@given(st.sampled_from(SCALARS), odd_texts)
def test_what_is_taken_is_what_the_field_may_hold(target: tuple[str, Field], text: str) -> None:
    path, field = target
    loaded = settle(lambda: load(yaml.safe_dump(nested(path, text))))
    may = text == field.default or not text or meaning(text, field.kind) is not UNUSABLE
    assert loaded is None or may


@FAST
@given(st.sampled_from(SCALARS).flatmap(lambda target: st.tuples(st.just(target), right(target[1]))))
def test_a_right_value_arrives_by_file_and_by_variable_alike(chosen: tuple[tuple[str, Field], Any]) -> None:
    (path, field), value = chosen
    names = {at: name for name, at in environment.variables().items()}
    text = str(value).lower() if isinstance(value, bool) else str(value)
    from_file = settle(lambda: load(yaml.safe_dump(nested(path, value))))
    from_variable = settle(lambda: load("", {names[path]: text}))
    assert from_file == from_variable
    if isinstance(field.kind.type, inspect.BoolType | inspect.LiteralType):
        assert from_file is not None


@FAST
@given(st.lists(st.sampled_from(["zz", "maxRetrys", "5"]), min_size=1, unique=True), st.integers(65_536, 10**9))
def test_every_mistake_is_listed(unknown: list[str], port: int) -> None:
    tree = {"metrics": {"port": port} | dict.fromkeys(unknown, 1)}
    result = outcome(lambda: load(yaml.safe_dump(tree)))
    assert isinstance(result, ConfigError)
    assert {mistake.path for mistake in result.mistakes} == {"metrics.port", *(f"metrics.{key}" for key in unknown)}
