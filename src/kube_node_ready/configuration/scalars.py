"""What a written text means, once it is known what it should be."""

import re
from datetime import timedelta
from decimal import Decimal
from enum import Enum, auto

from msgspec import inspect

from kube_node_ready.configuration.document import Node, Scalar, Series, is_null
from kube_node_ready.configuration.schema import Kind


class Unusable(Enum):
    """Not even a default can stand in for what was written."""

    UNUSABLE = auto()


UNUSABLE = Unusable.UNUSABLE

_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# Leading zeros, underscores, colons and hexadecimal digits are numbers to some YAML readers, and other ones to others.
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]{0,29})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")
_DURATION = re.compile(
    r"(?=[0-9])" + "".join(rf"(?:([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?){unit})?" for unit in ("h", "m(?!s)", "s", "ms"))
)
_UNITS = (Decimal(3600), Decimal(60), Decimal(1), Decimal("0.001"))
_LONGEST = Decimal(31_536_000)


def meaning(text: str, kind: Kind) -> object:
    """The value, or UNUSABLE."""
    match kind.type:
        case inspect.BoolType():
            return _TRUTHS.get(text.lower(), UNUSABLE)
        case inspect.IntType() | inspect.FloatType():
            return _number(text, kind.type)
        case inspect.TimeDeltaType():
            return _duration(text)
        case inspect.LiteralType(values):
            return text if text in values else UNUSABLE
        case inspect.StrType(max_length=most, pattern=pattern):
            too_long = most is not None and len(text) > most
            return UNUSABLE if too_long or (pattern and not re.search(pattern, text)) else text
        case _:
            return text


def plain(node: Node) -> object:
    """What JSON would say, for what is passed on as it is."""
    if is_null(node):
        return None
    if isinstance(node, Scalar):
        return node.text if node.quoted else _guess(node.text)
    if isinstance(node, Series):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.entries.items()}


def _guess(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)


def _number(text: str, wanted: inspect.IntType | inspect.FloatType) -> float | Unusable:
    if not _NUMBER.fullmatch(text):
        return UNUSABLE
    exact = Decimal(text)
    is_whole = exact == exact.to_integral_value()
    if isinstance(wanted, inspect.IntType) and not is_whole:
        return UNUSABLE
    number = int(exact) if is_whole else float(exact)
    too_small = (wanted.ge is not None and number < wanted.ge) or (wanted.gt is not None and number <= wanted.gt)
    too_large = wanted.le is not None and number > wanted.le
    return UNUSABLE if too_small or too_large else number


def _duration(text: str) -> timedelta | Unusable:
    if _NUMBER.fullmatch(text):
        seconds = Decimal(text)
    elif match := _DURATION.fullmatch(text):
        seconds = sum(
            (Decimal(part or 0) * unit for part, unit in zip(match.groups(), _UNITS, strict=True)), Decimal(0)
        )
    else:
        return UNUSABLE
    return timedelta(seconds=float(seconds)) if 0 < seconds <= _LONGEST else UNUSABLE
