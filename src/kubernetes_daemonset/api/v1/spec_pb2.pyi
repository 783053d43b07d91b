from kubernetes_daemonset.api.buf.validate import validate_pb2 as _validate_pb2
from kubernetes_daemonset.api.shared import affinity_pb2 as _affinity_pb2
from kubernetes_daemonset.api.shared import bounds_pb2 as _bounds_pb2
from kubernetes_daemonset.api.shared import cluster_pb2 as _cluster_pb2
from kubernetes_daemonset.api.shared import container_pb2 as _container_pb2
from kubernetes_daemonset.api.shared import probe_pb2 as _probe_pb2
from kubernetes_daemonset.api.shared import reference_pb2 as _reference_pb2
from kubernetes_daemonset.api.shared import volume_pb2 as _volume_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KubernetesDaemonSetSpec(_message.Message):
    __slots__ = ("target_cluster", "namespace", "create_namespace", "container", "node_selector", "tolerations", "update_strategy", "min_ready_seconds", "create_service_account", "service_account_name", "config_maps", "rbac", "init_containers", "affinity", "priority_class_name", "host_network", "host_pid", "host_ipc", "dns_policy", "pod_labels", "pod_annotations", "pod_security_context", "termination_grace_period_seconds", "revision_history_limit", "image_pull_secrets", "service_account_annotations", "automount_service_account_token", "runtime_class_name", "share_process_namespace", "require_on_new_nodes")
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ConfigMapsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class PodLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class PodAnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ServiceAccountAnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TARGET_CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CREATE_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    MIN_READY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CREATE_SERVICE_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ACCOUNT_NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_MAPS_FIELD_NUMBER: _ClassVar[int]
    RBAC_FIELD_NUMBER: _ClassVar[int]
    INIT_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_NETWORK_FIELD_NUMBER: _ClassVar[int]
    HOST_PID_FIELD_NUMBER: _ClassVar[int]
    HOST_IPC_FIELD_NUMBER: _ClassVar[int]
    DNS_POLICY_FIELD_NUMBER: _ClassVar[int]
    POD_LABELS_FIELD_NUMBER: _ClassVar[int]
    POD_ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    POD_SECURITY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TERMINATION_GRACE_PERIOD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REVISION_HISTORY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_PULL_SECRETS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ACCOUNT_ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    AUTOMOUNT_SERVICE_ACCOUNT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    SHARE_PROCESS_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_ON_NEW_NODES_FIELD_NUMBER: _ClassVar[int]
    target_cluster: _cluster_pb2.KubernetesClusterSelector
    namespace: _reference_pb2.StringValueOrRef
    create_namespace: bool
    container: KubernetesDaemonSetContainer
    node_selector: _containers.ScalarMap[str, str]
    tolerations: _containers.RepeatedCompositeFieldContainer[KubernetesDaemonSetToleration]
    update_strategy: KubernetesDaemonSetUpdateStrategy
    min_ready_seconds: int
    create_service_account: bool
    service_account_name: str
    config_maps: _containers.ScalarMap[str, str]
    rbac: KubernetesDaemonSetRbac
    init_containers: _containers.RepeatedCompositeFieldContainer[_container_pb2.Container]
    affinity: _affinity_pb2.Affinity
    priority_class_name: str
    host_network: bool
    host_pid: bool
    host_ipc: bool
    dns_policy: str
    pod_labels: _containers.ScalarMap[str, str]
    pod_annotations: _containers.ScalarMap[str, str]
    pod_security_context: PodSecurityContext
    termination_grace_period_seconds: int
    revision_history_limit: int
    image_pull_secrets: _containers.RepeatedScalarFieldContainer[str]
    service_account_annotations: _containers.ScalarMap[str, str]
    automount_service_account_token: bool
    runtime_class_name: str
    share_process_namespace: bool
    require_on_new_nodes: bool
    def __init__(self, target_cluster: _Optional[_Union[_cluster_pb2.KubernetesClusterSelector, _Mapping]] = ..., namespace: _Optional[_Union[_reference_pb2.StringValueOrRef, _Mapping]] = ..., create_namespace: _Optional[bool] = ..., container: _Optional[_Union[KubernetesDaemonSetContainer, _Mapping]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., tolerations: _Optional[_Iterable[_Union[KubernetesDaemonSetToleration, _Mapping]]] = ..., update_strategy: _Optional[_Union[KubernetesDaemonSetUpdateStrategy, _Mapping]] = ..., min_ready_seconds: _Optional[int] = ..., create_service_account: _Optional[bool] = ..., service_account_name: _Optional[str] = ..., config_maps: _Optional[_Mapping[str, str]] = ..., rbac: _Optional[_Union[KubernetesDaemonSetRbac, _Mapping]] = ..., init_containers: _Optional[_Iterable[_Union[_container_pb2.Container, _Mapping]]] = ..., affinity: _Optional[_Union[_affinity_pb2.Affinity, _Mapping]] = ..., priority_class_name: _Optional[str] = ..., host_network: _Optional[bool] = ..., host_pid: _Optional[bool] = ..., host_ipc: _Optional[bool] = ..., dns_policy: _Optional[str] = ..., pod_labels: _Optional[_Mapping[str, str]] = ..., pod_annotations: _Optional[_Mapping[str, str]] = ..., pod_security_context: _Optional[_Union[PodSecurityContext, _Mapping]] = ..., termination_grace_period_seconds: _Optional[int] = ..., revision_history_limit: _Optional[int] = ..., image_pull_secrets: _Optional[_Iterable[str]] = ..., service_account_annotations: _Optional[_Mapping[str, str]] = ..., automount_service_account_token: _Optional[bool] = ..., runtime_class_name: _Optional[str] = ..., share_process_namespace: _Optional[bool] = ..., require_on_new_nodes: _Optional[bool] = ...) -> None: ...

class KubernetesDaemonSetContainer(_message.Message):
    __slots__ = ("app", "sidecars")
    APP_FIELD_NUMBER: _ClassVar[int]
    SIDECARS_FIELD_NUMBER: _ClassVar[int]
    app: KubernetesDaemonSetContainerApp
    sidecars: _containers.RepeatedCompositeFieldContainer[_container_pb2.Container]
    def __init__(self, app: _Optional[_Union[KubernetesDaemonSetContainerApp, _Mapping]] = ..., sidecars: _Optional[_Iterable[_Union[_container_pb2.Container, _Mapping]]] = ...) -> None: ...

class KubernetesDaemonSetContainerApp(_message.Message):
    __slots__ = ("image", "resources", "env", "ports", "volume_mounts", "liveness_probe", "readiness_probe", "startup_probe", "command", "args", "security_context", "lifecycle", "working_dir")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_MOUNTS_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_PROBE_FIELD_NUMBER: _ClassVar[int]
    READINESS_PROBE_FIELD_NUMBER: _ClassVar[int]
    STARTUP_PROBE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    SECURITY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LIFECYCLE_FIELD_NUMBER: _ClassVar[int]
    WORKING_DIR_FIELD_NUMBER: _ClassVar[int]
    image: _container_pb2.ContainerImage
    resources: _container_pb2.ContainerResources
    env: KubernetesDaemonSetContainerAppEnv
    ports: _containers.RepeatedCompositeFieldContainer[KubernetesDaemonSetContainerAppPort]
    volume_mounts: _containers.RepeatedCompositeFieldContainer[_volume_pb2.VolumeMount]
    liveness_probe: _probe_pb2.Probe
    readiness_probe: _probe_pb2.Probe
    startup_probe: _probe_pb2.Probe
    command: _containers.RepeatedScalarFieldContainer[str]
    args: _containers.RepeatedScalarFieldContainer[str]
    security_context: _container_pb2.SecurityContext
    lifecycle: _container_pb2.Lifecycle
    working_dir: str
    def __init__(self, image: _Optional[_Union[_container_pb2.ContainerImage, _Mapping]] = ..., resources: _Optional[_Union[_container_pb2.ContainerResources, _Mapping]] = ..., env: _Optional[_Union[KubernetesDaemonSetContainerAppEnv, _Mapping]] = ..., ports: _Optional[_Iterable[_Union[KubernetesDaemonSetContainerAppPort, _Mapping]]] = ..., volume_mounts: _Optional[_Iterable[_Union[_volume_pb2.VolumeMount, _Mapping]]] = ..., liveness_probe: _Optional[_Union[_probe_pb2.Probe, _Mapping]] = ..., readiness_probe: _Optional[_Union[_probe_pb2.Probe, _Mapping]] = ..., startup_probe: _Optional[_Union[_probe_pb2.Probe, _Mapping]] = ..., command: _Optional[_Iterable[str]] = ..., args: _Optional[_Iterable[str]] = ..., security_context: _Optional[_Union[_container_pb2.SecurityContext, _Mapping]] = ..., lifecycle: _Optional[_Union[_container_pb2.Lifecycle, _Mapping]] = ..., working_dir: _Optional[str] = ...) -> None: ...

class KubernetesDaemonSetContainerAppEnv(_message.Message):
    __slots__ = ("variables", "secrets", "env_from")
    class VariablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: KubernetesDaemonSetEnvValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[KubernetesDaemonSetEnvValue, _Mapping]] = ...) -> None: ...
    class SecretsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _container_pb2.KubernetesSensitiveValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_container_pb2.KubernetesSensitiveValue, _Mapping]] = ...) -> None: ...
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    ENV_FROM_FIELD_NUMBER: _ClassVar[int]
    variables: _containers.MessageMap[str, KubernetesDaemonSetEnvValue]
    secrets: _containers.MessageMap[str, _container_pb2.KubernetesSensitiveValue]
    env_from: _containers.RepeatedCompositeFieldContainer[_container_pb2.EnvFrom]
    def __init__(self, variables: _Optional[_Mapping[str, KubernetesDaemonSetEnvValue]] = ..., secrets: _Optional[_Mapping[str, _container_pb2.KubernetesSensitiveValue]] = ..., env_from: _Optional[_Iterable[_Union[_container_pb2.EnvFrom, _Mapping]]] = ...) -> None: ...

