"""Kubernetes quantities such as 250m, 64Mi or 1e3.

`parse` accepts everything that an API server does, within bounds: the component passes quantities on as they are
written. The controller's configuration accepts only `UNSIGNED_PATTERN`: no sign, no n and u, no exponent with a capital
E, which is also the suffix for 10^18. Every text that matches it is a quantity for `parse`.

Patterns are compiled when they are used: every process that reads the configuration imports this module.
"""

import re
from decimal import Decimal
from typing import Final

UNSIGNED_PATTERN: Final = r"[0-9]{1,15}(\.[0-9]{1,9})?(m|k|Ki|[MGTPE]i?|e[0-9]{1,2})?"

_SUFFIXES: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    **{letter: Decimal(10 ** (3 * power)) for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": Decimal(2 ** (10 * power)) for power, letter in enumerate("KMGTPE", start=1)},
}
# More digits than any quantity has would be rounded, and numbers with larger exponents would take minutes to print.
_QUANTITY: Final = (
    r"(?P<number>[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30}))"
    r"((?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
# Units as disks and other programs write them.
_MISSPELLED: Final = r"(?P<number>[0-9]{1,30}(\.[0-9]{1,30})?) ?(?P<unit>[kmgtpe]i?b?)"


def parse(text: str) -> Decimal | None:
    """Return the amount, or None if the text is not a quantity."""
    match = re.fullmatch(_QUANTITY, text)
    if not match:
        return None
    number = Decimal(match["number"])
    if match["exponent"]:
        return number.scaleb(int(match["exponent"]))
    return number * _SUFFIXES[match["suffix"] or ""]


def exceeds(text: str, limit: str) -> bool:
    """Return whether a quantity is more than a limit. Other text is not comparable."""
    amount, most = parse(text), parse(limit)
    return amount is not None and most is not None and amount > most


def suggest(text: str) -> str:
    """Return how Kubernetes writes what 10GB, 1gi or 512 MiB mean, or "" if that is not clear."""
    match = re.fullmatch(_MISSPELLED, text, re.IGNORECASE)
    if not match:
        return ""
    number, unit = match["number"], match["unit"].lower().removesuffix("b")
    return f"{number}{unit if unit == 'k' else unit.capitalize()}"
