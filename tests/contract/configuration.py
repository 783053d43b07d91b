"""Keys of the configuration files with type and default, and the environment variables of the controller."""

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from tests.contract.golden import Facts
from tests.contract.programs import ROOT, run
from tests.contract.shapes import leaves

CONTROLLER: Final = ROOT / "examples" / "controller-config.yaml"
WORKER: Final = ROOT / "examples" / "worker-config.yaml"
"""Both have every key, with its default."""
_TYPES: Final = {str: "text", bool: "boolean", list: "list", dict: "map"}
_WHOLE: Final = ("worker.resources.requests", "worker.resources.limits", "nodeManagement.taints")
"""Maps and lists of maps that have one default as a whole."""
_SHORT: Final = ("DRY_RUN", "LOG_FORMAT", "LOG_LEVEL", "POD_NAMESPACE")
_IMPOSSIBLE: Final = "? ?"


def controller_keys() -> Facts:
    return _keys(CONTROLLER)


def worker_keys() -> Facts:
    return _keys(WORKER, "--worker")


def controller_variables() -> Facts:
    """Each variable with the key that an impossible value of it is reported for."""
    keys = list(defaults(CONTROLLER))
    long = {f"KUBE_NODE_READY_{_capitals(key)}": key for key in keys}
    reported = _reported(run("kube-node-ready-controller", **dict.fromkeys(long, _IMPOSSIBLE)).stderr, keys)
    found = {name: key for name, key in long.items() if key in reported}
    for name in _SHORT:
        done = run("kube-node-ready-controller", f"--config={CONTROLLER}", **{name: _IMPOSSIBLE})
        found[name] = " ".join(_reported(done.stderr, keys))
    return found


def defaults(file: Path) -> dict[str, Any]:
    """The default of each key."""
    tree = yaml.safe_load(file.read_text())
    found = {key: value for key, value in leaves(tree) if not key.startswith(_WHOLE)}
    for key in _WHOLE:
        section, _, name = key.rpartition(".")
        parent = tree
        for part in section.split("."):
            parent = parent.get(part, {})
        found |= {key: parent[name]} if name in parent else {}
    return found


def _keys(file: Path, *flags: str) -> Facts:
    """Each key's type and default. `config check` must accept the file, and decides which numbers are whole ones."""
    accepted = run("kube-node-ready", "config", "check", *flags, str(file))
    assert accepted.returncode == 0, accepted.stderr
    known = defaults(file)
    numbers = [key for key, default in known.items() if type(default) not in _TYPES]
    whole = _rejected(numbers, 20.5, flags)
    assert not _rejected(numbers, 20, flags), "these have no default and accept no number"
    types = {key: _TYPES.get(type(default), "integer" if key in whole else "number") for key, default in known.items()}
    return {key: f"{types[key]}, default {json.dumps(default)}" for key, default in known.items()}


def _rejected(keys: Iterable[str], value: object, flags: Iterable[str]) -> set[str]:
    """The keys that `config check` reports if all of them have this value."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(_tree(dict.fromkeys(keys, value)), file)
        file.flush()
        return _reported(run("kube-node-ready", "config", "check", *flags, file.name).stderr, keys, "(:| is) ")


def _reported(text: str, keys: Iterable[str], end: str = ": ") -> set[str]:
    """The keys that mistakes are reported for, in whatever words."""
    return {key for key in keys if re.search(rf"(?<![\w.]){re.escape(key)}{end}", text)}


def _tree(values: dict[str, object]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in values.items():
        *parents, last = key.split(".")
        location = made
        for parent in parents:
            location = location.setdefault(parent, {})
        location[last] = value
    return made


def _capitals(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.replace(".", "_")).upper()
