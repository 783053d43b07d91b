"""All manifests that validation rejects: checked with the rules in tests/unit, and with an API server in tests/cluster.

Each case is one error with one finding.
"""

from typing import Final

from tests.support.manifests.refusals.affinity import AFFINITY
from tests.support.manifests.refusals.case import Refusal
from tests.support.manifests.refusals.containers import AMOUNTS, BESIDE, IMAGES, PORTS, PROBES, RIGHTS
from tests.support.manifests.refusals.server import STRICTER, words
from tests.support.manifests.refusals.sources import MOUNTS, VARIABLES
from tests.support.manifests.refusals.spec import RBAC, RESOURCE, SPEC, TOLERATIONS, UPDATES
from tests.support.manifests.refusals.taken import TAKEN

__all__ = ["REFUSALS", "STRICTER", "TAKEN", "Refusal", "words"]

REFUSALS: Final = [
    *RESOURCE,
    *SPEC,
    *TOLERATIONS,
    *UPDATES,
    *IMAGES,
    *PORTS,
    *VARIABLES,
    *MOUNTS,
    *PROBES,
    *AMOUNTS,
    *RIGHTS,
    *RBAC,
    *BESIDE,
    *AFFINITY,
]
