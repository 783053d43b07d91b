"""Manifests: a small one, and one with an object of every kind and zeros and falses that must not be lost."""

from typing import Any

SECRET = "s3cr3t-of-the-agent"  # noqa: S105  a test's
LOGIN = '{"auths": {"registry.example.com": {"auth": "dTpw"}}}'


def a_small_agent() -> dict[str, Any]:
    return {
        "apiVersion": "kubernetes.project-planton.org/v1",
        "kind": "KubernetesDaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"namespace": "logging", "container": {"app": {"image": {"repo": "example/agent", "tag": "1"}}}},
    }


def an_agent(name: str, namespace: str, /, **spec: Any) -> dict[str, Any]:  # noqa: ANN401  the manifest's own fields
    return {
        "apiVersion": "kubernetes.project-planton.org/v1",
        "kind": "KubernetesDaemonSet",
        "metadata": {"name": name, "labels": {"team": "nodes"}, "annotations": {"example.com/note": "one"}},
        "spec": {
            "namespace": namespace,
            "create_namespace": True,
            "create_service_account": True,
            "config_maps": {f"{name}-files": "level: 0\n"},
            "rbac": {
                "cluster_rules": [{"api_groups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}],
                "namespace_rules": [{"api_groups": [""], "resources": ["pods"], "verbs": ["get"]}],
            },
            "tolerations": [{"operator": "Exists", "effect": "NoExecute", "toleration_seconds": 0}],
            "update_strategy": {"rolling_update": {"max_surge": "10%"}},
            "revision_history_limit": 0,
            "termination_grace_period_seconds": 0,
            "automount_service_account_token": False,
            "container": {"app": _app(f"{name}-files")},
        }
        | spec,
    }


def with_login(manifest: dict[str, Any]) -> dict[str, Any]:
    """The stack input that makes a pull secret too."""
    return {"target": manifest, "docker_config_json": LOGIN}


def _app(config_map: str) -> dict[str, Any]:
    return {
        "image": {"repo": "registry.example.com/agent", "tag": "1.20"},
        "env": {"variables": {"EMPTY": "", "PORT": 9200}, "secrets": {"TOKEN": SECRET}},
        "ports": [{"name": "metrics", "container_port": 9200}],
        "volume_mounts": [
            {"name": "files", "mount_path": "/etc/agent", "config_map": {"name": config_map, "default_mode": 0o400}},
            {"name": "scratch", "mount_path": "/scratch", "empty_dir": {}},
        ],
        "liveness_probe": {"tcp_socket": {"port": "metrics"}, "initial_delay_seconds": 0},
        "security_context": {
            "run_as_user": 0,
            "run_as_group": 0,
            "privileged": False,
            "allow_privilege_escalation": False,
            "read_only_root_filesystem": False,
        },
    }
