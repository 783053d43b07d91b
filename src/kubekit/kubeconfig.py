"""Read kubeconfigs as kubectl does: merge files, choose a context, and return how to connect to its cluster.

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
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kubekit import credentials, proxy, yaml_values
from kubekit.credentials import Credentials, ExecPlugin, Identity, Source, Static, TokenFile, reason
from kubekit.proxy import Proxy

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
MAX_BYTES = 4 * 2**20
"""A YAML parser needs a minute for what a disk reads in a second."""
_HOME = "~/.kube/config"
_KINDS = ("contexts", "clusters", "users")
_IN_CLUSTER = "default"  # the name of everything that a ServiceAccount stands for
_EXTENSION = "client.authentication.k8s.io/exec"  # what a cluster has for exec plugins
_PLUGIN_VERSIONS = (credentials.V1, credentials.V1BETA1)
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_SERVER = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"""(?P<path>/[^\s?#@\\"<>]*)?""",
    re.IGNORECASE | re.ASCII,
)
_MAX_PORT = 65_535
_SHOWN, _MOST_SHOWN = 80, 10  # characters of a name in a message, and names
_SERVER_EXPECTED = "a URL such as https://10.0.0.1:6443, without a user name, a query or spaces"


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


@dataclass(frozen=True, slots=True)
class Config:
    """All contexts, clusters and users of the files that were read, by name."""

    source: str
    """The files, separated as in KUBECONFIG, or the folder of the ServiceAccount."""
    current_context: str
    contexts: Mapping[str, Entry]
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]

    def error(self, text: str) -> KubeconfigError:
        return KubeconfigError(f"{printable(self.source)}: {text}")


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server, and one identity there."""

    source: str
    server: str
    """A URL that does not end with a slash."""
    host: str
    port: int
    path: str
    namespace: str
    credentials: Credentials
    certificate: str = field(default="", repr=False)
    """Of the client, in PEM with its key, unless an exec plugin returns one."""
    authority: str = field(default="", repr=False)
    """In PEM; if empty, the system's certificate authorities are trusted."""
    insecure: bool = False
    tls_server_name: str = ""
    """The name in the server's certificate, if it is not the host."""
    proxy: Proxy | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.server.startswith("https:")

    def tls_context(self, certificate: str) -> ssl.SSLContext:
        """Return the context for a client that presents this certificate. None is presented if it is empty."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.authority:
            try:
                context.load_verify_locations(cadata=self.authority)
            except (ssl.SSLError, ValueError) as error:
                expected = "at least one certificate in PEM format"
                raise KubeconfigError(
                    f"{self.source}: certificate-authority is invalid; expected {expected}"
                ) from error
        else:
            context.load_default_certs()
        if certificate:
            self._load_certificate(context, certificate)
        return context

    def _load_certificate(self, context: ssl.SSLContext, certificate: str) -> None:
        with _as_file(certificate) as path:
            try:
                # Without a password, OpenSSL asks for the one of an encrypted key on the terminal.
                context.load_cert_chain(path, password="")
            except (ssl.SSLError, ValueError) as error:
                reason = getattr(error, "reason", None) or "not in PEM format"
                expected = "a certificate in PEM format and the unencrypted key that belongs to it"
                text = f"client-certificate or client-key is invalid ({reason}); expected {expected}"
                raise KubeconfigError(f"{self.source}: {text}") from error


def load(
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: str = SERVICE_ACCOUNT,
) -> Connection:
    """Return how to connect to the cluster of a context; without one, of the current context. No plugin runs yet."""
    return connection(read(kubeconfig, environ=environ, folder=folder), context)


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
        raise MissingError(f"no kubeconfig: --kubeconfig and KUBECONFIG are not set, {_HOME} does not exist, no pod")
    return _merged([home()])


def home() -> str:
    return os.path.expanduser(_HOME)  # noqa: PTH111  stays a text


def in_cluster(environ: Mapping[str, str], folder: str = SERVICE_ACCOUNT) -> Config:
    """Return what a pod's ServiceAccount and its environment amount to."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "") or "443"
    name = host.strip("[]")
    server = f"https://[{name}]:{port}" if ":" in name else f"https://{name}:{port}"
    if not _is_server(server):
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


