"""Everything that validation refuses, told once: asked of the rules in tests/unit, of an API server in tests/cluster.

Each case is one mistake, and one finding.
"""

from typing import Final

from tests.refusals.affinity import AFFINITY
from tests.refusals.case import Refusal
from tests.refusals.containers import AMOUNTS, BESIDE, IMAGES, PORTS, PROBES, RIGHTS
from tests.refusals.server import STRICTER, words
from tests.refusals.sources import MOUNTS, VARIABLES
from tests.refusals.spec import RBAC, RESOURCE, SPEC, TOLERATIONS, UPDATES
from tests.refusals.taken import TAKEN

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
