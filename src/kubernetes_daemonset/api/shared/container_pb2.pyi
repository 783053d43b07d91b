from kubernetes_daemonset.api.buf.validate import validate_pb2 as _validate_pb2
from kubernetes_daemonset.api.shared import bounds_pb2 as _bounds_pb2
from google.protobuf import descriptor_pb2 as _descriptor_pb2
from kubernetes_daemonset.api.shared import probe_pb2 as _probe_pb2
from kubernetes_daemonset.api.shared import reference_pb2 as _reference_pb2
from kubernetes_daemonset.api.shared import volume_pb2 as _volume_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
DEFAULT_CONTAINER_RESOURCES_FIELD_NUMBER: _ClassVar[int]
default_container_resources: _descriptor.FieldDescriptor

class ContainerImage(_message.Message):
    __slots__ = ("repo", "tag", "pull_secret_name", "digest", "pull_policy")
    REPO_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    PULL_SECRET_NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PULL_POLICY_FIELD_NUMBER: _ClassVar[int]
    repo: str
    tag: str
    pull_secret_name: str
    digest: str
    pull_policy: str
    def __init__(self, repo: _Optional[str] = ..., tag: _Optional[str] = ..., pull_secret_name: _Optional[str] = ..., digest: _Optional[str] = ..., pull_policy: _Optional[str] = ...) -> None: ...

class ContainerResources(_message.Message):
    __slots__ = ("limits", "requests")
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    limits: CpuMemory
    requests: CpuMemory
    def __init__(self, limits: _Optional[_Union[CpuMemory, _Mapping]] = ..., requests: _Optional[_Union[CpuMemory, _Mapping]] = ...) -> None: ...

class CpuMemory(_message.Message):
    __slots__ = ("cpu", "memory", "ephemeral_storage", "other")
    class OtherEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    cpu: str
    memory: str
    ephemeral_storage: str
    other: _containers.ScalarMap[str, str]
    def __init__(self, cpu: _Optional[str] = ..., memory: _Optional[str] = ..., ephemeral_storage: _Optional[str] = ..., other: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ContainerEnvVar(_message.Message):
    __slots__ = ("name", "value", "field_ref", "resource_field_ref", "config_map_key_ref", "secret_ref")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FIELD_REF_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_REF_FIELD_NUMBER: _ClassVar[int]
    CONFIG_MAP_KEY_REF_FIELD_NUMBER: _ClassVar[int]
    SECRET_REF_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    field_ref: FieldRef
    resource_field_ref: ResourceFieldRef
    config_map_key_ref: KeyRef
    secret_ref: KubernetesSecretKeyRef
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., field_ref: _Optional[_Union[FieldRef, _Mapping]] = ..., resource_field_ref: _Optional[_Union[ResourceFieldRef, _Mapping]] = ..., config_map_key_ref: _Optional[_Union[KeyRef, _Mapping]] = ..., secret_ref: _Optional[_Union[KubernetesSecretKeyRef, _Mapping]] = ...) -> None: ...

