"""Install the chart on a plane: objects, ServiceAccount tokens and access reviews."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace

import lab
from kube_node_ready.agent.api import JSON, MERGE_PATCH, Api
from kube_node_ready.checks import kubeconfig
from kube_node_ready.checks.check import Deadline
from kube_node_ready.kube.errors import Rejected
from lab import waiting
from tests.support import chart_sets
from tests.support.chart import POLICIES, Object, Rendered, render

WORKLOADS = frozenset({"Deployment", "DaemonSet"})
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
_REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
PATIENCE = 180


def apply(plane: lab.Plane, objects: Iterable[Object], *flags: str) -> None:
    """As `kubectl apply` does, unknown fields and warnings being mistakes."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    strictly = ("--server-side", "--force-conflicts", "--validate=strict", "--warnings-as-errors")
    plane.kubectl("apply", *strictly, *flags, "--filename=-", standard_input=listed)


def make_namespace(plane: lab.Plane, name: str) -> None:
    """One that takes no pods but `restricted` ones."""
    with suppress(ApiError):  # it is there
        plane.client.create(Namespace(metadata=ObjectMeta(name=name, labels=_RESTRICTED)))


def ready_for_everything(plane: lab.Plane) -> None:
    """Let there be every namespace and kind that the values of `chart_sets` name."""
    for name in chart_sets.NAMESPACES:
        make_namespace(plane, name)
    kinds = [chart_sets.definition(kind) for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule")]
    apply(plane, kinds)
    names = [kind["metadata"]["name"] for kind in kinds]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *names)


class Release:
    """A release of the chart, without the workload unless asked for."""

    def __init__(self, plane: lab.Plane, namespace: str, values: Mapping[str, Any], *, workload: bool = False) -> None:
        self.plane = plane
        self.namespace = namespace
        self.made: Rendered = render(values, name=namespace, namespace=namespace, apis=[POLICIES])
        self._objects = [one for one in self.made if workload or one["kind"] not in WORKLOADS]

    def install(self) -> None:
        make_namespace(self.plane, self.namespace)
        apply(self.plane, self._objects)

    def uninstall(self) -> None:
        """What is not in the namespace, and then the namespace."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": self._objects})
        self.plane.kubectl("delete", "--ignore-not-found", "--wait=false", "--filename=-", standard_input=listed)
        self.plane.client.delete(Namespace, self.namespace)

    @property
    def account(self) -> str:
        """That of the controller or the DaemonSet."""
        return str(self.made.pod["spec"]["serviceAccountName"])

    def user(self, account: str = "") -> str:
        return f"system:serviceaccount:{self.namespace}:{account or self.account}"

    def kubeconfig(self, account: str = "", *, pod: str | None = None) -> Path:
        return self.plane.kubeconfig(f"{self.namespace}/{account or self.account}", pod=pod)

    def api(self, account: str = "", *, pod: str | None = None) -> Api:
        """The API server, as one asks it who holds such a token."""
        return api_of(self.kubeconfig(account, pod=pod))

    def put_pod(self, node: str) -> str:
        """A pod of the workload's on a node, as its controller would make it; the kubelet is a simulated one."""
        name = f"{self.account}-{node}"[-63:].lstrip("-.")
        metadata = {**self.made.pod["metadata"], "name": name, "namespace": self.namespace}
        spec = {**self.made.pod["spec"], "nodeName": node}
        apply(self.plane, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
        return name

    def mount(self, folder: Path, *, pod: str | None = None, account: str = "") -> None:
        """What a kubelet mounts into the pod."""
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(token_of(self.kubeconfig(account, pod=pod)))
        (folder / "ca.crt").write_bytes(self.plane.authority.certificate.read_bytes())

    def may(self, verb: str, resource: str, namespace: str = "") -> bool:
        with reviews(self.plane, self.user()) as allow:
            return allow(verb, resource, namespace)

    def revoke(self, resource: str) -> None:
        """The right to it, wherever it is granted. `restore` restores it."""
        for role in self._roles():
            rules = [rule for rule in role["rules"] if resource not in rule["resources"]]
            if rules != role["rules"]:
                apply(self.plane, [{**role, "rules": rules}])

    def restore(self) -> None:
        apply(self.plane, self._roles())

    def _roles(self) -> list[Object]:
        return self.made.of("Role") + self.made.of("ClusterRole")

    def wait_for_policy(self, node: str) -> None:
        """The API server takes a moment to know a new admission policy. It holds as soon as a token without a node
        is allowed to write to none.
        """
        waiting.until("the admission policy holds", lambda: self._is_held(node), PATIENCE, alive=self.plane.check)

    def _is_held(self, node: str) -> bool:
        try:
            self.api().patch(f"/api/v1/nodes/{node}?dryRun=All", b"{}", MERGE_PATCH)
        except Rejected as why:
            return "ValidatingAdmissionPolicy" in why.message
        return False


def api_of(file: Path) -> Api:
    access = kubeconfig.load(file)
    return Api(lambda: access)


def token_of(file: Path) -> str:
    (user,) = yaml.safe_load(file.read_text())["users"]
    return str(user["user"]["token"])


@contextmanager
def reviews(plane: lab.Plane, user: str) -> Iterator[Callable[..., bool]]:
    """`allow(verb, resource, namespace, name)`: whether this user is allowed to. One connection for all, which is fast.

    The resource has its subresource and its group: `nodes/status`, `leases.coordination.k8s.io`.
    """
    with kubeconfig.load(plane.kubeconfig()).open(Deadline(PATIENCE)) as conversation:

        def allow(verb: str, resource: str, namespace: str = "", name: str = "") -> bool:
            kind, _, group = resource.partition(".")
            kind, _, part = kind.partition("/")
            asked = {"verb": verb, "group": group, "resource": kind, "subresource": part, "name": name}
            spec = {"user": user, "resourceAttributes": {**asked, "namespace": namespace}}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            answer = conversation.send("POST", _REVIEW, json.dumps(review).encode(), JSON, Deadline(PATIENCE))
            return bool(json.loads(answer.body)["status"]["allowed"])

        yield allow
