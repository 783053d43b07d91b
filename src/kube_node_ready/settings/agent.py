"""The settings of DaemonSet mode: the one table of flags, environment variables, and what is valid.

A flag overrides its variable. Settings of the checks that are not in the table (`services`, `dnsService`, `payload`,
`clock`, …) are set as for a worker: in its file or its JSON variable, which `settings.worker` reads.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.api.contract import VERIFIED_LABEL
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.checks.settings import is_host
from kube_node_ready.settings import worker
from kube_node_ready.settings.engine import Decoder, Field
from kube_node_ready.settings.field_types import EFFECT, LABEL, LABEL_VALUE, QUALIFIED_NAME, SERVICE_ADDRESS, SUBDOMAIN
from kube_node_ready.settings.readers import INVALID, OneOf, Reader, Seconds, Switch, TextThat, Whole
from kubekit.diagnostics import Diagnostic, DiagnosticsError
from kubekit.suggestions import did_you_mean

DRY_RUN_NODE = "dry-run-node"
_SHORTEST_INTERVAL = 1
_CLOSE = 0.85
_NOT_FOR_US = re.compile(r"KUBE.*|.*_SERVICE_.*|.*_PORT(_.*)?")
_CHECK_DEFAULTS = CheckSettings(check_timeout_seconds=3)


class Settings(Struct, frozen=True):
    checks: CheckSettings = _CHECK_DEFAULTS
    node_name: str = ""
    namespace: str = "kube-system"
    mode: str = "once"
    max_retries: int = 5
    retry_backoff: str = "exponential"
    check_interval: float = 60
    failure_threshold: int = 3
    taint_key: str = "node-ready/unverified"
    taint_value: str = "true"
    taint_effect: str = "NoSchedule"
    verified_label: str = VERIFIED_LABEL
    verified_label_value: str = "true"
    enable_metrics: bool = True
    metrics_port: int = 8080
    kubeconfig: str = ""
    kubeconfig_by_flag: bool = False
    service_host: str = ""
    service_port: int = 443
    warnings: tuple[str, ...] = ()
    """Variables that have no effect, since nothing reads them."""

    @property
    def dry_run(self) -> bool:
        return self.checks.dry_run


class _Host(Reader):
    expected = "a host name or an IP address"

    def parse(self, value: object) -> object:
        host = str(value).strip("[]")
        return host if is_host(host) else INVALID


class _NoDeletion(Switch):
    expected = (
        "false: only the controller removes nodes, within a removal budget (nodeManagement.deleteFailedNodes); "
        "a pod has no information about other nodes"
    )

    def parse(self, value: object) -> object:
        return False if super().parse(value) is False else INVALID


def _field(flag: str, reader: Reader, description: str, *, name: str | None = None, variable: str = "") -> Field:
    attribute = flag.replace("-", "_")
    name = attribute if name is None else name
    default = getattr(_CHECK_DEFAULTS, name, getattr(Settings(), name, ""))
    return Field(
        flag, reader, description, name=name, variable=variable or attribute.upper(), flag=flag, default=default
    )


FIELDS = (
    _field("node-name", SUBDOMAIN, "set the name of this pod's node (from spec.nodeName)"),
    _field("namespace", LABEL, "set this pod's namespace", variable="POD_NAMESPACE"),
    _field("mode", OneOf("once", "continuous"), "set the mode: once or continuous"),
    _field(
        "initial-timeout",
        worker.SECONDS,
        "retry failed checks quickly for this long; also the longest a check run can take",
        name="timeout_seconds",
    ),
    _field("check-timeout", worker.SECONDS, "stop each check after this long", name="check_timeout_seconds"),
    _field(
        "max-retries", Whole(0, worker.MOST_RETRIES), "retry quickly at most this many times after the first failure"
    ),
    _field(
        "retry-backoff", worker.BACKOFF, "set the backoff: exponential (1, 2, 4, … s up to 30) or linear (always 1 s)"
    ),
    _field("check-interval", worker.SECONDS, "in mode continuous, check the node once per interval"),
    _field(
        "failure-threshold", Whole(1, 100), "in mode continuous, restore the gate after this many failures in a row"
    ),
    _field(
        "dns-test-domains",
        worker.DOMAINS,
        "resolve these names, separated by commas; an IP address is a DNS server that must answer",
    ),
    _field("cluster-dns-ip", worker.ADDRESS, "query this DNS server of the cluster directly"),
    _field(
        "network-targets",
        worker.TARGETS,
        "connect to these targets, separated by commas: host:port, or an http or https URL",
    ),
    _field(
        "enable-connectivity-matrix",
        worker.SWITCH,
        "connect to a sample of ready pods on other nodes; most must be reached",
        name="connectivity_matrix",
    ),
    _field("connectivity-sample", worker.SAMPLE, "sample this many pods on other nodes, at random for each attempt"),
    _field("taint-key", QUALIFIED_NAME, "set the key of the gate, a taint"),
    _field("taint-value", LABEL_VALUE, "set the value of the gate when it is added; any value is removed"),
    _field(
        "taint-effect",
        EFFECT,
        "set the effect of the gate: NoSchedule, PreferNoSchedule or NoExecute",
    ),
    _field("verified-label", QUALIFIED_NAME, "set the label of verified nodes"),
    _field("verified-label-value", LABEL_VALUE, "set the value of that label on verified nodes"),
    _field("enable-metrics", worker.SWITCH, "serve /metrics"),
    _field("metrics-port", Whole(0, 65_535), "serve /healthz, /readyz and /metrics on this port"),
    _field("log-level", worker.LEVEL, "set the minimum level: debug, info, warn or error"),
    _field("log-format", worker.FORMAT, "set the format: json for machines, console for people"),
    _field("klog-verbosity", Whole(0, 100), "ignored; accepted for compatibility", name=""),
    _field(
        "dry-run",
        worker.SWITCH,
        "check once, change nothing, and exit (in a pod: when stopped): 0 if what ran passed, 1 if a check failed, "
        "4 if none could run",
    ),
    _field(
        "kubeconfig",
        TextThat(lambda text: text.strip(":"), "a path"),
        "use this kubeconfig; such a run is always a dry run, also in a pod",
    ),
    _field(
        "k8s-service-host",
        _Host(),
        "connect to the API server at this address (set in every pod)",
        name="service_host",
        variable="KUBERNETES_SERVICE_HOST",
    ),
    _field(
        "k8s-service-port",
        Whole(1, 65_535),
        "set the port of the API server",
        name="service_port",
        variable="KUBERNETES_SERVICE_PORT",
    ),
    _field(
        "delete-failed-node",
        _NoDeletion(),
        "ignored if false, rejected if true: only the controller removes nodes",
        name="",
    ),
)


def load(
    flags: Mapping[str, str], environ: Mapping[str, str], *, files: bool = True, known: Sequence[Diagnostic] = ()
) -> Settings:
    """Load the settings of this process, or raise one DiagnosticsError with everything that is wrong with them.

    Without `files`, none is opened: for variables that come from elsewhere, as from a cluster. `known` is what is wrong
    with the command line.
    """
    decoder = Decoder()
    values: dict[str, Any] = {}  # each reader returns what its field holds
    uncertain: set[str] = set()
    checks = _checks(environ, decoder.diagnostics, uncertain, files=files)
    for field in FIELDS:
        source, text = _written(field, flags, environ)
        if not source:
            continue
        value = decoder.read_field(field, text, source)
        if value is INVALID:
            uncertain.add(field.name)
        elif field.name:
            values[field.name] = value
            uncertain.discard(field.name)
    checks = checks._replace(**{name: values.pop(name) for name in values.keys() & set(CheckSettings._fields)})
    warnings = tuple(_near_misses(environ))
    settings = _complete(Settings(checks, kubeconfig_by_flag="kubeconfig" in flags, warnings=warnings, **values))
    violations = [violation for violation, *names in _violations(settings) if uncertain.isdisjoint(names)]
    if diagnostics := [*known, *decoder.diagnostics, *violations]:
        raise DiagnosticsError(diagnostics)
    return settings


def _written(field: Field, flags: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the strongest source of a setting and its text. A chart that has no value sets the variable to nothing."""
    if field.flag in flags:
        return f"--{field.flag}", flags[field.flag]
    text = environ.get(field.variable, "")
    return (field.variable, text) if text and not SERVICE_ADDRESS.fullmatch(text) else ("", "")


