"""How to connect to the cluster of a kubeconfig's context: server, TLS, proxy and credentials.

Everything is checked before the first request. What is not supported is an error, and never ignored.
"""

import base64
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kubekit import credentials, kubeconfig, proxy
from kubekit.credentials import Credentials, ExecPlugin, Identity, Source, Static, TokenFile
from kubekit.kubeconfig import SERVICE_ACCOUNT, Config, Entry, KubeconfigError, ServerUrl
from kubekit.proxy import Proxy

_EXTENSION = "client.authentication.k8s.io/exec"  # what a cluster has for exec plugins
_PLUGIN_VERSIONS = (credentials.V1, credentials.V1BETA1)
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_SERVER_EXPECTED = "a URL such as https://10.0.0.1:6443, without a user name, a query or spaces"


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
    paths: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: str = SERVICE_ACCOUNT,
) -> Connection:
    """Return how to connect to the cluster of a context; without one, of the current context. No plugin runs yet."""
    return of_context(kubeconfig.read(paths, environ=environ, folder=folder), context)


def of_context(config: Config, context: str | None = None) -> Connection:
    """Return how to connect to the cluster of a context; without one, of the current context."""
    chosen = config.context(context)
    cluster = config.cluster(chosen.text("cluster"))
    name = chosen.text("user")
    user = config.user(name) if name else Entry(chosen.file, {})
    server, url = _server(cluster, user)
    certificate = _certificate(user)
    proxied = _proxy(cluster)
    authority = cluster.pem("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and authority:
        expected = "only one of it and certificate-authority"
        raise cluster.error(f"insecure-skip-tls-verify: true is invalid; expected {expected}")
    source = _source(user, certificate, _exec_cluster(cluster, server, authority))
    return Connection(
        source=kubeconfig.printable(cluster.file if cluster.file == user.file else config.source),
        server=server,
        host=url.host,
        port=url.port,
        path=url.path,
        namespace=chosen.text("namespace") or "default",
        credentials=Credentials(source),
        certificate=certificate,
        authority=authority,
        insecure=insecure,
        tls_server_name=_tls_server_name(cluster),
        proxy=proxied,
    )


def _server(cluster: Entry, user: Entry) -> tuple[str, ServerUrl]:
    """Return the server as requests use it, without a slash at its end, and its parts."""
    server = cluster.text("server")
    if (url := ServerUrl.parse(server)) is None:
        raise cluster.error(f"server: {proxy.shown(server)[:200]!a} is invalid; expected {_SERVER_EXPECTED}")
    if url.scheme == "http" and any(user.fields.values()):
        # Without credentials, as with `kubectl proxy`, plain HTTP does no harm. client-go drops them silently.
        expected = "an https:// URL, because http:// would send the user's credentials unencrypted"
        raise cluster.error(f"server: {server!a} is invalid; expected {expected}")
    return (url.scheme + server[len(url.scheme) :]).rstrip("/"), url


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
        present, missing = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise user.error(f"{present} is set without {missing}; expected both")
    return f"{certificate}\n{key}" if certificate else ""


def _source(user: Entry, certificate: str, cluster: Mapping[str, object]) -> Source:
    """What client-go prefers: a token file, a token, a password, a plugin."""
    if impersonation := [name for name in _IMPERSONATION if user.fields.get(name)]:
        raise user.error(f"{impersonation[0]}: impersonation is not supported; expected a user without it")
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
    variables: dict[str, str] = {}
    for value in plugin.items("env"):
        entry = Entry(plugin.file, value if isinstance(value, dict) else {})
        name, text = entry.text("name"), entry.text("value")
        if not name or "=" in name or "\0" in name + text:
            raise plugin.error(f"exec.env: {name[:80]!a} is invalid; expected the name of a variable, and its value")
        variables[name] = text
    return variables


def _exec_cluster(cluster: Entry, server: str, authority: str) -> dict[str, object]:
    """Return what a plugin learns about the cluster, as ExecCredential spells it."""
    fields: dict[str, object] = {"server": server}
    for key in ("tls-server-name", "proxy-url"):
        if text := cluster.text(key):
            fields[key] = text
    for key in ("insecure-skip-tls-verify", "disable-compression"):
        if cluster.flag(key):
            fields[key] = True
    if authority:
        fields["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    for extension in cluster.items("extensions"):
        if isinstance(extension, dict) and extension.get("name") == _EXTENSION:
            fields["config"] = extension.get("extension")
    return fields


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
