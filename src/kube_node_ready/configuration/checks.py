"""The worker's own settings, which stand in the `worker` section too. The worker's code says what is right."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kube_node_ready.checks import settings
from kube_node_ready.configuration.document import Table
from kube_node_ready.configuration.mistakes import Mistake, within
from kube_node_ready.configuration.scalars import plain

ABOUT: Mapping[str, str] = {
    "dnsTestDomains": "Names that must resolve on the node; an IP address is a DNS server that must answer.",
    "clusterDnsIp": "The cluster's DNS server, to be asked directly as well.",
    "checkTimeoutSeconds": "How long each check may take.",
    "networkTargets": "What the node must reach: `host:port`, or an http or https URL.",
    "services": "Services (`namespace/name`) that must have ready endpoints.",
    "dnsService": 'The Service (`namespace/name`) whose every ready endpoint must answer DNS; "" asks none.',
    "payload": "Whether a large answer must arrive whole, which it does not where the MTU is wrong.",
    "payloadPath": "The path of the API server that gives this answer, of at least 64 KiB.",
    "clock": "Whether the node's clock must agree with the API server's.",
    "maxClockSkewSeconds": "By how much the clocks may differ.",
    "connectivityMatrix": "Whether most of a sample of pods on other nodes must be reached by TCP.",
    "connectivitySelector": "Which pods, by their labels, in the worker's namespace: the controller's by default.",
    "connectivitySample": "How many of them a node tries.",
    "connectivityPort": "The port they listen on; that of `health` by default.",
    "dnsSamples": "How many times each DNS name is asked for, and each DNS server is asked, in a node's first attempt.",
    "dnsSamplesAfterFailure": "The same in every later attempt. At least as many as `dnsSamples` are asked.",
    "maxDnsLossPercent": "What percentage of these queries can fail. After a loss, three times as many are sent.",
}
"""Not all of `settings.NAMES`: the rest is said elsewhere in the controller's configuration."""

NAMES = frozenset(ABOUT)
_LONGEST = 3600


def variable(name: str) -> str:
    """`dnsTestDomains` -> dns_test_domains."""
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def default(name: str) -> object:
    return _jsonable(getattr(settings.Settings(), variable(name)))


def must_be(name: str) -> str:
    """What is allowed, in the worker's own words: asked by a value that never is."""
    try:
        settings.load({name: {}}, "")
    except settings.SettingsError as why:
        return str(why).partition(" must be ")[2]
    raise AssertionError(name)


def take(root: Table, mistakes: list[Mistake]) -> tuple[Table, dict[str, Any]]:
    """The tree without the worker's own settings, and those that were given."""
    section = root.entries.get("worker")
    if not isinstance(section, Table):
        return root, {}
    given: dict[str, Any] = {}
    for name in sorted(NAMES & section.entries.keys()):
        if (value := plain(section.entries[name])) is None:
            continue
        try:
            # One at a time, so that each mistake has its line; together they are judged with the rules.
            loaded = settings.load({name: value, "timeoutSeconds": _LONGEST}, "worker")
        except settings.SettingsError as why:
            where = section.entries[name].where
            reasons = (said.removeprefix(f"worker: {name} ") for said in why.mistakes)
            mistakes += [Mistake(within("worker", name), reason, where) for reason in reasons]
        else:
            given[name] = _jsonable(getattr(loaded, variable(name)))
    others = {key: node for key, node in section.entries.items() if key not in NAMES}
    return replace(root, entries=root.entries | {"worker": replace(section, entries=others)}), given


def _jsonable(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
