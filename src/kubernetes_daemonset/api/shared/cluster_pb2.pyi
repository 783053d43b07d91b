from kubernetes_daemonset.api.buf.validate import validate_pb2 as _validate_pb2
from kubernetes_daemonset.api.shared import kinds_pb2 as _kinds_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KubernetesClusterSelector(_message.Message):
    __slots__ = ("cluster_kind", "cluster_name")
    CLUSTER_KIND_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    cluster_kind: _kinds_pb2.CloudResourceKind
    cluster_name: str
    def __init__(self, cluster_kind: _Optional[_Union[_kinds_pb2.CloudResourceKind, str]] = ..., cluster_name: _Optional[str] = ...) -> None: ...
