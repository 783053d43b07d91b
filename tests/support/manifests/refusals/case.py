"""What a case is, and what several of them need."""

from typing import NamedTuple

from tests.component import Changes, Json


class Refusal(NamedTuple):
    """One mistake, and the one finding that tells of it."""

    what: str
    changes: Changes
    path: str
    says: str


def rows(*cases: tuple[str, Json, str, str]) -> tuple[tuple[str, Json, str, str], ...]:
    """What is said of each case, told to the type checker."""
    return cases


def a_probe(**fields: object) -> Json:
    return {"tcp_socket": {"port_number": 80}} | fields