def connection(config: Config, context: str | None = None) -> Connection:
    """Return how to connect to the cluster of a context; without one, of the current context."""
    chosen = _entry(config.contexts, "context", context or config.current_context, config)
    cluster = _entry(config.clusters, "cluster", chosen.text("cluster"), config)
    name = chosen.text("user")
    user = _entry(config.users, "user", name, config) if name else Entry(chosen.file, {})
    server = _server(cluster, user)
    url = _SERVER.fullmatch(server)
    assert url, "it was checked"
    certificate = _certificate(user)
    proxied = _proxy(cluster)
    authority = cluster.pem("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and authority:
        expected = "only one of it and certificate-authority"
        raise cluster.error(f"insecure-skip-tls-verify: true is invalid; expected {expected}")
    source = _source(user, certificate, _exec_cluster(cluster, server, authority))
    return Connection(
        source=printable(cluster.file if cluster.file == user.file else config.source),
        server=server,
        host=url["host"].strip("[]"),
        port=int(url["port"]) if url["port"] else 443 if url["scheme"] == "https" else 80,
        path=(url["path"] or "").rstrip("/"),
        namespace=chosen.text("namespace") or "default",
        credentials=Credentials(source),
        certificate=certificate,
        authority=authority,
        insecure=insecure,
        tls_server_name=_tls_server_name(cluster),
        proxy=proxied,
    )


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
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _quoted(name: str) -> str:
    return f'"{printable(name[:_SHOWN])}"'


def _entry(entries: Mapping[str, Entry], what: str, name: str, config: Config) -> Entry:
    known = ", ".join(_quoted(entry) for entry in sorted(entries)[:_MOST_SHOWN]) or "none"
    if not name:
        field_ = "current-context" if what == "context" else what
        raise config.error(f"{field_} is not set; expected one of the {what}s: {known}")
    if (found := entries.get(name)) is None:
        raise config.error(f"there is no {what} {_quoted(name)}; it has {known}")
    return found


def _server(cluster: Entry, user: Entry) -> str:
    server = cluster.text("server")
    if not _is_server(server):
        shown = f"…@{server.rpartition('@')[2]}" if "@" in server else server
        raise cluster.error(f"server: {shown[:200]!a} is invalid; expected {_SERVER_EXPECTED}")
    scheme, _, rest = server.partition("://")
    if scheme.lower() == "http" and any(user.fields.values()):
        # Without credentials, as with `kubectl proxy`, plain HTTP does no harm. client-go drops them silently.
        expected = "an https:// URL, because http:// would send the user's credentials unencrypted"
        raise cluster.error(f"server: {server!a} is invalid; expected {expected}")
    return f"{scheme.lower()}://{rest}".rstrip("/")


def _is_server(server: str) -> bool:
    match = _SERVER.fullmatch(server)
    if match is None or not server.isprintable() or not proxy.is_host(match["host"].strip("[]")):
        return False
    return not match["port"] or 0 < int(match["port"]) <= _MAX_PORT


def _tls_server_name(cluster: Entry) -> str:
    name = cluster.text("tls-server-name")
    if name and not proxy.is_host(name):
        raise cluster.error(f"tls-server-name: {name[:200]!a} is invalid; expected a host name or an IP address")
    return name


def _proxy(cluster: Entry) -> Proxy | None:
    url = cluster.text("proxy-url")
    try:
        return proxy.parse(url) if url else None
    except ValueError as error:
        raise cluster.error(f"proxy-url: {error}") from error


def _certificate(user: Entry) -> str:
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if bool(certificate) != bool(key):
        given, missing = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise user.error(f"{given} is set without {missing}; expected both")
    return f"{certificate}\n{key}" if certificate else ""


def _source(user: Entry, certificate: str, cluster: Mapping[str, object]) -> Source:
    """What client-go prefers: a token file, a token, a password, a plugin."""
    if found := [name for name in _IMPERSONATION if user.fields.get(name)]:
        raise user.error(f"{found[0]}: impersonation is not supported; expected a user without it")
    if user.fields.get("auth-provider") is not None:
        raise user.error("auth-provider is not supported, as in kubectl since 1.26; expected exec")
    token, name, password = user.text("token"), user.text("username"), user.text("password")
    if not credentials.is_token(token):
        raise user.error(f"token: a value that is not shown is invalid; expected {credentials.TOKEN_EXPECTED}")
    path, plugin = user.path("tokenFile"), user.section("exec")
    if (name or password) and (token or path):
        raise user.error("username is invalid beside a token; expected only one of them")
    if path and (os.path.exists(path) or not token):  # noqa: PTH110
        return TokenFile(path, certificate)
    if token:
        return Static(Identity(credentials.bearer(token), certificate))
    if name or password:
        try:
            return Static(Identity(credentials.basic(name, password), certificate))
        except UnicodeError:  # its text quotes a character of the password
            raise user.error("username or password is invalid; expected Unicode text") from None
    return _plugin(plugin, certificate, cluster) if plugin else Static(Identity("", certificate))


def _plugin(plugin: Entry, certificate: str, cluster: Mapping[str, object]) -> ExecPlugin:
    version, command = plugin.text("apiVersion"), plugin.text("command")
    if version not in _PLUGIN_VERSIONS:
        raise plugin.error(f"exec.apiVersion: {version[:80]!a} is invalid; expected {' or '.join(_PLUGIN_VERSIONS)}")
    if not command or "\0" in command:
        raise plugin.error(f"exec.command: {command!a} is invalid; expected the name or path of a program")
    mode = plugin.text("interactiveMode") or "IfAvailable"
    if mode not in credentials.INTERACTIVE_MODES:
        expected = ", ".join(credentials.INTERACTIVE_MODES)
        raise plugin.error(f"exec.interactiveMode: {mode[:80]!a} is invalid; expected {expected}")
    return ExecPlugin(
        command=plugin.beside(command) if os.sep in command else command,
        args=_texts(plugin, "args"),
        environ=_variables(plugin),
        api_version=version,
        interactive_mode=mode,
        install_hint=plugin.text("installHint"),
        cluster=cluster if plugin.flag("provideClusterInfo") else None,
        certificate=certificate,
    )


def _texts(plugin: Entry, key: str) -> Sequence[str]:
    values = plugin.items(key)
    texts = [value for value in values if isinstance(value, str) and "\0" not in value]
    if len(texts) != len(values):
        raise plugin.error(f"exec.{key} is invalid; expected a list of texts, in quotes if they look like numbers")
    return texts


def _variables(plugin: Entry) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in plugin.items("env"):
        entry = Entry(plugin.file, value if isinstance(value, dict) else {})
        name, text = entry.text("name"), entry.text("value")
        if not name or "=" in name or "\0" in name + text:
            raise plugin.error(f"exec.env: {name[:80]!a} is invalid; expected the name of a variable, and its value")
        found[name] = text
    return found


def _exec_cluster(cluster: Entry, server: str, authority: str) -> dict[str, object]:
    """Return what a plugin learns about the cluster, as ExecCredential spells it."""
    found: dict[str, object] = {"server": server}
    for key in ("tls-server-name", "proxy-url"):
        if text := cluster.text(key):
            found[key] = text
    for key in ("insecure-skip-tls-verify", "disable-compression"):
        if cluster.flag(key):
            found[key] = True
    if authority:
        found["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    for extension in cluster.items("extensions"):
        if isinstance(extension, dict) and extension.get("name") == _EXTENSION:
            found["config"] = extension.get("extension")
    return found


def _listed(paths: str) -> list[str]:
    if os.path.exists(paths):  # noqa: PTH110  a path can contain the separator
        return [paths]
    return [os.path.expanduser(path) for path in paths.split(os.pathsep) if path] or [paths]  # noqa: PTH111


def _merged(paths: Sequence[str]) -> Config:
    """Of each entry, and of the current context, the first definition counts. Files that do not exist are skipped."""
    found: dict[str, dict[str, Entry]] = {name: {} for name in _KINDS}
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
            found[name] = _entries(root, name) | found[name]
    if not files:
        shown = printable(os.pathsep.join(paths))
        raise MissingError(f"cannot read {shown}: No such file or directory")
    return Config(os.pathsep.join(files), current, *(found[name] for name in _KINDS))


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
    found: dict[str, Entry] = {}
    for at, value in enumerate(root.items(name)):
        entry = Entry(root.file, value) if isinstance(value, dict) else None
        named = entry.text("name") if entry else ""
        if not entry or not named:
            raise root.error(f"{name}[{at}] is not valid; expected a mapping with a name and a {singular}")
        if named in found:
            raise root.error(f"{name}[{at}].name: {_quoted(named)} is a duplicate; expected each name once")
        found[named] = entry.section(singular) or Entry(root.file, {})
    return found


def _content(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"it has more than {MAX_BYTES} bytes; expected at most {MAX_BYTES}")
    return content


def _has_token(folder: str) -> bool:
    return os.path.exists(f"{folder}/token")  # noqa: PTH110


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """OpenSSL reads keys only from files. Where the system can, this one exists only in memory.

    What is not ASCII can only be a comment.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        with open(descriptor, "w", encoding="ascii", errors="ignore") as file:  # noqa: PTH123
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        from tempfile import NamedTemporaryFile  # noqa: PLC0415  no Linux needs it

        with NamedTemporaryFile("w", encoding="ascii", errors="ignore") as file:
            file.write(text)
            file.flush()
            yield file.name
