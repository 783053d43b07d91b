"""What other programs rely on: names, numbers and types of the original's messages, on the wire and in registries."""

from collections.abc import Iterator
from typing import Final

import protovalidate
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kubernetes_daemonset.api.shared import (
    affinity_pb2,
    cluster_pb2,
    container_pb2,
    kinds_pb2,
    metadata_pb2,
    probe_pb2,
    provider_pb2,
    reference_pb2,
    relationship_pb2,
    volume_pb2,
)
from kubernetes_daemonset.api.v1 import api_pb2, spec_pb2, stack_input_pb2, stack_outputs_pb2
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput

FILES: Final = [
    one.DESCRIPTOR
    for one in (
        affinity_pb2,
        api_pb2,
        cluster_pb2,
        container_pb2,
        kinds_pb2,
        metadata_pb2,
        probe_pb2,
        provider_pb2,
        reference_pb2,
        relationship_pb2,
        spec_pb2,
        stack_input_pb2,
        stack_outputs_pb2,
        volume_pb2,
    )
]
COMPONENT: Final = "org.project_planton.provider.kubernetes.kubernetesdaemonset.v1"
KUBERNETES: Final = "org.project_planton.provider.kubernetes"
SHARED: Final = "org.project_planton.shared"
OURS_BEGIN: Final = 101
"""The original's numbers are below; what it does not have is here and above."""

