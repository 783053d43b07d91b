"""Where the worker's settings come from, weakest first: a file, one JSON variable, single variables."""

import json
import os
from collections.abc import Iterator, Mapping

from kube_node_ready.checks import files, settings
from kube_node_ready.checks.settings import Settings, SettingsError

FILE = "/etc/kube-node-ready/worker-config.yaml"
FILE_VARIABLE = "WORKER_CONFIG_PATH"
JSON_VARIABLE = "KUBE_NODE_READY_WORKER_CONFIG"
# The names of the original's DaemonSet mode.
VARIABLES: dict[str, tuple[str, ...]] = {
    "DNS_TEST_DOMAINS": ("dnsTestDomains",),
    "CLUSTER_DNS_IP": ("clusterDnsIp",),
    "CHECK_TIMEOUT": ("checkTimeoutSeconds",),
    "LOG_LEVEL": ("logging", "level"),
    "LOG_FORMAT": ("logging", "format"),
    "DRY_RUN": ("dryRun",),
    "ENABLE_CONNECTIVITY_MATRIX": ("connectivityMatrix",),
}
Source = tuple[str, Mapping[str, object]]


def read(environ: Mapping[str, str]) -> Settings:
    return settings.gather([*written(environ), *_variables(environ)])


def written(environ: Mapping[str, str]) -> Iterator[Source]:
    """The sources that can say everything."""
    path = environ.get(FILE_VARIABLE, "")
    if path or os.access(FILE, os.F_OK):
        yield path or FILE, from_file(path or FILE)
    yield from in_variable(environ)


def in_variable(environ: Mapping[str, str]) -> Iterator[Source]:
    if text := environ.get(JSON_VARIABLE, ""):
        try:
            yield JSON_VARIABLE, _mapping(json.loads(text), JSON_VARIABLE)
        except json.JSONDecodeError as why:
            raise SettingsError([f"{JSON_VARIABLE} is not JSON: {why}"]) from why


def _variables(environ: Mapping[str, str]) -> Iterator[Source]:
    for variable, (key, *inner) in VARIABLES.items():
        # A chart that has nothing to say sets the variable to nothing.
        if value := environ.get(variable, ""):
            yield variable, {key: {inner[0]: value} if inner else value}


def from_file(path: str) -> Mapping[str, object]:
    """JSON is YAML too, and much cheaper to read."""
    try:
        text = files.read(path)
    except OSError as why:
        raise SettingsError([f"{path} cannot be read: {why.strerror}"]) from why
    try:
        found = json.loads(text)
    except ValueError:
        found = _yaml(text, path)
    return _mapping(found, path)


def _yaml(text: str, path: str) -> object:
    try:
        import yaml  # noqa: PLC0415  as dear as all checks together
    except ImportError as why:
        raise SettingsError([f"{path} is not JSON, and PyYAML, which could read it as YAML, is not installed"]) from why
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as why:
        raise SettingsError([f"{path} is not YAML: {' '.join(str(why).split())}"]) from why


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError(
            [f"{where} holds {type(value).__name__} and must hold a mapping such as checkTimeoutSeconds: 10"]
        )
    return value
