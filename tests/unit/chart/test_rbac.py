"""Rights, verb by verb."""

from typing import Any

import pytest
import yaml

from kube_node_ready.controller import resources
from tests.support import chart, configs
from tests.support.chart import CHART, render
from tests.support.chart_values import CONTROLLER, DAEMONSET, ONCE, WORKER, controller_config, off

CONTROLLER_RIGHTS = {
    "* nodes": "list patch watch",
    "* nodes/status": "patch",
    "kube-system pods": "create delete get list watch",
    "kube-system leases": "create",
    f"kube-system leases {CONTROLLER}": "get update",
    "default events": "create",
}
LEDGER_RIGHTS = {"kube-system configmaps": "create", f"kube-system configmaps {resources.LEDGER}": "list patch watch"}
WORKER_RIGHTS = {
    "default services kubernetes": "get",
    "default endpointslices": "list",
    "kube-system services kube-dns": "get",
    "kube-system endpointslices": "list",
}
DAEMONSET_RIGHTS = {
    "* nodes": "get patch",
    "* nodes/status": "patch",
    "default events": "create",
    **WORKER_RIGHTS,
}
REMOVING = {"deleteFailedNodes": True}


@pytest.mark.parametrize(
    ("config", "rights"),
    [
        ({}, CONTROLLER_RIGHTS),
        (
            {"nodeManagement": REMOVING},
            CONTROLLER_RIGHTS
            | LEDGER_RIGHTS
            | {"* nodes": "delete list patch watch", "* nodeclaims": "delete get list"},
        ),
        (
            {"nodeManagement": {**REMOVING, "removal": {"dryRun": True}}},
            CONTROLLER_RIGHTS
            | LEDGER_RIGHTS
            | {"* nodeclaims": "get list", f"kube-system configmaps {resources.LEDGER}": "list watch"},
        ),
        ({"dryRun": True}, {"* nodes": "list watch", "kube-system pods": "list watch"}),
        (
            {"dryRun": True, "nodeManagement": REMOVING},
            {
                "* nodes": "list watch",
                "kube-system pods": "list watch",
                f"kube-system configmaps {resources.LEDGER}": "list watch",
            },
        ),
        (
            {"leaderElection": {"enabled": False}},
            {what: verbs for what, verbs in CONTROLLER_RIGHTS.items() if "leases" not in what},
        ),
        (
            {"worker": {"namespace": "workers"}, "leaderElection": {"id": "mine", "namespace": "locks"}},
            {
                "* nodes": "list patch watch",
                "* nodes/status": "patch",
                "workers pods": "create delete get list watch",
                "locks leases": "create",
                "locks leases mine": "get update",
                "default events": "create",
            },
        ),
    ],
    ids=["verifies", "removes", "would remove", "dry run", "dry run of removal", "alone", "elsewhere"],
)
def test_rights_of_the_controller(config: dict[str, Any], rights: dict[str, str]) -> None:
    assert render({"controller": {"config": config}}).rights(CONTROLLER) == rights


@pytest.mark.parametrize(
    ("worker", "rights"),
    [
        ({}, WORKER_RIGHTS),
        ({"dnsService": ""}, WORKER_RIGHTS),
        ({"services": [], "dnsService": ""}, {}),
        (
            {"services": ["a/b", "a/c"], "dnsService": "d/e"},
            {
                "a services b": "get",
                "a services c": "get",
                "a endpointslices": "list",
                "d services e": "get",
                "d endpointslices": "list",
            },
        ),
    ],
)
def test_rights_of_workers(worker: dict[str, Any], rights: dict[str, str]) -> None:
    assert render(controller_config("worker", worker)).rights(WORKER) == rights


@pytest.mark.parametrize(
    ("config", "rights"),
    [
        ({}, DAEMONSET_RIGHTS),
        ({"enableConnectivityMatrix": True}, DAEMONSET_RIGHTS | {"kube-system pods": "list"}),
        ({"dryRun": True}, WORKER_RIGHTS),
    ],
    ids=["verifies", "matrix", "dry run"],
)
def test_rights_of_the_daemonset(config: dict[str, Any], rights: dict[str, str]) -> None:
    assert render({**ONCE, "config": config}).rights(DAEMONSET) == rights


@pytest.mark.parametrize(("kubernetes", "verbs"), [("1.29.9", ["get"]), ("1.30.0", None), ("1.36.3", None)])
def test_the_daemonset_can_read_its_pod_only_if_tokens_have_no_node(kubernetes: str, verbs: list[str] | None) -> None:
    cluster = (f"--api-versions={chart.A_CLUSTER}", f"--kube-version={kubernetes}")
    done = chart.run("template", "x", CHART, "--set=deploymentMode=daemonset", *cluster)
    assert done.returncode == 0, done.stderr
    roles = [one for one in yaml.safe_load_all(done.stdout) if one and one["kind"] == "Role"]
    granted = [rule["verbs"] for role in roles for rule in role["rules"] if rule["resources"] == ["pods"]]
    assert granted == ([verbs] if verbs else [])


def test_rbac_create_affects_only_rbac_objects() -> None:
    without = render(off("rbac.create"))
    assert render().kinds - without.kinds == {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_existing_service_accounts_get_the_rights() -> None:
    own = {"serviceAccount": {"create": False, "name": "mine"}}
    made = render({"controller": own})
    assert made.rights("mine") == CONTROLLER_RIGHTS
    assert made.pod["spec"]["serviceAccountName"] == "mine"
    made = render({"worker": own})
    assert made.rights("mine") == WORKER_RIGHTS
    assert configs.load(made.file).worker.service_account_name == "mine"
    made = render({**ONCE, "daemonset": own})
    assert made.rights("mine") == DAEMONSET_RIGHTS
    for values in ({"controller": own}, {"worker": own}, {**ONCE, "daemonset": own}):
        assert "mine" not in [account["metadata"]["name"] for account in render(values).of("ServiceAccount")]


def test_subjects_are_in_the_namespace_of_their_pods() -> None:
    made = render(controller_config("worker.namespace", "workers"), namespace="operators")
    for binding in made.of("RoleBinding") + made.of("ClusterRoleBinding"):
        (subject,) = binding["subjects"]
        assert subject["namespace"] == ("workers" if subject["name"] == WORKER else "operators")
    assert made.one("ServiceAccount", WORKER)["metadata"]["namespace"] == "workers"
