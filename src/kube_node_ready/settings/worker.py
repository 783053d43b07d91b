"""The worker's settings: the one table of what can be set, under which names, and what is valid.

`load` reads what a worker pod has, the strongest source last: a file, one JSON variable, single variables. Standard
library only: the controller and DaemonSet mode use the same table.
"""

import json
import os

from kube_node_ready import log
from kube_node_ready.api.contract import WORKER_SETTINGS_VARIABLE
from kube_node_ready.checks.settings import MOST_TARGETS, PAYLOAD_PATH, Settings, host_and_port, is_host, url
from kube_node_ready.checks.transport import is_address
from kube_node_ready.settings.engine import Decoder, Field, Table
from kube_node_ready.settings.readers import OneOf, Percentage, Seconds, Switch, TextList, TextThat, Whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from kube_node_ready.settings.sources import Source
    from kubekit.diagnostics import Diagnostic

FILE = "/etc/kube-node-ready/worker-config.yaml"
FILE_VARIABLE = "WORKER_CONFIG_PATH"
JSON_VARIABLE = WORKER_SETTINGS_VARIABLE
MOST_RETRIES = 1000
_MOST_SAMPLES = 100
_MOST_SECONDS = 3600
_DEFAULTS = Settings()


def _is_service(text: str) -> bool:
    from kubekit.names import LABEL  # noqa: PLC0415  defaults are not read, so most runs do without

    namespace, _, name = text.partition("/")
    return LABEL.matches(namespace) and LABEL.matches(name)


def _is_selector(text: str) -> bool:
    from kubekit.names import LABEL_SELECTOR  # noqa: PLC0415  as above

    return LABEL_SELECTOR.matches(text)


def _is_path(text: str) -> bool:
    """Printable ASCII without a fragment, which is never sent."""
    return text.startswith("/") and all("!" <= letter <= "~" and letter != "#" for letter in text)


SECONDS = Seconds(_MOST_SECONDS)
SWITCH = Switch()
BACKOFF = OneOf("exponential", "linear")
LEVEL, FORMAT = OneOf(*log.LEVELS), OneOf(*log.FORMATS)
SAMPLE = Whole(2, MOST_TARGETS)
DOMAINS = TextList(is_host, "a DNS name such as example.com or the IP address of a DNS server", MOST_TARGETS)
TARGETS = TextList(
    lambda text: url(text) or host_and_port(text), "host:port or an http:// or https:// URL", MOST_TARGETS
)
ADDRESS = TextThat(lambda text: not text or is_address(text), "an IP address such as 10.96.0.10")

LOGGING = Table(
    Field("level", LEVEL, "The minimum level: debug, info, warn or error.", name="log_level", variable="LOG_LEVEL"),
    Field("format", FORMAT, "json for machines, console for people.", name="log_format", variable="LOG_FORMAT"),
    expected="a mapping with level and format",
    defaults=_DEFAULTS,
)
TABLE = Table(
    Field(
        "dnsTestDomains",
        DOMAINS,
        "Names that must resolve on the node; an IP address is a DNS server that must answer.",
        variable="DNS_TEST_DOMAINS",
    ),
    Field(
        "clusterDnsIp",
        ADDRESS,
        "The cluster's DNS server, which is also queried directly.",
        variable="CLUSTER_DNS_IP",
    ),
    Field("checkTimeoutSeconds", SECONDS, "How long each check can take.", variable="CHECK_TIMEOUT"),
    Field("timeoutSeconds", SECONDS, "How long all checks can take together."),
    Field("networkTargets", TARGETS, "What the node must reach: `host:port`, or an http or https URL."),
    Field(
        "services",
        TextList(_is_service, "namespace/name", MOST_TARGETS),
        "Services (`namespace/name`) that must have ready endpoints.",
    ),
    Field(
        "dnsService",
        TextThat(lambda text: not text or _is_service(text), 'namespace/name, or "" for none'),
        'The Service (`namespace/name`) whose ready endpoints must all answer DNS queries; "" for none.',
    ),
    Field(
        "payload",
        SWITCH,
        "Whether large requests and responses must arrive complete, as with the right MTU.",
    ),
    Field(
        "payloadPath",
        TextThat(_is_path, f"a path of the API server such as {PAYLOAD_PATH}"),
        "The path of the API server that returns this response, of at least 64 KiB.",
    ),
    Field("clock", SWITCH, "Whether the node's clock must agree with the API server's."),
    Field("maxClockSkewSeconds", SECONDS, "The largest allowed difference of the clocks."),
    Field("dryRun", SWITCH, "Run the checks, and write the report to the log only.", variable="DRY_RUN"),
    Field("logging", LOGGING, "The worker's log.", name=""),
    Field(
        "connectivityMatrix",
        SWITCH,
        "Whether most of a sample of ready pods on other nodes must be reached by TCP. "
        "With fewer than two such nodes it holds no node, and reports `not enough peers: N of 2`.",
        variable="ENABLE_CONNECTIVITY_MATRIX",
    ),
    Field(
        "connectivitySelector",
        TextThat(_is_selector, "a label selector such as app=node-agent"),
        "Which pods, by their labels, in the worker's namespace. "
        "If it is the default, the chart adds responder pods and selects those.",
    ),
    Field("connectivitySample", SAMPLE, "How many nodes are sampled, chosen at random for each attempt."),
    Field(
        "connectivityPort",
        Whole(1, 65_535),
        "The TCP port they listen on; `health.port` by default. Responder pods listen on it too.",
    ),
    Field(
        "dnsSamples",
        Whole(1, _MOST_SAMPLES),
        "How many queries are sent for each entry of `dnsTestDomains` in a node's first attempt. "
        "The endpoints of `dnsService` share as many.",
    ),
    Field(
        "dnsSamplesAfterFailure",
        Whole(1, _MOST_SAMPLES),
        "The same in every later attempt. At least `dnsSamples` queries are sent.",
    ),
    Field(
        "maxDnsLossPercent",
        Percentage(),
        "What percentage of these queries can fail. After a loss, three times as many are sent in total.",
    ),
    # The original's worker tried again by itself; here the controller does.
    Field("maxRetries", Whole(0, MOST_RETRIES), "Without effect: the controller retries.", name=""),
    Field("retryBackoff", BACKOFF, "Without effect: the controller retries.", name=""),
    Field("initialCheckTimeoutSeconds", SECONDS, "Without effect.", name=""),
    defaults=_DEFAULTS,
)
"""Every key of a worker's file."""


