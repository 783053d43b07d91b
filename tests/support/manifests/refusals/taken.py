"""Unusual manifests that are valid for us and for an API server."""

from typing import Final

from tests.support.manifests.builders import DIGEST, Changes, a_mount, a_port, a_sidecar
from tests.support.manifests.refusals.case import a_probe

TAKEN: Final[dict[str, Changes]] = {
    "a port's name of one letter": {"app.ports": [a_port(name="a")]},
    "a port's name that begins with a digit": {"app.ports": [a_port(name="9a")]},
    "a protocol left out": {"app.ports": [{"name": "metrics", "container_port": 9100}]},
    "one port by two protocols": {"app.ports": [a_port(), a_port(name="b", network_protocol="UDP")]},
    "the same port of the node": {"spec.host_network": True, "app.ports": [a_port(host_port=9100)]},
    "the same port of the node by two protocols": {
        "app.ports": [a_port(host_port=80), a_port(name="b", network_protocol="UDP", host_port=80)]
    },
    "a port that an init container has left": {
        "spec.host_network": True,
        "app.ports": [a_port()],
        "spec.init_containers": [a_sidecar(ports=[{"container_port": 9100}])],
    },
    "a number of nodes": {"spec.update_strategy.rolling_update.max_unavailable": 1},
    "all nodes at once": {"spec.update_strategy.rolling_update.max_unavailable": "100%"},
    "a surge alone": {"spec.update_strategy.rolling_update.max_surge": 1},
    "a surge beside zero": {"spec.update_strategy.rolling_update": {"max_unavailable": "0%", "max_surge": 1}},
    "no surge": {"spec.update_strategy.rolling_update": {"max_unavailable": 2, "max_surge": 0}},
    "every taint": {"spec.tolerations": [{"operator": "Exists"}]},
    "leaving at once": {
        "spec.tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 0}]
    },
    "a digest alone": {"app.image": {"repo": "agent", "digest": DIGEST}},
    "a digest and a tag": {"app.image.digest": DIGEST},
    "images of every form": {
        "app.image": "Registry.Example:5000/a/b-c.d_e__f---g:V_1.2-x",
        "spec.container.sidecars": [
            a_sidecar(name=f"helper-{at}", image=image)
            for at, image in enumerate(
                [
                    "localhost/a",
                    "localhost:80/a:1",
                    "127.0.0.1:5000/a:1",
                    "[::1]:5000/a:1",
                    f"a:1@{DIGEST}",
                    f"a@sha512:{DIGEST[7:] * 2}",
                    "a" * 255,
                    f"a:{'b' * 128}",
                ]
            )
        ],
    },
    "values that are empty and say so": {
        "metadata.labels": {"a": ""},
        "spec.node_selector": {"disk": ""},
        "spec.config_maps": {"a": ""},
        "app.env.variables": {"LOG_LEVEL": ""},
    },
    "amounts of every form": {"app.resources": {"limits": {"cpu": ".5", "memory": "1e9"}, "requests": {"cpu": "0"}}},
    "as much as the limit": {"app.resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1024Mi"}}},
    "devices in other words": {
        "app.resources": {"limits": {"memory": "1Gi", "a.b/c": "2"}, "requests": {"a.b/c": "2.0"}}
    },
    "whole devices in thousandths": {"app.resources": {"limits": {"memory": "1Gi", "a.b/c": "2000m"}}},
    "a resource of the longest domain": {
        "app.resources": {"limits": {"memory": "1Gi", "other": {f"{'a.' * 121}aa/gpu": "1"}}}
    },
    "half of a resource of Kubernetes' own by request": {
        "app.resources": {"limits": {"memory": "1Gi"}, "requests": {"example.kubernetes.io/a": "500m"}}
    },
    "less of a resource of Kubernetes' own than allowed": {
        "app.resources": {
            "limits": {"memory": "1Gi", "kubernetes.io/a": "2"},
            "requests": {"kubernetes.io/a": "1"},
        }
    },
    "huge pages": {"app.resources": {"limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi"}}},
    "more huge pages than there are": {"app.resources": {"limits": {"memory": "1Gi", "hugepages-1Gi": "1e90"}}},
    "a variable with dots": {"app.env.variables": {"node.name": "a"}},
    "a variable with spaces": {"app.env.variables": {"node name": "a"}},
    "a built-in variable of one's own": {"app.env.variables": {"K8S_NODE_NAME": "a"}},
    "a label of the pod as a variable": {
        "app.env.variables": {"A": {"field_ref": {"field_path": "metadata.labels['a/b']"}}}
    },
    "a Secret of the same namespace": {
        "app.env.secrets": {"A": {"secret_ref": {"namespace": "monitoring", "name": "a", "key": "b"}}}
    },
    "limits of other containers": {
        "app.env.variables": {
            "A": {"resource_field_ref": {"resource": "limits.memory", "container_name": "helper"}},
            "B": {"resource_field_ref": {"resource": "limits.memory", "container_name": "before"}},
        },
        "spec.container.sidecars": [a_sidecar()],
        "spec.init_containers": [a_sidecar(name="before")],
    },
    "many annotations on different objects": {
        "spec.create_service_account": True,
        "metadata.annotations": {"a": "b" * 130_000},
        "spec.service_account_annotations": {"c": "d" * 130_000},
        "spec.pod_annotations": {"a": "b" * 200_000},
    },
    "an annotation of a domain with capitals": {"metadata.annotations": {"Example.com/a": "b"}},
    "an annotation of many parts": {"metadata.annotations": {f"{'a.' * 100}a/b": "c"}},
    "a label that is the component's own and right": {"metadata.labels": {"app.kubernetes.io/name": "agent"}},
    "a volume at two paths": {"app.volume_mounts": [a_mount(), {"name": "data", "mount_path": "/other"}]},
    "a volume that only a sidecar describes": {
        "app.volume_mounts": [{"name": "data", "mount_path": "/data"}],
        "spec.container.sidecars": [a_sidecar(volume_mounts=[a_mount()])],
    },
    "mounts for the node by right": {
        "app.security_context": {"privileged": True},
        "app.volume_mounts": [a_mount(host_path="/mnt", mount_propagation="Bidirectional")],
    },
    "a readiness probe that succeeds twice": {"app.readiness_probe": a_probe(success_threshold=2)},
    "a sleep to the end": {"app.lifecycle.pre_stop.sleep_seconds": 30},
    "a sleep to a later end": {"app.lifecycle.pre_stop.sleep_seconds": 60, "spec.termination_grace_period_seconds": 60},
    "a probe of what stays": {"spec.init_containers": [a_sidecar(restart_policy="Always", liveness_probe=a_probe())]},
    "privileged with escalation": {"app.security_context": {"privileged": True, "allow_privilege_escalation": True}},
    "user 2147483647": {"app.security_context": {"run_as_user": 2147483647}},
    "paths of the API server": {
        "spec.create_service_account": True,
        "spec.rbac.cluster_rules": [{"non_resource_urls": ["/metrics"], "verbs": ["get"]}],
    },
    "rights for an account that is there": {
        "spec.service_account_name": "robot",
        "spec.rbac.namespace_rules": [{"api_groups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    "a name of digits": {"metadata.name": "123"},
    "a name of 63 letters": {"metadata.name": "a" * 63},
}