class KubernetesDaemonSetEnvValue(_message.Message):
    __slots__ = ("value", "value_from", "config_map_key_ref", "field_ref", "resource_field_ref", "secret_ref")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FROM_FIELD_NUMBER: _ClassVar[int]
    CONFIG_MAP_KEY_REF_FIELD_NUMBER: _ClassVar[int]
    FIELD_REF_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_REF_FIELD_NUMBER: _ClassVar[int]
    SECRET_REF_FIELD_NUMBER: _ClassVar[int]
    value: str
    value_from: _reference_pb2.ValueFromRef
    config_map_key_ref: _container_pb2.KeyRef
    field_ref: _container_pb2.FieldRef
    resource_field_ref: _container_pb2.ResourceFieldRef
    secret_ref: _container_pb2.KubernetesSecretKeyRef
    def __init__(self, value: _Optional[str] = ..., value_from: _Optional[_Union[_reference_pb2.ValueFromRef, _Mapping]] = ..., config_map_key_ref: _Optional[_Union[_container_pb2.KeyRef, _Mapping]] = ..., field_ref: _Optional[_Union[_container_pb2.FieldRef, _Mapping]] = ..., resource_field_ref: _Optional[_Union[_container_pb2.ResourceFieldRef, _Mapping]] = ..., secret_ref: _Optional[_Union[_container_pb2.KubernetesSecretKeyRef, _Mapping]] = ...) -> None: ...

