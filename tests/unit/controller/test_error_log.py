"""Errors are logged at a limited rate."""

import pytest

from kube_node_ready.controller.error_log import ErrorLog


def test_one_api_error_is_logged_in_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("kube_node_ready.controller.error_log.time.monotonic", lambda: now)
    errors = ErrorLog()
    for now in (1000.0, 1001.0, 1009.9, 1010.1):
        errors.api_error(f"at {now}")
    logged = capsys.readouterr().out
    assert [at for at in ("1000.0", "1001.0", "1009.9", "1010.1") if f"at {at}" in logged] == ["1000.0", "1010.1"]


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
