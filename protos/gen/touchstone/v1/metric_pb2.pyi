import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from touchstone.v1 import scoring_pb2 as _scoring_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Metric(_message.Message):
    __slots__ = ("metric", "mean", "stderr", "ci95_low", "ci95_high", "n", "undefined_reason", "method", "bound_low", "bound_high", "beside", "answered_mean")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    CI95_LOW_FIELD_NUMBER: _ClassVar[int]
    CI95_HIGH_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    UNDEFINED_REASON_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    BOUND_LOW_FIELD_NUMBER: _ClassVar[int]
    BOUND_HIGH_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_MEAN_FIELD_NUMBER: _ClassVar[int]
    metric: str
    mean: float
    stderr: float
    ci95_low: float
    ci95_high: float
    n: int
    undefined_reason: str
    method: str
    bound_low: float
    bound_high: float
    beside: bool
    answered_mean: float
    def __init__(self, metric: _Optional[str] = ..., mean: _Optional[float] = ..., stderr: _Optional[float] = ..., ci95_low: _Optional[float] = ..., ci95_high: _Optional[float] = ..., n: _Optional[int] = ..., undefined_reason: _Optional[str] = ..., method: _Optional[str] = ..., bound_low: _Optional[float] = ..., bound_high: _Optional[float] = ..., beside: _Optional[bool] = ..., answered_mean: _Optional[float] = ...) -> None: ...

class OutcomeCounts(_message.Message):
    __slots__ = ("answered", "unparsed", "output_truncated", "refused", "input_truncated", "infrastructure_error")
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    UNPARSED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    INPUT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    INFRASTRUCTURE_ERROR_FIELD_NUMBER: _ClassVar[int]
    answered: int
    unparsed: int
    output_truncated: int
    refused: int
    input_truncated: int
    infrastructure_error: int
    def __init__(self, answered: _Optional[int] = ..., unparsed: _Optional[int] = ..., output_truncated: _Optional[int] = ..., refused: _Optional[int] = ..., input_truncated: _Optional[int] = ..., infrastructure_error: _Optional[int] = ...) -> None: ...

class Unread(_message.Message):
    __slots__ = ("task", "title", "unparsed", "cut", "unparsed_answers", "marked_would_read", "lenient_would_read")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    UNPARSED_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    UNPARSED_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    MARKED_WOULD_READ_FIELD_NUMBER: _ClassVar[int]
    LENIENT_WOULD_READ_FIELD_NUMBER: _ClassVar[int]
    task: str
    title: str
    unparsed: float
    cut: float
    unparsed_answers: int
    marked_would_read: int
    lenient_would_read: int
    def __init__(self, task: _Optional[str] = ..., title: _Optional[str] = ..., unparsed: _Optional[float] = ..., cut: _Optional[float] = ..., unparsed_answers: _Optional[int] = ..., marked_would_read: _Optional[int] = ..., lenient_would_read: _Optional[int] = ...) -> None: ...

class TaskResult(_message.Message):
    __slots__ = ("task", "title", "metrics", "items", "items_planned", "outcomes", "correct", "majority_share", "score_group", "category", "beside", "first_answer_gap")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_PLANNED_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    CORRECT_FIELD_NUMBER: _ClassVar[int]
    MAJORITY_SHARE_FIELD_NUMBER: _ClassVar[int]
    SCORE_GROUP_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    FIRST_ANSWER_GAP_FIELD_NUMBER: _ClassVar[int]
    task: str
    title: str
    metrics: _containers.RepeatedCompositeFieldContainer[Metric]
    items: int
    items_planned: int
    outcomes: OutcomeCounts
    correct: int
    majority_share: float
    score_group: str
    category: str
    beside: bool
    first_answer_gap: float
    def __init__(self, task: _Optional[str] = ..., title: _Optional[str] = ..., metrics: _Optional[_Iterable[_Union[Metric, _Mapping]]] = ..., items: _Optional[int] = ..., items_planned: _Optional[int] = ..., outcomes: _Optional[_Union[OutcomeCounts, _Mapping]] = ..., correct: _Optional[int] = ..., majority_share: _Optional[float] = ..., score_group: _Optional[str] = ..., category: _Optional[str] = ..., beside: _Optional[bool] = ..., first_answer_gap: _Optional[float] = ...) -> None: ...