ORIGINAL: Final = {
    f"{COMPONENT}.KubernetesDaemonSet": """
        1 api_version string
        2 kind string
        3 metadata CloudResourceMetadata
        4 spec KubernetesDaemonSetSpec
        5 status KubernetesDaemonSetStatus
    """,
    f"{COMPONENT}.KubernetesDaemonSetStatus": "1 outputs KubernetesDaemonSetStackOutputs",
    f"{COMPONENT}.KubernetesDaemonSetStackInput": """
        1 target KubernetesDaemonSet
        2 provider_config KubernetesProviderConfig
        3 docker_config_json string
    """,
    f"{COMPONENT}.KubernetesDaemonSetStackOutputs": """
        1 namespace string
        2 daemonset_name string
        3 desired_number_scheduled string
        4 current_number_scheduled string
        5 number_ready string
    """,
    f"{COMPONENT}.KubernetesDaemonSetSpec": """
        1 target_cluster KubernetesClusterSelector
        2 namespace StringValueOrRef
        3 create_namespace bool
        4 container KubernetesDaemonSetContainer
        5 node_selector map<string,string>
        6 tolerations repeated:KubernetesDaemonSetToleration
        7 update_strategy KubernetesDaemonSetUpdateStrategy
        8 min_ready_seconds int32
        9 create_service_account bool
        10 service_account_name string
        11 config_maps map<string,string>
        12 rbac KubernetesDaemonSetRbac
    """,
    f"{COMPONENT}.KubernetesDaemonSetContainer": """
        1 app KubernetesDaemonSetContainerApp
        2 sidecars repeated:Container
    """,
    f"{COMPONENT}.KubernetesDaemonSetContainerApp": """
        1 image ContainerImage
        2 resources ContainerResources
        3 env KubernetesDaemonSetContainerAppEnv
        4 ports repeated:KubernetesDaemonSetContainerAppPort
        5 volume_mounts repeated:VolumeMount
        6 liveness_probe Probe
        7 readiness_probe Probe
        8 startup_probe Probe
        9 command repeated:string
        10 args repeated:string
        11 security_context SecurityContext
    """,
    f"{COMPONENT}.KubernetesDaemonSetContainerAppEnv": """
        1 variables map<string,KubernetesDaemonSetEnvValue>
        2 secrets map<string,KubernetesSensitiveValue>
        3 env_from repeated:EnvFrom
    """,
    f"{COMPONENT}.KubernetesDaemonSetEnvValue": """
        1 value string
        2 value_from ValueFromRef
    """,
    f"{COMPONENT}.KubernetesDaemonSetContainerAppPort": """
        1 name string
        2 container_port int32
        3 network_protocol string
        4 host_port int32
    """,
    f"{COMPONENT}.KubernetesDaemonSetToleration": """
        1 key string
        2 operator string
        3 value string
        4 effect string
        5 toleration_seconds int64
    """,
    f"{COMPONENT}.KubernetesDaemonSetUpdateStrategy": """
        1 type string
        2 rolling_update KubernetesDaemonSetRollingUpdate
    """,
    f"{COMPONENT}.KubernetesDaemonSetRollingUpdate": """
        1 max_unavailable string
        2 max_surge string
    """,
    f"{COMPONENT}.KubernetesDaemonSetRbac": """
        1 cluster_rules repeated:KubernetesDaemonSetRbacRule
        2 namespace_rules repeated:KubernetesDaemonSetRbacRule
    """,
    f"{COMPONENT}.KubernetesDaemonSetRbacRule": """
        1 api_groups repeated:string
        2 resources repeated:string
        3 verbs repeated:string
        4 resource_names repeated:string
    """,
    f"{KUBERNETES}.KubernetesClusterSelector": """
        1 cluster_kind CloudResourceKind
        2 cluster_name string
    """,
    f"{KUBERNETES}.Container": """
        1 name string
        2 image string
        3 ports repeated:ContainerPort
        4 resources ContainerResources
        5 env repeated:ContainerEnvVar
    """,
    f"{KUBERNETES}.ContainerPort": """
        1 name string
        2 container_port int32
        3 protocol string
    """,
    f"{KUBERNETES}.ContainerEnvVar": """
        1 name string
        2 value string
    """,
    f"{KUBERNETES}.ContainerImage": """
        1 repo string
        2 tag string
        3 pull_secret_name string
    """,
    f"{KUBERNETES}.ContainerResources": """
        1 limits CpuMemory
        2 requests CpuMemory
    """,
    f"{KUBERNETES}.CpuMemory": """
        1 cpu string
        2 memory string
    """,
    f"{KUBERNETES}.SecurityContext": """
        1 privileged bool
        2 run_as_user int64
        3 run_as_group int64
        4 run_as_non_root bool
        5 read_only_root_filesystem bool
        6 capabilities Capabilities
    """,
    f"{KUBERNETES}.Capabilities": """
        1 add repeated:string
        2 drop repeated:string
    """,
    f"{KUBERNETES}.Probe": """
        1 initial_delay_seconds int32
        2 period_seconds int32
        3 timeout_seconds int32
        4 success_threshold int32
        5 failure_threshold int32
        6 http_get HttpGetAction
        7 grpc GrpcAction
        8 tcp_socket TcpSocketAction
        9 exec ExecAction
    """,
    f"{KUBERNETES}.HttpGetAction": """
        1 path string
        2 port_number int32
        3 port_name string
        4 host string
        5 scheme string
        6 http_headers repeated:HttpHeader
    """,
    f"{KUBERNETES}.HttpHeader": """
        1 name string
        2 value string
    """,
    f"{KUBERNETES}.GrpcAction": """
        1 port int32
        2 service string
    """,
    f"{KUBERNETES}.TcpSocketAction": """
        1 port_number int32
        2 port_name string
        3 host string
    """,
    f"{KUBERNETES}.ExecAction": "1 command repeated:string",
    f"{KUBERNETES}.VolumeMount": """
        1 name string
        2 mount_path string
        3 read_only bool
        4 sub_path string
        5 config_map ConfigMapSource
        6 secret SecretSource
        7 host_path HostPathSource
        8 empty_dir EmptyDirSource
        9 pvc PersistentVolumeClaimSource
    """,
    f"{KUBERNETES}.ConfigMapSource": """
        1 name string
        2 key string
        3 path string
        4 default_mode int32
    """,
    f"{KUBERNETES}.SecretSource": """
        1 name string
        2 key string
        3 path string
        4 default_mode int32
    """,
    f"{KUBERNETES}.HostPathSource": """
        1 path string
        2 type string
    """,
    f"{KUBERNETES}.EmptyDirSource": """
        1 medium string
        2 size_limit string
    """,
    f"{KUBERNETES}.PersistentVolumeClaimSource": """
        1 claim_name string
        2 read_only bool
    """,
    f"{KUBERNETES}.KubernetesSensitiveValue": """
        1 value string
        2 secret_ref KubernetesSecretKeyRef
    """,
    f"{KUBERNETES}.KubernetesSecretKeyRef": """
        1 namespace string
        2 name string
        3 key string
    """,
    f"{KUBERNETES}.KubernetesProviderConfig": """
        1 provider KubernetesProvider
        2 gcp_gke KubernetesProviderConfigGcpGke
        3 aws_eks KubernetesProviderConfigAwsEks
        4 azure_aks KubernetesProviderConfigAzureAks
        5 digital_ocean_doks KubernetesProviderConfigDigitalOceanDoks
    """,
    f"{KUBERNETES}.KubernetesProviderConfigGcpGke": """
        1 cluster_endpoint string
        2 cluster_ca_data string
        3 service_account_key_base64 string
    """,
    f"{KUBERNETES}.KubernetesProviderConfigDigitalOceanDoks": "1 kube_config string",
    f"{SHARED}.CloudResourceMetadata": """
        1 name string
        2 slug string
        3 id string
        4 org string
        5 env string
        6 labels map<string,string>
        7 annotations map<string,string>
        8 tags repeated:string
        9 relationships repeated:CloudResourceRelationship
        10 group string
    """,
    f"{SHARED}.foreignkey.v1.StringValueOrRef": """
        1 value string
        2 value_from ValueFromRef
    """,
    f"{SHARED}.foreignkey.v1.ValueFromRef": """
        1 kind CloudResourceKind
        2 env string
        3 name string
        4 field_path string
    """,
}

