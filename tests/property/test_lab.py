"""What must hold for every input."""

import ipaddress
import json
import tempfile
from itertools import pairwise
from pathlib import Path

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from lab import images, network, runs, simulated_stages
from lab.cli import _taint
from lab.network import Network

slots = st.integers(0, runs.SLOTS - 1)
names = st.from_regex(r"[a-z]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)


def a_network(slot: int) -> Network:
    return Network(Path(f"/runs/{slot}"), slot)


@given(slots, slots)
def test_runs_never_share_an_address_or_a_link(one: int, other: int) -> None:
    assume(one != other)
    here, there = a_network(one), a_network(other)
    assert not ipaddress.ip_network(here.pods).overlaps(ipaddress.ip_network(there.pods))
    assert here.gateway != there.gateway
    assert here.bridge != there.bridge
    assert not set(here.port_range) & set(there.port_range)


@given(slots, st.integers(1, 200))
def test_a_runs_networks_do_not_overlap_and_its_links_have_legal_names(slot: int, ordinal: int) -> None:
    here = a_network(slot)
    nodes = ipaddress.ip_network(f"{here.gateway}/24", strict=False)
    assert ipaddress.ip_address(here.node_address(ordinal)) in nodes
    apart = sorted([nodes, ipaddress.ip_network(here.pods), ipaddress.ip_network(network.SERVICES)])
    assert not any(one.overlaps(other) for one, other in pairwise(apart))
    assert len(here.cable(ordinal)) <= 15


@given(st.dictionaries(names, st.binary(max_size=100), min_size=1, max_size=4))
def test_an_image_depends_on_its_content_alone(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for number, content in enumerate(files.values()):
            (folder / str(number)).write_bytes(content)
        placed = {f"/{name}": folder / str(number) for number, name in enumerate(files)}
        turned = dict(reversed(placed.items()))
        one = images.write(folder / "one.tar", "lab.local/x:1", placed, ["/x"])
        other = images.write(folder / "other.tar", "lab.local/x:1", turned, ["/x"])
        assert one.read_bytes() == other.read_bytes()


@given(st.text(max_size=50), st.integers(0, 255), names)
def test_a_verdicts_message_cannot_break_its_stage(words: str, code: int, prefix: str) -> None:
    """The template holds the words as one literal, whatever braces and quotes are in them."""
    for verdict in (simulated_stages.fails(words, exit_code=code), simulated_stages.never_starts(message=words)):
        for stage in simulated_stages.of_group(prefix, verdict):
            template = stage["spec"]["next"]["statusTemplate"]
            literal = json.dumps(words, ensure_ascii=False)
            plain = template.replace("{{ range .spec.containers }}", "").replace("{{ end }}", "")
            plain = plain.replace(f"{{{{ {literal} | Quote }}}}", '"the words"')
            plain = (
                plain.replace("{{ Now | Quote }}", '"now"')
                .replace("{{ .name | Quote }}", "n")
                .replace("{{ .image | Quote }}", "i")
            )
            assert isinstance(yaml.safe_load(plain.replace('{{ "ImagePullBackOff" | Quote }}', "r")), dict)


@given(names, names | st.just(""), st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]))
def test_a_taint_round_trips(key: str, value: str, effect: str) -> None:
    taint = _taint(f"{key}={value}:{effect}" if value else f"{key}:{effect}")
    assert (taint.key, taint.value, taint.effect) == (key, value, effect)