class KubernetesDaemonSetContainerAppPort(_message.Message):
    __slots__ = ("name", "container_port", "network_protocol", "host_port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_PORT_FIELD_NUMBER: _ClassVar[int]
    NETWORK_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    container_port: int
    network_protocol: str
    host_port: int
    def __init__(self, name: _Optional[str] = ..., container_port: _Optional[int] = ..., network_protocol: _Optional[str] = ..., host_port: _Optional[int] = ...) -> None: ...

class KubernetesDaemonSetToleration(_message.Message):
    __slots__ = ("key", "operator", "value", "effect", "toleration_seconds")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    TOLERATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    value: str
    effect: str
    toleration_seconds: int
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ..., toleration_seconds: _Optional[int] = ...) -> None: ...

class KubernetesDaemonSetUpdateStrategy(_message.Message):
    __slots__ = ("type", "rolling_update")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ROLLING_UPDATE_FIELD_NUMBER: _ClassVar[int]
    type: str
    rolling_update: KubernetesDaemonSetRollingUpdate
    def __init__(self, type: _Optional[str] = ..., rolling_update: _Optional[_Union[KubernetesDaemonSetRollingUpdate, _Mapping]] = ...) -> None: ...

class KubernetesDaemonSetRollingUpdate(_message.Message):
    __slots__ = ("max_unavailable", "max_surge")
    MAX_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    MAX_SURGE_FIELD_NUMBER: _ClassVar[int]
    max_unavailable: str
    max_surge: str
    def __init__(self, max_unavailable: _Optional[str] = ..., max_surge: _Optional[str] = ...) -> None: ...

