"""Invalid variables and volumes."""

from typing import Final

from tests.support.manifests.builders import Json, a_mount, a_sidecar
from tests.support.manifests.refusals.case import Refusal, rows

_NAMED: Final[list[tuple[str, Json, str]]] = [
    (
        "a variable's Secret",
        {"app.env.variables": {"B": {"secret_ref": {"name": "A", "key": "b"}}}},
        "app.env.variables.B.secret_ref",
    ),
    (
        "a secret's Secret",
        {"app.env.secrets": {"B": {"secret_ref": {"name": "A", "key": "b"}}}},
        "app.env.secrets.B.secret_ref",
    ),
    (
        "a variable's ConfigMap",
        {"app.env.variables": {"B": {"config_map_key_ref": {"name": "A", "key": "b"}}}},
        "app.env.variables.B.config_map_key_ref",
    ),
    (
        "all variables' ConfigMap",
        {"app.env.env_from": [{"config_map_ref": {"name": "A"}}]},
        "app.env.env_from[0].config_map_ref",
    ),
    (
        "all variables' Secret",
        {"app.env.env_from": [{"secret_ref": {"name": "A"}}]},
        "app.env.env_from[0].secret_ref",
    ),
    (
        "a sidecar's ConfigMap",
        {"spec.container.sidecars": [a_sidecar(env=[{"name": "B", "config_map_key_ref": {"name": "A", "key": "b"}}])]},
        "spec.container.sidecars[0].env[0].config_map_key_ref",
    ),
    (
        "an init container's Secret",
        {"spec.init_containers": [a_sidecar(env_from=[{"secret_ref": {"name": "A"}}])]},
        "spec.init_containers[0].env_from[0].secret_ref",
    ),
]