SCALARS: Final = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
}


def messages() -> Iterator[Descriptor]:
    waiting = [one for file in FILES for one in file.message_types_by_name.values()]
    while waiting:
        one = waiting.pop()
        waiting += one.nested_types
        if not one.GetOptions().map_entry:
            yield one


MESSAGES: Final = {one.full_name: one for one in messages()}


def type_of(field: FieldDescriptor) -> str:
    inner = field.message_type
    if inner and inner.GetOptions().map_entry:
        key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
        return f"map<{type_of(key)},{type_of(value)}>"
    name = SCALARS.get(field.type) or (inner.name if inner else field.enum_type.name)
    return f"repeated:{name}" if field.is_repeated else name


@pytest.mark.parametrize("message", ORIGINAL)
def test_the_originals_fields_keep_their_numbers_and_types(message: str) -> None:
    expected = [line.strip() for line in ORIGINAL[message].strip().splitlines()]
    original = [field for field in MESSAGES[message].fields if field.number < OURS_BEGIN]
    assert [f"{field.number} {field.name} {type_of(field)}" for field in original] == expected


def test_the_component_keeps_its_package_name() -> None:
    assert {file.package for file in (api_pb2.DESCRIPTOR, spec_pb2.DESCRIPTOR, stack_input_pb2.DESCRIPTOR)} == {
        COMPONENT
    }


def test_the_kind_is_registered_as_the_original_registered_it() -> None:
    kinds = kinds_pb2.CloudResourceKind.DESCRIPTOR
    kind = kinds.values_by_name["KubernetesDaemonSet"]
    assert kind.number == 841
    meta = kind.GetOptions().Extensions[kinds_pb2.kind_meta]
    assert meta.id_prefix == "k8sds"
    assert meta.provider == kinds_pb2.kubernetes
    assert meta.version == kinds_pb2.v1
    numbers = {
        "KubernetesNamespace": 836,
        "AwsEksCluster": 207,
        "AzureAksCluster": 400,
        "GcpGkeCluster": 607,
        "DigitalOceanKubernetesCluster": 1208,
        "CivoKubernetesCluster": 1507,
    }
    assert {name: kinds.values_by_name[name].number for name in numbers} == numbers


@pytest.mark.parametrize(
    ("enum", "numbers"),
    [
        (
            provider_pb2.KubernetesProvider.DESCRIPTOR,
            {"gcp_gke": 1, "aws_eks": 2, "azure_aks": 3, "digital_ocean_doks": 4},
        ),
        (
            relationship_pb2.CloudResourceRelationship.RelationshipType.DESCRIPTOR,
            {"unspecified": 0, "depends_on": 1, "runs_on": 2, "managed_by": 3, "uses": 4},
        ),
    ],
    ids=["providers", "relationships"],
)
def test_names_in_enums_keep_their_numbers(enum: object, numbers: dict[str, int]) -> None:
    by_name = enum.values_by_name  # type: ignore[attr-defined]
    assert {name: by_name[name].number for name in numbers} == numbers


