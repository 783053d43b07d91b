"""Dependencies between objects, for tools that create objects in parallel. Pure."""

from kubernetes_daemonset.types import Json


def depends_on(this: Json, other: Json) -> bool:
    """Return whether the other object must exist before this one is created and until it is deleted."""
    match this["kind"], other["kind"]:
        case "DaemonSet", _:
            return True
        case _, "Namespace":
            return "namespace" in this["metadata"]
        case ("RoleBinding", "Role") | ("ClusterRoleBinding", "ClusterRole"):
            return True
        case "RoleBinding" | "ClusterRoleBinding", "ServiceAccount":
            return True
        case _:
            return False
