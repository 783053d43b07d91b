"""Kubernetes' way to write amounts, as far as two of them can be compared."""

import re
from decimal import Decimal
from typing import Final

_SUFFIXES: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    **{f"{letter}i": Decimal(2 ** (10 * power)) for power, letter in enumerate("KMGTPE", start=1)},
}
# More digits than any amount has would be rounded, and larger exponents would make numbers that take minutes to write.
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30}))((?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
# Units as disks and other programs write them.
_MISSPELT: Final = re.compile(r"(?P<number>[0-9]{1,30}(\.[0-9]{1,30})?) ?(?P<unit>[kmgtpe]i?b?)", re.IGNORECASE)


def parsed(text: str) -> Decimal | None:
    """The amount; None if the text is none."""
    found = _QUANTITY.fullmatch(text)
    if not found:
        return None
    number = Decimal(found["number"])
    if found["exponent"]:
        return number.scaleb(int(found["exponent"]))
    return number * _SUFFIXES[found["suffix"] or ""]


def nearest(text: str) -> str:
    """How Kubernetes writes what 10GB, 1gi or 512 MiB mean; empty if that is not clear."""
    found = _MISSPELT.fullmatch(text)
    if not found:
        return ""
    number, unit = found["number"], found["unit"].lower().removesuffix("b")
    return f"{number}{unit if unit == 'k' else unit.capitalize()}"
