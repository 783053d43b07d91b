from kubernetes_daemonset.api.buf.validate import validate_pb2 as _validate_pb2
from kubernetes_daemonset.api.shared import provider_pb2 as _provider_pb2
from kubernetes_daemonset.api.v1 import api_pb2 as _api_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KubernetesDaemonSetStackInput(_message.Message):
    __slots__ = ("target", "provider_config", "docker_config_json")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DOCKER_CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    target: _api_pb2.KubernetesDaemonSet
    provider_config: _provider_pb2.KubernetesProviderConfig
    docker_config_json: str
    def __init__(self, target: _Optional[_Union[_api_pb2.KubernetesDaemonSet, _Mapping]] = ..., provider_config: _Optional[_Union[_provider_pb2.KubernetesProviderConfig, _Mapping]] = ..., docker_config_json: _Optional[str] = ...) -> None: ...
