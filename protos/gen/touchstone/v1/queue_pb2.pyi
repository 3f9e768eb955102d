from touchstone.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Queue(_message.Message):
    __slots__ = ("running", "pending", "slots", "pending_per_owner", "evaluators", "notice", "scoring", "ended")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    PENDING_PER_OWNER_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    running: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    pending: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    slots: int
    pending_per_owner: int
    evaluators: int
    notice: str
    scoring: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    ended: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    def __init__(self, running: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., pending: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., slots: _Optional[int] = ..., pending_per_owner: _Optional[int] = ..., evaluators: _Optional[int] = ..., notice: _Optional[str] = ..., scoring: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., ended: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ...) -> None: ...
