import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import comparison_pb2 as _comparison_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Digest(_message.Message):
    __slots__ = ("begin_at", "end_at", "series", "turned", "left_out")
    BEGIN_AT_FIELD_NUMBER: _ClassVar[int]
    END_AT_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    TURNED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    begin_at: _timestamp_pb2.Timestamp
    end_at: _timestamp_pb2.Timestamp
    series: _containers.RepeatedCompositeFieldContainer[DigestSeries]
    turned: _containers.RepeatedCompositeFieldContainer[TurnedVerdict]
    left_out: int
    def __init__(self, begin_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., series: _Optional[_Iterable[_Union[DigestSeries, _Mapping]]] = ..., turned: _Optional[_Iterable[_Union[TurnedVerdict, _Mapping]]] = ..., left_out: _Optional[int] = ...) -> None: ...

class DigestSeries(_message.Message):
    __slots__ = ("model", "endpoint", "suite", "schedule_id", "runs", "after", "before", "verdict", "words", "items", "became_right", "became_wrong", "mode", "part_items")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    BECAME_RIGHT_FIELD_NUMBER: _ClassVar[int]
    BECAME_WRONG_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PART_ITEMS_FIELD_NUMBER: _ClassVar[int]
    model: str
    endpoint: str
    suite: str
    schedule_id: str
    runs: int
    after: DigestRun
    before: DigestRun
    verdict: _comparison_pb2.Verdict
    words: str
    items: int
    became_right: int
    became_wrong: int
    mode: _suite_pb2.Mode
    part_items: int
    def __init__(self, model: _Optional[str] = ..., endpoint: _Optional[str] = ..., suite: _Optional[str] = ..., schedule_id: _Optional[str] = ..., runs: _Optional[int] = ..., after: _Optional[_Union[DigestRun, _Mapping]] = ..., before: _Optional[_Union[DigestRun, _Mapping]] = ..., verdict: _Optional[_Union[_comparison_pb2.Verdict, str]] = ..., words: _Optional[str] = ..., items: _Optional[int] = ..., became_right: _Optional[int] = ..., became_wrong: _Optional[int] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., part_items: _Optional[int] = ...) -> None: ...

class DigestRun(_message.Message):
    __slots__ = ("job_id", "finished_at", "score", "served_models", "model_digest", "server", "software", "cost_usd", "median_latency_ms")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODELS_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    finished_at: _timestamp_pb2.Timestamp
    score: float
    served_models: _containers.RepeatedScalarFieldContainer[str]
    model_digest: str
    server: str
    software: str
    cost_usd: float
    median_latency_ms: float
    def __init__(self, job_id: _Optional[str] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., score: _Optional[float] = ..., served_models: _Optional[_Iterable[str]] = ..., model_digest: _Optional[str] = ..., server: _Optional[str] = ..., software: _Optional[str] = ..., cost_usd: _Optional[float] = ..., median_latency_ms: _Optional[float] = ...) -> None: ...

class TurnedVerdict(_message.Message):
    __slots__ = ("a_job_id", "b_job_id", "a", "b", "suite", "before", "after")
    A_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    B_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    a_job_id: str
    b_job_id: str
    a: str
    b: str
    suite: str
    before: _comparison_pb2.Verdict
    after: _comparison_pb2.Verdict
    def __init__(self, a_job_id: _Optional[str] = ..., b_job_id: _Optional[str] = ..., a: _Optional[str] = ..., b: _Optional[str] = ..., suite: _Optional[str] = ..., before: _Optional[_Union[_comparison_pb2.Verdict, str]] = ..., after: _Optional[_Union[_comparison_pb2.Verdict, str]] = ...) -> None: ...
