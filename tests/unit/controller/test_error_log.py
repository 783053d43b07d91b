"""Errors are logged at a limited rate."""

import json

import pytest

from kube_node_ready.controller.error_log import ErrorLog
from kube_node_ready.kube.errors import Conflict, KubeError, Rejected, Throttled, Unreachable


def test_one_api_error_is_logged_in_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("kube_node_ready.controller.error_log.time.monotonic", lambda: now)
    errors = ErrorLog()
    for now in (1000.0, 1001.0, 1009.9, 1010.1):
        errors.api_error(Rejected(403, "Forbidden", f"at {now}", "PATCH /api/v1/nodes/a/status"))
    logged = capsys.readouterr().out
    assert [at for at in ("1000.0", "1001.0", "1009.9", "1010.1") if f"at {at}" in logged] == ["1000.0", "1010.1"]


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (
            Rejected(403, "Forbidden", "denied", "PATCH /api/v1/nodes/a/status"),
            {"error": "PATCH /api/v1/nodes/a/status: denied (403 Forbidden)", "status": 403, "verb": "patch"}
            | {"resource": "nodes/status"},
        ),
        (
            Rejected(403, "Forbidden", "denied", "POST /api/v1/namespaces/b/pods"),
            {"error": "POST /api/v1/namespaces/b/pods: denied (403 Forbidden)", "status": 403, "verb": "create"}
            | {"resource": "pods"},
        ),
        (
            Throttled(429, "TooManyRequests", "later", "GET /api/v1/namespaces/b/pods"),
            {"error": "GET /api/v1/namespaces/b/pods: later (429 TooManyRequests)", "status": 429, "verb": "list"}
            | {"resource": "pods"},
        ),
        (
            Rejected(403, "Forbidden", "denied", "GET /api/v1/nodes?watch=1"),
            {"error": "GET /api/v1/nodes?watch=1: denied (403 Forbidden)", "status": 403, "verb": "watch"}
            | {"resource": "nodes"},
        ),
        (
            Unreachable(
                0, "Unreachable", "no response in time", "PUT /apis/coordination.k8s.io/v1/namespaces/b/leases/c"
            ),
            {"error": "PUT /apis/coordination.k8s.io/v1/namespaces/b/leases/c: no response in time", "verb": "update"}
            | {"resource": "leases"},
        ),
        (
            Rejected(403, "Forbidden", "denied", "GET /api/v1/nodes/a"),
            {"error": "GET /api/v1/nodes/a: denied (403 Forbidden)", "status": 403, "verb": "get", "resource": "nodes"},
        ),
        (Conflict(0, "Unusable", "pod a must be created again"), {"error": "pod a must be created again"}),
    ],
)
def test_an_api_error_is_logged_with_status_verb_and_resource(
    error: KubeError, fields: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    ErrorLog().api_error(error)
    line = json.loads(capsys.readouterr().out)
    assert {key: value for key, value in line.items() if key not in {"level", "timestamp", "msg"}} == fields


def test_an_unexpected_error_is_logged_once_per_line_of_code(capsys: pytest.CaptureFixture[str]) -> None:
    errors = ErrorLog()

    def fail(error: Exception) -> None:
        try:
            raise error
        except ValueError as raised:
            errors.unexpected("a", raised)

    fail(ValueError("one"))
    fail(ValueError("two"))
    try:
        int("elsewhere")
    except ValueError as raised:
        errors.unexpected("b", raised)
    logged = capsys.readouterr().out
    assert logged.count("Reconcile failed unexpectedly") == 2
    assert "two" not in logged
    assert "test_error_log.py:" in logged
