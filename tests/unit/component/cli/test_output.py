"""What the command line shows of a change."""

import base64
from typing import Any

from kubernetes_daemonset import show
from kubernetes_daemonset.changes import Change, Ref

Json = dict[str, Any]

REF = Ref("Secret", "agent-env-secrets", "agents")


def a_secret(value: str, note: str) -> Json:
    """As kubectl apply leaves it: with the whole Secret once more in an annotation."""
    data = {"TOKEN": base64.b64encode(value.encode()).decode()}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":{data}}}', "note": note}
    metadata = {"name": REF.name, "namespace": REF.namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def test_a_changed_secret_shows_that_it_changed_and_never_what_it_is() -> None:
    before, after = a_secret("s3cret", "old"), a_secret("another", "new")
    for change in (Change(REF, before, after), Change(REF, None, after), Change(REF, before, None)):
        shown = show.difference(change)
        assert "TOKEN: (" in shown
        assert "last-applied" not in shown
        for body in (before, after):
            assert body["data"]["TOKEN"] not in shown
    assert "+    note: new" in show.difference(Change(REF, before, after))


def test_a_secret_that_stays_is_no_difference() -> None:
    assert show.difference(Change(REF, a_secret("s3cret", "same"), a_secret("s3cret", "same"))) == ""


def test_a_line_that_is_too_long_ends_after_a_word() -> None:
    assert show.shortened("2 of 3 nodes updated, 2 available", 40) == "2 of 3 nodes updated, 2 available"
    assert show.shortened("2 of 3 nodes updated, 2 available", 30) == "2 of 3 nodes updated, 2 …"
    assert show.shortened("[####]", 3) == "[#…"
