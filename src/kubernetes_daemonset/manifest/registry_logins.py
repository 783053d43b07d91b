"""Extract the registry credentials that some images need from a Docker config.json, and nothing else.

Such a file is personal: it contains credentials of other registries, proxy passwords and headers with tokens. A pull
secret can be read by everyone who can read Secrets in the namespace, so only what a kubelet uses is copied to it.
Keys are matched as in the kubelet (k8s.io/kubernetes/pkg/credentialprovider): by host with wildcards, by port,
and by path prefix.
"""

import fnmatch
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from kubekit.names import image_parts

_HUB: Final = "docker.io"
_HUBS_OLD_NAME: Final = "index.docker.io"  # what `docker login` writes
_READ_BY_KUBELETS: Final = ("auth", "username", "password", "email")
_API_VERSIONS: Final = ("/v1/", "/v2/")
_HELPERS: Final = ("credsStore", "credHelpers")


@dataclass(frozen=True, slots=True)
class Logins:
    """The extracted credentials: the content of a pull secret, empty if no credentials match."""

    text: str
    by_helper: bool = False
    """Whether the file names a credential helper, which might have the missing credentials."""


def read(text: str) -> Mapping[str, Any] | None:
    """Return the content of a Docker config.json, or None if it is not one."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("auths"), dict) else None


def needed(config: Mapping[str, Any], images: Iterable[str]) -> Logins:
    used = [_full_name(image) for image in images]
    kept = {
        key: login
        for key, entry in config["auths"].items()
        if any(_matches(key, *name) for name in used) and (login := _login(entry))
    }
    return Logins(json.dumps({"auths": kept}) if kept else "", by_helper=any(config.get(helper) for helper in _HELPERS))


def registry(image: str) -> str:
    return _full_name(image)[0]


def _login(entry: object) -> dict[str, str]:
    """Return the fields that a kubelet reads, which excludes identity tokens; empty if they are not sufficient."""
    if not isinstance(entry, dict):
        return {}
    kept = {key: value for key in _READ_BY_KUBELETS if isinstance(value := entry.get(key), str) and value}
    return kept if "auth" in kept or {"username", "password"} <= kept.keys() else {}


def _full_name(image: str) -> tuple[str, str]:
    """Return registry and path, completed as runtimes do: `agent` is docker.io and /library/agent."""
    repository, _, _ = image_parts(image)
    first, slash, rest = repository.partition("/")
    if not slash or not (set(".:") & set(first) or first == "localhost"):
        first, rest = _HUB, repository
    if first == _HUBS_OLD_NAME:
        first = _HUB
    if first == _HUB and "/" not in rest:
        rest = f"library/{rest}"
    return first, f"/{rest}"


def _matches(key: str, host: str, path: str) -> bool:
    try:
        where = urlsplit(key if key.startswith(("http://", "https://")) else f"https://{key}")
    except ValueError:  # not an address
        return False
    registry_host = where.netloc.rpartition("@")[2]
    prefix = where.path[3:] if where.path.startswith(_API_VERSIONS) else where.path
    prefix = "" if prefix == "/" else prefix
    if host == _HUB and registry_host == _HUBS_OLD_NAME:
        registry_host = _HUB
    return _same_host(registry_host, host) and path.startswith(prefix)


def _same_host(pattern: str, host: str) -> bool:
    """Return whether ports and all parts of the names match; a * does not match a dot."""
    wanted, found = _parts(pattern), _parts(host)
    return len(wanted) == len(found) and all(map(fnmatch.fnmatchcase, found, map(_literal_brackets, wanted)))


def _parts(host: str) -> list[str]:
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal():
        return [*name.split("."), f":{port}"]
    return [*host.split("."), ":"]


def _literal_brackets(pattern: str) -> str:
    """Escape the brackets of an IPv6 address, which fnmatch would read as a character set."""
    return pattern.replace("[", "[[]")
