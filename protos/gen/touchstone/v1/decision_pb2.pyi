from touchstone.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Decision(_message.Message):
    __slots__ = ("decision_id", "baseline", "candidate", "verdict", "decided_at", "pairs", "items_total", "failed", "difference", "low", "high", "path", "saved", "note", "threshold", "unlikely", "racers")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_AT_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SAVED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    UNLIKELY_FIELD_NUMBER: _ClassVar[int]
    RACERS_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    baseline: _job_pb2.Job
    candidate: _job_pb2.Job
    verdict: _job_pb2.DecisionVerdict
    decided_at: int
    pairs: int
    items_total: int
    failed: int
    difference: float
    low: float
    high: float
    path: _containers.RepeatedCompositeFieldContainer[DecisionPoint]
    saved: DecisionSavings
    note: str
    threshold: float
    unlikely: float
    racers: _containers.RepeatedCompositeFieldContainer[Racer]
    def __init__(self, decision_id: _Optional[str] = ..., baseline: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., candidate: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., verdict: _Optional[_Union[_job_pb2.DecisionVerdict, str]] = ..., decided_at: _Optional[int] = ..., pairs: _Optional[int] = ..., items_total: _Optional[int] = ..., failed: _Optional[int] = ..., difference: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., path: _Optional[_Iterable[_Union[DecisionPoint, _Mapping]]] = ..., saved: _Optional[_Union[DecisionSavings, _Mapping]] = ..., note: _Optional[str] = ..., threshold: _Optional[float] = ..., unlikely: _Optional[float] = ..., racers: _Optional[_Iterable[_Union[Racer, _Mapping]]] = ...) -> None: ...

class Racer(_message.Message):
    __slots__ = ("job", "state", "against_job_id", "beaten_at", "pairs", "failed", "difference", "low", "high", "path")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Racer.State]
        STATE_RACING: _ClassVar[Racer.State]
        STATE_BEATEN: _ClassVar[Racer.State]
        STATE_BEST: _ClassVar[Racer.State]
        STATE_LEFT: _ClassVar[Racer.State]
        STATE_WITHDRAWN: _ClassVar[Racer.State]
    STATE_UNSPECIFIED: Racer.State
    STATE_RACING: Racer.State
    STATE_BEATEN: Racer.State
    STATE_BEST: Racer.State
    STATE_LEFT: Racer.State
    STATE_WITHDRAWN: Racer.State
    JOB_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AGAINST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    BEATEN_AT_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    state: Racer.State
    against_job_id: str
    beaten_at: int
    pairs: int
    failed: int
    difference: float
    low: float
    high: float
    path: _containers.RepeatedCompositeFieldContainer[DecisionPoint]
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., state: _Optional[_Union[Racer.State, str]] = ..., against_job_id: _Optional[str] = ..., beaten_at: _Optional[int] = ..., pairs: _Optional[int] = ..., failed: _Optional[int] = ..., difference: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., path: _Optional[_Iterable[_Union[DecisionPoint, _Mapping]]] = ...) -> None: ...

class DecisionPoint(_message.Message):
    __slots__ = ("pairs", "better", "worse", "equivalent", "chance", "difference", "low", "high")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    BETTER_FIELD_NUMBER: _ClassVar[int]
    WORSE_FIELD_NUMBER: _ClassVar[int]
    EQUIVALENT_FIELD_NUMBER: _ClassVar[int]
    CHANCE_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    pairs: int
    better: float
    worse: float
    equivalent: float
    chance: float
    difference: float
    low: float
    high: float
    def __init__(self, pairs: _Optional[int] = ..., better: _Optional[float] = ..., worse: _Optional[float] = ..., equivalent: _Optional[float] = ..., chance: _Optional[float] = ..., difference: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class DecisionSavings(_message.Message):
    __slots__ = ("items", "tokens", "cost_usd", "seconds")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    items: int
    tokens: int
    cost_usd: float
    seconds: float
    def __init__(self, items: _Optional[int] = ..., tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., seconds: _Optional[float] = ...) -> None: ...
