"""The specification's own text, for tests. Each file here is a verbatim copy of a fragment, so do not edit it.

`DIFFERENT` lists what this project does deliberately in another way.
"""

import re
import shlex
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

FOLDER: Final = Path(__file__).parent
_WHOLE_COMMAND: Final = re.compile(r"(?:[^\n\\]|\\\n|\\)+")


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def tree(name: str) -> Any:  # noqa: ANN401  YAML
    return yaml.safe_load(text(name))


class Command(NamedTuple):
    """One program of a pipeline."""

    fragment: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.fragment}: {' '.join(self.words)}"

    @property
    def line(self) -> str:
        return " ".join(self.words)


def commands() -> list[Command]:
    """Every program that the shell fragments start, with its arguments."""
    found = []
    for file in sorted(FOLDER.rglob("*.sh")):
        without_comments = re.sub(r"(^|\s+)#.*$", "", file.read_text(), flags=re.MULTILINE)
        for line in _WHOLE_COMMAND.findall(without_comments):
            stages = re.split(r"\s\|\s", line.replace("\\\n", " "))
            name = str(file.relative_to(FOLDER))
            found += [Command(name, tuple(shlex.split(_quoted(stage)))) for stage in stages]
    return found


def _quoted(line: str) -> str:
    """Placeholders (`<node-name>`) and substitutions (`$(date)`) as single words."""
    return re.sub(r"<[\w-]+>|\$\([^)]*\)", lambda found: shlex.quote(found[0]), line)


class Difference(NamedTuple):
    fragment: str
    theirs: str
    """What the fragment says, verbatim."""
    ours: str
    reason: str


