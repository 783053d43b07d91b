"""The result type of rules."""

from dataclasses import dataclass

from kubekit.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """A field, and what is wrong with it."""

    path: str
    text: str
    because: tuple[str, ...] = ()
    """Other fields that the finding depends on; if one of them cannot be read, the finding is uncertain."""
    severity: Severity = Severity.ERROR