def test_relationships_keep_their_numbers() -> None:
    fields = MESSAGES[f"{SHARED}.relationship.v1.CloudResourceRelationship"].fields_by_name
    assert [fields[name].number for name in ("kind", "env", "name", "type")] == [1, 2, 3, 4]


def test_options_that_other_programs_read_keep_their_numbers() -> None:
    options = [
        (container_pb2.default_container_resources, 599991),
        (reference_pb2.default_kind, 200001),
        (reference_pb2.default_kind_field_path, 200002),
        (kinds_pb2.kind_meta, 10100),
    ]
    assert [one.number for one, _ in options] == [number for _, number in options]
    namespace = MESSAGES[f"{COMPONENT}.KubernetesDaemonSetSpec"].fields_by_name["namespace"].GetOptions()
    assert namespace.Extensions[reference_pb2.default_kind] == 836
    assert namespace.Extensions[reference_pb2.default_kind_field_path] == "spec.name"


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, *parts: str | bytes) -> bytes:
    """A text, or a message: both are a length and so many bytes."""
    content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def test_a_stack_input_that_knows_fields_by_number_alone_is_understood() -> None:
    image = text(1, text(1, "fluent/fluentd"), text(2, "v1.16"))
    port = text(4, text(1, "metrics"), number(2, 9100), text(3, "TCP"), number(4, 9100))
    mount = text(5, text(1, "logs"), text(2, "/var/log"), number(3, 1), text(7, text(1, "/var/log")))
    rights = text(11, number(1, 0), number(2, 0), text(6, text(2, "ALL")))
    variable = text(3, text(1, text(1, "LEVEL"), text(2, text(1, "info"))))
    spec = text(
        4,
        text(2, text(1, "logging")),
        number(3, 1),
        text(4, text(1, image, port, mount, variable, text(10, "--verbose"), rights)),
        text(5, text(1, "kubernetes.io/os"), text(2, "linux")),
        text(6, text(1, "gone"), text(2, "Exists"), text(4, "NoExecute"), number(5, 0)),
        text(7, text(1, "RollingUpdate"), text(2, text(1, "10%"))),
        number(8, 30),
    )
    target = text(1, text(1, "kubernetes.project-planton.org/v1"), text(3, text(1, "fluentd")), spec)
    given = KubernetesDaemonSetStackInput.FromString(target + text(3, '{"auths": {}}'))
    manifest = given.target
    assert (manifest.api_version, manifest.metadata.name) == ("kubernetes.project-planton.org/v1", "fluentd")
    assert given.docker_config_json == '{"auths": {}}'
    assert (manifest.spec.namespace.value, manifest.spec.create_namespace) == ("logging", True)
    agent = manifest.spec.container.app
    assert (agent.image.repo, agent.image.tag) == ("fluent/fluentd", "v1.16")
    assert [(one.name, one.container_port, one.network_protocol, one.host_port) for one in agent.ports] == [
        ("metrics", 9100, "TCP", 9100)
    ]
    assert [(one.name, one.read_only, one.host_path.path) for one in agent.volume_mounts] == [
        ("logs", True, "/var/log")
    ]
    assert agent.env.variables["LEVEL"].value == "info"
    assert (list(agent.args), list(agent.security_context.capabilities.drop)) == (["--verbose"], ["ALL"])
    assert dict(manifest.spec.node_selector) == {"kubernetes.io/os": "linux"}
    assert manifest.spec.update_strategy.rolling_update.max_unavailable == "10%"
    assert manifest.spec.min_ready_seconds == 30
    # What the original could not distinguish from unset: false, root, and an immediate exit.
    assert agent.security_context.HasField("privileged")
    assert agent.security_context.HasField("run_as_user")
    assert manifest.spec.tolerations[0].HasField("toleration_seconds")


def test_every_rule_in_the_proto_files_can_be_evaluated() -> None:
    validator = protovalidate.Validator()
    for message in MESSAGES.values():
        empty = message_factory.GetMessageClass(message)()
        validator.collect_violations(empty)


def test_no_message_is_recursive() -> None:
    def look(message: Descriptor, above: tuple[str, ...]) -> None:
        assert message.full_name not in above
        for field in message.fields:
            if field.message_type:
                look(field.message_type, (*above, message.full_name))

    look(MESSAGES[f"{COMPONENT}.KubernetesDaemonSetStackInput"], ())
