"""Check disk space before a long step, so that a full disk is reported clearly."""

import shutil
from pathlib import Path

from lab.errors import LabError


def require(folder: Path, mebibytes: int, *, to: str, way_out: str) -> None:
    if (free := shutil.disk_usage(folder).free >> 20) < mebibytes:
        raise LabError(
            f"{folder} has {free} MiB free, and to {to} takes about {mebibytes} MiB: make room, or {way_out}"
        )
