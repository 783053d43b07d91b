"""The verb `validate`. It is run most, by editors and hooks too, and waits for no module that other verbs need."""

import argparse

from kubernetes_daemonset import exits, show, verbs
from kubernetes_daemonset.mistakes import ManifestError, UnreadableError
from kubernetes_daemonset.validate import errors


def run(_verb: str, arguments: argparse.Namespace) -> int:
    try:
        return _validate(arguments)
    except UnreadableError as why:
        return verbs.refuse(why)


def _validate(arguments: argparse.Namespace) -> int:
    count = 0
    try:
        loaded = verbs.read(arguments)
        count = len(loaded)
        found = verbs.findings(loaded)
    except UnreadableError:
        raise
    except ManifestError as why:
        found = why.mistakes
    wrong = len(errors(found))
    if arguments.output == "json":
        print(show.as_json(show.mistakes_as_json(found)))
    else:
        for one in found:
            print(show.mistake(one))
        print(f"{_many(wrong, 'error')}" if wrong else f"{_many(count, 'manifest')} valid")
    return exits.FOUND if wrong else exits.OK


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
