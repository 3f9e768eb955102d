from touchstone.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobRecord(_message.Message):
    __slots__ = ("job", "done_units", "results_sequence", "partial_units", "failed_items", "output_tokens", "request_id", "earlier_run_s", "cost_usd", "lost_usd", "retries", "samples", "charged_units", "kept_items", "output_untold", "lost_calls", "told", "earlier_judges")
    JOB_FIELD_NUMBER: _ClassVar[int]
    DONE_UNITS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_UNITS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EARLIER_RUN_S_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    LOST_USD_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    CHARGED_UNITS_FIELD_NUMBER: _ClassVar[int]
    KEPT_ITEMS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    LOST_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOLD_FIELD_NUMBER: _ClassVar[int]
    EARLIER_JUDGES_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    done_units: bytes
    results_sequence: int
    partial_units: _containers.RepeatedCompositeFieldContainer[PartialUnit]
    failed_items: _containers.RepeatedScalarFieldContainer[int]
    output_tokens: int
    request_id: str
    earlier_run_s: float
    cost_usd: float
    lost_usd: float
    retries: int
    samples: _containers.RepeatedCompositeFieldContainer[RateSample]
    charged_units: _containers.RepeatedCompositeFieldContainer[ChargedUnit]
    kept_items: int
    output_untold: int
    lost_calls: int
    told: _job_pb2.JobEvent
    earlier_judges: int
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., done_units: _Optional[bytes] = ..., results_sequence: _Optional[int] = ..., partial_units: _Optional[_Iterable[_Union[PartialUnit, _Mapping]]] = ..., failed_items: _Optional[_Iterable[int]] = ..., output_tokens: _Optional[int] = ..., request_id: _Optional[str] = ..., earlier_run_s: _Optional[float] = ..., cost_usd: _Optional[float] = ..., lost_usd: _Optional[float] = ..., retries: _Optional[int] = ..., samples: _Optional[_Iterable[_Union[RateSample, _Mapping]]] = ..., charged_units: _Optional[_Iterable[_Union[ChargedUnit, _Mapping]]] = ..., kept_items: _Optional[int] = ..., output_untold: _Optional[int] = ..., lost_calls: _Optional[int] = ..., told: _Optional[_Union[_job_pb2.JobEvent, _Mapping]] = ..., earlier_judges: _Optional[int] = ...) -> None: ...

class RateSample(_message.Message):
    __slots__ = ("at", "items", "tokens", "retries")
    AT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    at: float
    items: int
    tokens: int
    retries: int
    def __init__(self, at: _Optional[float] = ..., items: _Optional[int] = ..., tokens: _Optional[int] = ..., retries: _Optional[int] = ...) -> None: ...

class ChargedUnit(_message.Message):
    __slots__ = ("unit", "results_sequence", "times", "deliveries")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    unit: int
    results_sequence: int
    times: int
    deliveries: int
    def __init__(self, unit: _Optional[int] = ..., results_sequence: _Optional[int] = ..., times: _Optional[int] = ..., deliveries: _Optional[int] = ...) -> None: ...

class PartialUnit(_message.Message):
    __slots__ = ("unit", "positions")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    unit: int
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, unit: _Optional[int] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...
