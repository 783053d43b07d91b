"""Configurations for tests, loaded as by a controller outside of a pod that has POD_IMAGE."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from kube_node_ready.settings import config
from kube_node_ready.settings.config import Config
from kubekit.diagnostics import DiagnosticsError

NOWHERE = Path("/nonexistent")
OWN_IMAGE = {"POD_IMAGE": "registry.example/kube-node-ready:1.2.3"}


def load(text: str | bytes = "", variables: Mapping[str, str] | None = None, /, **flags: object) -> Config:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        named = {name.replace("_", "-"): _text(value) for name, value in flags.items()}
        return config.load(file, OWN_IMAGE | dict(variables or {}), named, account=NOWHERE)


def complaint(text: str | bytes = "", variables: Mapping[str, str] | None = None, /, **flags: object) -> str:
    """The errors of a configuration that is rejected, as the controller prints them."""
    with pytest.raises(DiagnosticsError) as error:
        load(text, variables, **flags)
    return error.value.listed("configuration")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