class FieldResult(_message.Message):
    __slots__ = ("task", "field", "answers", "right")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    task: str
    field: str
    answers: int
    right: float
    def __init__(self, task: _Optional[str] = ..., field: _Optional[str] = ..., answers: _Optional[int] = ..., right: _Optional[float] = ...) -> None: ...

class Average(_message.Message):
    __slots__ = ("category", "metric", "rule", "tasks", "weighting")
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    category: str
    metric: Metric
    rule: str
    tasks: int
    weighting: _suite_pb2.Weighting
    def __init__(self, category: _Optional[str] = ..., metric: _Optional[_Union[Metric, _Mapping]] = ..., rule: _Optional[str] = ..., tasks: _Optional[int] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ...) -> None: ...

class JobResult(_message.Message):
    __slots__ = ("job_id", "tasks", "suite_score", "outcomes", "sealed", "not_ranked_reason", "input_tokens", "output_tokens", "latency_p50_ms", "latency_p95_ms", "accuracy_so_far", "items_reused", "served_models", "cost_usd", "ttft_p50_ms", "ttft_p95_ms", "score_rule", "averages", "reasoning_tokens", "mark", "mark_reason", "superseded_by", "texts_dropped", "input_untold", "output_untold", "unread", "caution", "offered_reading", "offer", "weighting", "fields", "tip_diversity", "name", "alias")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SUITE_SCORE_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    NOT_RANKED_REASON_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_P50_MS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_P95_MS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_SO_FAR_FIELD_NUMBER: _ClassVar[int]
    ITEMS_REUSED_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODELS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    TTFT_P50_MS_FIELD_NUMBER: _ClassVar[int]
    TTFT_P95_MS_FIELD_NUMBER: _ClassVar[int]
    SCORE_RULE_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    MARK_REASON_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    TEXTS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    INPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    CAUTION_FIELD_NUMBER: _ClassVar[int]
    OFFERED_READING_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    TIP_DIVERSITY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    tasks: _containers.RepeatedCompositeFieldContainer[TaskResult]
    suite_score: Metric
    outcomes: OutcomeCounts
    sealed: bool
    not_ranked_reason: str
    input_tokens: int
    output_tokens: int
    latency_p50_ms: float
    latency_p95_ms: float
    accuracy_so_far: Metric
    items_reused: int
    served_models: _containers.RepeatedScalarFieldContainer[str]
    cost_usd: float
    ttft_p50_ms: float
    ttft_p95_ms: float
    score_rule: str
    averages: _containers.RepeatedCompositeFieldContainer[Average]
    reasoning_tokens: int
    mark: str
    mark_reason: str
    superseded_by: str
    texts_dropped: str
    input_untold: int
    output_untold: int
    unread: _containers.RepeatedCompositeFieldContainer[Unread]
    caution: str
    offered_reading: _scoring_pb2.Reading
    offer: str
    weighting: _suite_pb2.Weighting
    fields: _containers.RepeatedCompositeFieldContainer[FieldResult]
    tip_diversity: _containers.RepeatedCompositeFieldContainer[TipDiversity]
    name: str
    alias: str
    def __init__(self, job_id: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[TaskResult, _Mapping]]] = ..., suite_score: _Optional[_Union[Metric, _Mapping]] = ..., outcomes: _Optional[_Union[OutcomeCounts, _Mapping]] = ..., sealed: _Optional[bool] = ..., not_ranked_reason: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., latency_p50_ms: _Optional[float] = ..., latency_p95_ms: _Optional[float] = ..., accuracy_so_far: _Optional[_Union[Metric, _Mapping]] = ..., items_reused: _Optional[int] = ..., served_models: _Optional[_Iterable[str]] = ..., cost_usd: _Optional[float] = ..., ttft_p50_ms: _Optional[float] = ..., ttft_p95_ms: _Optional[float] = ..., score_rule: _Optional[str] = ..., averages: _Optional[_Iterable[_Union[Average, _Mapping]]] = ..., reasoning_tokens: _Optional[int] = ..., mark: _Optional[str] = ..., mark_reason: _Optional[str] = ..., superseded_by: _Optional[str] = ..., texts_dropped: _Optional[str] = ..., input_untold: _Optional[int] = ..., output_untold: _Optional[int] = ..., unread: _Optional[_Iterable[_Union[Unread, _Mapping]]] = ..., caution: _Optional[str] = ..., offered_reading: _Optional[_Union[_scoring_pb2.Reading, str]] = ..., offer: _Optional[str] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ..., fields: _Optional[_Iterable[_Union[FieldResult, _Mapping]]] = ..., tip_diversity: _Optional[_Iterable[_Union[TipDiversity, _Mapping]]] = ..., name: _Optional[str] = ..., alias: _Optional[str] = ...) -> None: ...

