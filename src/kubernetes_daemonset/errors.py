"""Errors about manifests. What is wrong, and where, is in their diagnostics."""

from collections.abc import Sequence
from typing import Final

from kubekit.diagnostics import Diagnostic, Location, Severity

_MOST: Final = 100


class ManifestError(Exception):
    """A manifest is invalid. Carries every error that was found, not only the first one."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("\n".join(map(str, first(diagnostics))))
        self.diagnostics = diagnostics


class UnreadableFileError(ManifestError):
    """A file cannot be read, so there is no manifest to validate."""


def first(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the first 100 diagnostics, warnings only if there are fewer errors, and one that counts the others.

    A small file can have a hundred thousand errors.
    """
    if len(diagnostics) <= _MOST:
        return list(diagnostics)
    is_warning = [diagnostic.severity is not Severity.ERROR for diagnostic in diagnostics]
    by_severity = sorted(range(len(diagnostics)), key=is_warning.__getitem__)
    shown, (left, *_) = sorted(by_severity[:_MOST]), by_severity[_MOST:]
    text = f"{len(diagnostics) - _MOST:,} more errors or warnings are not shown"
    rest = Diagnostic("", text, Location(diagnostics[left].location.source), diagnostics[left].severity)
    return [*(diagnostics[at] for at in shown), rest]
