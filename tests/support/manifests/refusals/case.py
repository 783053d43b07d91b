"""The type of a case, and shared helpers."""

from typing import NamedTuple

from tests.support.manifests.builders import Changes, Json


class Refusal(NamedTuple):
    """One invalid manifest, and the one finding that reports it."""

    what: str
    changes: Changes
    path: str
    says: str


def rows(*cases: tuple[str, Json, str, str]) -> tuple[tuple[str, Json, str, str], ...]:
    """Return the cases, typed for the type checker."""
    return cases


def a_probe(**fields: object) -> Json:
    return {"tcp_socket": {"port_number": 80}} | fields
