"""Read kubeconfigs as kubectl does: find the files, merge them, and return their contexts, clusters and users.

The order is: the files that were named explicitly, those in `KUBECONFIG`, a pod's ServiceAccount, ~/.kube/config. Of
several files, those that do not exist are skipped. If none that `KUBECONFIG` names exists, a pod uses its
ServiceAccount, and elsewhere that is an error. The first file that has an entry defines all of it. A relative path is
relative to the file that names it.

A kubeconfig is small, but it can come from anywhere: size, depth and the work for aliases are bounded, and no value
with a control character reaches a request, a message or a terminal. Messages name the file and the field. They never
show a secret.
"""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kubekit import proxy, yaml_values
from kubekit.credentials import reason
from kubekit.terminal import replaced

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
MAX_BYTES = 4 * 2**20
"""A YAML parser needs a minute for what a disk reads in a second."""
_HOME = "~/.kube/config"
_KINDS = ("contexts", "clusters", "users")
_IN_CLUSTER = "default"  # the name of everything that a ServiceAccount stands for
_SERVER = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"""(?P<path>/[^\s?#@\\"<>]*)?""",
    re.IGNORECASE | re.ASCII,
)
_DEFAULT_PORTS = {"https": 443, "http": 80}
_MAX_PORT = 65_535
_SHOWN, _MOST_SHOWN = 80, 10  # characters of a name in a message, and names


class KubeconfigError(Exception):
    """There is no usable kubeconfig. The text is one line, names the file, and shows no secret."""


class MissingError(KubeconfigError):
    """None of the files exists, or there is nothing to read at all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A context, cluster or user, and the file that defines it."""

    file: str
    fields: Mapping[str, object] = field(repr=False)

    def text(self, key: str) -> str:
        """Return the empty string if it is not set, as client-go treats the two alike."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{key}: {kind(value)} is invalid; expected text, in quotes if it looks like a number")
        return value

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.error(f"{key}: {kind(value)} is invalid; expected true or false")

    def section(self, key: str) -> "Entry | None":
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(f"{key}: {kind(value)} is invalid; expected a mapping")
        return Entry(self.file, value)

    def items(self, key: str) -> list[object]:
        value = self.fields.get(key)
        if value is None or isinstance(value, list):
            return value or []
        raise self.error(f"{key}: {kind(value)} is invalid; expected a list")

    def path(self, key: str) -> str:
        """Return the path of a file, which is relative to the file that names it."""
        value = self.text(key)
        if "\0" in value:
            raise self.error(f"{key}: {value!a} is invalid; expected a path")
        return self.beside(value) if value else ""

    def beside(self, path: str) -> str:
        return os.path.abspath(os.path.join(os.path.dirname(self.file), path))  # noqa: PTH100, PTH118, PTH120

    def pem(self, key: str) -> str:
        """Return a certificate or key: base64 in `KEY-data`, or the content of the file that `KEY` names."""
        if data := self.text(f"{key}-data"):
            try:
                content = base64.b64decode("".join(data.split()), validate=True)
            except ValueError as error:
                raise self.error(f"{key}-data is invalid; expected PEM in base64") from error
            return self._pem(content, f"{key}-data is invalid; expected PEM in base64")
        if not (path := self.path(key)):
            return ""
        try:
            content = _content(path)
        except OSError as error:
            raise self.error(f"{key}: cannot read {path!a}: {reason(error)}") from error
        return self._pem(content, f"{key}: {path!a} is invalid; expected a file in PEM format")

    def _pem(self, content: bytes, invalid: str) -> str:
        """OpenSSL wants ASCII; what else there is can only be a comment. Empty is not the same as not set."""
        text = content.decode("ascii", "ignore")
        if not text.strip():
            raise self.error(invalid)
        return text

    def error(self, text: str) -> KubeconfigError:
        return KubeconfigError(f"{printable(self.file)}: {text}")


class ServerUrl(NamedTuple):
    """The address of an API server. The path does not end with a slash."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, text: str) -> "ServerUrl | None":
        """Return None unless it is an http or https URL without user name, query, fragment and spaces."""
        match = _SERVER.fullmatch(text)
        if match is None or not text.isprintable():
            return None
        scheme, host = match["scheme"].lower(), match["host"].strip("[]")
        port = int(match["port"]) if match["port"] else _DEFAULT_PORTS[scheme]
        if not proxy.is_host(host) or not 0 < port <= _MAX_PORT:
            return None
        return cls(scheme, host, port, (match["path"] or "").rstrip("/"))


@dataclass(frozen=True, slots=True)
class Config:
    """All contexts, clusters and users of the files that were read, by name."""

    source: str
    """The files, separated as in KUBECONFIG, or the folder of the ServiceAccount."""
    current_context: str
    contexts: Mapping[str, Entry]
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]

    def context(self, name: str | None = None) -> Entry:
        """Return the context of that name; without one, the current context."""
        return self._entry(self.contexts, "context", name or self.current_context)

    def cluster(self, name: str) -> Entry:
        return self._entry(self.clusters, "cluster", name)

    def user(self, name: str) -> Entry:
        return self._entry(self.users, "user", name)

    def _entry(self, entries: Mapping[str, Entry], what: str, name: str) -> Entry:
        known = ", ".join(_quoted(entry) for entry in sorted(entries)[:_MOST_SHOWN]) or "none"
        if not name:
            key = "current-context" if what == "context" else what
            raise self.error(f"{key} is not set; expected one of the {what}s: {known}")
        if (entry := entries.get(name)) is None:
            raise self.error(f"{what} {_quoted(name)} is not defined; expected {known}")
        return entry

    def error(self, text: str) -> KubeconfigError:
        return KubeconfigError(f"{printable(self.source)}: {text}")


