"""The configuration that the chart makes of its values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_node_ready import __version__
from kube_node_ready.settings import worker
from kube_node_ready.settings.compat import RENAMED_KEYS
from tests.support import configs
from tests.support.chart import EXAMPLES, ROOT, render
from tests.support.chart_values import DAEMONSET, DIGEST, ONCE, SCHEMA, WORKER, controller_config, off, on

CONFIGURATIONS: list[Mapping[str, Any]] = [
    {},
    {"config": {"taintKey": "my-custom/unverified", "taintValue": "true", "taintEffect": "NoExecute"}},
    {"worker": {"config": {"networkTargets": ["example.com:443"], "dnsService": ""}}},
    {"imagePullSecrets": ["a", {"name": "b"}], "image": {"digest": DIGEST}},
    controller_config("kubernetes", {"qps": 1_000_000, "burst": 1_000_000}),
    controller_config("worker.resources.limits", {"cpu": 1, "memory": "1Gi"}),
    controller_config("reconciliation.backoffSeconds", None),
    controller_config("nodeManagement.taints", []),
    controller_config("leaderElection", {"enabled": False, "leaseDuration": 30, "namespace": "other"}),
    controller_config("worker.initContainers", [{"name": "a", "image": "b:1", "env": [{"name": "C", "value": "d"}]}]),
]


@pytest.mark.parametrize("values", CONFIGURATIONS)
def test_the_rendered_configuration_loads_without_warnings(values: Mapping[str, Any]) -> None:
    assert configs.load(render(values).file).warnings == ()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_the_configuration_of_every_example_loads(example: Path) -> None:
    made = render(files=[example])
    if made.workload["kind"] == "Deployment":
        assert configs.load(made.file).warnings == ()
    else:
        assert worker.load(made.variables).timeout_seconds


def test_the_example_configuration_is_valid_in_the_values() -> None:
    """With its nulls, which mean the same as nothing."""
    whole = yaml.safe_load((ROOT / "examples" / "controller-config.yaml").read_text())
    made = render({"controller": {"config": whole}})
    assert configs.load(made.file).warnings == ()


SHORT: Mapping[str, tuple[object, object]] = {
    "checkInterval": ("2m", 120),
    "checkTimeout": ("1m5s", 65),
    "clusterDNSIP": ("10.0.0.10", "10.0.0.10"),
    "deleteFailedNode": (True, True),
    "dnsTestDomains": (["a.b"], ["a.b"]),
    "enableConnectivityMatrix": (True, True),
    "enableMetrics": (False, False),
    "failureThreshold": (2, 2),
    "initialTimeout": ("600s", 600),
    "logFormat": ("console", "console"),
    "logLevel": ("warn", "warn"),
    "maxRetries": (9, 9),
    "metricsPort": (9090, 9090),
    "retryBackoff": ("linear", "linear"),
    "taintEffect": ("NoExecute", "NoExecute"),
    "taintKey": ("a/b", "a/b"),
    "taintValue": ("c", "c"),
    "verifiedLabel": ("d/e", "d/e"),
    "verifiedLabelValue": ("f", "f"),
}


@pytest.mark.parametrize("key", RENAMED_KEYS)
def test_the_short_form_sets_its_key(key: str) -> None:
    """The table of the code's own refusals says where that is."""
    found = render({"config": {key: given for key, (given, _) in SHORT.items()}}).config
    for word in re.split(r"[.\[\]]+", RENAMED_KEYS[key]):
        found = found[int(word) if word.isdecimal() else word]
    assert found == SHORT[key][1]


def test_every_key_of_the_short_form_works_in_controller_mode() -> None:
    """The template ignores keys that it has no place for."""
    assert SCHEMA["definitions"]["flat"]["properties"].keys() == {*RENAMED_KEYS, "dryRun"}
    assert render(on("config.dryRun")).config["dryRun"] is True


def test_the_short_form_takes_precedence_in_both_modes() -> None:
    values = {
        "config": {"maxRetries": 10},
        "controller": {"config": {"reconciliation": {"maxRetries": 3}}},
        "daemonset": {"config": {"maxRetries": 4}},
    }
    assert render(values).config["reconciliation"]["maxRetries"] == 10
    assert render({**values, **ONCE, "daemonset": values["daemonset"]}).variables["MAX_RETRIES"] == "10"


def test_false_is_not_treated_as_unset() -> None:
    config = render(off("controller.config.metrics.enabled") | off("config.deleteFailedNode")).config
    assert config["metrics"]["enabled"] is False
    assert config["nodeManagement"]["deleteFailedNodes"] is False


def test_checks_can_be_configured_once_for_both_modes() -> None:
    values = {"worker": {"config": {"dnsService": "dns/resolver", "dnsTestDomains": ["a.b"], "payload": False}}}
    assert render(values).config["worker"]["dnsService"] == "dns/resolver"
    made = render({**values, **ONCE})
    read = worker.load(made.variables)
    assert (read.dns_service, read.dns_test_domains, read.payload) == ("dns/resolver", ("a.b",), False)
    assert made.rights(DAEMONSET)["dns services resolver"] == "get"


def test_an_existing_config_map_replaces_the_checks() -> None:
    made = render(controller_config("worker.configMapName", "mine") | {"worker": {"config": {"services": ["a/b"]}}})
    loaded = configs.load(made.file)
    assert loaded.worker.config_map_name == "mine"
    assert loaded.worker.checks == {}
    assert made.rights(WORKER)["a services b"] == "get"


@pytest.mark.parametrize(
    ("top", "own", "image"),
    [
        ({}, {}, f"kube-node-ready:{__version__}"),
        ({"repository": "registry.example/a", "tag": "1"}, {}, "registry.example/a:1"),
        ({"digest": DIGEST}, {}, f"kube-node-ready@{DIGEST}"),
        ({"digest": DIGEST}, {"tag": "2"}, "kube-node-ready:2"),
        ({"digest": DIGEST}, {"repository": "other"}, f"other:{__version__}"),
        ({"tag": "1"}, {"digest": DIGEST}, f"kube-node-ready@{DIGEST}"),
    ],
)
def test_each_role_has_its_image(top: dict[str, str], own: dict[str, str], image: str) -> None:
    made = render({"image": top, "controller": {"image": own, "config": {"worker": {"image": own}}}})
    assert made.container["image"] == configs.load(made.file).worker.image.reference == image
    assert render({**ONCE, "image": top, "daemonset": {"image": own}}).container["image"] == image


def test_pull_secrets_and_priority_apply_to_all_pods() -> None:
    values = {"imagePullSecrets": ["a", {"name": "b"}], "priorityClassName": "high"}
    for made in (render(values), render({**values, **ONCE})):
        assert made.pod["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
        assert made.pod["spec"]["priorityClassName"] == "high"
    worker = configs.load(render(values).file).worker
    assert (worker.image_pull_secrets, worker.priority_class_name) == (("a", "b"), "high")


def test_the_controller_receives_its_own_image() -> None:
    made = render({"image": {"repository": "registry.example/a"}, "controller": {"image": {"tag": "b"}}})
    assert {"name": "POD_IMAGE", "value": "registry.example/a:b"} in made.container["env"]
    assert made.container["image"] == "registry.example/a:b"
