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


def most_calls_per_round() -> int:
    """How many calls to the API server a round of periodic checks can take, on average."""
    (most,) = re.findall(r"Periodic: 1-(\d+) API calls every 60s", text("architecture/api-load.txt"))
    return int(most)


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
    row: str
    """How its row begins in docs/how-to/upgrading.md or docs/daemonset/migration.md."""


DIFFERENT: Final = {
    "default mode": Difference(
        "daemonset/install.sh",
        "helm install kube-node-ready ./deploy/helm/kube-node-ready",
        "The chart installs the controller unless deploymentMode is daemonset.",
        "The command is there to deploy a DaemonSet, but the specification recommends controller mode.",
        "older charts install the DaemonSet",
    ),
    "image tag": Difference(
        "daemonset/daemonset.yaml",
        "image: kube-node-ready:latest",
        "The chart's image has the tag of the chart's version. The plain manifests keep `latest`.",
        "A mutable tag runs different code on different nodes.",
        "image tag `latest`",
    ),
    "selector": Difference(
        "daemonset/daemonset.yaml",
        "app: kube-node-ready",
        "The chart selects pods by the recommended labels. Pods have the label `app` in addition.",
        "Two releases in one namespace must not adopt each other's pods.",
        "DaemonSet: selector `app: kube-node-ready`",
    ),
    "affinity": Difference(
        "daemonset/node-affinity.yaml",
        "operator: DoesNotExist",
        "The chart requires that the label does not have the verified value.",
        "A label with another value (verified=false) proves nothing, so such a node is verified too.",
        "DaemonSet: pods where the label",
    ),
    "cpu limit": Difference(
        "daemonset/daemonset.yaml",
        "cpu: 100m",
        "The chart sets no CPU limit.",
        "A throttled check looks like a slow network. The values can set a limit.",
        "DaemonSet: a CPU limit of 100m",
    ),
    "public names": Difference(
        "daemonset/configmap.yaml",
        'DNS_TEST_DOMAINS: "kubernetes.default.svc.cluster.local,google.com"',
        "By default only the cluster's own name is checked. The plain manifests keep google.com.",
        "With google.com as a default, no node of a cluster without egress would pass.",
        "`google.com` is among the default names",
    ),
    "rights": Difference(
        "daemonset/rbac.yaml",
        'resources: ["services", "endpoints"]',
        "The chart grants two Services by name, and EndpointSlices, in two namespaces.",
        "Fewer are sufficient, and Endpoints are deprecated. The specification's suffice since Kubernetes 1.30.",
        "rights on Jobs, all Leases, all Services and Endpoints",
    ),
    "connectivity matrix": Difference(
        "daemonset/settings-thorough.yaml",
        'ENABLE_CONNECTIVITY_MATRIX: "true"',
        "With the plain manifests alone it is not applicable. The chart adds responders and the right to list pods.",
        "No pod of the manifests stays on a verified node, and their rights do not include pods.",
        "`ENABLE_CONNECTIVITY_MATRIX` without effect in plain manifests",
    ),
    "own pod": Difference(
        "daemonset/rbac.yaml",
        'verbs: ["get", "list", "patch"]',
        "Before Kubernetes 1.30 the plain manifests also need the right to get pods. The chart grants it there.",
        "A pod opens the gate of its own node only, and its token names the node since 1.30.",
        "plain manifests on any Kubernetes",
    ),
    "foreign taints": Difference(
        "daemonset/patch.txt",
        '"path": "/spec/taints",',
        "The patch removes the gate by its position, and tests the position before.",
        "The specification's patch removes the taints of others as well.",
        "a gate is removed by its place in the list",
    ),
    "nslookup": Difference(
        "operator/daemonset-fails.sh",
        "nslookup kubernetes.default.svc.cluster.local",
        "`/kube-node-ready check` in the same pod runs every check.",
        "The image has no shell and no tools, so that an attacker finds none.",
        "`kubectl exec POD -- nslookup …`",
    ),
    "worker image": Difference(
        "operator/values-controller.yaml",
        "repository: ghcr.io/imunhatep/kube-node-ready",
        "By default workers use the controller's own image. The specification's values render, with a warning.",
        "That image holds the Go version's worker, which cannot read this controller's settings.",
        "`worker.image` is",
    ),
    "published image": Difference(
        "operator/values-controller.yaml",
        'tag: "latest"',
        "No image is published. `make image` builds it, and the chart's notes have the commands.",
        "There is no release yet.",
        "images of each release at",
    ),
    "node pool": Difference(
        "operator/nodepool.yaml",
        "      taints:",
        "The example has the same taint under startupTaints, and apiVersion karpenter.sh/v1.",
        "Karpenter creates no node for pods that do not tolerate the `taints` of a pool.",
        "NodePools with the gate under `taints`",
    ),
    "pod name": Difference(
        "operator/log-controller.jsonl",
        '"pod":"verify-node-1"',
        "Worker pods are called node-ready-worker-<UID of the Node>-<attempt>, with a label for the node's name.",
        "A node's name can be longer than a pod's, and a new node can have an old node's name.",
        "worker pods named after the node",
    ),
    "retry attempts": Difference(
        "operator/metrics-controller.txt",
        "kube_node_ready_retry_attempts_total",
        "It is a gauge: failures in a row, back to 0 when the node passes.",
        "A series per node must go with the node. kube_node_ready_verification_retries_total is the counter.",
        "`kube_node_ready_retry_attempts_total`",
    ),
    "right to create pods": Difference(
        "operator/controller-not-running.sh",
        "kubectl auth can-i create pods --as=system:serviceaccount:kube-system:kube-node-ready-controller",
        "The command needs --namespace=kube-system: elsewhere the answer is no.",
        "The controller can create pods in the namespace of its workers only.",
        "`kubectl auth can-i create pods",
    ),
    "language": Difference(
        "operator/test.sh",
        "go test ./...",
        "`make test`, or `make unit` for the unit tests.",
        "The project is written in Python.",
        "`go test ./...`",
    ),
    "order of checks": Difference(
        "architecture/checks.txt",
        "Verification Checks (Sequential)",
        "All checks run simultaneously.",
        "That is faster, and one failure does not hide another.",
        "checks stop at the first failure",
    ),
    "service monitor": Difference(
        "architecture/metrics.txt",
        "ServiceMonitor (CRD)",
        "Controller mode has a ServiceMonitor, DaemonSet mode a PodMonitor.",
        "Pods of a DaemonSet are scraped one by one, which needs no Service.",
        "DaemonSet: `daemonset.metrics.enabled`",
    ),
    "egress": Difference(
        "architecture/network-policy.txt",
        "- Allow DNS (port 53)",
        "The policy limits the controller's egress. Pods that check can connect to everything.",
        "A policy that blocks a check looks like a broken node.",
        "egress rules for all pods",
    ),
    "addresses": Difference(
        "daemonset/settings-thorough.yaml",
        "google.com,1.1.1.1",
        "An IP address among the names is a DNS server, which must answer on port 53.",
        "To look up an address proves nothing: it succeeds without a network.",
        "IP addresses among `dnsTestDomains`",
    ),
    "taint value": Difference(
        "daemonset/patch.txt",
        '"value": "true",',
        "The gate is recognized by its key and its effect. Its value is used only where a gate is added.",
        "Two taints cannot have the same key and effect, so the value decides nothing.",
        "`TAINT_VALUE`",
    ),
    "existing nodes": Difference(
        "operator/features.md",
        "Ensures all nodes are verified",
        "The controller leaves nodes without the gate alone: they are not verified and get no label.",
        "They have workloads. A worker that fails there would be of no use, since nothing holds the node back.",
        "controller: documented to verify all nodes",
    ),
    "helm version": Difference(
        "operator/prerequisites.md",
        "Helm 3.0+",
        "Helm 3.14 or later.",
        "Earlier versions have no --reset-then-reuse-values, which upgrades need.",
        "Helm 3.0 or later",
    ),
    "removal": Difference(
        "operator/failure-handling.md",
        "After max retries, optionally deletes the node",
        "Within a budget: by default one node per pool per hour, and none while many nodes fail.",
        "A fault of the cluster must not delete it.",
        "`deleteFailedNodes` without a limit",
    ),
    "node claims": Difference(
        "operator/nodeclaims.md",
        "If no NodeClaim is found, it falls back to direct node deletion",
        "Only if the cluster has no NodeClaim of the node. If NodeClaims cannot be listed, nothing is deleted.",
        "Karpenter's instance would keep running without its Node.",
        "NodeClaims of Karpenter v1beta1",
    ),
    "later rounds": Difference(
        "architecture/periodic-checks.txt",
        "- Re-run all verification checks",
        "Nine of ten rounds over a verified node omit services and payload, two of three the matrix.",
        "With every check in every round, 1,000 nodes would send the API server 133 requests per second.",
        "DaemonSet: every round runs all checks",
    ),
    "api faults": Difference(
        "architecture/periodic-checks.txt",
        "- If failures detected → Re-apply taint",
        "A node that cannot reach the API server keeps its gate open.",
        "It could not write the taint, and after an outage of the API server all nodes would.",
        "DaemonSet: any failures restore the taint",
    ),
    "responders": Difference(
        "operator/resources.md",
        "**After verification**: 0 (pod terminated)",
        "With the connectivity matrix, the chart keeps a responder pod on each node without the gate.",
        "New nodes need pods to connect to.",
        "`ENABLE_CONNECTIVITY_MATRIX` without effect in mode `once`",
    ),
    "api calls": Difference(
        "architecture/api-load.txt",
        "Initial: 1-2 API calls to get node & patch",
        "A first round sends seven requests, and a node that passes three writes.",
        "The checks themselves are requests: the API, a large response, two Services and their endpoints.",
        "1 or 2 calls to the API server to verify a node",
    ),
    "pulumi module": Difference(
        "component/files.txt",
        "daemonset.go        # DaemonSet creation",
        "One renderer in Python serves all backends; `render --to pulumi` writes a project.",
        "The project is written in Python.",
        "a Pulumi module and stubs in Go",
    ),
    "stubs": Difference(
        "component/files-created.md",
        "4 files (*.pb.go)",
        "The generated code is Python's.",
        "The project is written in Python. Code for other languages can be generated from the .proto files.",
        "a Pulumi module and stubs in Go",
    ),
    "proto path": Difference(
        "component/spec-file.md",
        "apis/org/project_planton/provider/kubernetes/kubernetesdaemonset/v1/spec.proto",
        "The files are in src/kubernetes_daemonset/api/v1. Their protobuf package has the specification's name.",
        "They are part of the Python package, and only the package's name is part of the protocol.",
        "`apis/org/project_planton/",
    ),
    "required agents": Difference(
        "component/purpose.md",
        "node-level services that must run on every (or a subset of) nodes",
        "A new node is verified without its agents. `require_on_new_nodes` only marks one, and `validate` warns.",
        "That the operator waits for marked agents is planned: docs/daemonset/required-agents.md has the contract.",
        "a new node takes workloads before its agents run",
    ),
    "technical docs": Difference(
        "component/files.txt",
        "docs/README.md      # Technical docs",
        "docs/daemonset/reference.md",
        "The documentation of both products is in docs/.",
        "`docs/README.md` of the component",
    ),
}
"""By subject. tests/unit/specification/test_differences.py shows each of them."""