class TipDiversity(_message.Message):
    __slots__ = ("prompt", "mean", "low", "high", "scenarios")
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    SCENARIOS_FIELD_NUMBER: _ClassVar[int]
    prompt: str
    mean: float
    low: float
    high: float
    scenarios: int
    def __init__(self, prompt: _Optional[str] = ..., mean: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., scenarios: _Optional[int] = ...) -> None: ...

class LeaderboardEntry(_message.Message):
    __slots__ = ("rank", "model", "endpoint", "endpoint_kind", "configuration", "job_id", "score", "task_count", "run_count", "baseline", "tasks", "completed_at", "not_ranked_reason", "tokens_per_second", "mode", "state", "averages", "rank_low", "rank_high", "previous_job_id", "previous_mean", "name", "alias", "receipt", "shots", "repeats", "project_id", "mark", "unread", "caution", "cost_usd")
    RANK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TASK_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    NOT_RANKED_REASON_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    RANK_LOW_FIELD_NUMBER: _ClassVar[int]
    RANK_HIGH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_MEAN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    SHOTS_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    CAUTION_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    rank: int
    model: str
    endpoint: str
    endpoint_kind: str
    configuration: str
    job_id: str
    score: Metric
    task_count: int
    run_count: int
    baseline: bool
    tasks: _containers.RepeatedCompositeFieldContainer[TaskResult]
    completed_at: _timestamp_pb2.Timestamp
    not_ranked_reason: str
    tokens_per_second: float
    mode: _suite_pb2.Mode
    state: _job_pb2.Job.State
    averages: _containers.RepeatedCompositeFieldContainer[Average]
    rank_low: int
    rank_high: int
    previous_job_id: str
    previous_mean: float
    name: str
    alias: str
    receipt: _job_pb2.Receipt
    shots: int
    repeats: int
    project_id: int
    mark: str
    unread: _containers.RepeatedCompositeFieldContainer[Unread]
    caution: str
    cost_usd: float
    def __init__(self, rank: _Optional[int] = ..., model: _Optional[str] = ..., endpoint: _Optional[str] = ..., endpoint_kind: _Optional[str] = ..., configuration: _Optional[str] = ..., job_id: _Optional[str] = ..., score: _Optional[_Union[Metric, _Mapping]] = ..., task_count: _Optional[int] = ..., run_count: _Optional[int] = ..., baseline: _Optional[bool] = ..., tasks: _Optional[_Iterable[_Union[TaskResult, _Mapping]]] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., not_ranked_reason: _Optional[str] = ..., tokens_per_second: _Optional[float] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., state: _Optional[_Union[_job_pb2.Job.State, str]] = ..., averages: _Optional[_Iterable[_Union[Average, _Mapping]]] = ..., rank_low: _Optional[int] = ..., rank_high: _Optional[int] = ..., previous_job_id: _Optional[str] = ..., previous_mean: _Optional[float] = ..., name: _Optional[str] = ..., alias: _Optional[str] = ..., receipt: _Optional[_Union[_job_pb2.Receipt, _Mapping]] = ..., shots: _Optional[int] = ..., repeats: _Optional[int] = ..., project_id: _Optional[int] = ..., mark: _Optional[str] = ..., unread: _Optional[_Iterable[_Union[Unread, _Mapping]]] = ..., caution: _Optional[str] = ..., cost_usd: _Optional[float] = ...) -> None: ...
