"""Of what containers are given: variables and volumes."""

from typing import Final

from tests.component import Json, a_mount, a_sidecar
from tests.refusals.case import Refusal, rows

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
        '"A=B" cannot name a variable',
    ),
    Refusal(
        "a secret variable with a space",
        {"app.env.secrets": {"A B": "c"}},
        'app.env.secrets["A B"]',
        '"A B" cannot name a secret variable',
    ),
    Refusal(
        "a secret variable that begins with two dots",
        {"app.env.secrets": {"..a": "c"}},
        'app.env.secrets["..a"]',
        "cannot name a secret variable",
    ),
    Refusal(
        "a secret variable of dots", {"app.env.secrets": {"..": "c"}}, 'app.env.secrets[".."]', "cannot name a secret"
    ),
    Refusal(
        "a variable that is secret as well",
        {"app.env": {"variables": {"A": "b"}, "secrets": {"A": "c"}}},
        "app.env.secrets.A",
        "is a variable as well; leave one of them out",
    ),
    Refusal(
        "a variable that is elsewhere",
        {"app.env.variables": {"A": {"value_from": {"name": "db", "field_path": "status.outputs.host"}}}},
        "app.env.variables.A.value_from",
        "status.outputs.host of db cannot be looked up from here",
    ),
    Refusal(
        "a secret that is elsewhere",
        {"app.env.secrets": {"A": {"value_from": {"name": "db"}}}},
        "app.env.secrets.A.value_from",
        "a field of db cannot be looked up from here",
    ),
    Refusal(
        "a Secret of another namespace",
        {"app.env.secrets": {"A": {"secret_ref": {"namespace": "vault", "name": "db", "key": "password"}}}},
        "app.env.secrets.A.secret_ref.namespace",
        'a pod cannot read Secrets of "vault"; copy db to "monitoring"',
    ),
    Refusal(
        "a variable from a Secret of another namespace",
        {"app.env.variables": {"A": {"secret_ref": {"namespace": "vault", "name": "db", "key": "password"}}}},
        "app.env.variables.A.secret_ref.namespace",
        'a pod cannot read Secrets of "vault"',
    ),
    Refusal(
        "a sidecar's variable from a Secret of another namespace",
        {
            "spec.container.sidecars": [
                a_sidecar(env=[{"name": "A", "secret_ref": {"namespace": "vault", "name": "db", "key": "a"}}])
            ]
        },
        "spec.container.sidecars[0].env[0].secret_ref.namespace",
        'a pod cannot read Secrets of "vault"',
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
        '"b c" cannot be a key',
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
        '"b/c" cannot be a key',
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
        '"spec.hostname" is no field that a container can be told',
    ),
    Refusal(
        "a field of another API",
        {"app.env.variables": {"A": {"field_ref": {"field_path": "metadata.name", "api_version": "v2"}}}},
        "app.env.variables.A.field_ref.api_version",
        '"v2" is not the API of pods; write v1 or leave it out',
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
        '"cpu" is no resource that a container can be told',
    ),
    Refusal(
        "a limit of no container",
        {"app.env.variables": {"A": {"resource_field_ref": {"resource": "limits.cpu", "container_name": "other"}}}},
        "app.env.variables.A.resource_field_ref.container_name",
        'no container of the pod is called "other"; write agent',
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
        'no container of the pod is called "other"; write agent or helper',
    ),
    Refusal(
        "another unit",
        {"app.env.variables": {"A": {"resource_field_ref": {"resource": "limits.memory", "divisor": "1m"}}}},
        "app.env.variables.A.resource_field_ref",
        '"1m" is no unit of limits.memory',
    ),
    Refusal(
        "variables of neither a ConfigMap nor a Secret",
        {"app.env.env_from": [{"prefix": "A_"}]},
        "app.env.env_from[0]",
        "give one of config_map_ref and secret_ref",
    ),
    Refusal(
        "variables of both a ConfigMap and a Secret",
        {"app.env.env_from": [{"config_map_ref": {"name": "a"}, "secret_ref": {"name": "a"}}]},
        "app.env.env_from[0]",
        "give one of config_map_ref and secret_ref",
    ),
    Refusal(
        "variables of a ConfigMap without a name",
        {"app.env.env_from": [{"config_map_ref": {"optional": True}}]},
        "app.env.env_from[0].config_map_ref.name",
        "is required",
    ),
    *(
        Refusal(f"{what} with capitals", changes, f"{path}.name", '"A" cannot name an object')
        for what, changes, path in _NAMED
    ),
    Refusal(
        "a prefix with an equals sign",
        {"app.env.env_from": [{"prefix": "A=", "config_map_ref": {"name": "a"}}]},
        "app.env.env_from[0].prefix",
        '"A=" cannot begin the name of a variable',
    ),
]

