"""Configurations for tests, loaded as a controller outside of any pod would load them."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from kube_node_ready import config
from kube_node_ready.config import Config, ConfigError

NOWHERE = Path("/nonexistent")


def load(text: str | bytes = "", variables: Mapping[str, str] | None = None, /, **flags: object) -> Config:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        named = {name.replace("_", "-"): value for name, value in flags.items()}
        return config.load(file, variables or {}, named, account=NOWHERE)


def complaint(text: str | bytes = "", variables: Mapping[str, str] | None = None, /, **flags: object) -> str:
    """What is said about a configuration that is refused."""
    with pytest.raises(ConfigError) as refused:
        load(text, variables, **flags)
    return str(refused.value)
