"""How often a node with unreliable DNS is released: computed, and measured with the real check.

The check runs against a DNS server on the loopback that drops or denies a share of the queries, at random from a fixed
seed. A run is a node: up to 20 attempts, as by a worker, until one passes. libc is not involved: it retries
lost queries, so here it always resolves the name.
"""

import argparse
import math
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from kube_node_ready.checks import dns, dns_client, resolver, sampling, transport
from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.sampling import Sampling
from kube_node_ready.checks.settings import DNS_NAME, Settings

ATTEMPTS = 20
LOSSES = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_API_SERVICE = "10.96.0.1"
_NXDOMAIN = 3
_TENTH, _NEARLY_ALL = 0.1, 99.9


def pass_probability(loss: float, wanted: Sampling) -> float:
    """Return the probability that one attempt passes if each query fails independently with probability `loss`."""
    first = wanted.first or wanted.samples
    passes = (1 - loss) ** first
    for lost in range(1, wanted.allowed + 1):
        rest = sum(_binomial(wanted.most - first, more, loss) for more in range(wanted.allowed - lost + 1))
        passes += _binomial(first, lost, loss) * rest
    return passes


def _binomial(count: int, hits: int, probability: float) -> float:
    return math.comb(count, hits) * probability**hits * (1 - probability) ** (count - hits)


def release_probability(loss: float, settings: Settings, attempts: int = ATTEMPTS) -> float:
    """Return the probability that a node passes within this many attempts: all but the first send more queries."""
    held = 1 - pass_probability(loss, settings.sampling)
    return 1 - held * (1 - pass_probability(loss, settings.after_failure().sampling)) ** (attempts - 1)


def table(settings: Settings) -> str:
    """For docs/reference/operator.md."""
    rows = ["| queries that fail | first attempt passes | a later attempt passes | released within 20 attempts |"]
    rows.append("|---|---|---|---|")
    for loss in LOSSES:
        first = pass_probability(loss, settings.sampling)
        later = pass_probability(loss, settings.after_failure().sampling)
        released = release_probability(loss, settings)
        rows.append(f"| {loss * 100:g} % | {percent(first)} | {percent(later)} | {percent(released)} |")
    return "\n".join(rows)


def percent(share: float) -> str:
    """Format a probability with three digits, without rounding to 0 or 1."""
    shown = round(share * 100, 1 if share > _TENTH else 3)
    return "above 99.9 %" if shown > _NEARLY_ALL else f"{shown:g} %" if shown else "below 0.001 %"


class Server:
    """A DNS server that has one address and fails a share of the queries."""

    def __init__(self, share: float, seed: int, *, denies: bool, address: str = _API_SERVICE) -> None:
        self._address = socket.inet_aton(address)
        self._random = random.Random(seed)  # noqa: S311  a simulation, which is to be repeatable
        self._share = share
        self._denies = denies

    def reply(self, query: bytes) -> bytes | None:
        fails = self._random.random() < self._share
        if fails and not self._denies:
            return None
        records = b"" if fails else struct.pack("!HHHIH4s", 0xC00C, 1, 1, 5, 4, self._address)
        flags = 0x8180 | (_NXDOMAIN if fails else 0)
        return query[:2] + struct.pack("!5H", flags, 1, bool(records), 0, 0) + query[12:] + records

    @contextmanager
    def running(self) -> Iterator[int]:
        """Run the server and yield its port."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.bind(("127.0.0.1", 0))
            thread = threading.Thread(target=self._serve, args=(plain,))
            thread.start()
            try:
                yield plain.getsockname()[1]
            finally:
                plain.sendto(b"", plain.getsockname())
                thread.join()

    def _serve(self, plain: socket.socket) -> None:
        while True:
            query, asker = plain.recvfrom(4096)
            if not query:
                return
            if reply := self.reply(query):
                plain.sendto(reply, asker)


@contextmanager
def asking(server: Server, patience: float) -> Iterator[None]:
    """Let the check query this server, with a short timeout: responses on the loopback take less than 1 ms."""
    with ExitStack() as stack:
        port = stack.enter_context(server.running())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        conf = Path(folder, "resolv.conf")
        conf.write_text("nameserver 127.0.0.1\nsearch kube-system.svc.cluster.local svc.cluster.local cluster.local\n")
        patches = [
            (resolver, "RESOLV_CONF", str(conf)),
            (dns_client, "PORT", port),
            (dns_client, "_SECONDS_BETWEEN_TRIES", patience),
            (sampling, "_PATIENCE_SECONDS", patience),
            (sampling, "_PATIENCE_FACTOR", 0),
            (transport, "addresses_of", lambda _name: [_API_SERVICE]),
            (dns, "_SECONDS_TO_SEARCH_AGAIN", 0.0),
        ]
        for module, name, value in patches:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def passes(settings: Settings) -> str:
    """Run one attempt. Returns its error, or "" if it passes."""
    try:
        dns.always_resolves(DNS_NAME, _API_SERVICE, settings.sampling, Deadline(10))
    except CheckFailedError as error:
        return str(error)
    return ""


def released_by(settings: Settings, attempts: int = ATTEMPTS) -> int | None:
    """Return the number of the attempt that passes, or None."""
    for attempt in range(1, attempts + 1):
        if not passes(settings if attempt == 1 else settings.after_failure()):
            return attempt
    return None


class Campaign(NamedTuple):
    runs: int
    released: tuple[int, ...]
    """By which attempts."""
    seconds: float

    @property
    def bound(self) -> float:
        """Return the upper bound of the release probability with 95 % confidence (Clopper-Pearson, by bisection)."""
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            tail = sum(_binomial(self.runs, hits, middle) for hits in range(len(self.released) + 1))
            low, high = (middle, high) if tail > 0.05 else (low, middle)  # noqa: PLR2004
        return high


def campaign(settings: Settings, server: Server, runs: int, patience: float = 0.03) -> Campaign:
    begun = time.monotonic()
    with asking(server, patience):
        found = [released_by(settings) for _ in range(runs)]
    return Campaign(runs, tuple(attempt for attempt in found if attempt), time.monotonic() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.samples", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=int, nargs="?", default=400, help="number of nodes of each kind (400)")
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--samples", type=int, nargs=2, metavar=("FIRST", "LATER"), help="instead of the defaults")
    asked = parser.parse_args()
    settings = Settings()
    if asked.samples:
        settings = settings._replace(dns_samples=asked.samples[0], dns_samples_after_failure=asked.samples[1])
    sys.stdout.write(f"{table(settings)}\n\n")
    for kind, share, denies in (("healthy", 0.0, False), ("50 % NXDOMAIN", 0.5, True), ("30 % lost", 0.3, False)):
        done = campaign(settings, Server(share, asked.seed, denies=denies), asked.runs)
        sys.stdout.write(
            f"{kind}: {len(done.released)} of {done.runs} released within {ATTEMPTS} attempts "
            f"(below {done.bound:.2%} with 95 % confidence), in {done.seconds:.0f} s\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