class ContainerPort(_message.Message):
    __slots__ = ("name", "container_port", "protocol", "host_port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_PORT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    container_port: int
    protocol: str
    host_port: int
    def __init__(self, name: _Optional[str] = ..., container_port: _Optional[int] = ..., protocol: _Optional[str] = ..., host_port: _Optional[int] = ...) -> None: ...

class Container(_message.Message):
    __slots__ = ("name", "image", "ports", "resources", "env", "env_from", "command", "args", "volume_mounts", "liveness_probe", "readiness_probe", "startup_probe", "security_context", "pull_policy", "working_dir", "lifecycle", "restart_policy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    ENV_FROM_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_MOUNTS_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_PROBE_FIELD_NUMBER: _ClassVar[int]
    READINESS_PROBE_FIELD_NUMBER: _ClassVar[int]
    STARTUP_PROBE_FIELD_NUMBER: _ClassVar[int]
    SECURITY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PULL_POLICY_FIELD_NUMBER: _ClassVar[int]
    WORKING_DIR_FIELD_NUMBER: _ClassVar[int]
    LIFECYCLE_FIELD_NUMBER: _ClassVar[int]
    RESTART_POLICY_FIELD_NUMBER: _ClassVar[int]
    name: str
    image: str
    ports: _containers.RepeatedCompositeFieldContainer[ContainerPort]
    resources: ContainerResources
    env: _containers.RepeatedCompositeFieldContainer[ContainerEnvVar]
    env_from: _containers.RepeatedCompositeFieldContainer[EnvFrom]
    command: _containers.RepeatedScalarFieldContainer[str]
    args: _containers.RepeatedScalarFieldContainer[str]
    volume_mounts: _containers.RepeatedCompositeFieldContainer[_volume_pb2.VolumeMount]
    liveness_probe: _probe_pb2.Probe
    readiness_probe: _probe_pb2.Probe
    startup_probe: _probe_pb2.Probe
    security_context: SecurityContext
    pull_policy: str
    working_dir: str
    lifecycle: Lifecycle
    restart_policy: str
    def __init__(self, name: _Optional[str] = ..., image: _Optional[str] = ..., ports: _Optional[_Iterable[_Union[ContainerPort, _Mapping]]] = ..., resources: _Optional[_Union[ContainerResources, _Mapping]] = ..., env: _Optional[_Iterable[_Union[ContainerEnvVar, _Mapping]]] = ..., env_from: _Optional[_Iterable[_Union[EnvFrom, _Mapping]]] = ..., command: _Optional[_Iterable[str]] = ..., args: _Optional[_Iterable[str]] = ..., volume_mounts: _Optional[_Iterable[_Union[_volume_pb2.VolumeMount, _Mapping]]] = ..., liveness_probe: _Optional[_Union[_probe_pb2.Probe, _Mapping]] = ..., readiness_probe: _Optional[_Union[_probe_pb2.Probe, _Mapping]] = ..., startup_probe: _Optional[_Union[_probe_pb2.Probe, _Mapping]] = ..., security_context: _Optional[_Union[SecurityContext, _Mapping]] = ..., pull_policy: _Optional[str] = ..., working_dir: _Optional[str] = ..., lifecycle: _Optional[_Union[Lifecycle, _Mapping]] = ..., restart_policy: _Optional[str] = ...) -> None: ...

class SecurityContext(_message.Message):
    __slots__ = ("privileged", "run_as_user", "run_as_group", "run_as_non_root", "read_only_root_filesystem", "capabilities", "allow_privilege_escalation", "seccomp_profile", "se_linux_options")
    PRIVILEGED_FIELD_NUMBER: _ClassVar[int]
    RUN_AS_USER_FIELD_NUMBER: _ClassVar[int]
    RUN_AS_GROUP_FIELD_NUMBER: _ClassVar[int]
    RUN_AS_NON_ROOT_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_ROOT_FILESYSTEM_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PRIVILEGE_ESCALATION_FIELD_NUMBER: _ClassVar[int]
    SECCOMP_PROFILE_FIELD_NUMBER: _ClassVar[int]
    SE_LINUX_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    privileged: bool
    run_as_user: int
    run_as_group: int
    run_as_non_root: bool
    read_only_root_filesystem: bool
    capabilities: Capabilities
    allow_privilege_escalation: bool
    seccomp_profile: SeccompProfile
    se_linux_options: SeLinuxOptions
    def __init__(self, privileged: _Optional[bool] = ..., run_as_user: _Optional[int] = ..., run_as_group: _Optional[int] = ..., run_as_non_root: _Optional[bool] = ..., read_only_root_filesystem: _Optional[bool] = ..., capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., allow_privilege_escalation: _Optional[bool] = ..., seccomp_profile: _Optional[_Union[SeccompProfile, _Mapping]] = ..., se_linux_options: _Optional[_Union[SeLinuxOptions, _Mapping]] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("add", "drop")
    ADD_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    add: _containers.RepeatedScalarFieldContainer[str]
    drop: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, add: _Optional[_Iterable[str]] = ..., drop: _Optional[_Iterable[str]] = ...) -> None: ...

class SeccompProfile(_message.Message):
    __slots__ = ("type", "localhost_profile")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LOCALHOST_PROFILE_FIELD_NUMBER: _ClassVar[int]
    type: str
    localhost_profile: str
    def __init__(self, type: _Optional[str] = ..., localhost_profile: _Optional[str] = ...) -> None: ...

class SeLinuxOptions(_message.Message):
    __slots__ = ("user", "role", "type", "level")
    USER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    user: str
    role: str
    type: str
    level: str
    def __init__(self, user: _Optional[str] = ..., role: _Optional[str] = ..., type: _Optional[str] = ..., level: _Optional[str] = ...) -> None: ...

class Lifecycle(_message.Message):
    __slots__ = ("post_start", "pre_stop")
    POST_START_FIELD_NUMBER: _ClassVar[int]
    PRE_STOP_FIELD_NUMBER: _ClassVar[int]
    post_start: LifecycleHandler
    pre_stop: LifecycleHandler
    def __init__(self, post_start: _Optional[_Union[LifecycleHandler, _Mapping]] = ..., pre_stop: _Optional[_Union[LifecycleHandler, _Mapping]] = ...) -> None: ...

class LifecycleHandler(_message.Message):
    __slots__ = ("exec", "http_get", "sleep_seconds")
    EXEC_FIELD_NUMBER: _ClassVar[int]
    HTTP_GET_FIELD_NUMBER: _ClassVar[int]
    SLEEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    exec: _probe_pb2.ExecAction
    http_get: _probe_pb2.HttpGetAction
    sleep_seconds: int
    def __init__(self, exec: _Optional[_Union[_probe_pb2.ExecAction, _Mapping]] = ..., http_get: _Optional[_Union[_probe_pb2.HttpGetAction, _Mapping]] = ..., sleep_seconds: _Optional[int] = ...) -> None: ...

class EnvFrom(_message.Message):
    __slots__ = ("prefix", "config_map_ref", "secret_ref")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    CONFIG_MAP_REF_FIELD_NUMBER: _ClassVar[int]
    SECRET_REF_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    config_map_ref: SourceRef
    secret_ref: SourceRef
    def __init__(self, prefix: _Optional[str] = ..., config_map_ref: _Optional[_Union[SourceRef, _Mapping]] = ..., secret_ref: _Optional[_Union[SourceRef, _Mapping]] = ...) -> None: ...

class SourceRef(_message.Message):
    __slots__ = ("name", "optional")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    optional: bool
    def __init__(self, name: _Optional[str] = ..., optional: _Optional[bool] = ...) -> None: ...

class KeyRef(_message.Message):
    __slots__ = ("name", "key", "optional")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    optional: bool
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., optional: _Optional[bool] = ...) -> None: ...

class FieldRef(_message.Message):
    __slots__ = ("field_path", "api_version")
    FIELD_PATH_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    field_path: str
    api_version: str
    def __init__(self, field_path: _Optional[str] = ..., api_version: _Optional[str] = ...) -> None: ...

class ResourceFieldRef(_message.Message):
    __slots__ = ("resource", "container_name", "divisor")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_NAME_FIELD_NUMBER: _ClassVar[int]
    DIVISOR_FIELD_NUMBER: _ClassVar[int]
    resource: str
    container_name: str
    divisor: str
    def __init__(self, resource: _Optional[str] = ..., container_name: _Optional[str] = ..., divisor: _Optional[str] = ...) -> None: ...

class KubernetesSecretKeyRef(_message.Message):
    __slots__ = ("namespace", "name", "key", "optional")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    key: str
    optional: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., key: _Optional[str] = ..., optional: _Optional[bool] = ...) -> None: ...

class KubernetesSensitiveValue(_message.Message):
    __slots__ = ("value", "secret_ref", "value_from")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SECRET_REF_FIELD_NUMBER: _ClassVar[int]
    VALUE_FROM_FIELD_NUMBER: _ClassVar[int]
    value: str
    secret_ref: KubernetesSecretKeyRef
    value_from: _reference_pb2.ValueFromRef
    def __init__(self, value: _Optional[str] = ..., secret_ref: _Optional[_Union[KubernetesSecretKeyRef, _Mapping]] = ..., value_from: _Optional[_Union[_reference_pb2.ValueFromRef, _Mapping]] = ...) -> None: ...
