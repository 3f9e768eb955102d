import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WatchSignal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WATCH_SIGNAL_UNSPECIFIED: _ClassVar[WatchSignal]
    WATCH_SIGNAL_SCORE: _ClassVar[WatchSignal]
    WATCH_SIGNAL_ANSWERS: _ClassVar[WatchSignal]
    WATCH_SIGNAL_TEXT: _ClassVar[WatchSignal]
WATCH_SIGNAL_UNSPECIFIED: WatchSignal
WATCH_SIGNAL_SCORE: WatchSignal
WATCH_SIGNAL_ANSWERS: WatchSignal
WATCH_SIGNAL_TEXT: WatchSignal

class Watch(_message.Message):
    __slots__ = ("schedule_id", "reference_job_id", "again_job_id", "error", "asked", "left_out", "raised_by", "raised_job_id", "raised_at", "raised_after", "since_job_id", "since_at", "threshold", "runs", "changes", "reference_mean", "mean", "answers_differ", "answers_differ_usually", "texts_differ", "texts_differ_usually", "served", "note")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AGAIN_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    RAISED_BY_FIELD_NUMBER: _ClassVar[int]
    RAISED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RAISED_AT_FIELD_NUMBER: _ClassVar[int]
    RAISED_AFTER_FIELD_NUMBER: _ClassVar[int]
    SINCE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_AT_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_MEAN_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_DIFFER_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_DIFFER_USUALLY_FIELD_NUMBER: _ClassVar[int]
    TEXTS_DIFFER_FIELD_NUMBER: _ClassVar[int]
    TEXTS_DIFFER_USUALLY_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    reference_job_id: str
    again_job_id: str
    error: float
    asked: int
    left_out: int
    raised_by: WatchSignal
    raised_job_id: str
    raised_at: _timestamp_pb2.Timestamp
    raised_after: int
    since_job_id: str
    since_at: _timestamp_pb2.Timestamp
    threshold: float
    runs: _containers.RepeatedCompositeFieldContainer[WatchRun]
    changes: _containers.RepeatedCompositeFieldContainer[WatchChange]
    reference_mean: float
    mean: float
    answers_differ: float
    answers_differ_usually: float
    texts_differ: float
    texts_differ_usually: float
    served: _containers.RepeatedCompositeFieldContainer[WatchServed]
    note: str
    def __init__(self, schedule_id: _Optional[str] = ..., reference_job_id: _Optional[str] = ..., again_job_id: _Optional[str] = ..., error: _Optional[float] = ..., asked: _Optional[int] = ..., left_out: _Optional[int] = ..., raised_by: _Optional[_Union[WatchSignal, str]] = ..., raised_job_id: _Optional[str] = ..., raised_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., raised_after: _Optional[int] = ..., since_job_id: _Optional[str] = ..., since_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., threshold: _Optional[float] = ..., runs: _Optional[_Iterable[_Union[WatchRun, _Mapping]]] = ..., changes: _Optional[_Iterable[_Union[WatchChange, _Mapping]]] = ..., reference_mean: _Optional[float] = ..., mean: _Optional[float] = ..., answers_differ: _Optional[float] = ..., answers_differ_usually: _Optional[float] = ..., texts_differ: _Optional[float] = ..., texts_differ_usually: _Optional[float] = ..., served: _Optional[_Iterable[_Union[WatchServed, _Mapping]]] = ..., note: _Optional[str] = ...) -> None: ...

class WatchRun(_message.Message):
    __slots__ = ("job_id", "created_at", "finished_at", "asked", "changed", "left_out", "score", "answers", "text")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    created_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    asked: int
    changed: int
    left_out: int
    score: float
    answers: float
    text: float
    def __init__(self, job_id: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., asked: _Optional[int] = ..., changed: _Optional[int] = ..., left_out: _Optional[int] = ..., score: _Optional[float] = ..., answers: _Optional[float] = ..., text: _Optional[float] = ...) -> None: ...

class WatchChange(_message.Message):
    __slots__ = ("job_id", "task", "item", "answer_before", "answer_now", "score_before", "score_now")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ANSWER_BEFORE_FIELD_NUMBER: _ClassVar[int]
    ANSWER_NOW_FIELD_NUMBER: _ClassVar[int]
    SCORE_BEFORE_FIELD_NUMBER: _ClassVar[int]
    SCORE_NOW_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    item: int
    answer_before: str
    answer_now: str
    score_before: float
    score_now: float
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., answer_before: _Optional[str] = ..., answer_now: _Optional[str] = ..., score_before: _Optional[float] = ..., score_now: _Optional[float] = ...) -> None: ...

class WatchServed(_message.Message):
    __slots__ = ("model", "first_at", "last_at", "reference")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FIRST_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    model: str
    first_at: _timestamp_pb2.Timestamp
    last_at: _timestamp_pb2.Timestamp
    reference: bool
    def __init__(self, model: _Optional[str] = ..., first_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reference: _Optional[bool] = ...) -> None: ...
