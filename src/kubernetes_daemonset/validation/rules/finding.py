"""What a rule finds."""

from dataclasses import dataclass

from kubernetes_daemonset.mistakes import Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """A field, and what is wrong with it."""

    path: str
    text: str
    because: tuple[str, ...] = ()
    """Other fields that it would not be found without; if one of them could not be read, it is not certain."""
    severity: Severity = Severity.ERROR