MOUNTS: Final = [
    Refusal(what, {"app.volume_mounts": [a_mount(**mount)]}, f"app.volume_mounts[0]{field}", says)
    for what, mount, field, says in rows(
        ("a mount without a name", {"name": ""}, ".name", "a mount needs a name"),
        ("a volume's name with dots", {"name": "a.b"}, ".name", '"a.b" cannot name a volume'),
        ("a mount of nowhere", {"mount_path": ""}, ".mount_path", "a mount needs a mount_path"),
        ("a relative mount", {"mount_path": "data"}, ".mount_path", '"data" is a relative path'),
        ("a mount with a colon", {"mount_path": "/a:b"}, ".mount_path", "holds a colon"),
        ("an absolute sub-path", {"sub_path": "/a"}, ".sub_path", '"/a" is absolute; write a path within the volume'),
        ("a sub-path that leads out", {"sub_path": "a/../b"}, ".sub_path", "leads out of the volume"),
        ("an absolute expression", {"sub_path_expr": "/$(A)"}, ".sub_path_expr", "is absolute"),
        ("an expression that leads out", {"sub_path_expr": "../$(A)"}, ".sub_path_expr", "leads out of the volume"),
        ("two sub-paths", {"sub_path": "a", "sub_path_expr": "$(A)"}, ".sub_path_expr", "cannot stand beside sub_path"),
        ("another propagation", {"mount_propagation": "Both"}, ".mount_propagation", '"Both" is no way to propagate'),
        (
            "mounts for the node without the right",
            {"mount_propagation": "Bidirectional"},
            ".mount_propagation",
            "Bidirectional needs security_context.privileged: true",
        ),
        (
            "two sources",
            {"host_path": "/data", "empty_dir": {}},
            "",
            "a volume has one source; leave all but one",
        ),
        ("a host path of nowhere", {"host_path": {"type": "File"}}, ".host_path.path", "a host path needs a path"),
        ("a relative host path", {"host_path": "var/log"}, ".host_path.path", '"var/log" is a relative path'),
        (
            "a host path with ..",
            {"host_path": "/var/../etc"},
            ".host_path.path",
            'holds "..", which a host path cannot',
        ),
        (
            "another type of host path",
            {"host_path": {"path": "/a", "type": "Folder"}},
            ".host_path.type",
            '"Folder" is no type of host path',
        ),
        ("a mounted ConfigMap without a name", {"config_map": {"key": "a"}}, ".config_map.name", "is required"),
        (
            "a ConfigMap's name with capitals",
            {"config_map": "Agent"},
            ".config_map.name",
            '"Agent" cannot name an object',
        ),
        ("a Secret without a name", {"secret": {"key": "a"}}, ".secret.name", "is required"),
        ("a Secret's name with spaces", {"secret": "a b"}, ".secret.name", '"a b" cannot name an object'),
        (
            "an absolute file of a ConfigMap",
            {"config_map": {"name": "a", "key": "b", "path": "/c"}},
            ".config_map.path",
            '"/c" is absolute',
        ),
        (
            "a file of a Secret that leads out",
            {"secret": {"name": "a", "key": "b", "path": "../c"}},
            ".secret.path",
            "leads out of the volume",
        ),
        (
            "a file that begins with two dots",
            {"config_map": {"name": "a", "key": "b", "path": "..c"}},
            ".config_map.path",
            '"..c" begins with ".."',
        ),
        (
            "a file of no key of a ConfigMap",
            {"config_map": {"name": "a", "path": "b"}},
            ".config_map.path",
            "names the file of one key, and no key is named; add key, or leave path out",
        ),
        (
            "a file of no key of a Secret",
            {"secret": {"name": "a", "path": "b"}},
            ".secret.path",
            "names the file of one key, and no key is named",
        ),
        (
            "a key that cannot be a file",
            {"secret": {"name": "a", "key": "..b"}},
            ".secret.key",
            '"..b" cannot be a key',
        ),
        (
            "a mode with too many digits",
            {"config_map": {"name": "a", "default_mode": 644}},
            ".config_map.default_mode",
            "644 is no file mode; write 0 to 511, which is 0777",
        ),
        ("another medium", {"empty_dir": {"medium": "Disk"}}, ".empty_dir.medium", '"Disk" is no medium'),
        ("a size in words", {"empty_dir": {"size_limit": "big"}}, ".empty_dir.size_limit", '"big" is no amount'),
        ("a size below nothing", {"empty_dir": {"size_limit": "-1"}}, ".empty_dir.size_limit", '"-1" is no amount'),
        ("a claim without a name", {"pvc": {"read_only": True}}, ".pvc.claim_name", "is required"),
        ("a claim with capitals", {"pvc": {"claim_name": "Data"}}, ".pvc.claim_name", '"Data" cannot name an object'),
    )
] + [
    Refusal(
        "a path mounted twice",
        {"app.volume_mounts": [a_mount(), a_mount(name="other")]},
        "app.volume_mounts[1].mount_path",
        '"/data" is taken by spec.container.app.volume_mounts[0]',
    ),
    Refusal(
        "two volumes of one name",
        {"app.volume_mounts": [a_mount(), a_mount(mount_path="/other", host_path="/data")]},
        "app.volume_mounts[1].name",
        '"data" is another volume at spec.container.app.volume_mounts[0]',
    ),
    Refusal(
        "a volume that nobody describes",
        {"app.volume_mounts": [{"name": "data", "mount_path": "/data"}]},
        "app.volume_mounts[0]",
        'no mount says what volume "data" is; add host_path, config_map, secret, empty_dir or pvc',
    ),
]
