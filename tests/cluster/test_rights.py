"""What the controller needs to be allowed, and what happens without the rest."""

from pathlib import Path

import lab
from lab import waiting
from tests.support.builders import has_pods
from tests.support.controller_process import a_config, operating

GATE = lab.Taint("node-ready/unverified", value="true")
ACCOUNT = """
apiVersion: v1
kind: ServiceAccount
metadata: {{name: controller, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}}}
rules:
  - {{apiGroups: [""], resources: [nodes], verbs: [list, watch, patch]}}
  - {{apiGroups: [""], resources: [nodes/status], verbs: [patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: ServiceAccount, name: controller, namespace: {namespace}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: controller, namespace: {namespace}}}
rules:
  - {{apiGroups: [""], resources: [pods], verbs: [get, list, watch, create, delete]}}
  - {{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: controller, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: controller}}
subjects: [{{kind: ServiceAccount, name: controller, namespace: {namespace}}}]
"""


def test_a_node_is_verified_without_the_right_to_write_events(
    plane: lab.Plane, namespace: str, prefix: str, tmp_path: Path
) -> None:
    plane.apply(ACCOUNT.format(namespace=namespace))
    (node,) = plane.simulated_nodes(1, prefix=prefix, taints=[GATE], labels={"case": prefix}).names
    config = a_config(namespace, nodeManagement={"nodeSelector": {"case": prefix}}, leaderElection={"enabled": True})
    try:
        with operating(tmp_path, plane.kubeconfig(f"{namespace}/controller"), config) as operator:
            waiting.until("verified", lambda: operator.logged("Node verified", node=node), 180)
            waiting.until("the missing right is reported", lambda: operator.logged("Failed to write Event"), 180)
            waiting.until("its worker is gone", lambda: not has_pods(plane, namespace), 180)
    finally:
        plane.kubectl("delete", "node", node)
