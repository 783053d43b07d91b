"""Credentials for an API server: tokens, token files, passwords, client certificates and exec plugins.

A source fetches an identity. `Credentials` keeps it until it expires, until its file is due to be read again, or until
the server rejects it with a 401. Clients with an event loop run the command of an `ExecPlugin` themselves, so that it
ends with the request that waits for it.
"""

import base64
import json
import math
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Protocol

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
REREAD_SECONDS = 60.0
"""The kubelet rotates a token well before it expires. Waiting for the 401 would waste the first request after that."""
TOKEN_EXPECTED = "visible ASCII characters on one line"  # noqa: S105  not a token
_MAX_TOKEN_BYTES = 1 << 20
_MAX_ANSWER_BYTES = 1 << 20
_MAX_EXTENSION = 1 << 20  # characters, and values beside them; it becomes an environment variable
_PLUGIN_SECONDS = 300.0  # a user can have to log in on a web page, for which plugins allow up to three minutes


class CredentialsError(Exception):
    """There are no credentials. The text is one line and shows no secret."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client shows to the server: an Authorization header, a client certificate, both or neither."""

    authorization: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    """PEM: the certificate, those that sign it, and the key."""
    expires: float = math.inf
    """Unix time."""


@dataclass(frozen=True, slots=True)
class Command:
    """A plugin as a process. Its standard error is ours, because it shows the user which page to open."""

    argv: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)
    stdin: int | None
    """`subprocess.DEVNULL`, or None for our own, which is a terminal."""


class Source(Protocol):
    @property
    def reread_seconds(self) -> float:
        """After how long to fetch again, although nothing has expired."""

    def fetch(self) -> Identity:
        """Raise CredentialsError if there are no credentials."""


@dataclass(frozen=True, slots=True)
class Static:
    identity: Identity = Identity()
    reread_seconds: float = math.inf

    def fetch(self) -> Identity:
        return self.identity


