from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReplayVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPLAY_VERDICT_UNSPECIFIED: _ClassVar[ReplayVerdict]
    REPLAY_VERDICT_MORE_THAN_NOISE: _ClassVar[ReplayVerdict]
    REPLAY_VERDICT_WITHIN_NOISE: _ClassVar[ReplayVerdict]
REPLAY_VERDICT_UNSPECIFIED: ReplayVerdict
REPLAY_VERDICT_MORE_THAN_NOISE: ReplayVerdict
REPLAY_VERDICT_WITHIN_NOISE: ReplayVerdict

class Noise(_message.Message):
    __slots__ = ("suite", "servings", "total", "tasks", "notes")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    SERVINGS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    suite: str
    servings: _containers.RepeatedCompositeFieldContainer[NoiseServing]
    total: NoiseFigures
    tasks: _containers.RepeatedCompositeFieldContainer[NoiseFigures]
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, suite: _Optional[str] = ..., servings: _Optional[_Iterable[_Union[NoiseServing, _Mapping]]] = ..., total: _Optional[_Union[NoiseFigures, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[NoiseFigures, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class NoiseServing(_message.Message):
    __slots__ = ("model", "endpoint", "runs")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    model: str
    endpoint: str
    runs: _containers.RepeatedCompositeFieldContainer[NoiseRun]
    def __init__(self, model: _Optional[str] = ..., endpoint: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[NoiseRun, _Mapping]]] = ...) -> None: ...

class NoiseRun(_message.Message):
    __slots__ = ("job_id", "repeats", "score")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    repeats: int
    score: float
    def __init__(self, job_id: _Optional[str] = ..., repeats: _Optional[int] = ..., score: _Optional[float] = ...) -> None: ...

class NoiseFigures(_message.Message):
    __slots__ = ("task", "title", "items", "reasking", "servings", "variance", "floor")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REASKING_FIELD_NUMBER: _ClassVar[int]
    SERVINGS_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    task: str
    title: str
    items: int
    reasking: Flips
    servings: Flips
    variance: VarianceParts
    floor: float
    def __init__(self, task: _Optional[str] = ..., title: _Optional[str] = ..., items: _Optional[int] = ..., reasking: _Optional[_Union[Flips, _Mapping]] = ..., servings: _Optional[_Union[Flips, _Mapping]] = ..., variance: _Optional[_Union[VarianceParts, _Mapping]] = ..., floor: _Optional[float] = ...) -> None: ...

class Replay(_message.Message):
    __slots__ = ("job_id", "replayed_job_id", "items", "flips", "higher", "lower", "score_then", "score_now", "measured", "measured_runs", "beyond", "beyond_low", "beyond_high", "verdict", "words")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    FLIPS_FIELD_NUMBER: _ClassVar[int]
    HIGHER_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    SCORE_THEN_FIELD_NUMBER: _ClassVar[int]
    SCORE_NOW_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_RUNS_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    BEYOND_LOW_FIELD_NUMBER: _ClassVar[int]
    BEYOND_HIGH_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    replayed_job_id: str
    items: int
    flips: Flips
    higher: int
    lower: int
    score_then: float
    score_now: float
    measured: Flips
    measured_runs: int
    beyond: float
    beyond_low: float
    beyond_high: float
    verdict: ReplayVerdict
    words: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_id: _Optional[str] = ..., replayed_job_id: _Optional[str] = ..., items: _Optional[int] = ..., flips: _Optional[_Union[Flips, _Mapping]] = ..., higher: _Optional[int] = ..., lower: _Optional[int] = ..., score_then: _Optional[float] = ..., score_now: _Optional[float] = ..., measured: _Optional[_Union[Flips, _Mapping]] = ..., measured_runs: _Optional[int] = ..., beyond: _Optional[float] = ..., beyond_low: _Optional[float] = ..., beyond_high: _Optional[float] = ..., verdict: _Optional[_Union[ReplayVerdict, str]] = ..., words: _Optional[_Iterable[str]] = ...) -> None: ...

class Flips(_message.Message):
    __slots__ = ("share", "low", "high")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    share: float
    low: float
    high: float
    def __init__(self, share: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class VarianceParts(_message.Message):
    __slots__ = ("items", "reasking", "runs", "servings", "interaction")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REASKING_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SERVINGS_FIELD_NUMBER: _ClassVar[int]
    INTERACTION_FIELD_NUMBER: _ClassVar[int]
    items: float
    reasking: float
    runs: float
    servings: float
    interaction: float
    def __init__(self, items: _Optional[float] = ..., reasking: _Optional[float] = ..., runs: _Optional[float] = ..., servings: _Optional[float] = ..., interaction: _Optional[float] = ...) -> None: ...
