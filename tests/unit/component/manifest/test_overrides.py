"""`--set path=value`: any field, of any type."""

import pytest

from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest.dump import to_json
from kubernetes_daemonset.manifest.overrides import override
from kubernetes_daemonset.manifest.reader import Loaded, load
from kubernetes_daemonset.validation.validate import validate

MANIFEST = b"""\
apiVersion: kubernetes.project-planton.org/v1
kind: KubernetesDaemonSet
metadata: {name: agent}
spec:
  namespace: agents
  container:
    app:
      image: {repo: registry.example.com/agent, tag: "1.0"}
      args: [--first, --second]
  tolerations:
    - {key: one, operator: Exists}
"""


def given() -> Loaded:
    (loaded,) = load(MANIFEST, "agent.yaml")
    return loaded


def spec_after(*assignments: str) -> dict[str, object]:
    return dict(to_json(override(given(), assignments).manifest)["spec"])


@pytest.mark.parametrize(
    ("assignment", "field", "value"),
    [
        ("spec.namespace=other", "namespace", {"value": "other"}),
        ("spec.namespace.value=other", "namespace", {"value": "other"}),
        ("spec.host_network=true", "host_network", True),
        ("spec.hostNetwork=false", "host_network", False),
        ("spec.min_ready_seconds=30", "min_ready_seconds", 30),
        ("spec.revision_history_limit=0", "revision_history_limit", 0),
        ("spec.priority_class_name=a=b", "priority_class_name", "a=b"),
        ("spec.node_selector.zone=north", "node_selector", {"zone": "north"}),
        ("spec.node_selector[kubernetes.io/os]=linux", "node_selector", {"kubernetes.io/os": "linux"}),
        ('spec.node_selector["kubernetes.io/os"]=linux', "node_selector", {"kubernetes.io/os": "linux"}),
        (r"spec.node_selector.kubernetes\.io/os=linux", "node_selector", {"kubernetes.io/os": "linux"}),
        ("spec.node_selector={zone: north, disk: fast}", "node_selector", {"zone": "north", "disk": "fast"}),
        ("spec.tolerations[0].key=two", "tolerations", [{"key": "two", "operator": "Exists"}]),
        ("spec.tolerations[0]={key: two}", "tolerations", [{"key": "two"}]),
        (
            "spec.tolerations[1].operator=Exists",
            "tolerations",
            [{"key": "one", "operator": "Exists"}, {"operator": "Exists"}],
        ),
        ("spec.tolerations=[]", "tolerations", None),
        ("spec.tolerations=null", "tolerations", None),
        ("spec.tolerations=~", "tolerations", None),
        ("spec.tolerations[0].key=null", "tolerations", [{"operator": "Exists"}]),
        ("spec.node_selector.zone=null", "node_selector", None),
        ("spec.priority_class_name=", "priority_class_name", None),
        ("spec.image_pull_secrets=[a, b]", "image_pull_secrets", ["a", "b"]),
        (
            "spec.update_strategy.rolling_update.max_surge=25%",
            "update_strategy",
            {"rolling_update": {"max_surge": "25%"}},
        ),
    ],
)
def test_a_field_of_any_type_is_replaced(assignment: str, field: str, value: object) -> None:
    assert spec_after(assignment).get(field) == value


def test_one_argument_of_a_list_is_replaced_and_one_is_added() -> None:
    app = override(
        given(), ["spec.container.app.args[1]=--other", "spec.container.app.args[2]=--third"]
    ).manifest.spec.container.app
    assert list(app.args) == ["--first", "--other", "--third"]


def test_null_removes_an_entry_and_an_empty_string_does_not() -> None:
    changed = override(
        given(),
        [
            "spec.node_selector={zone: north, disk: fast}",
            "spec.node_selector.disk=null",
            "spec.node_selector.zone= ",
            "spec.container.app.env.variables={A: a, B: b}",
            "spec.container.app.env.variables.A=null",
            "spec.container.app.env.variables.C=null",
        ],
    ).manifest.spec
    assert dict(changed.node_selector) == {"zone": ""}
    assert list(changed.container.app.env.variables) == ["B"]


def test_a_required_field_that_null_removed_is_reported_at_the_flag() -> None:
    changed = override(given(), ["spec.namespace=null"])
    assert [str(one) for one in validate(changed)] == ["--set spec.namespace: spec.namespace: is required"]


def test_a_number_stays_text_in_a_text_field() -> None:
    changed = override(given(), ["spec.container.app.image.tag=1.20", "spec.container.app.env.variables.PORT=09"])
    assert changed.manifest.spec.container.app.image.tag == "1.20"
    assert changed.manifest.spec.container.app.env.variables["PORT"].value == "09"


def test_the_given_manifest_is_not_modified() -> None:
    loaded = given()
    override(loaded, ["spec.host_network=true"])
    assert not loaded.manifest.spec.HasField("host_network")


def test_a_later_assignment_takes_precedence() -> None:
    assert spec_after("spec.min_ready_seconds=1", "spec.min_ready_seconds=2")["min_ready_seconds"] == 2


@pytest.mark.parametrize(
    ("assignment", "error"),
    [
        ("spec.host_netwrk=true", 'spec: unknown field "host_netwrk"; did you mean host_network?'),
        ("spec.host_network=perhaps", 'spec.host_network: expected true or false, found "perhaps"'),
        ("spec.min_ready_seconds=soon", "spec.min_ready_seconds: expected a whole number"),
        ("spec.min_ready_seconds.x=1", "spec.min_ready_seconds: has a single value and no field x"),
        (
            "spec.tolerations[7].key=x",
            'spec.tolerations: "7" is not a valid index of this list; expected 0 to 1 (1 appends an item)',
        ),
        ("spec.init_containers[x]=a", '"x" is not a valid index of this list; expected 0 (0 appends an item)'),
        ("spec.tolerations[0]=null", "spec.tolerations[0]: a single item cannot be removed; set the whole list"),
        ("spec.container.app.args[0]=~", "args[0]: a single item cannot be removed"),
        ("spec.node_selector.zone.x=1", "spec.node_selector.zone: has a single value"),
        ("spec.tolerations={", "not YAML"),
        ("spec.host_network", "expected path=value"),
        ("=x", "expected path=value"),
        ("spec..x=1", "is not a valid path"),
    ],
)
def test_invalid_assignments_are_rejected(assignment: str, error: str) -> None:
    with pytest.raises(ManifestError) as why:
        override(given(), [assignment])
    assert error in str(why.value)
    assert "--set" in str(why.value)


def test_every_invalid_assignment_is_reported() -> None:
    with pytest.raises(ManifestError) as why:
        override(given(), ["spec.x=1", "spec.host_network=true", "spec.y=2"])
    assert [one.location.source for one in why.value.diagnostics] == ["--set spec.x", "--set spec.y"]


def test_syntax_errors_of_the_manifest_are_reported_too() -> None:
    (loaded,) = load(MANIFEST.replace(b"spec:", b"spec:\n  replicas: 3"), "agent.yaml")
    assert loaded.diagnostics
    assert override(loaded, ["spec.host_network=true"]).diagnostics == loaded.diagnostics
    with pytest.raises(ManifestError) as why:
        override(loaded, ["spec.x=1"])
    assert [one.path for one in why.value.diagnostics] == ["spec", "spec"]


def test_an_error_in_a_set_value_is_reported_at_the_flag() -> None:
    changed = override(given(), ["spec.dns_policy=Nope"])
    assert str(changed.location("spec.dns_policy")) == "--set spec.dns_policy"
    assert str(changed.location("spec.tolerations[0].key")) == "agent.yaml:11:8"
