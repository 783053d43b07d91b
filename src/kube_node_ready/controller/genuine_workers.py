"""Which worker pods are genuine: they run what the API server made of the controller's template, and were never edited.

What such a pod runs is known by its fingerprint: from the response to its creation or, after a restart of the
controller, to a dry run of one. See docs/decisions/0008-genuine-workers.md.
"""

from kube_node_ready.verification.model import Worker

_MAX_FINGERPRINTS = 10_000
"""Usually there is one. Admission can also change every pod differently."""


class GenuineWorkers:
    def __init__(self) -> None:
        self._fingerprints: dict[str, None] = {}
        self._edited: set[str] = set()

    @property
    def any_admitted(self) -> bool:
        """Until a worker is admitted, any pod can be one that a previous process created."""
        return bool(self._fingerprints)

    def admit(self, fingerprint: str) -> list[str]:
        """The server created a worker with this fingerprint from our template. Return the fingerprints that changed."""
        if fingerprint in self._fingerprints:
            return []
        self._fingerprints[fingerprint] = None
        if len(self._fingerprints) <= _MAX_FINGERPRINTS:
            return [fingerprint]
        oldest = next(iter(self._fingerprints))
        del self._fingerprints[oldest]
        return [fingerprint, oldest]

    def changed(self, before: Worker | None, after: Worker, *, is_known: bool) -> None:
        """Note an edit, also one that was reverted: the pod ran something else meanwhile."""
        if before and before.uid == after.uid and before.fingerprint != after.fingerprint:
            self._edited.add(after.uid)
        # It might have been edited and edited back while no controller was watching.
        if not is_known and after.generation > 1 + after.deleting:
            self._edited.add(after.uid)

    def forget(self, uid: str) -> None:
        self._edited.discard(uid)

    def is_edited(self, worker: Worker) -> bool:
        return worker.uid in self._edited

    def is_genuine(self, worker: Worker) -> bool:
        return worker.fingerprint in self._fingerprints and worker.uid not in self._edited
