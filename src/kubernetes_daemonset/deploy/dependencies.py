"""What has to be there before what, for tools that make objects at the same time. Pure."""

from kubernetes_daemonset.objects import Json


def needs(this: Json, other: Json) -> bool:
    """Whether the other object has to be there before this one is made, and until it is gone."""
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