VARIABLES: Final = [
    Refusal(
        "a variable with an equals sign",
        {"app.env.variables": {"A=B": "c"}},
        'app.env.variables["A=B"]',
        '"A=B" is invalid; expected a variable name',
    ),
    Refusal(
        "a secret variable with a space",
        {"app.env.secrets": {"A B": "c"}},
        'app.env.secrets["A B"]',
        '"A B" is invalid; expected a secret variable name',
    ),
    Refusal(
        "a secret variable that begins with two dots",
        {"app.env.secrets": {"..a": "c"}},
        'app.env.secrets["..a"]',
        "is invalid; expected a secret variable name",
    ),
    Refusal(
        "a secret variable of dots",
        {"app.env.secrets": {"..": "c"}},
        'app.env.secrets[".."]',
        "is invalid; expected a secret variable name",
    ),
    Refusal(
        "a variable that is secret as well",
        {"app.env": {"variables": {"A": "b"}, "secrets": {"A": "c"}}},
        "app.env.secrets.A",
        "is also defined in variables; remove one of them",
    ),
    Refusal(
        "a variable that is elsewhere",
        {"app.env.variables": {"A": {"value_from": {"name": "db", "field_path": "status.outputs.host"}}}},
        "app.env.variables.A.value_from",
        "status.outputs.host of db cannot be resolved by this tool",
    ),
    Refusal(
        "a secret that is elsewhere",
        {"app.env.secrets": {"A": {"value_from": {"name": "db"}}}},
        "app.env.secrets.A.value_from",
        "a field of db cannot be resolved by this tool",
    ),
    Refusal(
        "a Secret of another namespace",
        {"app.env.secrets": {"A": {"secret_ref": {"namespace": "vault", "name": "db", "key": "password"}}}},
        "app.env.secrets.A.secret_ref.namespace",
        'a pod cannot read Secrets in namespace "vault"; copy db to "monitoring"',
    ),
    Refusal(
        "a variable from a Secret of another namespace",
        {"app.env.variables": {"A": {"secret_ref": {"namespace": "vault", "name": "db", "key": "password"}}}},
        "app.env.variables.A.secret_ref.namespace",
        'a pod cannot read Secrets in namespace "vault"',
    ),
    Refusal(
        "a sidecar's variable from a Secret of another namespace",
        {
            "spec.container.sidecars": [
                a_sidecar(env=[{"name": "A", "secret_ref": {"namespace": "vault", "name": "db", "key": "a"}}])
            ]
        },
        "spec.container.sidecars[0].env[0].secret_ref.namespace",
        'a pod cannot read Secrets in namespace "vault"',
    ),
    Refusal(
        "a key without a Secret",
        {"app.env.secrets": {"A": {"secret_ref": {"key": "a"}}}},
        "app.env.secrets.A.secret_ref.name",
        "is required",
    ),
    Refusal(
        "a Secret without a key",
        {"app.env.secrets": {"A": {"secret_ref": {"name": "a"}}}},
        "app.env.secrets.A.secret_ref.key",
        "is required",
    ),
    Refusal(
        "a Secret's key that is none",
        {"app.env.secrets": {"A": {"secret_ref": {"name": "a", "key": "b c"}}}},
        "app.env.secrets.A.secret_ref.key",
        '"b c" is invalid; expected a key',
    ),
    Refusal(
        "a ConfigMap without a key",
        {"app.env.variables": {"A": {"config_map_key_ref": {"name": "a"}}}},
        "app.env.variables.A.config_map_key_ref.key",
        "is required",
    ),
    Refusal(
        "a ConfigMap's key that is none",
        {"app.env.variables": {"A": {"config_map_key_ref": {"name": "a", "key": "b/c"}}}},
        "app.env.variables.A.config_map_key_ref.key",
        '"b/c" is invalid; expected a key',
    ),
    Refusal(
        "no field of the pod",
        {"app.env.variables": {"A": {"field_ref": {"api_version": "v1"}}}},
        "app.env.variables.A.field_ref.field_path",
        "is required",
    ),
    Refusal(
        "another field of the pod",
        {"app.env.variables": {"A": {"field_ref": {"field_path": "spec.hostname"}}}},
        "app.env.variables.A.field_ref.field_path",
        '"spec.hostname" is invalid; expected a pod field',
    ),
    Refusal(
        "a field of another API",
        {"app.env.variables": {"A": {"field_ref": {"field_path": "metadata.name", "api_version": "v2"}}}},
        "app.env.variables.A.field_ref.api_version",
        '"v2" is invalid; expected v1 or unset',
    ),
    Refusal(
        "no resource of the container",
        {"app.env.variables": {"A": {"resource_field_ref": {"container_name": "agent"}}}},
        "app.env.variables.A.resource_field_ref.resource",
        "is required",
    ),
    Refusal(
        "another resource of the container",
        {"app.env.variables": {"A": {"resource_field_ref": {"resource": "cpu"}}}},
        "app.env.variables.A.resource_field_ref.resource",
        '"cpu" is invalid; expected a container resource',
    ),
    Refusal(
        "a limit of no container",
        {"app.env.variables": {"A": {"resource_field_ref": {"resource": "limits.cpu", "container_name": "other"}}}},
        "app.env.variables.A.resource_field_ref.container_name",
        'the pod has no container "other"; expected agent',
    ),
    Refusal(
        "a sidecar's limit of no container",
        {
            "spec.container.sidecars": [
                a_sidecar(
                    env=[{"name": "A", "resource_field_ref": {"resource": "limits.cpu", "container_name": "other"}}]
                )
            ]
        },
        "spec.container.sidecars[0].env[0].resource_field_ref.container_name",
        'the pod has no container "other"; expected agent or helper',
    ),
    Refusal(
        "another unit",
        {"app.env.variables": {"A": {"resource_field_ref": {"resource": "limits.memory", "divisor": "1m"}}}},
        "app.env.variables.A.resource_field_ref",
        '"1m" is invalid for limits.memory',
    ),
    Refusal(
        "variables of neither a ConfigMap nor a Secret",
        {"app.env.env_from": [{"prefix": "A_"}]},
        "app.env.env_from[0]",
        "expected exactly one of config_map_ref and secret_ref",
    ),
    Refusal(
        "variables of both a ConfigMap and a Secret",
        {"app.env.env_from": [{"config_map_ref": {"name": "a"}, "secret_ref": {"name": "a"}}]},
        "app.env.env_from[0]",
        "expected exactly one of config_map_ref and secret_ref",
    ),
    Refusal(
        "variables of a ConfigMap without a name",
        {"app.env.env_from": [{"config_map_ref": {"optional": True}}]},
        "app.env.env_from[0].config_map_ref.name",
        "is required",
    ),
    *(
        Refusal(f"{what} with capitals", changes, f"{path}.name", '"A" is invalid; expected an object name')
        for what, changes, path in _NAMED
    ),
    Refusal(
        "a prefix with an equals sign",
        {"app.env.env_from": [{"prefix": "A=", "config_map_ref": {"name": "a"}}]},
        "app.env.env_from[0].prefix",
        '"A=" is invalid; expected a prefix',
    ),
]

