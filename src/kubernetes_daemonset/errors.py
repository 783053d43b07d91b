"""Errors about manifests. What is wrong, and where, is in their diagnostics."""

from kubekit.diagnostics import Diagnostic


class ManifestError(Exception):
    """A manifest is invalid. Carries every error that was found, not only the first one."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics


class UnreadableFileError(ManifestError):
    """A file cannot be read, so there is no manifest to validate."""
