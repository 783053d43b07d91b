from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class KubernetesDaemonSetStackOutputs(_message.Message):
    __slots__ = ("namespace", "daemonset_name", "desired_number_scheduled", "current_number_scheduled", "number_ready")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DAEMONSET_NAME_FIELD_NUMBER: _ClassVar[int]
    DESIRED_NUMBER_SCHEDULED_FIELD_NUMBER: _ClassVar[int]
    CURRENT_NUMBER_SCHEDULED_FIELD_NUMBER: _ClassVar[int]
    NUMBER_READY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    daemonset_name: str
    desired_number_scheduled: str
    current_number_scheduled: str
    number_ready: str
    def __init__(self, namespace: _Optional[str] = ..., daemonset_name: _Optional[str] = ..., desired_number_scheduled: _Optional[str] = ..., current_number_scheduled: _Optional[str] = ..., number_ready: _Optional[str] = ...) -> None: ...
