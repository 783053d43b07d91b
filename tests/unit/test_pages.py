"""Pages that list what the code has are written by the code."""

from kube_node_ready import metrics_page
from kube_node_ready.daemonset import reference
from kubernetes_daemonset import reference as component
from tests.shell import ROOT


def test_the_page_of_metrics_is_up_to_date() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text() == metrics_page.page(), metrics_page.__doc__


def test_the_reference_of_the_component_is_up_to_date() -> None:
    assert (ROOT / "docs" / "daemonset" / "reference.md").read_text() == component.page(), component.__doc__


def test_the_tables_of_daemonset_mode_are_up_to_date() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE_DAEMONSET.md").read_text()
    assert page == reference.rewritten(page), reference.__doc__
