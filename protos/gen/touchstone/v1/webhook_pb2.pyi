import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Webhook(_message.Message):
    __slots__ = ("webhook_id", "owner", "url", "events", "project_id", "created_at")
    WEBHOOK_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    webhook_id: str
    owner: str
    url: str
    events: _containers.RepeatedScalarFieldContainer[str]
    project_id: int
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, webhook_id: _Optional[str] = ..., owner: _Optional[str] = ..., url: _Optional[str] = ..., events: _Optional[_Iterable[str]] = ..., project_id: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WebhookRecord(_message.Message):
    __slots__ = ("webhook", "secret", "digest_end_at")
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    DIGEST_END_AT_FIELD_NUMBER: _ClassVar[int]
    webhook: Webhook
    secret: str
    digest_end_at: _timestamp_pb2.Timestamp
    def __init__(self, webhook: _Optional[_Union[Webhook, _Mapping]] = ..., secret: _Optional[str] = ..., digest_end_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("delivery_id", "webhook_id", "owner", "url", "event", "job_id", "tries", "problem", "last_try_at", "body", "next_try_at")
    DELIVERY_ID_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    LAST_TRY_AT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    NEXT_TRY_AT_FIELD_NUMBER: _ClassVar[int]
    delivery_id: str
    webhook_id: str
    owner: str
    url: str
    event: str
    job_id: str
    tries: int
    problem: str
    last_try_at: _timestamp_pb2.Timestamp
    body: str
    next_try_at: _timestamp_pb2.Timestamp
    def __init__(self, delivery_id: _Optional[str] = ..., webhook_id: _Optional[str] = ..., owner: _Optional[str] = ..., url: _Optional[str] = ..., event: _Optional[str] = ..., job_id: _Optional[str] = ..., tries: _Optional[int] = ..., problem: _Optional[str] = ..., last_try_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., body: _Optional[str] = ..., next_try_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
