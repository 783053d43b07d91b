"""What every verb has in common: manifests from the command line, and how to end."""

import argparse
import sys

from kubernetes_daemonset import exits, show, sources
from kubernetes_daemonset.manifest import Loaded
from kubernetes_daemonset.mistakes import ManifestError, Mistake, UnreadableError
from kubernetes_daemonset.terminal import on_one_line
from kubernetes_daemonset.validate import errors, validate


class Ended(Exception):  # noqa: N818  it says what happened
    """One sentence for the user, and the exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def read(arguments: argparse.Namespace) -> list[Loaded]:
    """Raises one ManifestError with the mistakes of all files; an UnreadableError, if one of them is not there."""
    found = sources.read(arguments.file, arguments.set, arguments.docker_config)
    if found.unreadable:
        raise UnreadableError([*found.unreadable, *found.mistakes, *errors(findings(found.loaded))])
    if found.mistakes:
        raise ManifestError(found.mistakes)
    return found.loaded


def findings(loaded: list[Loaded]) -> list[Mistake]:
    """Of all manifests, and of what they would both make. What the command line gives to all of them is said once."""
    found = list(dict.fromkeys(one for manifest in loaded for one in validate(manifest)))
    return found if errors(found) else found + sources.collisions(loaded)


def valid(arguments: argparse.Namespace) -> list[Loaded]:
    """The manifests, if there is nothing wrong with any of them; warnings are said and do not stop anything."""
    loaded = read(arguments)
    found = findings(loaded)
    if wrong := errors(found):
        raise ManifestError(wrong)
    for one in found:
        _write(show.mistake(one, sys.stderr))
    return loaded


def refuse(why: ManifestError) -> int:
    for one in why.mistakes:
        _write(show.mistake(one, sys.stderr))
    return exits.BAD_INPUT


def end(why: Ended) -> int:
    """Further lines are indented, so that none can pass for a message of its own."""
    first, *more = str(why).split("\n")
    say(f"kubernetes-daemonset: {first}")
    for line in more:
        say(f"  {line}")
    return why.code


def say(text: str) -> None:
    _write(on_one_line(text))


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
