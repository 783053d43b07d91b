"""Whatever is written, a configuration comes out or every error is named."""

import string
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kube_node_ready.settings import config
from kube_node_ready.settings.config import Config
from kube_node_ready.settings.controller import CONFIG
from kube_node_ready.settings.engine import Field
from kube_node_ready.settings.readers import INVALID, Boolean, Choice, Duration, Number, Plain
from kube_node_ready.settings.structs import Section, is_scalar, leaves, table
from kubekit.diagnostics import DiagnosticsError
from tests.support.configs import load

FAST = settings(max_examples=300)
LEAVES = list(leaves(CONFIG))
SCALARS = [(path, field) for path, _, field in LEAVES if is_scalar(field) and not isinstance(field.reader, Plain)]
PATHS = [path for path, _, _ in LEAVES]

ODD = (
    """null ~ yes no on off true 0 -1 1e3 1e99 .inf .nan 010 0x10 1_000 1:30 15s 1m30s 50m 64Mi a/b a,b [] {} '' \\t"""
)
odd_texts = st.sampled_from([*ODD.split(), "", "\t", " "]) | st.text(max_size=8)
keys = (
    st.sampled_from(sorted({key for section in Section.__subclasses__() for key in table(section).fields})) | odd_texts
)
scalars = odd_texts | st.none() | st.booleans() | st.integers() | st.floats()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=8
)


def outcome(loading: Callable[[], Config]) -> DiagnosticsError | Config:
    try:
        return loading()
    except DiagnosticsError as error:
        return error


def loaded_or_rejected(loading: Callable[[], Config]) -> Config | None:
    """The configuration, or None when it was rejected as it should be: one line per diagnostic."""
    result = outcome(loading)
    if isinstance(result, Config):
        return result
    lines = result.listed("configuration").splitlines()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == (1 if len(result.diagnostics) == 1 else len(result.diagnostics) + 1) > 0
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
    """Values that the field can have."""
    match field.reader:
        case Boolean():
            return st.booleans()
        case Number(least=least, most=most, whole=True):
            return st.integers(least, most)
        case Number(least=least, most=most, above=above):
            return st.integers(least * 1000 + above, most * 1000).map(lambda thousandths: thousandths / 1000)
        case Choice(words=words):
            return st.sampled_from(words)
        case Duration():
            return st.integers(1, 10_000).map(lambda ms: f"{ms}ms")
        case _:
            return st.just(field.default)


@FAST
@given(st.text(alphabet=string.printable + "é\x00\x85\ufeff🙂", max_size=200))
def test_any_text_is_a_configuration_or_errors(text: str) -> None:
    loaded_or_rejected(lambda: load(text))


@FAST
@given(
    st.lists(
        st.sampled_from([*"{}[]:,-?&*!|>'\"%@`#\t\n ", "worker", "<<", "&a", "*a", "- ", ": ", "!!str", "---\n"]),
        max_size=40,
    )
)
def test_any_yaml_punctuation_is_a_configuration_or_errors(marks: list[str]) -> None:
    loaded_or_rejected(lambda: load("".join(marks)))


@FAST
@given(st.binary(max_size=100))
def test_any_bytes_are_a_configuration_or_errors(content: bytes) -> None:
    loaded_or_rejected(lambda: load(content))


@FAST
@given(st.lists(st.tuples(st.sampled_from(PATHS) | odd_texts, values), max_size=4), st.booleans())
def test_any_value_of_any_field_is_accepted_or_reported(written: list[tuple[str, object]], wrapped: bool) -> None:  # noqa: FBT001
    tree: dict[str, Any] = {}
    for path, value in written:
        tree = merged(tree, nested(path, value))
    loaded_or_rejected(lambda: load(yaml.safe_dump({"controller": {"config": tree}} if wrapped else tree)))


@FAST
@given(st.dictionaries(st.sampled_from([*config.variables(), *config.short_variables(), "POD_NAMESPACE"]), odd_texts))
def test_any_environment_is_accepted_or_reported(variables: dict[str, str]) -> None:
    loaded_or_rejected(lambda: load("", variables))


@FAST
@given(st.dictionaries(st.sampled_from([flag.name for flag in config.flags()]) | odd_texts, odd_texts))
@example({"text": "null", "variables": "null"})
def test_any_flags_are_accepted_or_reported(flags: dict[str, str]) -> None:
    loaded_or_rejected(lambda: load("", {}, **flags))


@FAST
@given(st.sampled_from(SCALARS), odd_texts)
def test_accepted_values_are_valid_for_their_field(target: tuple[str, Field], text: str) -> None:
    path, field = target
    loaded = loaded_or_rejected(lambda: load(yaml.safe_dump(nested(path, text))))
    may = text == field.default or not text or field.reader.parse(text) is not INVALID
    assert loaded is None or may


@FAST
@given(st.sampled_from(SCALARS).flatmap(lambda target: st.tuples(st.just(target), right(target[1]))))
def test_files_and_variables_give_the_same_value(chosen: tuple[tuple[str, Field], Any]) -> None:
    (path, field), value = chosen
    names = {at: name for name, at in config.variables().items()}
    text = str(value).lower() if isinstance(value, bool) else str(value)
    from_file = loaded_or_rejected(lambda: load(yaml.safe_dump(nested(path, value))))
    from_variable = loaded_or_rejected(lambda: load("", {names[path]: text}))
    assert from_file == from_variable
    if isinstance(field.reader, Boolean | Choice):
        assert from_file is not None


@FAST
@given(st.lists(st.sampled_from(["zz", "maxRetrys", "5"]), min_size=1, unique=True), st.integers(65_536, 10**9))
def test_every_error_is_listed(unknown: list[str], port: int) -> None:
    tree = {"metrics": {"port": port} | dict.fromkeys(unknown, 1)}
    result = outcome(lambda: load(yaml.safe_dump(tree)))
    assert isinstance(result, DiagnosticsError)
    assert {diagnostic.path for diagnostic in result.diagnostics} == {
        "metrics.port",
        *(f"metrics.{key}" for key in unknown),
    }
