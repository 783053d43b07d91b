"""The worker's settings: a closed table of what may be said, under which name, and what is right.

`load` is for one source and for whoever only wants to validate; `gather` lays several over one another.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from kube_node_ready import log
from kube_node_ready.checks import wire
from kube_node_ready.checks.record import Record
from kube_node_ready.checks.sampling import Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DNS_NAME = "kubernetes.default.svc.cluster.local"
PAYLOAD_BYTES = 64 * 1024
# Open to every authenticated caller, kept ready by the API server, and 2 MB of which we ask for a part. Not one of the
# handy documents under /openapi/v3: while one node did not receive such an answer, which is what we are looking for,
# the API server (1.36) answered nobody's questions under that path, and /openapi/v2 went on as ever.
PAYLOAD_PATH = "/openapi/v2"
MOST_TARGETS = 100
MOST_RETRIES = 1000
MOST_SAMPLES = 100
_LONGEST_WAIT = 3600.0
_ALL_PERCENT = 100
_LONGEST_SHOWN = 80
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,254}}$){_LABEL}(\.{_LABEL})*\.?", re.IGNORECASE)
_SERVICE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DURATION = re.compile(r"(?=.)(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_WHOLE = re.compile(r"[0-9]{1,9}")
_URL = re.compile(r"(https?)://(\[[^\]/@\s]+\]|[^:\[\]/?#@\s]+)(?::([0-9]{1,5}))?([/?][!-\"$-~]*)?")
_PATH = re.compile(r"/[!-\"$-~]*")  # a fragment is never sent
_SELECTOR = re.compile(r"[A-Za-z0-9_./=!,() -]{1,1000}")
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


class SettingsError(ValueError):
    """Every mistake at once, each a sentence."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("; ".join(self.mistakes))


class Settings(Record):
    dns_test_domains: tuple[str, ...] = (DNS_NAME,)
    cluster_dns_ip: str = ""
    check_timeout_seconds: float = 10
    timeout_seconds: float = 300
    network_targets: tuple[str, ...] = ()
    services: tuple[str, ...] = ("default/kubernetes", "kube-system/kube-dns")
    dns_service: str = "kube-system/kube-dns"
    payload: bool = True
    payload_path: str = PAYLOAD_PATH
    clock: bool = True
    max_clock_skew_seconds: float = 30
    log_level: str = "info"
    log_format: str = "json"
    dry_run: bool = False
    connectivity_matrix: bool = False
    connectivity_selector: str = "app=kube-node-ready,component!=worker"
    connectivity_sample: int = 5
    connectivity_port: int | None = None
    """Of whoever asks for the matrix, if not given: each mode knows where its own pods listen."""
    dns_samples: int = 24
    dns_samples_after_failure: int = 48
    max_dns_loss_percent: float = 5

    @property
    def cluster_name(self) -> str:
        """The API Service's name in full, as the first of the names to resolve tells the cluster's domain."""
        full = (name for name in self.dns_test_domains if is_api_service(name) and name.strip(".").count(".") > 2)  # noqa: PLR2004  more than kubernetes.default.svc
        return next(full, DNS_NAME)

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.dns_samples, self.max_dns_loss_percent)

    def after_failure(self) -> "Settings":
        """The settings of an attempt that follows a failed one: never fewer samples than before."""
        return self._replace(dns_samples=max(self.dns_samples, self.dns_samples_after_failure))


class Url(Record):
    scheme: str
    host: str
    port: int
    path: str


def is_api_service(name: str) -> bool:
    plain = name.rstrip(".").lower()
    return plain in ("kubernetes.default", "kubernetes.default.svc") or plain.startswith("kubernetes.default.svc.")


def url(text: str) -> Url | None:
    match = _URL.fullmatch(text)
    if not match:
        return None
    scheme, host, port, path = match.groups()
    host = host.strip("[]")
    number = int(port or (443 if scheme == "https" else 80))
    path = path or "/"
    is_right = _is_host(host) and 0 < number < 65_536  # noqa: PLR2004  as ports go
    return Url(scheme, host, number, path if path.startswith("/") else f"/{path}") if is_right else None


def host_and_port(text: str) -> tuple[str, int] | None:
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    is_right = colon and _is_host(host) and (":" in host) == is_bracketed
    return (host, int(port)) if is_right and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536 else None  # noqa: PLR2004


def _is_host(text: str) -> bool:
    return wire.is_address(text) or (bool(_HOST.fullmatch(text)) and not text.rstrip(".").rpartition(".")[2].isdigit())


# A reader turns a value into what Settings holds, or raises a ValueError that says what would be right. Strings are
# welcome everywhere, since environment variables know nothing else.


def seconds(value: object) -> float:
    number = _number(value)
    if number is None or not 0 < number <= _LONGEST_WAIT:
        raise ValueError(f'seconds above 0 and up to {_LONGEST_WAIT:.0f}, such as 10 or "10s"')
    return number


