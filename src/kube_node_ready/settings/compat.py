"""Files and flags of other versions: Helm's wrapper, the flat section of the Go version, the flags of zap."""

import re
from collections.abc import Iterable, Iterator, Mapping

from kube_node_ready.settings.controller import CONFIG
from kube_node_ready.settings.flags import Flag
from kube_node_ready.settings.structs import leaves
from kubekit import yaml_nodes
from kubekit.diagnostics import Diagnostic, Location, invalid, join_path, quoted, unknown
from kubekit.suggestions import did_you_mean
from kubekit.yaml_nodes import Node, Scalar, Sequence, is_null

RENAMED_KEYS = {
    "checkInterval": "reconciliation.reverifyIntervalSeconds",
    "checkTimeout": "worker.checkTimeoutSeconds",
    "clusterDNSIP": "worker.clusterDnsIp",
    "deleteFailedNode": "nodeManagement.deleteFailedNodes",
    "dnsTestDomains": "worker.dnsTestDomains",
    "enableConnectivityMatrix": "worker.connectivityMatrix",
    "enableMetrics": "metrics.enabled",
    "failureThreshold": "reconciliation.reverifyFailureThreshold",
    "initialTimeout": "worker.timeoutSeconds",
    "logFormat": "logging.format",
    "logLevel": "logging.level",
    "maxRetries": "reconciliation.maxRetries",
    "metricsPort": "metrics.port",
    "retryBackoff": "reconciliation.retryBackoff",
    "taintEffect": "nodeManagement.taints[0].effect",
    "taintKey": "nodeManagement.taints[0].key",
    "taintValue": "nodeManagement.taints[0].value",
    "verifiedLabel": "nodeManagement.verifiedLabel.key",
    "verifiedLabelValue": "nodeManagement.verifiedLabel.value",
}
"""Keys of the flat `config:` section that older versions read, and where the same is set now."""

WITHOUT_EFFECT = frozenset({"zap-stacktrace-level", "zap-time-encoding"})
_DEBUG_VERBOSITY = 4
_PORT_OF_ALL = "a port of every address such as :8080"
_PORT_OR_NONE = f"{_PORT_OF_ALL}, or 0 for no metrics"
_SWITCH = "true or false"
_NUMBER = "a whole number"
FLAGS = (
    Flag("metrics-bind-address", ":PORT", "set metrics.port; 0 disables metrics", _PORT_OR_NONE),
    Flag("health-probe-bind-address", ":PORT", "set health.port", _PORT_OF_ALL),
    Flag(
        "zap-log-level",
        "LEVEL",
        "set the log level, like --log-level; a number means debug, panic means error",
        "debug, info, warn, error, panic or a number",
    ),
    Flag("zap-encoder", "FORMAT", "set the log format, like --log-format", "json or console"),
    Flag("zap-devel", "true|false", "log like with --log-level=debug --log-format=console", _SWITCH, is_switch=True),
    Flag("v", "N", f"set the verbosity; {_DEBUG_VERBOSITY} or more is like --log-level=debug", _NUMBER, short="v"),
    Flag("zap-stacktrace-level", "LEVEL", "ignored; accepted for compatibility", "a level"),
    Flag("zap-time-encoding", "FORMAT", "ignored; accepted for compatibility", "a format"),
)
_ADDRESS = re.compile(r"(?P<host>.*):(?P<port>[0-9]{1,5})")
_EVERYWHERE = ("", "0.0.0.0", "[::]")  # noqa: S104  names for what the controller does anyway


def normalize(root: yaml_nodes.Mapping, diagnostics: list[Diagnostic]) -> yaml_nodes.Mapping:
    """Return the tree in the shape of the configuration's table."""
    return _named_secrets(_without_flat_section(_unwrapped(root, diagnostics), diagnostics))


def _unwrapped(root: yaml_nodes.Mapping, diagnostics: list[Diagnostic]) -> yaml_nodes.Mapping:
    """`controller: {config: …}`, as in Helm values."""
    wrapper = root.get("controller")
    if not isinstance(wrapper, yaml_nodes.Mapping) or "config" not in wrapper:
        return root
    for key, node in root.items():
        if key != "controller":
            message = "unknown key beside `controller:`; move it into controller.config"
            diagnostics.append(Diagnostic(key, message, node.location))
    for key, node in wrapper.items():
        if key != "config":
            message = "unknown key; it is a value of the Helm chart, and only controller.config is read here"
            diagnostics.append(Diagnostic(join_path("controller", key), message, node.location))
    config = wrapper["config"]
    if isinstance(config, yaml_nodes.Mapping):
        return config
    if not is_null(config):
        diagnostics.append(invalid("controller.config", config, "a mapping", config.location))
    return yaml_nodes.Mapping({})


