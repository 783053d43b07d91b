"""Readers: each turns what was written into a value. `expected` completes the message "… is invalid; expected …".

Two families, because their inputs differ and each accepts what it always has:

- `Whole` to `TextList` read values of JSON and YAML, and text from environment variables and flags: for the worker and
  for DaemonSet mode;
- `Number` to `Raw` read text only, as the controller's YAML has it, where the field decides what a text means.

Standard library only. Patterns are compiled when they are used: a worker starts on every new node and reads few of
these values.
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

YEAR_SECONDS = 31_536_000
_NUMBER = r"\d+(\.\d+)?"
_WHOLE = r"[0-9]{1,9}"
# Leading zeros, underscores, colons and hexadecimal digits are numbers to some YAML readers, and other ones to others.
_YAML_NUMBER = r"[+-]?(0|[1-9][0-9]{0,29})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?"
_DURATION_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


class Invalid:
    """The type of `INVALID`."""


INVALID: "Final" = Invalid()
"""What a reader returns for a value that it does not accept."""


class Reader:
    expected = "text"
    accepts_null = False

    def parse(self, value: object) -> object:
        """Return what the value means, or INVALID."""
        raise NotImplementedError

    def problem(self, value: object) -> "tuple[object, str]":
        """Return the part of an invalid value that is wrong, and what was expected of it."""
        return value, self.expected


def is_null(value: object) -> bool:
    """Return whether this is a null of JSON, or of YAML, whose nodes know it."""
    return value is None or getattr(value, "is_null", False)


def plain(value: object) -> object:
    """Return what JSON would have, of JSON or of YAML nodes: for values that are passed on as they are."""
    if is_null(value):
        return None
    if isinstance(value, str):
        return str(value) if getattr(value, "quoted", True) else _guess(str(value))
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def _guess(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    if not re.fullmatch(_YAML_NUMBER, text):
        return text
    from decimal import Decimal  # noqa: PLC0415  no worker needs it

    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)


def listed(words: "tuple[str, ...]") -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


# Values of JSON, and text wherever a variable or a flag could have it


class Whole(Reader):
    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.expected = f"a whole number from {least} to {most}"

    def parse(self, value: object) -> object:
        if isinstance(value, str) and re.fullmatch(_WHOLE, value):
            value = int(value)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return value if is_whole and self.least <= value <= self.most else INVALID  # type: ignore[operator]


def _number(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    if re.fullmatch(_NUMBER, value):
        return float(value)
    from kubekit import durations  # noqa: PLC0415  the controller passes numbers to its workers

    return durations.parse(value, float, number=durations.UNICODE_NUMBER, bare=False)


class Seconds(Reader):
    def __init__(self, most: int) -> None:
        self.most = most
        self.expected = f'seconds above 0 and up to {most}, such as 10 or "10s"'

    def parse(self, value: object) -> object:
        number = _number(value)
        return number if number is not None and 0 < number <= self.most else INVALID


class Percentage(Reader):
    most = 100
    expected = f"a percentage from 0 to below {most}, such as 5"

    def parse(self, value: object) -> object:
        number = None if isinstance(value, str) and not re.fullmatch(_NUMBER, value) else _number(value)
        return number if number is not None and 0 <= number < self.most else INVALID


class Switch(Reader):
    expected = "true or false"

    def parse(self, value: object) -> object:
        word = str(value).lower()
        return word in _YES if isinstance(value, (bool, str)) and word in _YES + _NO else INVALID


class OneOf(Reader):
    """Words in any case."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = listed(words)

    def parse(self, value: object) -> object:
        return value.lower() if isinstance(value, str) and value.lower() in self.words else INVALID


class TextThat(Reader):
    def __init__(self, is_valid: "Callable[[str], object]", expected: str) -> None:
        self.is_valid = is_valid
        self.expected = expected

    def parse(self, value: object) -> object:
        return value if isinstance(value, str) and self.is_valid(value) else INVALID