def _checks(
    environ: Mapping[str, str], diagnostics: list[Diagnostic], uncertain: set[str], *, files: bool
) -> CheckSettings:
    """Read what is set as for a worker, and add the names of fields that are invalid to the uncertain ones."""
    defaults = {"checkTimeoutSeconds": _CHECK_DEFAULTS.check_timeout_seconds}
    try:
        written = worker.written(environ) if files else worker.in_variable(environ)
        settings, invalid = worker.decode([("defaults", defaults, ""), *written])
    except DiagnosticsError as error:  # a source is not readable at all
        diagnostics.extend(error.diagnostics)
        uncertain.update(CheckSettings._fields)
        return CheckSettings()
    diagnostics.extend(invalid)
    fields = worker.TABLE.fields
    uncertain.update(fields[diagnostic.path].name for diagnostic in invalid if diagnostic.path in fields)
    return settings


def _complete(settings: Settings) -> Settings:
    name = settings.node_name or (DRY_RUN_NODE if settings.dry_run else "")
    port = settings.checks.connectivity_port or settings.metrics_port
    # With the default selector, the peers are the DaemonSet's own pods, which leave verified nodes in this mode.
    is_default = settings.checks.connectivity_selector == _CHECK_DEFAULTS.connectivity_selector
    are_expected = settings.mode != "once" or not is_default
    checks = settings.checks._replace(connectivity_port=port, are_peers_expected=are_expected)
    return replace(settings, node_name=name, checks=checks)


