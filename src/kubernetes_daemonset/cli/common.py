"""Shared by all commands: reading manifests, and reporting errors."""

import sys
from types import SimpleNamespace

from kubekit.diagnostics import Diagnostic
from kubekit.terminal import on_one_line
from kubernetes_daemonset.cli import exit_codes, output, sources
from kubernetes_daemonset.errors import ManifestError, UnreadableFileError, first
from kubernetes_daemonset.manifest.reader import Loaded
from kubernetes_daemonset.validation.validate import errors, validate


class Ended(Exception):  # noqa: N818 - not always an error
    """The command stops with a message and an exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def read(arguments: SimpleNamespace) -> list[Loaded]:
    """Read all manifests. Raises ManifestError with all diagnostics, or UnreadableFileError for an unreadable file."""
    result = sources.read(arguments.file, arguments.set, arguments.docker_config)
    if result.unreadable:
        raise UnreadableFileError([*result.unreadable, *result.diagnostics, *errors(findings(result.loaded))])
    if result.diagnostics:
        raise ManifestError(result.diagnostics)
    return result.loaded


def findings(loaded: list[Loaded]) -> list[Diagnostic]:
    """Return the diagnostics of all manifests and of their collisions, without duplicates from shared flags."""
    diagnostics = list(dict.fromkeys(diagnostic for manifest in loaded for diagnostic in validate(manifest)))
    return diagnostics if errors(diagnostics) else diagnostics + sources.collisions(loaded)


def valid(arguments: SimpleNamespace) -> list[Loaded]:
    """Return the manifests if all of them are valid. Warnings are printed."""
    loaded = read(arguments)
    diagnostics = findings(loaded)
    if wrong := errors(diagnostics):
        raise ManifestError(wrong)
    for diagnostic in first(diagnostics):
        _write(output.format_diagnostic(diagnostic, sys.stderr))
    return loaded


def report_invalid(error: ManifestError) -> int:
    for diagnostic in first(error.diagnostics):
        _write(output.format_diagnostic(diagnostic, sys.stderr))
    return exit_codes.BAD_INPUT


def end(ended: Ended) -> int:
    """Print the message and return the exit code. Further lines are indented, so that none looks like a message."""
    first, *more = str(ended).split("\n")
    say(f"kubernetes-daemonset: {first}")
    for line in more:
        say(f"  {line}")
    return ended.code


def say(text: str) -> None:
    _write(on_one_line(text))


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
