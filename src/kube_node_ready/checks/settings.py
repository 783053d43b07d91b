"""Parameters of the checks: names, targets, Services, timeouts. `settings.worker` reads them."""

import re

from kube_node_ready.checks import transport
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.checks.sampling import Sampling

DNS_NAME = "kubernetes.default.svc.cluster.local"
PAYLOAD_BYTES = 64 * 1024
# Every authenticated client can read it, the API server keeps it ready, and it has 2 MB, of which a part is requested.
# The smaller documents under /openapi/v3 are not suitable: while one node does not receive such a response, which is
# what the check must find, the API server (1.36) blocks all requests under that path, but not those for /openapi/v2.
PAYLOAD_PATH = "/openapi/v2"
MOST_TARGETS = 100
_API_CONNECTIONS, _API_CONNECTIONS_AFTER_FAILURE = 12, 24
# The last four are what a regular expression takes for letters of a to z in any case.
_LETTERS = frozenset("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz\u0130\u0131\u017f\u212a")
_LONGEST_NAME, _LONGEST_LABEL = 254, 63
_URL = r"(https?)://(\[[^\]/@\s]+\]|[^:\[\]/?#@\s]+)(?::([0-9]{1,5}))?([/?][!-\"$-~]*)?"


class Settings(FastTuple):
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
    """The port of the peers. None: each mode knows where the peers of its default selector listen."""
    are_peers_expected: bool = True
    """False where no pod that the default selector selects stays on a verified node."""
    dns_samples: int = 24
    dns_samples_after_failure: int = 48
    max_dns_loss_percent: float = 5
    is_after_failure: bool = False

    @property
    def cluster_name(self) -> str:
        """The API Service's name in full, as the first of the names to resolve shows the cluster's domain."""
        full = (name for name in self.dns_test_domains if is_api_service(name) and name.strip(".").count(".") > 2)  # noqa: PLR2004  more than kubernetes.default.svc
        return next(full, DNS_NAME)

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.dns_samples, self.max_dns_loss_percent, over_time=self.is_after_failure)

    @property
    def api_connections(self) -> int:
        """How many connections to the API Service an attempt makes: with one of three API servers out of reach, the
        first attempt passes with (2/3)^12 = 0.8 %, and a later one with (2/3)^24 = 0.006 %.
        """
        return _API_CONNECTIONS_AFTER_FAILURE if self.is_after_failure else _API_CONNECTIONS

    def after_failure(self) -> "Settings":
        """The settings of an attempt that follows a failed one: never fewer samples than before, over a longer time."""
        samples = max(self.dns_samples, self.dns_samples_after_failure)
        return self._replace(dns_samples=samples, is_after_failure=True)


class Url(FastTuple):
    scheme: str
    host: str
    port: int
    path: str


def is_api_service(name: str) -> bool:
    plain = name.rstrip(".").lower()
    return plain in ("kubernetes.default", "kubernetes.default.svc") or plain.startswith("kubernetes.default.svc.")


def url(text: str) -> Url | None:
    match = re.fullmatch(_URL, text)
    if not match:
        return None
    scheme, host, port, path = match.groups()
    host = host.strip("[]")
    number = int(port or (443 if scheme == "https" else 80))
    path = path or "/"
    is_right = is_host(host) and 0 < number < 65_536  # noqa: PLR2004  as ports go
    return Url(scheme, host, number, path if path.startswith("/") else f"/{path}") if is_right else None


def host_and_port(text: str) -> tuple[str, int] | None:
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    is_right = colon and is_host(host) and (":" in host) == is_bracketed
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len("65535") else 0
    return (host, number) if is_right and 0 < number < 65_536 else None  # noqa: PLR2004


def is_host(text: str) -> bool:
    """Return whether this is an address or a DNS name. Without a pattern, which takes longer to compile than to use."""
    return transport.is_address(text) or (_is_name(text) and not text.rstrip(".").rpartition(".")[2].isdigit())


def _is_name(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return len(text) <= _LONGEST_NAME and all(
        0 < len(label) <= _LONGEST_LABEL and "-" not in (label[0], label[-1]) and _LETTERS.issuperset(label)
        for label in labels
    )
