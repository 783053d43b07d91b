"""Write the chart's README from its values.yaml, in which every value has a comment above it.

python deploy/helm/readme.py > deploy/helm/kube-node-ready/README.md
"""  # noqa: INP001  a script, not a package

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

VALUES = Path(__file__).parent / "kube-node-ready" / "values.yaml"
_PAGE = """\
# The Helm chart

<!-- Written by `python deploy/helm/readme.py > deploy/helm/kube-node-ready/README.md` from values.yaml. -->

This page is for cluster operators: it lists how to install, upgrade and uninstall the chart, and all its values. The
chart keeps workloads off a new node until the node has proved that its network works ([how][operator]). It needs
Kubernetes 1.24 or later and Helm 3.14 or later.

    helm install kube-node-ready ./deploy/helm/kube-node-ready --namespace kube-system \\
      --set image.repository=registry.example/team/kube-node-ready

Then let new nodes join with the taint `node-ready/unverified=true:NoSchedule`: with Karpenter as one of a NodePool's
**startupTaints** ([an example][karpenter]), elsewhere through the kubelet or the node group ([how][autoscaler]). `helm
install` prints what to do next and what to watch.

**Cluster DNS must tolerate the gate**, like CNI and kube-proxy. A node passes only if cluster DNS answers. If every
node is new, cluster DNS that does not tolerate the gate never starts. The controller itself always tolerates it.

| purpose | values |
|---|---|
| the Prometheus Operator: ServiceMonitor, alerts, dashboard | [values-prometheus.yaml][prometheus] |
| two replicas | [values-two-replicas.yaml][replicas] |
| removal of failed nodes, within a budget | [values-delete-failed-nodes.yaml][removal] |
| a DaemonSet whose pods are removed from verified nodes | [values-daemonset-once.yaml][once] |
| a DaemonSet that keeps checking | [values-daemonset-continuous.yaml][continuous] |

Helm rejects invalid values before anything is changed, and names the place:

    - at '/controller/config/reconciliation': additional properties 'maxRetrys' not allowed
    - at '/controller/config/logging/level': value must be one of 'debug', 'error', 'info', 'warn'

Combinations that cannot work are rejected by the program when it starts: it exits with code 2, its log has every
mistake, and pods with the old settings keep running.

## Upgrade

    helm upgrade kube-node-ready ./deploy/helm/kube-node-ready --namespace kube-system --reset-then-reuse-values

(Do not use `--reuse-values`, which ignores values that are new in the chart.) The chart renders nothing random: objects
that you did not change stay the same. Pods are replaced when their settings or image change, and not for a new version
of the chart alone. Verifications in progress continue. Changing `deploymentMode` removes the objects of the other mode;
labels and taints of nodes stay, and have the same meaning in both.

If webhooks rewrite images or add containers, see [upgrading.md][upgrading] first, also for moving the workers to a
namespace of their own, which is recommended.

## Uninstall

First remove the gate from NodePools and node groups; otherwise new nodes stay gated indefinitely. Then:

    helm uninstall kube-node-ready --namespace kube-system
    kubectl taint nodes --all node-ready/unverified:NoSchedule-

The second command frees nodes that are still gated; ignore `not found` for the others. The following commands delete
what the controller created itself: worker pods of nodes that had not passed, its Lease, and with `deleteFailedNodes`
the removal ledger.

    kubectl delete pods --selector=app=kube-node-ready,component=worker --namespace kube-system
    kubectl delete lease kube-node-ready-controller --namespace kube-system --ignore-not-found
    kubectl delete configmap kube-node-ready-removals --namespace kube-system --ignore-not-found

If the workers have a namespace of their own (`worker.namespace`), delete the namespace instead of its pods and its
ConfigMap.

## Rendered objects

- In `controller` mode: a Deployment, its ConfigMap and a Service for metrics; ServiceAccounts for controller and
  workers; a ClusterRole for nodes, and Roles for everything else; with several replicas a PodDisruptionBudget;
  ValidatingAdmissionPolicies that let only the controller create worker pods, and that let the controller write nothing
  but what verification needs; with `worker.createNamespace` a namespace of the workers' own.
- In `daemonset` mode: a DaemonSet and a ConfigMap with its environment; a ServiceAccount, a ClusterRole and Roles; a
  ValidatingAdmissionPolicy that limits each pod to its own Node.
- Optional: ServiceMonitor or PodMonitor, PrometheusRule, a dashboard, NetworkPolicies; in either mode.

The policies need Kubernetes 1.30 or later. Helm asks the cluster whether it supports them. `helm template` and
`--dry-run=client` do not contact a cluster, so there the policies are rendered. For an older cluster set
`admissionPolicy.enabled` to `false`.

[security.md][security] lists every permission of every ServiceAccount, and why it is needed. Use one release per
namespace. If two releases share a workers' namespace, set `admissionPolicy.additionalWorkerCreators`.

[operator]: ../../../docs/reference/operator.md
[security]: ../../../docs/explanation/security.md
[upgrading]: ../../../docs/how-to/upgrading.md
[karpenter]: ../../../examples/karpenter-example.yaml
[autoscaler]: ../../../examples/cluster-autoscaler.md
[prometheus]: ../../../examples/values-prometheus.yaml
[replicas]: ../../../examples/values-two-replicas.yaml
[removal]: ../../../examples/values-delete-failed-nodes.yaml
[once]: ../../../examples/values-daemonset-once.yaml
[continuous]: ../../../examples/values-daemonset-continuous.yaml

## Values
"""
_HEAD = "| value | default | |\n|---|---|---|\n"


