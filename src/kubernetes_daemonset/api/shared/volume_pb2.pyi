from kubernetes_daemonset.api.buf.validate import validate_pb2 as _validate_pb2
from kubernetes_daemonset.api.shared import bounds_pb2 as _bounds_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VolumeMount(_message.Message):
    __slots__ = ("name", "mount_path", "read_only", "sub_path", "config_map", "secret", "host_path", "empty_dir", "pvc", "mount_propagation", "sub_path_expr")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MOUNT_PATH_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    SUB_PATH_FIELD_NUMBER: _ClassVar[int]
    CONFIG_MAP_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    HOST_PATH_FIELD_NUMBER: _ClassVar[int]
    EMPTY_DIR_FIELD_NUMBER: _ClassVar[int]
    PVC_FIELD_NUMBER: _ClassVar[int]
    MOUNT_PROPAGATION_FIELD_NUMBER: _ClassVar[int]
    SUB_PATH_EXPR_FIELD_NUMBER: _ClassVar[int]
    name: str
    mount_path: str
    read_only: bool
    sub_path: str
    config_map: ConfigMapSource
    secret: SecretSource
    host_path: HostPathSource
    empty_dir: EmptyDirSource
    pvc: PersistentVolumeClaimSource
    mount_propagation: str
    sub_path_expr: str
    def __init__(self, name: _Optional[str] = ..., mount_path: _Optional[str] = ..., read_only: _Optional[bool] = ..., sub_path: _Optional[str] = ..., config_map: _Optional[_Union[ConfigMapSource, _Mapping]] = ..., secret: _Optional[_Union[SecretSource, _Mapping]] = ..., host_path: _Optional[_Union[HostPathSource, _Mapping]] = ..., empty_dir: _Optional[_Union[EmptyDirSource, _Mapping]] = ..., pvc: _Optional[_Union[PersistentVolumeClaimSource, _Mapping]] = ..., mount_propagation: _Optional[str] = ..., sub_path_expr: _Optional[str] = ...) -> None: ...

class ConfigMapSource(_message.Message):
    __slots__ = ("name", "key", "path", "default_mode", "optional")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MODE_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    path: str
    default_mode: int
    optional: bool
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., path: _Optional[str] = ..., default_mode: _Optional[int] = ..., optional: _Optional[bool] = ...) -> None: ...

class SecretSource(_message.Message):
    __slots__ = ("name", "key", "path", "default_mode", "optional")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MODE_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    path: str
    default_mode: int
    optional: bool
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., path: _Optional[str] = ..., default_mode: _Optional[int] = ..., optional: _Optional[bool] = ...) -> None: ...

class HostPathSource(_message.Message):
    __slots__ = ("path", "type")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    path: str
    type: str
    def __init__(self, path: _Optional[str] = ..., type: _Optional[str] = ...) -> None: ...

class EmptyDirSource(_message.Message):
    __slots__ = ("medium", "size_limit")
    MEDIUM_FIELD_NUMBER: _ClassVar[int]
    SIZE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    medium: str
    size_limit: str
    def __init__(self, medium: _Optional[str] = ..., size_limit: _Optional[str] = ...) -> None: ...

class PersistentVolumeClaimSource(_message.Message):
    __slots__ = ("claim_name", "read_only")
    CLAIM_NAME_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    claim_name: str
    read_only: bool
    def __init__(self, claim_name: _Optional[str] = ..., read_only: _Optional[bool] = ...) -> None: ...
