"""Builders for KubernetesDaemonSet manifests: fields that a test does not set have minimal valid values."""

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kubekit.diagnostics import Diagnostic, Severity
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import reader
from kubernetes_daemonset.manifest.reader import Loaded
from kubernetes_daemonset.render import resources
from kubernetes_daemonset.validation import validate

Json = dict[str, Any]
Changes = Mapping[str, object]

SOURCE: Final = "agent.yaml"
NAMESPACE: Final = "monitoring"
DIGEST: Final = "sha256:" + "0123456789abcdef" * 4
GONE: Final = object()
"""As the value of a change: the field is left out."""

_SMALLEST: Final[Json] = {
    "apiVersion": "kubernetes.project-planton.org/v1",
    "kind": "KubernetesDaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "namespace": {"value": NAMESPACE},
        "container": {"app": {"image": {"repo": "registry.example.com/agent", "tag": "1.4.2"}}},
    },
}
_APP: Final = "spec.container.app"
_SOURCES: Final = {"host_path", "config_map", "secret", "empty_dir", "pvc"}
_STEP: Final = re.compile(r'\["(?P<key>.*?)"\]|\[(?P<index>[0-9]+)\]|\.?(?P<name>[^.\[]+)')


def a_manifest(changes: Changes | None = None) -> Json:
    """The smallest valid manifest with these fields, by path: `{"app.image.tag": "2", "spec.tolerations": […]}`."""
    tree = copy.deepcopy(_SMALLEST)
    for path, value in (changes or {}).items():
        *above, last = full(path).split(".")
        inner = tree
        for key in above:
            inner = inner.setdefault(key, {})
        if value is GONE:
            inner.pop(last, None)
        else:
            inner[last] = value
    return tree


def a_sidecar(**fields: object) -> Json:
    """Or an init container."""
    return {
        "name": "helper",
        "image": "registry.example.com/helper:1",
        "resources": {"limits": {"memory": "64Mi"}},
    } | fields


def a_port(**fields: object) -> Json:
    return {"name": "metrics", "container_port": 9100, "network_protocol": "TCP"} | fields


def a_mount(**fields: object) -> Json:
    """Of an empty folder, unless another source is given."""
    mount: Json = {"name": "data", "mount_path": "/data"}
    return mount | ({} if _SOURCES & fields.keys() else {"empty_dir": {}}) | fields


def a_stack_input(target: Changes | None = None, **fields: object) -> Json:
    return {"target": a_manifest(target)} | fields


def full(path: str) -> str:
    """Paths in tests can begin with `app`, for the agent's own container."""
    return _APP + path.removeprefix("app") if path == "app" or path.startswith(("app.", "app[")) else path


def as_yaml(*trees: Json) -> str:
    return str(yaml.dump_all(trees, Dumper=yaml.CSafeDumper, sort_keys=False))


def read(text: str | bytes) -> Loaded:
    """The one manifest of a text, all of which could be read."""
    loaded = read_in_part(text)
    if loaded.diagnostics:
        raise ManifestError(list(loaded.diagnostics))
    return loaded


def read_in_part(text: str | bytes) -> Loaded:
    """The one manifest of a text, however much of it could not be read."""
    (loaded,) = reader.load(text if isinstance(text, bytes) else text.encode(), SOURCE)
    return loaded


def loaded(changes: Changes | None = None) -> Loaded:
    return read(as_yaml(a_manifest(changes)))


def refusal(text: str | bytes) -> list[str]:
    """What is said of a text that cannot be read; nothing if it can."""
    try:
        read(text)
    except ManifestError as refused:
        return [str(diagnostic) for diagnostic in refused.diagnostics]
    return []


def problems(changes: Changes | None = None) -> list[Diagnostic]:
    """The errors in a manifest with these fields."""
    return validate.errors(validate.validate(loaded(changes)))


def warnings(changes: Changes | None = None) -> list[Diagnostic]:
    found = validate.validate(loaded(changes))
    assert not validate.errors(found)
    return [one for one in found if one.severity is Severity.WARNING]


def rendered(changes: Changes | None = None) -> list[Json]:
    """The objects of a valid manifest with these fields."""
    return objects_of(loaded(changes))


def objects_of(one: Loaded) -> list[Json]:
    assert validate.errors(validate.validate(one)) == []
    return resources.render(one.input)


def only(kind: str, objects: list[Json]) -> Json:
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


def daemon_set(changes: Changes | None = None) -> Json:
    return only("DaemonSet", rendered(changes))


def pod(changes: Changes | None = None) -> Json:
    """The pod's template."""
    template: Json = daemon_set(changes)["spec"]["template"]
    return template


def app(changes: Changes | None = None) -> Json:
    """The agent's own container."""
    container: Json = pod(changes)["spec"]["containers"][0]
    return container


def line_of(text: str, path: str) -> int:
    """The line on which a field stands, or else what is around it: found without the product's help."""
    node: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    line = 1
    for step in _STEP.finditer(path):
        if step["index"] is not None:
            items = node.value if isinstance(node, yaml.SequenceNode) else []
            if int(step["index"]) >= len(items):
                return line
            node = items[int(step["index"])]
            line = node.start_mark.line + 1
            continue
        name = step["key"] if step["key"] is not None else step["name"]
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        inner = [(key, value) for key, value in pairs if key.value == name]
        if not inner:
            return line
        line = inner[0][0].start_mark.line + 1
        node = inner[0][1]
    return line
