"""How to talk to the API server as a kubeconfig says. For people at their machines; no pod comes here."""

import base64
import binascii
import json
import os
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

from kube_node_ready import http_syntax
from kube_node_ready.checks import settings
from kube_node_ready.checks.access import Access, NoAccessError, check_token, trusting
from kube_node_ready.checks.record import Record

Section = Mapping[str, object]
_PLUGIN_SECONDS = 30


class _Parts(Record):
    path: Path
    cluster: Section
    user: Section

    def content(self, section: Section, key: str) -> str:
        """The text of a certificate or key, written there or in a file beside the kubeconfig."""
        if data := section.get(f"{key}-data"):
            try:
                return base64.b64decode(str(data), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError) as why:
                raise NoAccessError(f"{self.path}: {key}-data is not base64 of PEM") from why
        name = section.get(key)
        return _read(self.path.parent / str(name)) if name else ""


def default() -> Path | None:
    """Where kubectl would look first, if there is a file."""
    places = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return next((Path(place) for place in places.split(os.pathsep) if place and Path(place).is_file()), None)


def first_file(paths: str) -> Path:
    """Of those that KUBECONFIG names, the first that is there; if none is, the first."""
    listed = [Path(path) for path in paths.split(os.pathsep) if path]
    return next((path for path in listed if path.is_file()), listed[0] if listed else Path(paths))


def load(path: Path, *, credentials: bool = True) -> Access:
    """Without `credentials`, no plugin is asked for a token, and none is shown."""
    parts = _parts(path)
    server = str(parts.cluster.get("server", ""))
    url = settings.url(server)
    if not url or url.scheme != "https" or "?" in url.path:
        shown = http_syntax.without_user(server)
        raise NoAccessError(f"{path}: server: {shown!a} is invalid; expected an https:// URL without a user or a query")
    name = str(parts.cluster.get("tls-server-name") or "")
    token = _token(parts) if credentials else ""
    check_token(token, str(path))
    return Access(url.host, url.port, _context(parts), token, url.path.rstrip("/"), name)


def _parts(path: Path) -> _Parts:
    try:
        found = yaml.safe_load(_read(path))
    except yaml.YAMLError as why:
        raise NoAccessError(f"{path} is not YAML: {' '.join(str(why).split())}") from why
    if not isinstance(found, dict):
        raise NoAccessError(f"{path} is no kubeconfig: it holds no mapping")
    context = _named(path, found, "context", found.get("current-context"))
    cluster = _named(path, found, "cluster", context.get("cluster"))
    return _Parts(path, cluster, _named(path, found, "user", context.get("user")))


def _named(path: Path, found: Section, kind: str, name: object) -> Section:
    entries = found.get(f"{kind}s")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
            section: Section = entry[kind]
            return section
    raise NoAccessError(f"{path} has no {kind} called {name!r}")


def _context(parts: _Parts) -> ssl.SSLContext:
    authority = parts.content(parts.cluster, "certificate-authority")
    if parts.cluster.get("insecure-skip-tls-verify"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        context = trusting(authority, f"{parts.path}: certificate-authority")
    else:
        context = ssl.create_default_context()
    certificate, key = (parts.content(parts.user, f"client-{what}") for what in ("certificate", "key"))
    if certificate and key:
        _load(context, certificate + "\n" + key, parts.path)
    return context


def _load(context: ssl.SSLContext, chain: str, path: Path) -> None:
    """OpenSSL reads it from a file only; this one is ours alone, and gone at once."""
    with NamedTemporaryFile("w") as file:
        file.write(chain)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as why:
            raise NoAccessError(f"{path}: the client certificate and its key do not fit: {why.reason}") from why


def _token(parts: _Parts) -> str:
    if "auth-provider" in parts.user:
        raise NoAccessError(
            f"{parts.path} gets its credentials by auth-provider, which Kubernetes 1.26 gave up for exec"
        )
    plugin = parts.user.get("exec")
    if isinstance(plugin, dict):
        return _token_of(plugin, parts.path)
    if name := parts.user.get("tokenFile"):
        return _read(parts.path.parent / str(name)).strip()
    return str(parts.user.get("token") or "")


def _token_of(plugin: Section, path: Path) -> str:
    """What a credential plugin prints, such as the one of a cloud's command line."""
    version, command = str(plugin.get("apiVersion", "")), str(plugin.get("command", ""))
    if os.sep in command:
        command = str(path.parent / command)
    words, variables = _list(plugin, "args"), _list(plugin, "env")
    asked = {"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": False}}
    added = {str(one.get("name")): str(one.get("value") or "") for one in variables if isinstance(one, dict)}
    environ = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(asked), **added}
    where = f"{path}: the credential plugin {command}"
    try:
        done = subprocess.run(  # noqa: S603  the kubeconfig names the program, as for kubectl; no shell is involved
            [command, *map(str, words)],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PLUGIN_SECONDS,
            check=True,
        )
        token = json.loads(done.stdout)["status"]["token"]
    except OSError as why:
        raise NoAccessError(f"{where} cannot be run: {why.strerror}") from why
    except subprocess.TimeoutExpired as why:
        raise NoAccessError(f"{where} has no answer after {_PLUGIN_SECONDS} s") from why
    except subprocess.CalledProcessError as why:
        last = why.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NoAccessError(f"{where} ended with {why.returncode}: {last or 'it gave no reason'}") from why
    except (ValueError, KeyError, TypeError) as why:
        raise NoAccessError(f"{where} answered with no token; only plugins that give one work") from why
    if not token or not isinstance(token, str):
        raise NoAccessError(f"{where} answered with no token; only plugins that give one work")
    return token


def _list(section: Section, key: str) -> list[object]:
    found = section.get(key)
    return found if isinstance(found, list) else []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as why:
        raise NoAccessError(f"{path} cannot be read: {why.strerror}") from why
    except UnicodeDecodeError as why:
        raise NoAccessError(f"{path} is not text in UTF-8") from why