def _number(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    if _NUMBER.fullmatch(value):
        return float(value)
    match = _DURATION.fullmatch(value)
    factors = (3600, 60, 1, 0.001)
    return (
        sum(float(part or 0) * factor for part, factor in zip(match.groups(), factors, strict=True)) if match else None
    )


def percentage(value: object) -> float:
    number = None if isinstance(value, str) and not _NUMBER.fullmatch(value) else _number(value)
    if number is None or not 0 <= number < _ALL_PERCENT:
        raise ValueError(f"a percentage from 0 to below {_ALL_PERCENT}, such as 5")
    return number


def truth(value: object) -> bool:
    word = str(value).lower()
    if isinstance(value, (bool, str)) and word in _YES + _NO:
        return word in _YES
    raise ValueError("true or false")


def one_of(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if isinstance(value, str) and value.lower() in words:
            return value.lower()
        raise ValueError(" or ".join([", ".join(words[:-1]), words[-1]]))

    return read


def _text_that(is_right: Callable[[str], object], right: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if isinstance(value, str) and is_right(value):
            return value
        raise ValueError(right)

    return read


def _list_of(is_right: Callable[[str], object], right: str) -> Callable[[object], tuple[str, ...]]:
    def read(value: object) -> tuple[str, ...]:
        items = [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or len(items) > MOST_TARGETS:
            raise ValueError(f"a list of at most {MOST_TARGETS}, each {right}")
        if odd := [item for item in items if not isinstance(item, str) or not is_right(item)]:
            raise ValueError(f"a list, each {right}, which {shown(odd[0])} is not")
        return tuple(dict.fromkeys(items))

    return read


def whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, (int, str)) and _WHOLE.fullmatch(str(value)) and least <= int(value) <= most:
            return int(value)
        raise ValueError(f"a whole number from {least} to {most}")

    return read


domains = _list_of(_is_host, "a DNS name such as example.com or the IP address of a DNS server")
targets = _list_of(lambda text: url(text) or host_and_port(text), "host:port or an http:// or https:// URL")
_services = _list_of(_SERVICE.fullmatch, "namespace/name")
_service = _text_that(lambda text: not text or _SERVICE.fullmatch(text), 'namespace/name, or "" for none')
host = _text_that(_is_host, "a host name or an IP address")
address = _text_that(lambda text: not text or wire.is_address(text), "an IP address such as 10.96.0.10")
selector = _text_that(_SELECTOR.fullmatch, "a label selector such as app=node-agent")
_path = _text_that(_PATH.fullmatch, f"a path of the API server such as {PAYLOAD_PATH}")

_TABLE: dict[str, tuple[str, Callable[[object], object]]] = {
    "dnsTestDomains": ("dns_test_domains", domains),
    "clusterDnsIp": ("cluster_dns_ip", address),
    "checkTimeoutSeconds": ("check_timeout_seconds", seconds),
    "timeoutSeconds": ("timeout_seconds", seconds),
    "networkTargets": ("network_targets", targets),
    "services": ("services", _services),
    "dnsService": ("dns_service", _service),
    "payload": ("payload", truth),
    "payloadPath": ("payload_path", _path),
    "clock": ("clock", truth),
    "maxClockSkewSeconds": ("max_clock_skew_seconds", seconds),
    "dryRun": ("dry_run", truth),
    "connectivityMatrix": ("connectivity_matrix", truth),
    "connectivitySelector": ("connectivity_selector", selector),
    "connectivitySample": ("connectivity_sample", whole(1, MOST_TARGETS)),
    "connectivityPort": ("connectivity_port", whole(1, 65_535)),
    "dnsSamples": ("dns_samples", whole(1, MOST_SAMPLES)),
    "dnsSamplesAfterFailure": ("dns_samples_after_failure", whole(1, MOST_SAMPLES)),
    "maxDnsLossPercent": ("max_dns_loss_percent", percentage),
    # The original's worker tried again by itself; here the controller does.
    "maxRetries": ("", whole(0, MOST_RETRIES)),
    "retryBackoff": ("", one_of("exponential", "linear")),
    "initialCheckTimeoutSeconds": ("", seconds),
}
_LOGGING: dict[str, tuple[str, Callable[[object], object]]] = {
    "level": ("log_level", one_of(*log.LEVELS)),
    "format": ("log_format", one_of(*log.FORMATS)),
}
NAMES = frozenset({*_TABLE, "logging"})


def load(mapping: Mapping[str, object], where: str) -> Settings:
    """The settings of one source over the defaults. `where` begins every mistake's sentence."""
    return gather([(where, mapping)])


def gather(sources: Iterable[tuple[str, Mapping[str, object]]]) -> Settings:
    """The settings of several sources, the strongest last; a mistake is one even where a stronger source overrides."""
    mistakes: list[str] = []
    fields: dict[str, Any] = {}  # each reader of the table gives what its field holds
    for where, mapping in sources:
        fields |= _read(mapping, _TABLE, where, mistakes)
    settings = Settings()._replace(**fields)
    if settings.check_timeout_seconds > settings.timeout_seconds:
        mistakes.append(
            f"checkTimeoutSeconds is {settings.check_timeout_seconds:g}, which is more than the "
            f"{settings.timeout_seconds:g} of timeoutSeconds that all checks have together"
        )
    if mistakes:
        raise SettingsError(mistakes)
    return settings


def _read(
    mapping: Mapping[str, object],
    table: Mapping[str, tuple[str, Callable[[object], object]]],
    where: str,
    mistakes: list[str],
) -> dict[str, object]:
    fields: dict[str, object] = {}
    names = [*table, "logging"] if table is _TABLE else [*table]
    for key, value in mapping.items():
        if key not in names:
            mistakes.append(f"{where}: {shown(key)} is unknown{_nearest(key, names)}")
        elif value is None:
            continue
        elif key in table:
            field, reader = table[key]
            try:
                fields[field] = reader(value)
            except ValueError as right:
                mistakes.append(f"{where}: {key} is {shown(value)}, and must be {right}")
        elif isinstance(value, Mapping):
            fields |= _read(value, _LOGGING, f"{where}: logging", mistakes)
        else:
            mistakes.append(f"{where}: logging is {shown(value)}, and must be a mapping with level and format")
    fields.pop("", None)
    return fields


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _nearest(key: object, names: list[str]) -> str:
    import difflib  # noqa: PLC0415  only those who mistype pay for it

    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(key).lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]}?" if near else f"; there are {', '.join(sorted(names))}"
