import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import metric_pb2 as _metric_pb2
from touchstone.v1 import noise_pb2 as _noise_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_BETTER: _ClassVar[Verdict]
    VERDICT_WORSE: _ClassVar[Verdict]
    VERDICT_EQUIVALENT: _ClassVar[Verdict]
    VERDICT_NO_DIFFERENCE_SHOWN: _ClassVar[Verdict]
    VERDICT_NOT_COMPARABLE: _ClassVar[Verdict]
VERDICT_UNSPECIFIED: Verdict
VERDICT_BETTER: Verdict
VERDICT_WORSE: Verdict
VERDICT_EQUIVALENT: Verdict
VERDICT_NO_DIFFERENCE_SHOWN: Verdict
VERDICT_NOT_COMPARABLE: Verdict

class CompareRequest(_message.Message):
    __slots__ = ("subjects", "suite", "mode", "metrics", "baseline", "margin", "seed", "project_id", "alpha", "weighting")
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    subjects: _containers.RepeatedScalarFieldContainer[str]
    suite: str
    mode: _suite_pb2.Mode
    metrics: _containers.RepeatedScalarFieldContainer[str]
    baseline: str
    margin: float
    seed: int
    project_id: int
    alpha: float
    weighting: _suite_pb2.Weighting
    def __init__(self, subjects: _Optional[_Iterable[str]] = ..., suite: _Optional[str] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., metrics: _Optional[_Iterable[str]] = ..., baseline: _Optional[str] = ..., margin: _Optional[float] = ..., seed: _Optional[int] = ..., project_id: _Optional[int] = ..., alpha: _Optional[float] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ...) -> None: ...

class CompareResponse(_message.Message):
    __slots__ = ("suite", "mode", "runs", "differences", "omnibus", "recommendations", "items", "subset", "notes", "metrics", "margin", "alpha", "weighting")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    OMNIBUS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDATIONS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    suite: str
    mode: _suite_pb2.Mode
    runs: _containers.RepeatedCompositeFieldContainer[ComparedRun]
    differences: _containers.RepeatedCompositeFieldContainer[Difference]
    omnibus: _containers.RepeatedCompositeFieldContainer[Omnibus]
    recommendations: _containers.RepeatedScalarFieldContainer[str]
    items: int
    subset: bool
    notes: _containers.RepeatedScalarFieldContainer[str]
    metrics: _containers.RepeatedScalarFieldContainer[str]
    margin: float
    alpha: float
    weighting: _suite_pb2.Weighting
    def __init__(self, suite: _Optional[str] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., runs: _Optional[_Iterable[_Union[ComparedRun, _Mapping]]] = ..., differences: _Optional[_Iterable[_Union[Difference, _Mapping]]] = ..., omnibus: _Optional[_Iterable[_Union[Omnibus, _Mapping]]] = ..., recommendations: _Optional[_Iterable[str]] = ..., items: _Optional[int] = ..., subset: _Optional[bool] = ..., notes: _Optional[_Iterable[str]] = ..., metrics: _Optional[_Iterable[str]] = ..., margin: _Optional[float] = ..., alpha: _Optional[float] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ...) -> None: ...

class ComparedRun(_message.Message):
    __slots__ = ("subject", "job_id", "model", "endpoint", "configuration", "name", "rank_low", "rank_high", "scores", "baseline", "completed_at", "not_ranked_reason", "tasks", "caution", "again")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_LOW_FIELD_NUMBER: _ClassVar[int]
    RANK_HIGH_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    NOT_RANKED_REASON_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CAUTION_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    subject: str
    job_id: str
    model: str
    endpoint: str
    configuration: str
    name: str
    rank_low: int
    rank_high: int
    scores: _containers.RepeatedCompositeFieldContainer[_metric_pb2.Metric]
    baseline: bool
    completed_at: _timestamp_pb2.Timestamp
    not_ranked_reason: str
    tasks: _containers.RepeatedCompositeFieldContainer[_metric_pb2.TaskResult]
    caution: str
    again: RunsAgain
    def __init__(self, subject: _Optional[str] = ..., job_id: _Optional[str] = ..., model: _Optional[str] = ..., endpoint: _Optional[str] = ..., configuration: _Optional[str] = ..., name: _Optional[str] = ..., rank_low: _Optional[int] = ..., rank_high: _Optional[int] = ..., scores: _Optional[_Iterable[_Union[_metric_pb2.Metric, _Mapping]]] = ..., baseline: _Optional[bool] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., not_ranked_reason: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[_metric_pb2.TaskResult, _Mapping]]] = ..., caution: _Optional[str] = ..., again: _Optional[_Union[RunsAgain, _Mapping]] = ...) -> None: ...

class RunsAgain(_message.Message):
    __slots__ = ("runs", "flips", "floor")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    FLIPS_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    runs: int
    flips: _noise_pb2.Flips
    floor: float
    def __init__(self, runs: _Optional[int] = ..., flips: _Optional[_Union[_noise_pb2.Flips, _Mapping]] = ..., floor: _Optional[float] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("a", "b", "task", "title", "metric", "difference", "stderr", "low", "high", "p_value", "p_adjusted", "family", "correction", "test", "n", "only_a", "only_b", "verdict", "words", "smallest_difference", "equivalence_p", "reason", "baseline", "items_needed", "total_low", "total_high")
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    P_ADJUSTED_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    CORRECTION_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    ONLY_A_FIELD_NUMBER: _ClassVar[int]
    ONLY_B_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    EQUIVALENCE_P_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_NEEDED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_LOW_FIELD_NUMBER: _ClassVar[int]
    TOTAL_HIGH_FIELD_NUMBER: _ClassVar[int]
    a: str
    b: str
    task: str
    title: str
    metric: str
    difference: float
    stderr: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    family: str
    correction: str
    test: str
    n: int
    only_a: int
    only_b: int
    verdict: Verdict
    words: str
    smallest_difference: float
    equivalence_p: float
    reason: str
    baseline: bool
    items_needed: int
    total_low: float
    total_high: float
    def __init__(self, a: _Optional[str] = ..., b: _Optional[str] = ..., task: _Optional[str] = ..., title: _Optional[str] = ..., metric: _Optional[str] = ..., difference: _Optional[float] = ..., stderr: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., p_value: _Optional[float] = ..., p_adjusted: _Optional[float] = ..., family: _Optional[str] = ..., correction: _Optional[str] = ..., test: _Optional[str] = ..., n: _Optional[int] = ..., only_a: _Optional[int] = ..., only_b: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, str]] = ..., words: _Optional[str] = ..., smallest_difference: _Optional[float] = ..., equivalence_p: _Optional[float] = ..., reason: _Optional[str] = ..., baseline: _Optional[bool] = ..., items_needed: _Optional[int] = ..., total_low: _Optional[float] = ..., total_high: _Optional[float] = ...) -> None: ...

class Omnibus(_message.Message):
    __slots__ = ("task", "metric", "test", "statistic", "degrees_of_freedom", "p_value", "n")
    TASK_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    STATISTIC_FIELD_NUMBER: _ClassVar[int]
    DEGREES_OF_FREEDOM_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    task: str
    metric: str
    test: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    n: int
    def __init__(self, task: _Optional[str] = ..., metric: _Optional[str] = ..., test: _Optional[str] = ..., statistic: _Optional[float] = ..., degrees_of_freedom: _Optional[int] = ..., p_value: _Optional[float] = ..., n: _Optional[int] = ...) -> None: ...