class TextList(Reader):
    """A list of texts, or one text with commas. Repeated ones count once."""

    def __init__(self, is_valid: "Callable[[str], object]", item: str, most: int) -> None:
        self.is_valid = is_valid
        self.item = item
        self.most = most
        self.expected = f"a list of at most {most}, each {item}"

    def parse(self, value: object) -> object:
        items = self._items(value)
        is_list = isinstance(items, (list, tuple)) and len(items) <= self.most
        return tuple(dict.fromkeys(items)) if is_list and not self._odd(items) else INVALID  # type: ignore[call-overload]

    def problem(self, value: object) -> "tuple[object, str]":
        items = self._items(value)
        if not isinstance(items, (list, tuple)) or len(items) > self.most:
            return value, self.expected
        return self._odd(items)[0], self.item

    def _odd(self, items: object) -> list[object]:
        assert isinstance(items, (list, tuple))
        return [item for item in items if not isinstance(item, str) or not self.is_valid(item)]

    @staticmethod
    def _items(value: object) -> object:
        return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value


# Text, as the controller's YAML has it


class Number(Reader):
    """`above` excludes the least number itself."""

    def __init__(self, least: int, most: int, *, whole: bool = False, above: bool = False) -> None:
        self.least, self.most, self.whole, self.above = least, most, whole, above
        bounds = f"above {least} and at most {most}" if above else f"from {least} to {most}"
        self.expected = f"a {'whole ' if whole else ''}number {bounds}"

    def parse(self, value: object) -> object:
        if not isinstance(value, str) or not re.fullmatch(_YAML_NUMBER, value):
            return INVALID
        from decimal import Decimal  # noqa: PLC0415  no worker needs it

        exact = Decimal(value)
        is_whole = exact == exact.to_integral_value()
        number = int(exact) if is_whole else float(exact)
        is_enough = number > self.least if self.above else number >= self.least
        return number if (is_whole or not self.whole) and is_enough and number <= self.most else INVALID


class Boolean(Reader):
    expected = "true or false"
    _words = (("true", "yes", "on", "1"), ("false", "no", "off", "0"))

    def parse(self, value: object) -> object:
        word = value.lower() if isinstance(value, str) else ""
        return word in self._words[0] if any(word in words for words in self._words) else INVALID


class Duration(Reader):
    expected = "a duration such as 15s, 1m30s or 500ms"

    def parse(self, value: object) -> object:
        if not isinstance(value, str):
            return INVALID
        from datetime import timedelta  # noqa: PLC0415  no worker needs it
        from decimal import Decimal  # noqa: PLC0415

        from kubekit import durations  # noqa: PLC0415

        if re.fullmatch(_YAML_NUMBER, value):
            seconds: Decimal | None = Decimal(value)
        else:
            seconds = durations.parse(value, Decimal, number=_DURATION_NUMBER, bare=False)
        is_right = seconds is not None and 0 < seconds <= YEAR_SECONDS
        return timedelta(seconds=float(seconds)) if is_right and seconds is not None else INVALID


class Choice(Reader):
    """Words as they are written here."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = listed(words)

    def parse(self, value: object) -> object:
        return str(value) if isinstance(value, str) and value in self.words else INVALID


class Pattern(Reader):
    """Text that matches as a whole. With `empty`, the empty text stands for none."""

    def __init__(self, pattern: str, expected: str, *, longest: int = 0, empty: bool = False) -> None:
        self.pattern, self.longest, self.empty = pattern, longest, empty
        self.expected = expected

    def parse(self, value: object) -> object:
        if not isinstance(value, str):
            return INVALID
        is_short = not self.longest or len(value) <= self.longest
        is_right = is_short and re.fullmatch(self.pattern, value)
        return str(value) if is_right or (self.empty and not value) else INVALID

    def or_empty(self) -> "Pattern":
        return Pattern(self.pattern, self.expected, longest=self.longest, empty=True)


class Raw(Reader):
    """Any value, passed on as it is."""

    expected = "any value"
    accepts_null = True

    def parse(self, value: object) -> object:
        return plain(value)


class Plain(Reader):
    """A field of the worker's in a YAML file: its own reader gets what JSON would have."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.expected = reader.expected

    def parse(self, value: object) -> object:
        parsed = self.reader.parse(plain(value))
        return list(parsed) if isinstance(parsed, tuple) else parsed

    def problem(self, value: object) -> "tuple[object, str]":
        return self.reader.problem(plain(value))