def _without_flat_section(root: yaml_nodes.Mapping, diagnostics: list[Diagnostic]) -> yaml_nodes.Mapping:
    flat = root.get("config")
    if not isinstance(flat, yaml_nodes.Mapping):
        return root
    for key, node in flat.items():
        path = join_path("config", key)
        if key in RENAMED_KEYS:
            message = f"is renamed; set {RENAMED_KEYS[key]}{_value(node)} instead"
            diagnostics.append(Diagnostic(path, message, node.location))
        else:
            meant = suggest(key, RENAMED_KEYS, "config")
            diagnostics.append(unknown("key", path, meant, RENAMED_KEYS, node.location))
    return yaml_nodes.Mapping({key: node for key, node in root.items() if key != "config"}, root.location)


def _value(node: Node) -> str:
    if not isinstance(node, Scalar):
        return ""
    seconds = node.removesuffix("s") if node[:-1].isdigit() else ""
    return f" to {seconds or quoted(node)}"


def _named_secrets(root: yaml_nodes.Mapping) -> yaml_nodes.Mapping:
    """Secrets by name, which can also be mappings as in a pod."""
    worker = root.get("worker")
    secrets = worker.get("imagePullSecrets") if isinstance(worker, yaml_nodes.Mapping) else None
    if not isinstance(worker, yaml_nodes.Mapping) or not isinstance(secrets, Sequence):
        return root
    named = Sequence([_name_in(item) for item in secrets], secrets.location)
    return root.with_entry("worker", worker.with_entry("imagePullSecrets", named))


def _name_in(item: Node) -> Node:
    return item["name"] if isinstance(item, yaml_nodes.Mapping) and item.keys() == {"name"} else item


def suggest(key: str, names: Iterable[str], path: str) -> str | None:
    """Return what was probably meant by an unknown key: a similar one, or the same one in another section."""
    by_letters = {_letters(name): name for name in sorted(names)}
    return (
        by_letters.get(_letters(key))
        or _elsewhere(key, path)
        or did_you_mean(key, by_letters.values(), normalize=_letters)
    )


def _elsewhere(key: str, path: str) -> str | None:
    if key in RENAMED_KEYS and not RENAMED_KEYS[key].startswith(f"{path}."):
        return RENAMED_KEYS[key]
    places = [at for at, _, _ in leaves(CONFIG) if at.rpartition(".")[2] == key]
    return places[0] if len(places) == 1 else None


def _letters(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def from_flags(texts: Mapping[str, str], diagnostics: list[Diagnostic]) -> Iterator[tuple[str, Scalar]]:
    """Yield the fields that flags of controller-runtime set, the strongest last."""
    yield from _development(texts, diagnostics)
    yield from _verbosity(texts, diagnostics)
    if "zap-log-level" in texts:
        level = texts["zap-log-level"]
        known = "debug" if level.isdecimal() else {"panic": "error"}.get(level, level)
        yield "logging.level", at_flag("zap-log-level", known)
    if "zap-encoder" in texts:
        yield "logging.format", at_flag("zap-encoder", texts["zap-encoder"])
    for flag, section in (("metrics-bind-address", "metrics"), ("health-probe-bind-address", "health")):
        if flag in texts:
            yield from _port(flag, section, texts[flag], diagnostics)


def _development(texts: Mapping[str, str], diagnostics: list[Diagnostic]) -> Iterator[tuple[str, Scalar]]:
    text = texts.get("zap-devel", "false")
    if text == "true":
        yield "logging.level", at_flag("zap-devel", "debug")
        yield "logging.format", at_flag("zap-devel", "console")
    elif text != "false":
        diagnostics.append(invalid("--zap-devel", text, _SWITCH))


def _verbosity(texts: Mapping[str, str], diagnostics: list[Diagnostic]) -> Iterator[tuple[str, Scalar]]:
    text = texts.get("v", "0")
    if not re.fullmatch(r"[0-9]{1,9}", text):
        diagnostics.append(invalid("-v", text, _NUMBER))
    elif int(text) >= _DEBUG_VERBOSITY:
        yield "logging.level", at_flag("v", "debug")


def _port(flag: str, section: str, text: str, diagnostics: list[Diagnostic]) -> Iterator[tuple[str, Scalar]]:
    if text == "0" and section == "metrics":
        yield "metrics.enabled", at_flag(flag, "false")
    elif (match := _ADDRESS.fullmatch(text)) and match["host"] in _EVERYWHERE:
        yield f"{section}.port", at_flag(flag, match["port"])
    else:
        # To listen on every address although one was requested would expose more than intended.
        diagnostics.append(invalid(f"--{flag}", text, _PORT_OR_NONE if section == "metrics" else _PORT_OF_ALL))


def at_flag(flag: str, text: str) -> Scalar:
    return Scalar(text, Location(f"--{flag}" if len(flag) > 1 else f"-{flag}"), quoted=True)
