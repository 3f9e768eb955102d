from touchstone.v1 import endpoint_pb2 as _endpoint_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Unit(_message.Message):
    __slots__ = ("job_id", "attempt", "unit", "spec", "task", "start", "stop", "positions", "item_set", "model_digest", "owner", "begun", "counted_until", "earlier_deliveries", "prices", "plugin")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    COUNTED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    EARLIER_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    attempt: int
    unit: int
    spec: _job_pb2.JobSpec
    task: str
    start: int
    stop: int
    positions: _containers.RepeatedScalarFieldContainer[int]
    item_set: str
    model_digest: str
    owner: str
    begun: bool
    counted_until: int
    earlier_deliveries: int
    prices: _endpoint_pb2.Prices
    plugin: str
    def __init__(self, job_id: _Optional[str] = ..., attempt: _Optional[int] = ..., unit: _Optional[int] = ..., spec: _Optional[_Union[_job_pb2.JobSpec, _Mapping]] = ..., task: _Optional[str] = ..., start: _Optional[int] = ..., stop: _Optional[int] = ..., positions: _Optional[_Iterable[int]] = ..., item_set: _Optional[str] = ..., model_digest: _Optional[str] = ..., owner: _Optional[str] = ..., begun: _Optional[bool] = ..., counted_until: _Optional[int] = ..., earlier_deliveries: _Optional[int] = ..., prices: _Optional[_Union[_endpoint_pb2.Prices, _Mapping]] = ..., plugin: _Optional[str] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("tasks", "receipt", "error")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_job_pb2.TaskPlan]
    receipt: _job_pb2.Receipt
    error: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[_job_pb2.TaskPlan, _Mapping]]] = ..., receipt: _Optional[_Union[_job_pb2.Receipt, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("reason", "detail")
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: str
    detail: str
    def __init__(self, reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...