def _violations(settings: Settings) -> Iterator[tuple[Diagnostic, *tuple[str, ...]]]:
    """Yield what is wrong with fields together, and the names of these fields."""
    checks = settings.checks
    if not settings.node_name:
        message = "is missing; expected the node's name, which a pod has from spec.nodeName; --dry-run needs none"
        yield Diagnostic("--node-name (NODE_NAME)", message), "node_name", "dry_run"
    if checks.check_timeout_seconds > checks.timeout_seconds:
        expected = f"at most --initial-timeout (INITIAL_TIMEOUT), {checks.timeout_seconds:g}s"
        violation = _violation("--check-timeout (CHECK_TIMEOUT)", f"{checks.check_timeout_seconds:g}s", expected)
        yield violation, "check_timeout_seconds", "timeout_seconds"
    if settings.check_interval < _SHORTEST_INTERVAL:
        expected = (
            f"at least {_SHORTEST_INTERVAL}s: every check sends requests to the API server and DNS, on every node"
        )
        yield (
            _violation("--check-interval (CHECK_INTERVAL)", f"{settings.check_interval:g}s", expected),
            "check_interval",
        )
    if checks.connectivity_matrix and not checks.connectivity_port:
        violation = _violation(
            "--metrics-port (METRICS_PORT)", "0", "the port that other nodes connect to, such as 8080"
        )
        yield violation, "connectivity_matrix", "connectivity_port", "metrics_port"


def _violation(path: str, value: str, expected: str) -> Diagnostic:
    return Diagnostic(path, f"{value} is invalid; expected {expected}")


def _near_misses(environ: Mapping[str, str]) -> Iterator[str]:
    """Report variables that are probably misspelled: without it, a wrong key of a ConfigMap would go unnoticed."""
    known = [field.variable for field in FIELDS]
    beginnings = {name[:2] for name in known}
    for name in sorted(environ.keys() - set(known)):
        is_suspect = name[:2] in beginnings and not _NOT_FOR_US.fullmatch(name)
        if is_suspect and (meant := did_you_mean(name, known, cutoff=_CLOSE)):
            yield f"{name} is not read; did you mean {meant}?"


def default_text(field: Field) -> str:
    """Return the default as a flag would have it."""
    value = field.default
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}s" if isinstance(field.reader, Seconds) else str(value)