def load(environ: "Mapping[str, str]") -> Settings:
    """Load the settings of this process, or raise one DiagnosticsError with everything that is wrong with them."""
    return read([*written(environ), *_single_variables(environ)])


def parse(tree: "Mapping[str, object]", source: str) -> Settings:
    """Read one source, which diagnostics name."""
    return read([(source, tree, "")])


def written(environ: "Mapping[str, str]") -> "Iterator[Source]":
    """The sources that can set everything."""
    path = environ.get(FILE_VARIABLE, "")
    if path or os.access(FILE, os.F_OK):
        from kube_node_ready.settings import sources  # noqa: PLC0415  few workers have a file

        yield sources.from_file(path or FILE)
    yield from in_variable(environ)


def in_variable(environ: "Mapping[str, str]") -> "Iterator[Source]":
    if text := environ.get(JSON_VARIABLE, ""):
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError) as error:
            from kube_node_ready.settings import sources  # noqa: PLC0415  only a mistake pays for it

            raise sources.unreadable(JSON_VARIABLE, "JSON", error) from error
        if not isinstance(tree, dict):
            from kube_node_ready.settings import sources  # noqa: PLC0415  as above

            tree = sources.mapping(tree, JSON_VARIABLE)
        yield JSON_VARIABLE, tree, ""


def _single_variables(environ: "Mapping[str, str]") -> "Iterator[Source]":
    """Variables with the names of the original's DaemonSet mode."""
    for field, section in variables():
        # A chart that has no value sets the variable to nothing.
        if text := environ.get(field.variable, ""):
            yield field.variable, {section: {field.key: text}} if section else {field.key: text}, ""


def variables() -> "Iterator[tuple[Field, str]]":
    """Every field that has a variable, and the section that it is in."""
    for section, fields in (("", TABLE.fields), ("logging", LOGGING.fields)):
        for field in fields.values():
            if field.variable:
                yield field, section


def read(sources: "Iterable[Source]") -> Settings:
    """Read several sources, the strongest last. What is invalid is an error even where a stronger source overrides."""
    settings, diagnostics = decode(sources)
    if diagnostics:
        from kubekit.diagnostics import DiagnosticsError  # noqa: PLC0415  only a mistake pays for it

        raise DiagnosticsError(diagnostics)
    return settings


def decode(sources: "Iterable[Source]") -> "tuple[Settings, list[Diagnostic]]":
    """Return what is valid in several sources, and a diagnostic for everything else."""
    decoder = Decoder()
    values: dict[str, Any] = {}
    for name, tree, text in sources:
        known = len(decoder.diagnostics)
        values |= decoder.read(TABLE, tree, name)
        if text and len(decoder.diagnostics) > known:
            from kube_node_ready.settings.sources import with_lines  # noqa: PLC0415  only a mistake pays for it

            decoder.diagnostics[known:] = with_lines(decoder.diagnostics[known:], text)
    settings = _DEFAULTS._replace(**values)
    return settings, [*decoder.diagnostics, *_violations(settings)]


def _violations(settings: Settings) -> "Iterator[Diagnostic]":
    if settings.check_timeout_seconds > settings.timeout_seconds:
        from kubekit import diagnostics  # noqa: PLC0415  as above

        expected = f"at most timeoutSeconds, which all checks have together: {settings.timeout_seconds:g}"
        yield diagnostics.invalid("checkTimeoutSeconds", settings.check_timeout_seconds, expected)