@dataclass(frozen=True)
class Value:
    path: str
    about: str
    default: Any
    is_section: bool


class UncommentedError(Exception):
    """A value without its reason."""


def values(text: str) -> Iterator[Value]:
    """Every value with the comment above it, sections before what is in them."""
    lines = text.splitlines()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    yield from _within(root, "", lines)


def page() -> str:
    found = list(values(VALUES.read_text()))
    plain = [value for value in found if "." not in value.path and not value.is_section]
    parts = [_PAGE, "\n", _table(plain)]
    for section in found:
        if section.is_section and section.path in _chapters(found):
            parts += [f"\n### {section.path}\n\n{section.about}\n\n", _table(_rows_of(section.path, found))]
    return "".join(parts)


def _chapters(found: list[Value]) -> list[str]:
    """Every section at the top, and those of the controller's file."""
    top = [value.path for value in found if value.is_section and "." not in value.path]
    return [*top, "controller.config", *(value.path for value in found if _is_of_the_file(value))]


def _is_of_the_file(value: Value) -> bool:
    return value.is_section and value.path.startswith("controller.config.") and value.path.count(".") == len("ab")


def _rows_of(chapter: str, found: list[Value]) -> list[Value]:
    inner = [other for other in _chapters(found) if other.startswith(f"{chapter}.")]
    return [
        value
        for value in found
        if value.path.startswith(f"{chapter}.")
        and not any(value.path == other or value.path.startswith(f"{other}.") for other in inner)
    ]


def _within(node: yaml.MappingNode, path: str, lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        at = f"{path}.{key.value}" if path else key.value
        about = _comment(lines, key.start_mark.line, key.start_mark.column)
        if not about:
            raise UncommentedError(f"values.yaml line {key.start_mark.line + 1}: {at} has no comment above it")
        is_section = isinstance(value, yaml.MappingNode) and _is_section(value, lines)
        yield Value(at, about, yaml.safe_load(yaml.serialize(value)), is_section)
        if is_section:
            yield from _within(value, at, lines)


def _is_section(node: yaml.MappingNode, lines: list[str]) -> bool:
    """A mapping with keys of ours; labels and the like are values as a whole, and have no comments inside."""
    if not node.value:
        return False
    mark = node.value[0][0].start_mark
    return bool(_comment(lines, mark.line, mark.column))


def _comment(lines: list[str], line: int, column: int) -> str:
    said: list[str] = []
    for above in reversed(lines[:line]):
        if above[:column].strip() or not above[column:].startswith("# "):
            break
        said.insert(0, above[column + 2 :].strip())
    return " ".join(said)


def _table(found: list[Value]) -> str:
    return _HEAD + "".join(f"| `{value.path}` | {_default(value)} | {value.about} |\n" for value in found)


def _default(value: Value) -> str:
    if value.is_section:
        return ""
    flow = yaml.safe_dump([value.default], default_flow_style=True, sort_keys=False, width=1000).strip()[1:-1]
    return f"`{flow}`"


def main() -> None:
    sys.stdout.write(page())


if __name__ == "__main__":
    main()
