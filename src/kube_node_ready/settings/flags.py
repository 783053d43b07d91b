"""Flags of the daemons: a table of them, for the help and for reading the command line.

Everything that is wrong with a command line is reported, not only the first mistake, and never as a text of argparse,
which only writes the help. Standard library only: the worker uses it as well.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kube_node_ready.settings.engine import Field
from kube_node_ready.settings.readers import Boolean, Switch
from kubekit.diagnostics import Diagnostic, quoted
from kubekit.suggestions import did_you_mean

_IMMEDIATE = ("-h", "--help", "--version")
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Flag(NamedTuple):
    name: str
    metavar: str
    """What its value is called; empty if it takes none."""
    about: str
    expected: str = ""
    is_switch: bool = False
    """Its value can be left out, and is true then."""
    short: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return (f"-{self.short}", f"--{self.name}") if self.short else (f"--{self.name}",)


class Arguments(NamedTuple):
    """What a command line sets, by the names of flags, and what is wrong with it."""

    flags: dict[str, str]
    diagnostics: list[Diagnostic]


def of_field(field: Field, about: str) -> Flag:
    if isinstance(field.reader, (Boolean, Switch)):
        return Flag(field.flag, "true|false", about, field.reader.expected, is_switch=True)
    return Flag(field.flag, field.flag.rpartition("-")[2].upper(), about, field.reader.expected)


def add_to_help(parser: argparse.ArgumentParser, flags: Iterable[Flag], title: str = "", about: str = "") -> None:
    group = parser.add_argument_group(title, about) if title else parser
    for flag in flags:
        if flag.metavar:
            nargs = "?" if flag.is_switch else None
            group.add_argument(*flag.words, metavar=flag.metavar, help=flag.about, nargs=nargs)
        else:
            group.add_argument(*flag.words, action="store_true", help=flag.about)


def unexpected_argument(word: str) -> Diagnostic:
    return Diagnostic("", f"unexpected argument {quoted(word)}")


def parse(
    parser: argparse.ArgumentParser,
    words: Sequence[str],
    flags: Iterable[Flag],
    unexpected: Callable[[str], Diagnostic] = unexpected_argument,
) -> Arguments:
    """Read the command line. The parser has the help, which is printed if it is requested, as is the version."""
    for word in words:
        if word in _IMMEDIATE:
            parser.parse_args([word])
    by_word = {word: flag for flag in flags for word in flag.words}
    arguments = Arguments({}, [])
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            arguments.diagnostics.extend(map(unexpected, reversed(rest)))
            break
        if _is_value(word):
            arguments.diagnostics.append(unexpected(word))
        else:
            _read(word, rest, by_word, arguments)
    return arguments


def _read(word: str, rest: list[str], by_word: dict[str, Flag], arguments: Arguments) -> None:
    """Read one flag. Its value is in the same word, or in the next one, which is taken from the rest."""
    name, equals, text = word.partition("=")
    if name not in by_word and name[:2] in by_word:  # -v4
        name, equals, text = word[:2], "=", word[2:]
    flag = by_word.get(name)
    takes_one = flag is None or flag.metavar
    value = text if equals else rest.pop() if takes_one and rest and _is_value(rest[-1]) else None
    if flag is None:
        arguments.diagnostics.append(_unknown(name, by_word))
    elif value is not None and not takes_one:
        arguments.diagnostics.append(Diagnostic(name, f"{quoted(value)} is invalid; expected no value"))
    elif value is None and flag.metavar and not flag.is_switch:
        arguments.diagnostics.append(Diagnostic(name, f"is missing its value; expected {flag.expected}"))
    else:
        arguments.flags[flag.name] = "true" if value is None else value


def _is_value(word: str) -> bool:
    return word in ("", "-") or not word.startswith("-") or _NEGATIVE_NUMBER.fullmatch(word) is not None


def _unknown(name: str, known: Iterable[str]) -> Diagnostic:
    long = [word for word in (*known, *_IMMEDIATE) if word.startswith("--")]
    meant = did_you_mean(name, long)
    return Diagnostic(name, f"unknown flag; {f'did you mean {meant}?' if meant else '--help lists all of them'}")