@dataclass(frozen=True, slots=True)
class TokenFile:
    path: str
    certificate: str = field(default="", repr=False)
    reread_seconds: float = REREAD_SECONDS

    def fetch(self) -> Identity:
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123  a path as the kubeconfig has it
                content = file.read(_MAX_TOKEN_BYTES)
        except (OSError, ValueError) as error:
            raise CredentialsError(f"cannot read token file {self.path!a}: {reason(error)}") from error
        token = content.decode("utf-8", "replace").strip()
        if not token or not is_token(token):
            raise CredentialsError(f"the token in {self.path!a} is invalid; expected {TOKEN_EXPECTED}")
        return Identity(bearer(token), self.certificate)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints an ExecCredential, such as the one of a cloud's command line."""

    command: str
    args: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)
    api_version: str
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, object] | None = None
    """What the plugin learns about the cluster, if `provideClusterInfo` is true."""
    certificate: str = field(default="", repr=False)
    """Of the user, for a plugin that returns only a token."""
    reread_seconds: float = math.inf

    def prepare(self) -> Command:
        interactive = self.interactive_mode != "Never" and os.isatty(0)
        if self.interactive_mode == "Always" and not interactive:
            raise self._failed("cannot run without a terminal, because its interactiveMode is Always")
        spec: dict[str, object] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
            if not _is_small(self.cluster.get("config")):
                expected = f"has more than {_MAX_EXTENSION} characters or contains itself"
                raise self._failed(f"cannot run, because the cluster's extension {expected}")
        try:
            request = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})
        except (ValueError, RecursionError) as error:
            raise self._failed("cannot run, because the cluster's extension is nested too deeply") from error
        environ = {**os.environ, **self.environ, "KUBERNETES_EXEC_INFO": request}
        return Command([self.command, *self.args], environ, None if interactive else subprocess.DEVNULL)

    def fetch(self) -> Identity:
        command = self.prepare()
        try:
            done = subprocess.run(  # noqa: S603  the kubeconfig names the program, as for kubectl; no shell is involved
                command.argv,
                env=command.environ,
                stdin=command.stdin,
                stdout=subprocess.PIPE,
                timeout=_PLUGIN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"did not exit within {_PLUGIN_SECONDS:g} s") from error
        except (OSError, ValueError) as error:
            raise self.not_started(error) from error
        return self.identity(done.returncode, done.stdout)

    def not_started(self, error: OSError | ValueError) -> CredentialsError:
        hint = f"; {' '.join(self.install_hint.split())}" if self.install_hint else ""
        return CredentialsError(f"cannot run exec plugin {self.command!a}: {reason(error)}{_printable(hint)}")

    def identity(self, exit_code: int, output: bytes) -> Identity:
        """Return what the plugin printed."""
        if exit_code:
            raise self._failed(f"exited with code {exit_code}")
        if len(output) > _MAX_ANSWER_BYTES:
            raise self._failed(f"printed {len(output)} bytes; expected at most {_MAX_ANSWER_BYTES}")
        try:
            answer = json.loads(output)
        except (ValueError, RecursionError) as error:
            raise self._failed("printed no JSON; expected an ExecCredential") from error
        status = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(status, dict):
            raise self._failed("printed no status; expected an ExecCredential")
        version = answer.get("apiVersion", self.api_version)
        if version != self.api_version:
            raise self._failed(f"printed apiVersion {str(version)[:80]!a}; expected {self.api_version}")
        return self._of_status(status)

    def _of_status(self, status: Mapping[str, object]) -> Identity:
        token, certificate, key = (
            self._text(status, name) for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if bool(certificate) != bool(key):
            raise self._failed("printed only one of clientCertificateData and clientKeyData; expected both")
        if not token and not certificate:
            raise self._failed("printed neither a token nor a client certificate")
        if not is_token(token):
            raise self._failed(f"printed an invalid token; expected {TOKEN_EXPECTED}")
        pair = f"{certificate}\n{key}" if certificate else self.certificate
        return Identity(bearer(token) if token else "", pair, self._expiry(status))

    def _text(self, status: Mapping[str, object], name: str) -> str:
        value = status.get(name)
        if value is not None and not isinstance(value, str):
            raise self._failed(f"printed a {name} that is not text")
        return value or ""

    def _expiry(self, status: Mapping[str, object]) -> float:
        if not (text := self._text(status, "expirationTimestamp")):
            return math.inf
        try:
            time_ = datetime.fromisoformat(text)
            return (time_ if time_.tzinfo else time_.replace(tzinfo=timezone.utc)).timestamp()  # noqa: UP017
        except (ValueError, OverflowError) as error:
            expected = "a time such as 2026-01-31T12:00:00Z"
            raise self._failed(f"printed expirationTimestamp {text[:80]!a}; expected {expected}") from error

    def _failed(self, text: str) -> CredentialsError:
        return CredentialsError(f"exec plugin {self.command!a} {text}")


class Credentials:
    """The identity of the moment. Threads can share it; a plugin runs once for all of them.

    `now` is the monotonic time in seconds, of the caller's clock.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._identity: Identity | None = None
        self._fetched_at = 0.0
        self._lock = threading.Lock()

    def cached(self, now: float) -> Identity | None:
        """Return the identity unless it must be fetched."""
        identity = self._identity
        if identity is None or identity.expires <= time.time():
            return None
        return identity if now - self._fetched_at < self.source.reread_seconds else None

    def keep(self, identity: Identity, now: float) -> Identity:
        """Replace the identity, if it differs."""
        self._fetched_at = now
        if self._identity is None or identity != self._identity:
            self._identity = identity
        return self._identity

    def get(self) -> Identity:
        with self._lock:
            now = time.monotonic()
            return self.cached(now) or self._fetch(now)

    def refresh(self, rejected: Identity) -> Identity:
        """Return the identity for a retry after a 401: a new one if possible, otherwise the rejected one."""
        with self._lock:
            if self._identity is not None and self._identity != rejected:
                return self._identity
            return self.keep(self.source.fetch(), time.monotonic())

    def _fetch(self, now: float) -> Identity:
        try:
            return self.keep(self.source.fetch(), now)
        except CredentialsError:
            if (kept := self.last_resort()) is None:
                raise
            return kept

    def last_resort(self) -> Identity | None:
        """Return what was fetched before and is still valid, for a source that cannot be read at the moment."""
        identity = self._identity
        return identity if identity is not None and identity.expires > time.time() else None


def _is_small(value: object) -> bool:
    """Count what aliases stand for before it is written: a few lines can stand for billions of values."""
    size, left = 0, [value]
    while left and size <= _MAX_EXTENSION:
        item = left.pop()
        size += 1
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, list):
            size += len(item)
            left += item if size <= _MAX_EXTENSION else []
        elif isinstance(item, dict):
            size += sum(map(len, item))
            left += item.values()
    return size <= _MAX_EXTENSION


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def is_token(text: str) -> bool:
    """Whether a header can carry it. A line break in a token would begin another header, or another request."""
    return text.isascii() and text.isprintable() and text == text.strip()


def reason(error: Exception) -> str:
    """Return the cause of an error on one line, without its errno."""
    text = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