DIFFERENT: Final = {
    "default mode": Difference(
        "daemonset/install.sh",
        "helm install kube-node-ready ./deploy/helm/kube-node-ready",
        "The chart installs the controller unless deploymentMode is daemonset.",
        "The command is there to deploy a DaemonSet, but the specification recommends controller mode.",
    ),
    "image tag": Difference(
        "daemonset/daemonset.yaml",
        "image: kube-node-ready:latest",
        "The chart's image has the tag of the chart's version. The plain manifests keep `latest`.",
        "A mutable tag runs different code on different nodes.",
    ),
    "selector": Difference(
        "daemonset/daemonset.yaml",
        "app: kube-node-ready",
        "The chart selects pods by the recommended labels. Pods have the label `app` in addition.",
        "Two releases in one namespace must not adopt each other's pods.",
    ),
    "affinity": Difference(
        "daemonset/node-affinity.yaml",
        "operator: DoesNotExist",
        "The chart requires that the label does not have the verified value.",
        "A label with another value (verified=false) proves nothing, so such a node is verified too.",
    ),
    "cpu limit": Difference(
        "daemonset/daemonset.yaml",
        "cpu: 100m",
        "The chart sets no CPU limit.",
        "A throttled check looks like a slow network. The values can set a limit.",
    ),
    "public names": Difference(
        "daemonset/configmap.yaml",
        'DNS_TEST_DOMAINS: "kubernetes.default.svc.cluster.local,google.com"',
        "By default only the cluster's own name is checked. The plain manifests keep google.com.",
        "With google.com as a default, no node of a cluster without egress would pass.",
    ),
    "rights": Difference(
        "daemonset/rbac.yaml",
        'resources: ["services", "endpoints"]',
        "The chart grants two Services by name, and EndpointSlices, in two namespaces.",
        "Fewer are sufficient, and Endpoints are deprecated. The specification's suffice since Kubernetes 1.30.",
    ),
    "connectivity matrix": Difference(
        "daemonset/settings-thorough.yaml",
        'ENABLE_CONNECTIVITY_MATRIX: "true"',
        "With the plain manifests alone it is not applicable. The chart adds responders and the right to list pods.",
        "No pod of the manifests stays on a verified node, and their rights do not include pods.",
    ),
    "own pod": Difference(
        "daemonset/rbac.yaml",
        'verbs: ["get", "list", "patch"]',
        "Before Kubernetes 1.30 the plain manifests also need the right to get pods. The chart grants it there.",
        "A pod opens the gate of its own node only, and its token names the node since 1.30.",
    ),
    "foreign taints": Difference(
        "daemonset/patch.txt",
        '"path": "/spec/taints",',
        "The patch removes the gate by its position, and tests the position before.",
        "The specification's patch removes the taints of others as well.",
    ),
    "nslookup": Difference(
        "operator/daemonset-fails.sh",
        "nslookup kubernetes.default.svc.cluster.local",
        "`/kube-node-ready check` in the same pod runs every check.",
        "The image has no shell and no tools, so that an attacker finds none.",
    ),
    "worker image": Difference(
        "operator/values-controller.yaml",
        "repository: ghcr.io/imunhatep/kube-node-ready",
        "By default workers use the controller's own image. The specification's values render, with a warning.",
        "That image holds the Go version's worker, which cannot read this controller's settings.",
    ),
    "published image": Difference(
        "operator/values-controller.yaml",
        'tag: "latest"',
        "No image is published. `make image` builds it, and the chart's notes have the commands.",
        "There is no release yet.",
    ),
    "node pool": Difference(
        "operator/nodepool.yaml",
        "      taints:",
        "The example has the same taint under startupTaints, and apiVersion karpenter.sh/v1.",
        "Karpenter creates no node for pods that do not tolerate the `taints` of a pool.",
    ),
    "pod name": Difference(
        "operator/log-controller.jsonl",
        '"pod":"verify-node-1"',
        "Worker pods are called node-ready-worker-<UID of the Node>-<attempt>, with a label for the node's name.",
        "A node's name can be longer than a pod's, and a new node can have an old node's name.",
    ),
    "retry attempts": Difference(
        "operator/metrics-controller.txt",
        "kube_node_ready_retry_attempts_total",
        "It is a gauge: failures in a row, back to 0 when the node passes.",
        "A series per node must go with the node. kube_node_ready_verification_retries_total is the counter.",
    ),
    "right to create pods": Difference(
        "operator/controller-not-running.sh",
        "kubectl auth can-i create pods --as=system:serviceaccount:kube-system:kube-node-ready-controller",
        "The command needs --namespace=kube-system: elsewhere the answer is no.",
        "The controller can create pods in the namespace of its workers only.",
    ),
    "language": Difference(
        "operator/test.sh",
        "go test ./...",
        "`make test`, or `make unit` for the unit tests.",
        "The project is written in Python.",
    ),
    "order of checks": Difference(
        "architecture/checks.txt",
        "Verification Checks (Sequential)",
        "All checks run simultaneously.",
        "That is faster, and one failure does not hide another.",
    ),
    "service monitor": Difference(
        "architecture/metrics.txt",
        "ServiceMonitor (CRD)",
        "Controller mode has a ServiceMonitor, DaemonSet mode a PodMonitor.",
        "Pods of a DaemonSet are scraped one by one, which needs no Service.",
    ),
    "egress": Difference(
        "architecture/network-policy.txt",
        "- Allow DNS (port 53)",
        "The policy limits the controller's egress. Pods that check can connect to everything.",
        "A policy that blocks a check looks like a broken node.",
    ),
    "pulumi module": Difference(
        "component/files.txt",
        "daemonset.go        # DaemonSet creation",
        "One renderer in Python serves all backends; `render --to pulumi` writes a project.",
        "The project is written in Python.",
    ),
    "stubs": Difference(
        "component/files-created.md",
        "4 files (*.pb.go)",
        "The generated code is Python's.",
        "The project is written in Python. Code for other languages can be generated from the .proto files.",
    ),
    "proto path": Difference(
        "component/spec-file.md",
        "apis/org/project_planton/provider/kubernetes/kubernetesdaemonset/v1/spec.proto",
        "The files are in src/kubernetes_daemonset/api/v1. Their protobuf package has the specification's name.",
        "They are part of the Python package, and only the package's name is part of the protocol.",
    ),
    "required agents": Difference(
        "component/purpose.md",
        "node-level services that must run on every (or a subset of) nodes",
        "A new node is verified without its agents. `require_on_new_nodes` only marks one, and `validate` warns.",
        "That the operator waits for marked agents is planned: docs/daemonset/required-agents.md has the contract.",
    ),
    "technical docs": Difference(
        "component/files.txt",
        "docs/README.md      # Technical docs",
        "docs/daemonset/reference.md",
        "The documentation of both products is in docs/.",
    ),
}
"""By subject. tests/unit/specification/test_differences.py shows each of them."""
