"""A Docker config.json -> the logins that some images need, and nothing else of it.

Such a file is a person's own: it holds logins of other registries, the passwords of proxies and headers with tokens. A
pull secret is read by everyone who can read Secrets in the namespace, so only what a kubelet uses goes into it.
Keys are matched as the kubelet does (k8s.io/kubernetes/pkg/credentialprovider): by host with wildcards, by port,
and by the beginning of the path.
"""

import fnmatch
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from kubernetes_daemonset.syntax import image_parts

_HUB: Final = "docker.io"
_HUBS_OLD_NAME: Final = "index.docker.io"  # what `docker login` writes
_READ_BY_KUBELETS: Final = ("auth", "username", "password", "email")
_API_VERSIONS: Final = ("/v1/", "/v2/")
_HELPERS: Final = ("credsStore", "credHelpers")


@dataclass(frozen=True, slots=True)
class Logins:
    """What is left of a file: the text of a pull secret, empty if no login is of use."""

    text: str
    by_helper: bool = False
    """Whether the file names a credential helper, which may hold the missing logins."""


def read(text: str) -> Mapping[str, Any] | None:
    """The content of a Docker config.json; None if it is not one."""
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
    return Logins(json.dumps({"auths": kept}) if kept else "", by_helper=any(config.get(one) for one in _HELPERS))


def registry(image: str) -> str:
    return _full_name(image)[0]


def _login(entry: object) -> dict[str, str]:
    """Without what no kubelet reads, such as identity tokens; empty if it cannot log in."""
    if not isinstance(entry, dict):
        return {}
    kept = {key: value for key in _READ_BY_KUBELETS if isinstance(value := entry.get(key), str) and value}
    return kept if "auth" in kept or {"username", "password"} <= kept.keys() else {}


def _full_name(image: str) -> tuple[str, str]:
    """Registry and path, as runtimes complete them: `agent` is docker.io and /library/agent."""
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
    except ValueError:  # no address at all
        return False
    found = where.netloc.rpartition("@")[2]
    prefix = where.path[3:] if where.path.startswith(_API_VERSIONS) else where.path
    prefix = "" if prefix == "/" else prefix
    if host == _HUB and found == _HUBS_OLD_NAME:
        found = _HUB
    return _same_host(found, host) and path.startswith(prefix)


def _same_host(pattern: str, host: str) -> bool:
    """Equal ports, and part by part equal names, in which a * does not reach beyond a dot."""
    wanted, found = _parts(pattern), _parts(host)
    return len(wanted) == len(found) and all(map(fnmatch.fnmatchcase, found, map(_literal_brackets, wanted)))


def _parts(host: str) -> list[str]:
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal():
        return [*name.split("."), f":{port}"]
    return [*host.split("."), ":"]


def _literal_brackets(pattern: str) -> str:
    """Those of an IPv6 address; fnmatch would take them for a set of letters."""
    return pattern.replace("[", "[[]")
