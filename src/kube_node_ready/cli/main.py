"""Run the command line: parse the words, run the command, and report mistakes in them."""

import os
from collections.abc import Sequence

import click

from kube_node_ready.cli import ended
from kube_node_ready.cli.ended import Ended
from kube_node_ready.cli.program import program
from kube_node_ready.commands import COMPLETE, COMPLETE_VARIABLE
from kube_node_ready.exit_codes import ExitCode
from kubekit import usage


def run(prog: str, words: Sequence[str]) -> int:
    """Return the exit code. `prog` is how the program was called: `kube-node-ready` or `kubectl node-ready`."""
    return ended.run(prog, lambda: _run(prog, words))


def _run(prog: str, words: Sequence[str]) -> int:
    if words[:1] == [COMPLETE] or (not words and COMPLETE_VARIABLE in os.environ):
        from kube_node_ready.cli import completion  # noqa: PLC0415  the other commands do without

        return completion.answer(prog, words[1:])
    try:
        with program.make_context(prog, list(words) or ["--help"]) as context:
            code = program.invoke(context)
            assert isinstance(code, int), "every command returns one"
            return code
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        raise Ended(ExitCode.INVALID, usage.describe(error)) from error
