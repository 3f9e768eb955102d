from touchstone.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobRecord(_message.Message):
    __slots__ = ("job", "done_units", "results_sequence", "partial_units", "failed_items", "output_tokens", "request_id", "earlier_run_s")
    JOB_FIELD_NUMBER: _ClassVar[int]
    DONE_UNITS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_UNITS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EARLIER_RUN_S_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    done_units: bytes
    results_sequence: int
    partial_units: _containers.RepeatedCompositeFieldContainer[PartialUnit]
    failed_items: _containers.RepeatedScalarFieldContainer[int]
    output_tokens: int
    request_id: str
    earlier_run_s: float
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., done_units: _Optional[bytes] = ..., results_sequence: _Optional[int] = ..., partial_units: _Optional[_Iterable[_Union[PartialUnit, _Mapping]]] = ..., failed_items: _Optional[_Iterable[int]] = ..., output_tokens: _Optional[int] = ..., request_id: _Optional[str] = ..., earlier_run_s: _Optional[float] = ...) -> None: ...

class PartialUnit(_message.Message):
    __slots__ = ("unit", "positions")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    unit: int
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, unit: _Optional[int] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...
