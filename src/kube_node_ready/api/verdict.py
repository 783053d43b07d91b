"""The verdict of a check, as workers report it and as others read it."""

from enum import StrEnum  # costs the worker nothing: `signal` imports it anyway, and this class takes 0.1 ms


class Verdict(StrEnum):
    """What a check found out. The values are part of the worker's report."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It cannot be checked from here, for example outside a pod. It proves nothing, so it never opens a gate."""
    INCONCLUSIVE = "inconclusive"
    """It could not be determined whether the node is at fault."""
    NOT_APPLICABLE = "not-applicable"
    """There is nothing to check: for example, no other node runs a pod to connect to."""

    @property
    def ok(self) -> bool:
        """Whether the check did not fail. Whether that is a proof depends on what was skipped."""
        return self in _OK

    @property
    def text(self) -> str:
        """The verdict as logs and tables show it."""
        return _TEXTS.get(self, self.value)


_OK = (Verdict.PASSED, Verdict.SKIPPED, Verdict.NOT_APPLICABLE)
_TEXTS = {Verdict.INCONCLUSIVE: "not judged", Verdict.NOT_APPLICABLE: "not applicable"}
