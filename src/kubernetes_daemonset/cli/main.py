"""The entry point: parse the command line, run its command, and map errors to exit codes.

Exit codes: 0 success; 1 `validate` found errors or `diff` found differences; 2 the input is invalid and nothing was
changed; 3 the cluster rejected a request or is unreachable; 4 the rollout did not finish in time; 10 unexpected error.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from kubekit import streams
from kubekit.terminal import on_one_line
from kubernetes_daemonset.cli import exit_codes


def main(argv: Sequence[str] | None = None) -> NoReturn:
    gc.disable()  # the process exits before a collection would pay off
    streams.prepare("backslashreplace")
    try:
        try:
            sys.exit(_run(sys.argv[1:] if argv is None else list(argv)))
        finally:  # also of --help and --version
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("\nkubernetes-daemonset: interrupted; run it again to continue\n")
        sys.exit(exit_codes.INTERRUPTED)
    except BrokenPipeError:
        streams.discard_output()
        sys.exit(exit_codes.BROKEN_PIPE)
    except OSError as error:
        streams.discard_output()
        sys.stderr.write(f"kubernetes-daemonset: cannot write to standard output: {error.strerror}\n")
        sys.exit(exit_codes.BAD_INPUT)
    except Exception as error:  # noqa: BLE001 - a bug, or a server that does not conform to Kubernetes
        sys.stderr.write(f"{on_one_line(f'kubernetes-daemonset: unexpected {type(error).__name__}: {error}')}\n")
        sys.exit(exit_codes.UNEXPECTED)


def _run(words: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        import click  # noqa: PLC0415 - an extra of the distribution

        from kubekit import completion, usage  # noqa: PLC0415 - they need click
        from kubernetes_daemonset.cli.commands import COMPLETE_VARIABLE, PROGRAM, program  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        text = "the Python package click is not installed; run pip install '.[component]' in a checkout"
        sys.stderr.write(f"kubernetes-daemonset: {text}\n")
        return exit_codes.BAD_INPUT
    if not words and COMPLETE_VARIABLE in os.environ:
        completions = completion.answer(program, PROGRAM, COMPLETE_VARIABLE)
        if completions is None:
            return exit_codes.BAD_INPUT
        sys.stdout.write(f"{completions}\n")
        return exit_codes.OK
    try:
        if not words:
            sys.stderr.write(f"{program.get_help(click.Context(program, info_name='kubernetes-daemonset'))}\n")
            return exit_codes.BAD_INPUT
        with program.make_context("kubernetes-daemonset", words) as context:
            code: int = program.invoke(context)
            return code
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        for line in f"kubernetes-daemonset: {usage.describe(error)}".split("\n"):
            sys.stderr.write(f"{on_one_line(line)}\n")  # an argument can contain untrusted text from a script
        return exit_codes.BAD_INPUT