class PodSecurityContext(_message.Message):
    __slots__ = ("run_as_user", "run_as_group", "run_as_non_root", "fs_group", "supplemental_groups", "seccomp_profile", "se_linux_options")
    RUN_AS_USER_FIELD_NUMBER: _ClassVar[int]
    RUN_AS_GROUP_FIELD_NUMBER: _ClassVar[int]
    RUN_AS_NON_ROOT_FIELD_NUMBER: _ClassVar[int]
    FS_GROUP_FIELD_NUMBER: _ClassVar[int]
    SUPPLEMENTAL_GROUPS_FIELD_NUMBER: _ClassVar[int]
    SECCOMP_PROFILE_FIELD_NUMBER: _ClassVar[int]
    SE_LINUX_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    run_as_user: int
    run_as_group: int
    run_as_non_root: bool
    fs_group: int
    supplemental_groups: _containers.RepeatedScalarFieldContainer[int]
    seccomp_profile: _container_pb2.SeccompProfile
    se_linux_options: _container_pb2.SeLinuxOptions
    def __init__(self, run_as_user: _Optional[int] = ..., run_as_group: _Optional[int] = ..., run_as_non_root: _Optional[bool] = ..., fs_group: _Optional[int] = ..., supplemental_groups: _Optional[_Iterable[int]] = ..., seccomp_profile: _Optional[_Union[_container_pb2.SeccompProfile, _Mapping]] = ..., se_linux_options: _Optional[_Union[_container_pb2.SeLinuxOptions, _Mapping]] = ...) -> None: ...

class KubernetesDaemonSetRbac(_message.Message):
    __slots__ = ("cluster_rules", "namespace_rules")
    CLUSTER_RULES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_RULES_FIELD_NUMBER: _ClassVar[int]
    cluster_rules: _containers.RepeatedCompositeFieldContainer[KubernetesDaemonSetRbacRule]
    namespace_rules: _containers.RepeatedCompositeFieldContainer[KubernetesDaemonSetRbacRule]
    def __init__(self, cluster_rules: _Optional[_Iterable[_Union[KubernetesDaemonSetRbacRule, _Mapping]]] = ..., namespace_rules: _Optional[_Iterable[_Union[KubernetesDaemonSetRbacRule, _Mapping]]] = ...) -> None: ...

class KubernetesDaemonSetRbacRule(_message.Message):
    __slots__ = ("api_groups", "resources", "verbs", "resource_names", "non_resource_urls")
    API_GROUPS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    VERBS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAMES_FIELD_NUMBER: _ClassVar[int]
    NON_RESOURCE_URLS_FIELD_NUMBER: _ClassVar[int]
    api_groups: _containers.RepeatedScalarFieldContainer[str]
    resources: _containers.RepeatedScalarFieldContainer[str]
    verbs: _containers.RepeatedScalarFieldContainer[str]
    resource_names: _containers.RepeatedScalarFieldContainer[str]
    non_resource_urls: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, api_groups: _Optional[_Iterable[str]] = ..., resources: _Optional[_Iterable[str]] = ..., verbs: _Optional[_Iterable[str]] = ..., resource_names: _Optional[_Iterable[str]] = ..., non_resource_urls: _Optional[_Iterable[str]] = ...) -> None: ...
