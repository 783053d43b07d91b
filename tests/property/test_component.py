"""Whatever is written, a manifest comes out or every mistake is named; whatever is valid, Kubernetes knows."""

import copy
import functools
import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes_validate import utils

from kubekit.diagnostics import Diagnostic
from kubernetes_daemonset.manifest import reader
from kubernetes_daemonset.manifest.dump import manifest_yaml, to_json, to_yaml
from kubernetes_daemonset.render import resources
from kubernetes_daemonset.validation import validate
from tests.support.manifests.builders import SOURCE, Json, a_manifest, as_yaml, objects_of, read
from tests.support.manifests.strategies import Draw, manifests, spellings, stack_inputs, texts
from tests.support.manifests.texts import WHOLE

FAST: Final = settings(max_examples=300)
SOME: Final = settings(max_examples=100)
RICH: Final = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],  # a manifest is a large thing to draw
)
NEWEST: Final = kubernetes_validate.latest_version()
TREES: Final = [yaml.safe_load(WHOLE), yaml.safe_load(WHOLE)["target"], a_manifest()]


@pytest.fixture(scope="module", autouse=True)
def each_once() -> Iterator[None]:
    """What is slow, be it on purpose or not, is done once for the same input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "scrypt", functools.cache(hashlib.scrypt))
        patch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))
        yield


def settle(content: str | bytes) -> None:
    """A text is a manifest, or is refused as it should be: in sentences, each with its line."""
    for one in reader.load(content if isinstance(content, bytes) else content.encode(), SOURCE):
        found = validate.validate(one)
        assert all(str(diagnostic).isprintable() and str(diagnostic).startswith(SOURCE) for diagnostic in found)
        assert set(one.diagnostics) <= set(found)
        assert all(diagnostic.location.line for diagnostic in set(found) - set(one.diagnostics))
        if not validate.errors(found):
            json.dumps(resources.render(one.input))


# --- anything ---


@FAST
@given(st.binary(max_size=100))
def test_any_bytes_are_valid_or_have_diagnostics(content: bytes) -> None:
    settle(content)


@FAST
@given(st.text(max_size=200))
def test_any_text_is_valid_or_has_diagnostics(text: str) -> None:
    settle(text.encode("utf-8", "surrogatepass"))


MARKS: Final = [
    *"{}[]:,-?&*!|>'\"%@`#\t\n ",
    "spec",
    "target",
    "<<",
    "&a",
    "*a",
    "- ",
    ": ",
    "!!str",
    "---\n",
    "metadata: ",
]


@FAST
@given(st.lists(st.sampled_from(MARKS), max_size=40))
def test_any_yaml_punctuation_is_valid_or_has_diagnostics(marks: list[str]) -> None:
    settle("".join(marks))


@FAST
@given(
    st.sampled_from([WHOLE, as_yaml(a_manifest())]),
    st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 20), st.sampled_from(MARKS) | texts), min_size=1, max_size=4
    ),
)
def test_a_manifest_with_typos_is_valid_or_has_diagnostics(text: str, slips: list[tuple[int, int, str]]) -> None:
    for at, length, instead in slips:
        location = at % (len(text) + 1)
        text = text[:location] + instead + text[location + length :]
    settle(text)


@FAST
@given(
    st.sampled_from([WHOLE.encode(), WHOLE.encode("utf-16")]),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=4)), min_size=1, max_size=3),
)
def test_a_manifest_with_broken_bytes_is_valid_or_has_diagnostics(
    content: bytes, breaks: list[tuple[int, bytes]]
) -> None:
    for at, instead in breaks:
        location = at % len(content)
        content = content[:location] + instead + content[location + len(instead) :]
    settle(content)


def names_of(message: Any, seen: set[str]) -> Iterator[str]:  # noqa: ANN401  a descriptor
    if message.full_name not in seen:
        seen.add(message.full_name)
        for field in message.fields:
            yield from (field.name, field.json_name)
            if field.message_type:
                yield from names_of(field.message_type, seen)


NAMES: Final = sorted(set(names_of(read(WHOLE).input.DESCRIPTOR, set())))
odd = st.sampled_from(
    [
        "",
        " ",
        "~",
        "yes",
        "0644",
        "0o9",
        "-0",
        "1e3",
        ".nan",
        "9" * 30,
        "1" * 5000,
        "$(A)",
        "/..",
        "..",
        "a:b",
        "\x1b",
        "é",
    ]
)
scalars = odd | texts | st.none() | st.booleans() | st.integers() | st.floats() | st.dates()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | odd | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@FAST
@given(st.dictionaries(st.sampled_from(["target", "spec", "metadata", "kind", "apiVersion", "status"]), values))
def test_any_structure_is_valid_or_has_diagnostics(tree: Json) -> None:
    settle(yaml.dump(tree))


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401  whatever YAML holds
    """Every place in a tree: what it is in, and its key or index there."""
    items: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    for key, value in items:
        yield tree, key
        yield from nodes(value)


@st.composite
def mistaken(draw: Draw) -> Json:
    """A valid manifest in which a few places hold something else."""
    tree: Json = copy.deepcopy(draw(st.sampled_from(TREES)))
    for _ in range(draw(st.integers(1, 4))):
        locations = list(nodes(tree))
        inside, key = locations[draw(st.integers(0, len(locations) - 1))]
        change = draw(st.sampled_from(["replace", "remove", "rename", "move"]))
        if change == "replace":
            inside[key] = draw(values)
        elif change == "remove":
            del inside[key]
        elif change == "rename" and isinstance(inside, dict):
            inside[draw(st.sampled_from(NAMES) | odd)] = inside.pop(key)
        else:
            other, there = locations[draw(st.integers(0, len(locations) - 1))]
            inside[key] = copy.deepcopy(other[there]) if isinstance(other, dict) and there in other else None
        if not tree:
            break
    return tree


@FAST
@given(mistaken())
def test_a_manifest_with_a_few_errors_is_valid_or_has_diagnostics(tree: Json) -> None:
    settle(yaml.dump(tree, Dumper=yaml.CSafeDumper))


def texts_of(tree: Json) -> tuple[set[Diagnostic], set[Diagnostic]]:
    """What could not be read, and all that is said."""
    (one,) = reader.load(as_yaml(tree).encode(), SOURCE)
    return set(one.diagnostics), set(validate.validate(one))


@SOME
@given(st.integers(0, len(list(nodes(TREES[0]))) - 1), st.booleans())
def test_unreadable_parts_of_a_valid_manifest_cause_no_further_errors(location: int, misspelt: bool) -> None:  # noqa: FBT001
    tree = copy.deepcopy(TREES[0])
    inside, key = list(nodes(tree))[location]
    if misspelt and isinstance(inside, dict):
        inside[f"{key}x"] = inside.pop(key)
    else:
        inside[key] = [[]]
    unreadable, everything = texts_of(tree)
    # If all could be read, it is a name or a text of the user's that is another now.
    assert not unreadable or not validate.errors(everything - unreadable)


# --- what is valid ---


@RICH
@given(stack_inputs())
def test_any_valid_manifest_renders_to_valid_objects(tree: Json) -> None:
    for one in objects_of(read(as_yaml(tree))):
        kubernetes_validate.validate(one, NEWEST, strict=True)


@RICH
@given(manifests().flatmap(lambda tree: st.tuples(st.just(tree), spellings(tree))))
def test_a_manifest_means_the_same_in_every_dialect_and_renders_to_the_same_bytes(trees: tuple[Json, Json]) -> None:
    one, other = (read(as_yaml(tree)).input for tree in trees)
    assert one == other
    assert json.dumps(resources.render(one)) == json.dumps(resources.render(other))


@RICH
@given(stack_inputs())
def test_a_valid_manifest_survives_the_wire(tree: Json) -> None:
    given_input = read(as_yaml(tree)).input
    again = type(given_input).FromString(given_input.SerializeToString())
    assert resources.render(again) == resources.render(given_input)


@RICH
@given(manifests())
def test_what_is_rendered_belongs_together(tree: Json) -> None:
    """Names that objects call each other by are names of objects that are made, or that the manifest says are there."""
    loaded = read(as_yaml(tree))
    objects = objects_of(loaded)
    made = {(one["kind"], one["metadata"]["name"]) for one in objects}
    assert len(made) == len(objects)
    *_, daemon_set = objects
    template = daemon_set["spec"]["template"]
    assert daemon_set["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    pod = template["spec"]
    volumes = [one["name"] for one in pod.get("volumes", [])]
    assert len(set(volumes)) == len(volumes)
    containers = [*pod["containers"], *pod.get("initContainers", [])]
    mounted = {mount["name"] for one in containers for mount in one.get("volumeMounts", [])}
    assert mounted == set(volumes)
    own = f"{loaded.manifest.metadata.name}-env-secrets"
    used = {
        variable["valueFrom"]["secretKeyRef"]["name"]
        for variable in pod["containers"][0]["env"]
        if "secretKeyRef" in variable.get("valueFrom", {})
    }
    assert (("Secret", own) in made) == (own in used)


@RICH
@given(stack_inputs())
def test_what_is_dumped_reads_as_the_same_message(tree: Json) -> None:
    once = read(as_yaml(tree)).input
    assert read(to_yaml(to_json(once))).input == once
    assert read(manifest_yaml(once.target)).manifest == once.target
