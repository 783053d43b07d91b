"""Releases and records that the API server rejects (D3). The node stays gated, and everyone can see why."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Node

import lab
from lab import waiting
from tests.support.cli import Console, install
from tests.support.controller_process import Operator, operating
from tests.support.site import Site

_API = "admissionregistration.k8s.io/v1"


@contextmanager
def frozen_taints(site: Site) -> Iterator[None]:
    """A policy of the cluster's: the taints of the site's nodes stay as they are."""
    name = f"keep-{site.namespace}"
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
            ],
            "objectSelector": {"matchLabels": {"site": site.namespace}},
        },
        "validations": [
            {
                "expression": "object.spec.?taints.orValue([]) == oldObject.spec.?taints.orValue([])",
                "message": "taints are frozen",
            }
        ],
    }
    policy = {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    binding = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": bound,
    }
    site.plane.apply(f"{json.dumps(policy)}\n---\n{json.dumps(binding)}")
    try:
        yield
    finally:
        site.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


@pytest.fixture
def no_release(site: Site) -> Iterator[None]:
    with frozen_taints(site):
        yield


def fill_annotations(site: Site, name: str) -> None:
    """Up to the limit of the API server, so that no record fits."""
    metadata = site.plane.client.get(Node, name).metadata
    assert metadata
    used = sum(len(key) + len(value) for key, value in (metadata.annotations or {}).items())
    key = "example.com/large"
    value = "x" * (262_144 - used - len(key))
    site.plane.client.patch(Node, name, {"metadata": {"annotations": {key: value}}})


def check_reports(site: Site, operator: Operator, name: str, write: str, message: str) -> None:
    """`status`, `explain` and the metric show which write was rejected, and the first two show the server's message."""
    for command in ("status", "explain"):
        shown = " ".join(Console(site).ask(command, name).stdout.split())
        assert f"rejected the {write}" in shown, command
        assert message in shown, command
        assert f"{name} is verified" not in shown
    page = operator.ask("/metrics", server=0)
    assert f'kube_node_ready_node_writes_rejected_total{{write="{write}"}} 1.0' in page


@pytest.mark.usefixtures("no_release")
def test_a_release_that_the_server_rejects_is_visible(site: Site, tmp_path: Path) -> None:
    (name,) = site.join().names
    waiting.until("the policy is in force", lambda: is_frozen(site, name), 60)
    install(site, site.config())
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        site.until("the condition shows it", lambda: site.condition(name).get("reason") == "ReleaseRejected")
        site.until("an Event shows it", lambda: "ReleaseRejected" in {event.reason for event in site.events(name)})
        assert "taints are frozen" in site.condition(name)["message"]
        assert site.condition(name)["status"] != "True"
        check_reports(site, operator, name, "release", "taints are frozen")
    assert site.policy.is_gated(site.node(name))


def test_a_record_that_the_server_rejects_is_visible(site: Site, tmp_path: Path) -> None:
    (name,) = site.join(verdict=lab.fails()).names
    fill_annotations(site, name)
    install(site, site.config())
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        site.until("the condition shows it", lambda: site.condition(name).get("reason") == "RecordRejected")
        site.until("an Event shows it", lambda: "RecordRejected" in {event.reason for event in site.events(name)})
        assert "annotations" in site.condition(name)["message"]
        check_reports(site, operator, name, "record", "annotations")
    assert site.policy.is_gated(site.node(name))


@pytest.fixture
def unreachable_webhook(site: Site) -> Iterator[None]:
    """The API server answers each write to the site's Nodes with a 500: nothing listens at the webhook's address."""
    webhook = {
        "name": "nodes.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 2,
        "failurePolicy": "Fail",
        "objectSelector": {"matchLabels": {"site": site.namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}],
    }
    metadata = {"name": f"unreachable-{site.namespace}"}
    kind = "ValidatingWebhookConfiguration"
    site.plane.apply(json.dumps({"apiVersion": _API, "kind": kind, "metadata": metadata, "webhooks": [webhook]}))
    try:
        yield
    finally:
        site.kubectl("delete", "validatingwebhookconfiguration", metadata["name"])


@pytest.mark.usefixtures("unreachable_webhook")
def test_a_release_that_a_webhook_prevents_is_visible(site: Site, tmp_path: Path) -> None:
    (name,) = site.join().names
    waiting.until("the webhook is in force", lambda: "failed calling webhook" in error_of_a_write(site, name), 60)
    install(site, site.config())
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        site.until("the condition shows it", lambda: site.condition(name).get("reason") == "ReleaseRejected")
        site.until("an Event shows it", lambda: "ReleaseRejected" in {event.reason for event in site.events(name)})
        assert "failed calling webhook" in site.condition(name)["message"]
        check_reports(site, operator, name, "release", "failed calling webhook")
    assert site.policy.is_gated(site.node(name))


def error_of_a_write(site: Site, name: str) -> str:
    try:
        site.kubectl("label", "node", name, "example.com/a=b", "--dry-run=server")
    except lab.LabError as error:
        return str(error)
    return ""


def is_frozen(site: Site, name: str) -> bool:
    words = ("patch", "node", name, "--type=json", '-p=[{"op":"remove","path":"/spec/taints"}]', "--dry-run=server")
    try:
        site.kubectl(*words)
    except lab.LabError as error:
        return "taints are frozen" in str(error)
    return False