def read(
    kubeconfig: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: str = SERVICE_ACCOUNT,
) -> Config:
    """Read the files that `kubeconfig` names, several as in KUBECONFIG; without it, what comes next in the order."""
    environ = os.environ if environ is None else environ
    if kubeconfig:
        return _merged(_listed(os.fspath(kubeconfig)))
    in_pod = bool(environ.get("KUBERNETES_SERVICE_HOST"))
    if variable := environ.get("KUBECONFIG", ""):
        try:
            return _merged(_listed(variable))
        except MissingError:
            if in_pod and _has_token(folder):
                return in_cluster(environ, folder)
            raise
    has_home = os.path.exists(home())  # noqa: PTH110
    if in_pod and (_has_token(folder) or not has_home):
        return in_cluster(environ, folder)
    if not has_home:
        raise MissingError(
            f"no kubeconfig: --kubeconfig and KUBECONFIG are not set, {_HOME} does not exist, and this is not a pod"
        )
    return _merged([home()])


def home() -> str:
    return os.path.expanduser(_HOME)  # noqa: PTH111  stays a text


def in_cluster(environ: Mapping[str, str], folder: str = SERVICE_ACCOUNT) -> Config:
    """Return what a pod's ServiceAccount and its environment amount to."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "") or "443"
    name = host.strip("[]")
    server = f"https://[{name}]:{port}" if ":" in name else f"https://{name}:{port}"
    if ServerUrl.parse(server) is None:
        expected = "a host name or an IP address, and a port"
        text = f"{host!a} and {port[:80]!a} are invalid; expected {expected}"
        raise KubeconfigError(f"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: {text}")
    if not _has_token(folder):
        raise KubeconfigError(f"{folder}/token does not exist; the pod needs a ServiceAccount whose token is mounted")
    try:
        namespace = _content(f"{folder}/namespace").decode().strip()
    except (OSError, UnicodeError):
        namespace = ""
    cluster = {"server": server, "certificate-authority": "ca.crt"}
    context = {"cluster": _IN_CLUSTER, "user": _IN_CLUSTER, "namespace": namespace}
    entries = [Entry(f"{folder}/token", fields) for fields in (context, cluster, {"tokenFile": "token"})]
    contexts, clusters, users = ({_IN_CLUSTER: entry} for entry in entries)
    return Config(folder, _IN_CLUSTER, contexts, clusters, users)


def kind(value: object) -> str:
    """Return what a value is, without showing it: it can be a secret."""
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return "true or false"
        case None:
            return "nothing"
        case _:
            return "a number" if isinstance(value, int | float) else "text"


def printable(text: str) -> str:
    """Return the text on one line. The name of a file can contain what controls a terminal."""
    return replaced(text)


def _quoted(name: str) -> str:
    return f'"{printable(name[:_SHOWN])}"'


def _listed(paths: str) -> list[str]:
    if os.path.exists(paths):  # noqa: PTH110  a path can contain the separator
        return [paths]
    return [os.path.expanduser(path) for path in paths.split(os.pathsep) if path] or [paths]  # noqa: PTH111


def _merged(paths: Sequence[str]) -> Config:
    """Of each entry, and of the current context, the first definition counts. Files that do not exist are skipped."""
    entries: dict[str, dict[str, Entry]] = {name: {} for name in _KINDS}
    current, files = "", []
    for path in paths:
        try:
            content = _content(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise KubeconfigError(f"cannot read {printable(path)}: {reason(error)}") from error
        files.append(path)
        root = Entry(path, _mapping(content, path))
        current = current or root.text("current-context")
        for name in _KINDS:
            entries[name] = _entries(root, name) | entries[name]
    if not files:
        shown = printable(os.pathsep.join(paths))
        raise MissingError(f"cannot read {shown}: No such file or directory")
    return Config(os.pathsep.join(files), current, *(entries[name] for name in _KINDS))


def _mapping(content: bytes, path: str) -> dict[str, object]:
    where = printable(path)
    try:
        value = yaml_values.parse(content)
    except yaml_values.InvalidYamlError as error:
        raise KubeconfigError(f"{where}: not a valid kubeconfig: {printable(str(error))}") from error
    if not isinstance(value, dict):
        raise KubeconfigError(f"{where}: not a valid kubeconfig: {kind(value)}; expected a mapping")
    return value


def _entries(root: Entry, name: str) -> dict[str, Entry]:
    singular = name.removesuffix("s")
    entries: dict[str, Entry] = {}
    for at, value in enumerate(root.items(name)):
        entry = Entry(root.file, value) if isinstance(value, dict) else None
        named = entry.text("name") if entry else ""
        if not entry or not named:
            raise root.error(f"{name}[{at}] is not valid; expected a mapping with a name and a {singular}")
        if named in entries:
            raise root.error(f"{name}[{at}].name: {_quoted(named)} is a duplicate; expected each name once")
        entries[named] = entry.section(singular) or Entry(root.file, {})
    return entries


def _content(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"it has more than {MAX_BYTES} bytes; expected at most {MAX_BYTES}")
    return content


def _has_token(folder: str) -> bool:
    return os.path.exists(f"{folder}/token")  # noqa: PTH110
