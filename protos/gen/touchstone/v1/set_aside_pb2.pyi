import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SetAsideMessage(_message.Message):
    __slots__ = ("service", "stream", "sequence", "subject", "reason", "job_id", "headers", "data", "size", "set_aside_at")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SET_ASIDE_AT_FIELD_NUMBER: _ClassVar[int]
    service: str
    stream: str
    sequence: int
    subject: str
    reason: str
    job_id: str
    headers: _containers.ScalarMap[str, str]
    data: bytes
    size: int
    set_aside_at: _timestamp_pb2.Timestamp
    def __init__(self, service: _Optional[str] = ..., stream: _Optional[str] = ..., sequence: _Optional[int] = ..., subject: _Optional[str] = ..., reason: _Optional[str] = ..., job_id: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., data: _Optional[bytes] = ..., size: _Optional[int] = ..., set_aside_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
