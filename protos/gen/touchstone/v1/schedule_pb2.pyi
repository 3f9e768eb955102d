import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Schedule(_message.Message):
    __slots__ = ("schedule_id", "owner", "label", "cron", "time_zone", "spec", "created_at", "next_at", "last_job_id", "last_at", "last_problem", "request_id", "done", "paused_at", "canaries_asked", "candidates")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_AT_FIELD_NUMBER: _ClassVar[int]
    CANARIES_ASKED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    owner: str
    label: str
    cron: str
    time_zone: str
    spec: _job_pb2.JobSpec
    created_at: _timestamp_pb2.Timestamp
    next_at: _timestamp_pb2.Timestamp
    last_job_id: str
    last_at: _timestamp_pb2.Timestamp
    last_problem: str
    request_id: str
    done: _containers.RepeatedCompositeFieldContainer[TimeSpan]
    paused_at: _timestamp_pb2.Timestamp
    canaries_asked: int
    candidates: _containers.RepeatedCompositeFieldContainer[_job_pb2.JobSpec]
    def __init__(self, schedule_id: _Optional[str] = ..., owner: _Optional[str] = ..., label: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., spec: _Optional[_Union[_job_pb2.JobSpec, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_job_id: _Optional[str] = ..., last_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_problem: _Optional[str] = ..., request_id: _Optional[str] = ..., done: _Optional[_Iterable[_Union[TimeSpan, _Mapping]]] = ..., paused_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., canaries_asked: _Optional[int] = ..., candidates: _Optional[_Iterable[_Union[_job_pb2.JobSpec, _Mapping]]] = ...) -> None: ...

class TimeSpan(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...