MOUNTS: Final = [
    Refusal(what, {"app.volume_mounts": [a_mount(**mount)]}, f"app.volume_mounts[0]{field}", says)
    for what, mount, field, says in rows(
        ("a mount without a name", {"name": ""}, ".name", "a mount needs a name"),
        ("a volume's name with dots", {"name": "a.b"}, ".name", '"a.b" is invalid; expected a volume name'),
        ("a mount of nowhere", {"mount_path": ""}, ".mount_path", "a mount needs a mount_path"),
        ("a relative mount", {"mount_path": "data"}, ".mount_path", '"data" is a relative path'),
        ("a mount with a colon", {"mount_path": "/a:b"}, ".mount_path", "contains a colon"),
        (
            "an absolute sub-path",
            {"sub_path": "/a"},
            ".sub_path",
            '"/a" is an absolute path; expected a path within the volume',
        ),
        ("a sub-path that leads out", {"sub_path": "a/../b"}, ".sub_path", "leads outside the volume"),
        ("an absolute expression", {"sub_path_expr": "/$(A)"}, ".sub_path_expr", "is an absolute path"),
        ("an expression that leads out", {"sub_path_expr": "../$(A)"}, ".sub_path_expr", "leads outside the volume"),
        (
            "two sub-paths",
            {"sub_path": "a", "sub_path_expr": "$(A)"},
            ".sub_path_expr",
            "cannot be combined with sub_path",
        ),
        (
            "another propagation",
            {"mount_propagation": "Both"},
            ".mount_propagation",
            '"Both" is invalid; expected None',
        ),
        (
            "mounts for the node without the right",
            {"mount_propagation": "Bidirectional"},
            ".mount_propagation",
            "Bidirectional requires security_context.privileged: true",
        ),
        (
            "two sources",
            {"host_path": "/data", "empty_dir": {}},
            "",
            "a volume can have only one source; remove all but one",
        ),
        ("a host path of nowhere", {"host_path": {"type": "File"}}, ".host_path.path", "a host path needs a path"),
        ("a relative host path", {"host_path": "var/log"}, ".host_path.path", '"var/log" is a relative path'),
        (
            "a host path with ..",
            {"host_path": "/var/../etc"},
            ".host_path.path",
            'contains "..", which a host path does not allow',
        ),
        (
            "another type of host path",
            {"host_path": {"path": "/a", "type": "Folder"}},
            ".host_path.type",
            '"Folder" is invalid; expected Directory',
        ),
        ("a mounted ConfigMap without a name", {"config_map": {"key": "a"}}, ".config_map.name", "is required"),
        (
            "a ConfigMap's name with capitals",
            {"config_map": "Agent"},
            ".config_map.name",
            '"Agent" is invalid; expected an object name',
        ),
        ("a Secret without a name", {"secret": {"key": "a"}}, ".secret.name", "is required"),
        ("a Secret's name with spaces", {"secret": "a b"}, ".secret.name", '"a b" is invalid; expected an object name'),
        (
            "an absolute file of a ConfigMap",
            {"config_map": {"name": "a", "key": "b", "path": "/c"}},
            ".config_map.path",
            '"/c" is an absolute path',
        ),
        (
            "a file of a Secret that leads out",
            {"secret": {"name": "a", "key": "b", "path": "../c"}},
            ".secret.path",
            "leads outside the volume",
        ),
        (
            "a file that begins with two dots",
            {"config_map": {"name": "a", "key": "b", "path": "..c"}},
            ".config_map.path",
            '"..c" starts with ".."',
        ),
        (
            "a file of no key of a ConfigMap",
            {"config_map": {"name": "a", "path": "b"}},
            ".config_map.path",
            "requires key; add key or remove path",
        ),
        (
            "a file of no key of a Secret",
            {"secret": {"name": "a", "path": "b"}},
            ".secret.path",
            "requires key; add key",
        ),
        (
            "a key that cannot be a file",
            {"secret": {"name": "a", "key": "..b"}},
            ".secret.key",
            '"..b" is invalid; expected a key',
        ),
        (
            "a mode with too many digits",
            {"config_map": {"name": "a", "default_mode": 644}},
            ".config_map.default_mode",
            "644 is invalid; expected a file mode from 0 to 511 (0777)",
        ),
        (
            "another medium",
            {"empty_dir": {"medium": "Disk"}},
            ".empty_dir.medium",
            '"Disk" is invalid; expected Memory or unset',
        ),
        (
            "a size in words",
            {"empty_dir": {"size_limit": "big"}},
            ".empty_dir.size_limit",
            '"big" is invalid; expected a quantity',
        ),
        (
            "a size below nothing",
            {"empty_dir": {"size_limit": "-1"}},
            ".empty_dir.size_limit",
            '"-1" is invalid; expected a quantity',
        ),
        ("a claim without a name", {"pvc": {"read_only": True}}, ".pvc.claim_name", "is required"),
        (
            "a claim with capitals",
            {"pvc": {"claim_name": "Data"}},
            ".pvc.claim_name",
            '"Data" is invalid; expected an object name',
        ),
    )
] + [
    Refusal(
        "a path mounted twice",
        {"app.volume_mounts": [a_mount(), a_mount(name="other")]},
        "app.volume_mounts[1].mount_path",
        '"/data" is already used by spec.container.app.volume_mounts[0]',
    ),
    Refusal(
        "two volumes of one name",
        {"app.volume_mounts": [a_mount(), a_mount(mount_path="/other", host_path="/data")]},
        "app.volume_mounts[1].name",
        '"data" is a different volume at spec.container.app.volume_mounts[0]',
    ),
    Refusal(
        "a volume that nobody describes",
        {"app.volume_mounts": [{"name": "data", "mount_path": "/data"}]},
        "app.volume_mounts[0]",
        'volume "data" has no source; add host_path, config_map, secret, empty_dir or pvc',
    ),
]
