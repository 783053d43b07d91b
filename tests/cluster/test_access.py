"""What we show to a real API server: tokens of plugins, and tokens that are worth nothing."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import lab
from kube_node_ready.kube.access import Access, access
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.errors import AccessError, Rejected


def use(how: Access, what: Callable[[KubeClient], Awaitable[Any]]) -> None:
    async def main() -> None:
        async with KubeClient(how) as kube:
            await what(kube)

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["v1", "v1beta1"])
def test_a_plugin_token_is_renewed_after_a_rejection(
    plane: lab.Plane, namespace: str, tmp_path: Path, protocol: str
) -> None:
    """Its first token is worthless; a hundred simultaneous requests start it once more, not a hundred times."""
    config = yaml.safe_load(plane.kubeconfig(f"{namespace}/default").read_text())
    (user,) = config["users"]
    runs, plugin = tmp_path / "runs", tmp_path / "plugin"
    version = f"client.authentication.k8s.io/{protocol}"
    answer = '{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s"}}'
    good, bad = answer % (version, user["user"]["token"]), answer % (version, "stale")
    plugin.write_text(
        f"#!/bin/sh\nif [ -e {runs} ]; then echo '{good}'; else echo '{bad}'; fi\n"
        f'echo "$KUBERNETES_EXEC_INFO" >> {runs}\n'
    )
    plugin.chmod(0o755)
    user["user"] = {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    use(access(file), lambda kube: asyncio.gather(*(kube.get("/api") for _ in range(100))))
    asked = runs.read_text().splitlines()
    assert len(asked) == 2
    if protocol == "v1":
        assert json.loads(asked[0])["apiVersion"] == version


def test_a_token_that_is_rejected_repeatedly_is_an_error(plane: lab.Plane, namespace: str, tmp_path: Path) -> None:
    config = yaml.safe_load(plane.kubeconfig(f"{namespace}/default").read_text())
    config["users"][0]["user"] = {"token": "worthless"}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(Rejected, match="401 Unauthorized"):
        use(access(file), lambda kube: kube.get("/api"))


def test_a_plugin_that_fails_is_named(plane: lab.Plane, namespace: str, tmp_path: Path) -> None:
    config = yaml.safe_load(plane.kubeconfig(f"{namespace}/default").read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/plugin"}
    config["users"][0]["user"] = {"exec": plugin}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(AccessError, match=r"cannot authenticate to https://.*/no/such/plugin"):
        use(access(file), lambda kube: kube.get("/api"))
