"""Read /etc/resolv.conf and /etc/hosts, as far as the checks need them."""

import contextlib

from kube_node_ready.checks import files
from kube_node_ready.checks.fast_tuple import FastTuple

RESOLV_CONF = "/etc/resolv.conf"
HOSTS = "/etc/hosts"
_DEFAULT_SERVER = "127.0.0.1"  # as resolv.conf(5) defines it
_MOST_SERVERS = 3  # libc ignores the rest
_LONGEST_NAME, _LONGEST_LABEL = 253, 63


class Resolver(FastTuple):
    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    by_tcp: bool = False

    def candidates(self, name: str) -> tuple[str, ...]:
        """Return the full names that libc tries for this name.

        In another order: a name with a dot is first taken as complete. In a cluster, libc would look for it in every
        search domain first, so the Service `example` in the namespace `com` could answer for example.com.
        """
        if name.endswith("."):
            return (name,)
        longer = tuple(full for domain in self.search if len(full := f"{name}.{domain}") <= _LONGEST_NAME)
        return (name, *longer) if can_be_complete(name) else (*longer, name)

    @property
    def shown(self) -> str:
        return ", ".join(self.servers) or f"no server: {RESOLV_CONF} lists none"


def can_be_complete(name: str) -> bool:
    """Whether a name without a final dot is first looked up without search domains."""
    return "." in name and not name.endswith(".")


def read() -> Resolver:
    """Read resolv.conf. Without the file, or without a server in it, libc queries this machine."""
    config = Resolver()
    with contextlib.suppress(OSError):
        for line in files.read(RESOLV_CONF).splitlines():
            config = _with_line(config, line.split())
    return config


def servers(resolver: Resolver) -> tuple[str, ...]:
    return resolver.servers or (_DEFAULT_SERVER,)


def _with_line(config: Resolver, words: list[str]) -> Resolver:
    match words:
        case ["nameserver", server, *_] if len(config.servers) < _MOST_SERVERS:
            return config._replace(servers=(*config.servers, server))
        case ["search" | "domain", *domains]:
            plain = (domain.strip(".").lower() for domain in domains)
            return config._replace(search=tuple(domain for domain in plain if _is_name(domain)))
        case ["options", *options]:
            return config._replace(by_tcp=config.by_tcp or "use-vc" in options)
    return config


def _is_name(text: str) -> bool:
    return text.isascii() and all(0 < len(label) <= _LONGEST_LABEL for label in text.split("."))


def is_in_hosts_file(name: str) -> bool:
    """Whether the name is in the hosts file, so that DNS is not queried for it."""
    plain = name.rstrip(".").lower()
    with contextlib.suppress(OSError):
        lines = (line.partition("#")[0].lower().split()[1:] for line in files.read(HOSTS).splitlines())
        return any(plain in names for names in lines)
    return False
