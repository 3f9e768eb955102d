import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import call_pb2 as _call_pb2
from touchstone.v1 import comparison_pb2 as _comparison_pb2
from touchstone.v1 import content_pb2 as _content_pb2
from touchstone.v1 import decision_pb2 as _decision_pb2
from touchstone.v1 import digest_pb2 as _digest_pb2
from touchstone.v1 import item_result_pb2 as _item_result_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from touchstone.v1 import metric_pb2 as _metric_pb2
from touchstone.v1 import noise_pb2 as _noise_pb2
from touchstone.v1 import rubric_pb2 as _rubric_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from touchstone.v1 import watch_pb2 as _watch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunMark(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_MARK_UNSPECIFIED: _ClassVar[RunMark]
    RUN_MARK_VALID: _ClassVar[RunMark]
    RUN_MARK_INVALIDATED: _ClassVar[RunMark]
    RUN_MARK_SUPERSEDED: _ClassVar[RunMark]
RUN_MARK_UNSPECIFIED: RunMark
RUN_MARK_VALID: RunMark
RUN_MARK_INVALIDATED: RunMark
RUN_MARK_SUPERSEDED: RunMark

class ResultsServiceGetJobRequest(_message.Message):
    __slots__ = ("job_id", "with_runs_around")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    WITH_RUNS_AROUND_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    with_runs_around: bool
    def __init__(self, job_id: _Optional[str] = ..., with_runs_around: _Optional[bool] = ...) -> None: ...

class ResultsServiceGetJobResponse(_message.Message):
    __slots__ = ("job", "previous", "following")
    JOB_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWING_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    previous: _job_pb2.Job
    following: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., previous: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., following: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ResultsServiceListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "model", "suite", "states", "owner", "project_id", "created_after", "model_query", "with_scores", "datasets", "endpoint", "without_counts")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AFTER_FIELD_NUMBER: _ClassVar[int]
    MODEL_QUERY_FIELD_NUMBER: _ClassVar[int]
    WITH_SCORES_FIELD_NUMBER: _ClassVar[int]
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_COUNTS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    model: str
    suite: str
    states: _containers.RepeatedScalarFieldContainer[_job_pb2.Job.State]
    owner: str
    project_id: int
    created_after: _timestamp_pb2.Timestamp
    model_query: str
    with_scores: bool
    datasets: bool
    endpoint: str
    without_counts: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., model: _Optional[str] = ..., suite: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_job_pb2.Job.State, str]]] = ..., owner: _Optional[str] = ..., project_id: _Optional[int] = ..., created_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., model_query: _Optional[str] = ..., with_scores: _Optional[bool] = ..., datasets: _Optional[bool] = ..., endpoint: _Optional[str] = ..., without_counts: _Optional[bool] = ...) -> None: ...

class ResultsServiceListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token", "total_size", "scores", "completed", "finished")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    next_page_token: str
    total_size: int
    scores: _containers.RepeatedCompositeFieldContainer[JobScores]
    completed: int
    finished: int
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ..., scores: _Optional[_Iterable[_Union[JobScores, _Mapping]]] = ..., completed: _Optional[int] = ..., finished: _Optional[int] = ...) -> None: ...

class JobScores(_message.Message):
    __slots__ = ("job_id", "averages", "not_ranked_reason", "caution", "name", "alias")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    NOT_RANKED_REASON_FIELD_NUMBER: _ClassVar[int]
    CAUTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    averages: _containers.RepeatedCompositeFieldContainer[_metric_pb2.Metric]
    not_ranked_reason: str
    caution: str
    name: str
    alias: str
    def __init__(self, job_id: _Optional[str] = ..., averages: _Optional[_Iterable[_Union[_metric_pb2.Metric, _Mapping]]] = ..., not_ranked_reason: _Optional[str] = ..., caution: _Optional[str] = ..., name: _Optional[str] = ..., alias: _Optional[str] = ...) -> None: ...

class GetJobResultRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobResultResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _metric_pb2.JobResult
    def __init__(self, result: _Optional[_Union[_metric_pb2.JobResult, _Mapping]] = ...) -> None: ...

class GetLeaderboardRequest(_message.Message):
    __slots__ = ("suite", "metric", "limit", "item_set", "mode", "endpoint", "project_id", "weighting")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    suite: str
    metric: str
    limit: int
    item_set: str
    mode: _suite_pb2.Mode
    endpoint: str
    project_id: int
    weighting: _suite_pb2.Weighting
    def __init__(self, suite: _Optional[str] = ..., metric: _Optional[str] = ..., limit: _Optional[int] = ..., item_set: _Optional[str] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., endpoint: _Optional[str] = ..., project_id: _Optional[int] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ...) -> None: ...

class GetLeaderboardResponse(_message.Message):
    __slots__ = ("entries", "total_models", "last_updated", "item_set", "subset", "items", "published_items", "metrics", "item_sets", "places_pending", "weighting", "suite_weighting")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MODELS_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATED_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    ITEM_SETS_FIELD_NUMBER: _ClassVar[int]
    PLACES_PENDING_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    SUITE_WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LeaderboardEntry]
    total_models: int
    last_updated: _timestamp_pb2.Timestamp
    item_set: str
    subset: bool
    items: int
    published_items: int
    metrics: _containers.RepeatedScalarFieldContainer[str]
    item_sets: _containers.RepeatedCompositeFieldContainer[ItemSet]
    places_pending: bool
    weighting: _suite_pb2.Weighting
    suite_weighting: _suite_pb2.Weighting
    def __init__(self, entries: _Optional[_Iterable[_Union[_metric_pb2.LeaderboardEntry, _Mapping]]] = ..., total_models: _Optional[int] = ..., last_updated: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., item_set: _Optional[str] = ..., subset: _Optional[bool] = ..., items: _Optional[int] = ..., published_items: _Optional[int] = ..., metrics: _Optional[_Iterable[str]] = ..., item_sets: _Optional[_Iterable[_Union[ItemSet, _Mapping]]] = ..., places_pending: _Optional[bool] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ..., suite_weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ...) -> None: ...

class ItemSet(_message.Message):
    __slots__ = ("item_set", "items", "published_items", "subset", "configurations", "tasks", "scoring")
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    item_set: str
    items: int
    published_items: int
    subset: bool
    configurations: int
    tasks: _containers.RepeatedScalarFieldContainer[str]
    scoring: str
    def __init__(self, item_set: _Optional[str] = ..., items: _Optional[int] = ..., published_items: _Optional[int] = ..., subset: _Optional[bool] = ..., configurations: _Optional[int] = ..., tasks: _Optional[_Iterable[str]] = ..., scoring: _Optional[str] = ...) -> None: ...

class ListItemsRequest(_message.Message):
    __slots__ = ("job_id", "task", "filter", "query", "page_size", "page_token", "baseline_job_id", "conditions", "order", "with_classes")
    class Filter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FILTER_UNSPECIFIED: _ClassVar[ListItemsRequest.Filter]
        FILTER_FAILURES: _ClassVar[ListItemsRequest.Filter]
        FILTER_UNPARSED: _ClassVar[ListItemsRequest.Filter]
        FILTER_ERRORS: _ClassVar[ListItemsRequest.Filter]
        FILTER_CORRECT: _ClassVar[ListItemsRequest.Filter]
        FILTER_DIFFERENT: _ClassVar[ListItemsRequest.Filter]
        FILTER_REGRESSED: _ClassVar[ListItemsRequest.Filter]
        FILTER_IMPROVED: _ClassVar[ListItemsRequest.Filter]
        FILTER_TRUNCATED: _ClassVar[ListItemsRequest.Filter]
        FILTER_REFUSED: _ClassVar[ListItemsRequest.Filter]
        FILTER_FINAL: _ClassVar[ListItemsRequest.Filter]
    FILTER_UNSPECIFIED: ListItemsRequest.Filter
    FILTER_FAILURES: ListItemsRequest.Filter
    FILTER_UNPARSED: ListItemsRequest.Filter
    FILTER_ERRORS: ListItemsRequest.Filter
    FILTER_CORRECT: ListItemsRequest.Filter
    FILTER_DIFFERENT: ListItemsRequest.Filter
    FILTER_REGRESSED: ListItemsRequest.Filter
    FILTER_IMPROVED: ListItemsRequest.Filter
    FILTER_TRUNCATED: ListItemsRequest.Filter
    FILTER_REFUSED: ListItemsRequest.Filter
    FILTER_FINAL: ListItemsRequest.Filter
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ORDER_UNSPECIFIED: _ClassVar[ListItemsRequest.Order]
        ORDER_SLOWEST: _ClassVar[ListItemsRequest.Order]
        ORDER_LONGEST: _ClassVar[ListItemsRequest.Order]
    ORDER_UNSPECIFIED: ListItemsRequest.Order
    ORDER_SLOWEST: ListItemsRequest.Order
    ORDER_LONGEST: ListItemsRequest.Order
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    BASELINE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    WITH_CLASSES_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    filter: ListItemsRequest.Filter
    query: str
    page_size: int
    page_token: str
    baseline_job_id: str
    conditions: ItemConditions
    order: ListItemsRequest.Order
    with_classes: bool
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., filter: _Optional[_Union[ListItemsRequest.Filter, str]] = ..., query: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., baseline_job_id: _Optional[str] = ..., conditions: _Optional[_Union[ItemConditions, _Mapping]] = ..., order: _Optional[_Union[ListItemsRequest.Order, str]] = ..., with_classes: _Optional[bool] = ...) -> None: ...

class ItemConditions(_message.Message):
    __slots__ = ("metadata_field", "metadata_value", "length_low", "length_high", "score_low", "score_high", "verdicts", "custom_id", "reference", "prediction")
    METADATA_FIELD_FIELD_NUMBER: _ClassVar[int]
    METADATA_VALUE_FIELD_NUMBER: _ClassVar[int]
    LENGTH_LOW_FIELD_NUMBER: _ClassVar[int]
    LENGTH_HIGH_FIELD_NUMBER: _ClassVar[int]
    SCORE_LOW_FIELD_NUMBER: _ClassVar[int]
    SCORE_HIGH_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_ID_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    metadata_field: str
    metadata_value: str
    length_low: int
    length_high: int
    score_low: float
    score_high: float
    verdicts: _containers.RepeatedScalarFieldContainer[Annotation.Verdict]
    custom_id: str
    reference: str
    prediction: str
    def __init__(self, metadata_field: _Optional[str] = ..., metadata_value: _Optional[str] = ..., length_low: _Optional[int] = ..., length_high: _Optional[int] = ..., score_low: _Optional[float] = ..., score_high: _Optional[float] = ..., verdicts: _Optional[_Iterable[_Union[Annotation.Verdict, str]]] = ..., custom_id: _Optional[str] = ..., reference: _Optional[str] = ..., prediction: _Optional[str] = ...) -> None: ...

class ListItemsResponse(_message.Message):
    __slots__ = ("items", "next_page_token", "total_size", "count_all", "count_failures", "count_unparsed", "count_errors", "count_different", "count_regressed", "count_improved", "count_truncated", "count_refused", "baselines", "classes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FAILURES_FIELD_NUMBER: _ClassVar[int]
    COUNT_UNPARSED_FIELD_NUMBER: _ClassVar[int]
    COUNT_ERRORS_FIELD_NUMBER: _ClassVar[int]
    COUNT_DIFFERENT_FIELD_NUMBER: _ClassVar[int]
    COUNT_REGRESSED_FIELD_NUMBER: _ClassVar[int]
    COUNT_IMPROVED_FIELD_NUMBER: _ClassVar[int]
    COUNT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    COUNT_REFUSED_FIELD_NUMBER: _ClassVar[int]
    BASELINES_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StoredItem]
    next_page_token: str
    total_size: int
    count_all: int
    count_failures: int
    count_unparsed: int
    count_errors: int
    count_different: int
    count_regressed: int
    count_improved: int
    count_truncated: int
    count_refused: int
    baselines: _containers.RepeatedCompositeFieldContainer[StoredItem]
    classes: _containers.RepeatedCompositeFieldContainer[ClassCount]
    def __init__(self, items: _Optional[_Iterable[_Union[StoredItem, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ..., count_all: _Optional[int] = ..., count_failures: _Optional[int] = ..., count_unparsed: _Optional[int] = ..., count_errors: _Optional[int] = ..., count_different: _Optional[int] = ..., count_regressed: _Optional[int] = ..., count_improved: _Optional[int] = ..., count_truncated: _Optional[int] = ..., count_refused: _Optional[int] = ..., baselines: _Optional[_Iterable[_Union[StoredItem, _Mapping]]] = ..., classes: _Optional[_Iterable[_Union[ClassCount, _Mapping]]] = ...) -> None: ...

class ClassCount(_message.Message):
    __slots__ = ("reference", "prediction", "items")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    reference: str
    prediction: str
    items: int
    def __init__(self, reference: _Optional[str] = ..., prediction: _Optional[str] = ..., items: _Optional[int] = ...) -> None: ...

class StoredItem(_message.Message):
    __slots__ = ("job_id", "task", "attempt", "result", "evaluator", "score", "annotation")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    ANNOTATION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    attempt: int
    result: _item_result_pb2.ItemResult
    evaluator: str
    score: float
    annotation: Annotation
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., attempt: _Optional[int] = ..., result: _Optional[_Union[_item_result_pb2.ItemResult, _Mapping]] = ..., evaluator: _Optional[str] = ..., score: _Optional[float] = ..., annotation: _Optional[_Union[Annotation, _Mapping]] = ...) -> None: ...

class Annotation(_message.Message):
    __slots__ = ("verdict", "corrected_answer", "note", "author", "annotated_at")
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[Annotation.Verdict]
        VERDICT_GOLDEN: _ClassVar[Annotation.Verdict]
        VERDICT_FIX: _ClassVar[Annotation.Verdict]
        VERDICT_WRONG: _ClassVar[Annotation.Verdict]
    VERDICT_UNSPECIFIED: Annotation.Verdict
    VERDICT_GOLDEN: Annotation.Verdict
    VERDICT_FIX: Annotation.Verdict
    VERDICT_WRONG: Annotation.Verdict
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CORRECTED_ANSWER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    ANNOTATED_AT_FIELD_NUMBER: _ClassVar[int]
    verdict: Annotation.Verdict
    corrected_answer: str
    note: str
    author: str
    annotated_at: _timestamp_pb2.Timestamp
    def __init__(self, verdict: _Optional[_Union[Annotation.Verdict, str]] = ..., corrected_answer: _Optional[str] = ..., note: _Optional[str] = ..., author: _Optional[str] = ..., annotated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AnnotateItemRequest(_message.Message):
    __slots__ = ("job_id", "task", "item", "repeat", "verdict", "corrected_answer", "note")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CORRECTED_ANSWER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    item: int
    repeat: int
    verdict: Annotation.Verdict
    corrected_answer: str
    note: str
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., verdict: _Optional[_Union[Annotation.Verdict, str]] = ..., corrected_answer: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class AnnotateItemResponse(_message.Message):
    __slots__ = ("item",)
    ITEM_FIELD_NUMBER: _ClassVar[int]
    item: StoredItem
    def __init__(self, item: _Optional[_Union[StoredItem, _Mapping]] = ...) -> None: ...

class ListSideBySideRequest(_message.Message):
    __slots__ = ("job_ids", "task", "filter", "only_job_id", "query", "conditions", "page_size", "page_token", "with_diffs", "with_tasks", "judge", "order_field", "descending", "open", "without_rows", "whole_opened")
    class Filter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FILTER_UNSPECIFIED: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_AGREE: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_DISAGREE: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_ONLY_RIGHT: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_ONLY_WRONG: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_ALL_RIGHT: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_ALL_WRONG: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_JUDGED: _ClassVar[ListSideBySideRequest.Filter]
        FILTER_NOT_JUDGED: _ClassVar[ListSideBySideRequest.Filter]
    FILTER_UNSPECIFIED: ListSideBySideRequest.Filter
    FILTER_AGREE: ListSideBySideRequest.Filter
    FILTER_DISAGREE: ListSideBySideRequest.Filter
    FILTER_ONLY_RIGHT: ListSideBySideRequest.Filter
    FILTER_ONLY_WRONG: ListSideBySideRequest.Filter
    FILTER_ALL_RIGHT: ListSideBySideRequest.Filter
    FILTER_ALL_WRONG: ListSideBySideRequest.Filter
    FILTER_JUDGED: ListSideBySideRequest.Filter
    FILTER_NOT_JUDGED: ListSideBySideRequest.Filter
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ONLY_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WITH_DIFFS_FIELD_NUMBER: _ClassVar[int]
    WITH_TASKS_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_ROWS_FIELD_NUMBER: _ClassVar[int]
    WHOLE_OPENED_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    task: str
    filter: ListSideBySideRequest.Filter
    only_job_id: str
    query: str
    conditions: ItemConditions
    page_size: int
    page_token: str
    with_diffs: bool
    with_tasks: bool
    judge: str
    order_field: str
    descending: bool
    open: RowPlace
    without_rows: bool
    whole_opened: bool
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., filter: _Optional[_Union[ListSideBySideRequest.Filter, str]] = ..., only_job_id: _Optional[str] = ..., query: _Optional[str] = ..., conditions: _Optional[_Union[ItemConditions, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., with_diffs: _Optional[bool] = ..., with_tasks: _Optional[bool] = ..., judge: _Optional[str] = ..., order_field: _Optional[str] = ..., descending: _Optional[bool] = ..., open: _Optional[_Union[RowPlace, _Mapping]] = ..., without_rows: _Optional[bool] = ..., whole_opened: _Optional[bool] = ...) -> None: ...

class RowPlace(_message.Message):
    __slots__ = ("job_id", "task", "item", "repeat")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    item: int
    repeat: int
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ...) -> None: ...

class ListSideBySideResponse(_message.Message):
    __slots__ = ("rows", "next_page_token", "total_size", "count_all", "count_agree", "count_all_right", "count_all_wrong", "runs", "tasks", "opened", "opened_number", "first_number", "previous", "next", "previous_page", "next_page", "count_judged", "count_not_judged", "preferences")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALL_FIELD_NUMBER: _ClassVar[int]
    COUNT_AGREE_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALL_RIGHT_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALL_WRONG_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    OPENED_NUMBER_FIELD_NUMBER: _ClassVar[int]
    FIRST_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PAGE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_FIELD_NUMBER: _ClassVar[int]
    COUNT_JUDGED_FIELD_NUMBER: _ClassVar[int]
    COUNT_NOT_JUDGED_FIELD_NUMBER: _ClassVar[int]
    PREFERENCES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[SideBySideRow]
    next_page_token: str
    total_size: int
    count_all: int
    count_agree: int
    count_all_right: int
    count_all_wrong: int
    runs: _containers.RepeatedCompositeFieldContainer[SideBySideRun]
    tasks: _containers.RepeatedCompositeFieldContainer[SideBySideTask]
    opened: SideBySideRow
    opened_number: int
    first_number: int
    previous: RowPlace
    next: RowPlace
    previous_page: RowPlace
    next_page: RowPlace
    count_judged: int
    count_not_judged: int
    preferences: PreferenceCounts
    def __init__(self, rows: _Optional[_Iterable[_Union[SideBySideRow, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ..., count_all: _Optional[int] = ..., count_agree: _Optional[int] = ..., count_all_right: _Optional[int] = ..., count_all_wrong: _Optional[int] = ..., runs: _Optional[_Iterable[_Union[SideBySideRun, _Mapping]]] = ..., tasks: _Optional[_Iterable[_Union[SideBySideTask, _Mapping]]] = ..., opened: _Optional[_Union[SideBySideRow, _Mapping]] = ..., opened_number: _Optional[int] = ..., first_number: _Optional[int] = ..., previous: _Optional[_Union[RowPlace, _Mapping]] = ..., next: _Optional[_Union[RowPlace, _Mapping]] = ..., previous_page: _Optional[_Union[RowPlace, _Mapping]] = ..., next_page: _Optional[_Union[RowPlace, _Mapping]] = ..., count_judged: _Optional[int] = ..., count_not_judged: _Optional[int] = ..., preferences: _Optional[_Union[PreferenceCounts, _Mapping]] = ...) -> None: ...

class PreferenceCounts(_message.Message):
    __slots__ = ("rows", "judges", "ties", "all_bad", "split", "jobs", "p")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    JUDGES_FIELD_NUMBER: _ClassVar[int]
    TIES_FIELD_NUMBER: _ClassVar[int]
    ALL_BAD_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    P_FIELD_NUMBER: _ClassVar[int]
    rows: int
    judges: int
    ties: int
    all_bad: int
    split: int
    jobs: _containers.RepeatedCompositeFieldContainer[PreferredJob]
    p: float
    def __init__(self, rows: _Optional[int] = ..., judges: _Optional[int] = ..., ties: _Optional[int] = ..., all_bad: _Optional[int] = ..., split: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[PreferredJob, _Mapping]]] = ..., p: _Optional[float] = ...) -> None: ...

class PreferredJob(_message.Message):
    __slots__ = ("rows", "share", "ci95_low", "ci95_high")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    CI95_LOW_FIELD_NUMBER: _ClassVar[int]
    CI95_HIGH_FIELD_NUMBER: _ClassVar[int]
    rows: int
    share: float
    ci95_low: float
    ci95_high: float
    def __init__(self, rows: _Optional[int] = ..., share: _Optional[float] = ..., ci95_low: _Optional[float] = ..., ci95_high: _Optional[float] = ...) -> None: ...

class Preference(_message.Message):
    __slots__ = ("choice", "preferred_job_id", "blind", "author", "judged_at")
    class Choice(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CHOICE_UNSPECIFIED: _ClassVar[Preference.Choice]
        CHOICE_BETTER: _ClassVar[Preference.Choice]
        CHOICE_TIE: _ClassVar[Preference.Choice]
        CHOICE_ALL_BAD: _ClassVar[Preference.Choice]
    CHOICE_UNSPECIFIED: Preference.Choice
    CHOICE_BETTER: Preference.Choice
    CHOICE_TIE: Preference.Choice
    CHOICE_ALL_BAD: Preference.Choice
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    BLIND_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    JUDGED_AT_FIELD_NUMBER: _ClassVar[int]
    choice: Preference.Choice
    preferred_job_id: str
    blind: bool
    author: str
    judged_at: _timestamp_pb2.Timestamp
    def __init__(self, choice: _Optional[_Union[Preference.Choice, str]] = ..., preferred_job_id: _Optional[str] = ..., blind: _Optional[bool] = ..., author: _Optional[str] = ..., judged_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class JudgeRowRequest(_message.Message):
    __slots__ = ("job_ids", "task", "item", "repeat", "choice", "preferred_job_id", "blind")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    BLIND_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    task: str
    item: int
    repeat: int
    choice: Preference.Choice
    preferred_job_id: str
    blind: bool
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., choice: _Optional[_Union[Preference.Choice, str]] = ..., preferred_job_id: _Optional[str] = ..., blind: _Optional[bool] = ...) -> None: ...

class JudgeRowResponse(_message.Message):
    __slots__ = ("preference",)
    PREFERENCE_FIELD_NUMBER: _ClassVar[int]
    preference: Preference
    def __init__(self, preference: _Optional[_Union[Preference, _Mapping]] = ...) -> None: ...

class SideBySideTask(_message.Message):
    __slots__ = ("task", "all_right", "all_wrong", "only_right")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ALL_RIGHT_FIELD_NUMBER: _ClassVar[int]
    ALL_WRONG_FIELD_NUMBER: _ClassVar[int]
    ONLY_RIGHT_FIELD_NUMBER: _ClassVar[int]
    task: str
    all_right: int
    all_wrong: int
    only_right: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, task: _Optional[str] = ..., all_right: _Optional[int] = ..., all_wrong: _Optional[int] = ..., only_right: _Optional[_Iterable[int]] = ...) -> None: ...

class SideBySideRun(_message.Message):
    __slots__ = ("job", "rows", "mean_score", "only_right", "only_wrong", "mean_latency_ms", "input_tokens", "output_tokens", "cost_usd", "input_untold", "output_untold", "score_ci95_low", "score_ci95_high", "further_metrics")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MEAN_SCORE_FIELD_NUMBER: _ClassVar[int]
    ONLY_RIGHT_FIELD_NUMBER: _ClassVar[int]
    ONLY_WRONG_FIELD_NUMBER: _ClassVar[int]
    MEAN_LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    INPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    SCORE_CI95_LOW_FIELD_NUMBER: _ClassVar[int]
    SCORE_CI95_HIGH_FIELD_NUMBER: _ClassVar[int]
    FURTHER_METRICS_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    rows: int
    mean_score: float
    only_right: int
    only_wrong: int
    mean_latency_ms: float
    input_tokens: int
    output_tokens: int
    cost_usd: float
    input_untold: int
    output_untold: int
    score_ci95_low: float
    score_ci95_high: float
    further_metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.Metric]
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., rows: _Optional[int] = ..., mean_score: _Optional[float] = ..., only_right: _Optional[int] = ..., only_wrong: _Optional[int] = ..., mean_latency_ms: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., input_untold: _Optional[int] = ..., output_untold: _Optional[int] = ..., score_ci95_low: _Optional[float] = ..., score_ci95_high: _Optional[float] = ..., further_metrics: _Optional[_Iterable[_Union[_metric_pb2.Metric, _Mapping]]] = ...) -> None: ...

class SideBySideRow(_message.Message):
    __slots__ = ("custom_id", "task", "item", "repeat", "items", "agree", "diffs", "preference", "whole")
    CUSTOM_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    AGREE_FIELD_NUMBER: _ClassVar[int]
    DIFFS_FIELD_NUMBER: _ClassVar[int]
    PREFERENCE_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    custom_id: str
    task: str
    item: int
    repeat: int
    items: _containers.RepeatedCompositeFieldContainer[StoredItem]
    agree: bool
    diffs: _containers.RepeatedCompositeFieldContainer[WordDiff]
    preference: Preference
    whole: bool
    def __init__(self, custom_id: _Optional[str] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., items: _Optional[_Iterable[_Union[StoredItem, _Mapping]]] = ..., agree: _Optional[bool] = ..., diffs: _Optional[_Iterable[_Union[WordDiff, _Mapping]]] = ..., preference: _Optional[_Union[Preference, _Mapping]] = ..., whole: _Optional[bool] = ...) -> None: ...

class WordDiff(_message.Message):
    __slots__ = ("parts",)
    class Part(_message.Message):
        __slots__ = ("kind", "text")
        class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            KIND_UNSPECIFIED: _ClassVar[WordDiff.Part.Kind]
            KIND_SAME: _ClassVar[WordDiff.Part.Kind]
            KIND_REMOVED: _ClassVar[WordDiff.Part.Kind]
            KIND_ADDED: _ClassVar[WordDiff.Part.Kind]
        KIND_UNSPECIFIED: WordDiff.Part.Kind
        KIND_SAME: WordDiff.Part.Kind
        KIND_REMOVED: WordDiff.Part.Kind
        KIND_ADDED: WordDiff.Part.Kind
        KIND_FIELD_NUMBER: _ClassVar[int]
        TEXT_FIELD_NUMBER: _ClassVar[int]
        kind: WordDiff.Part.Kind
        text: str
        def __init__(self, kind: _Optional[_Union[WordDiff.Part.Kind, str]] = ..., text: _Optional[str] = ...) -> None: ...
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[WordDiff.Part]
    def __init__(self, parts: _Optional[_Iterable[_Union[WordDiff.Part, _Mapping]]] = ...) -> None: ...

class EstimateRunRequest(_message.Message):
    __slots__ = ("job_id", "items", "concurrency")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    items: int
    concurrency: int
    def __init__(self, job_id: _Optional[str] = ..., items: _Optional[int] = ..., concurrency: _Optional[int] = ...) -> None: ...

class EstimateRunResponse(_message.Message):
    __slots__ = ("items", "pilot_items", "input_tokens", "output_tokens", "cost_usd", "duration_s")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PILOT_ITEMS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    items: int
    pilot_items: int
    input_tokens: Estimate
    output_tokens: Estimate
    cost_usd: Estimate
    duration_s: Estimate
    def __init__(self, items: _Optional[int] = ..., pilot_items: _Optional[int] = ..., input_tokens: _Optional[_Union[Estimate, _Mapping]] = ..., output_tokens: _Optional[_Union[Estimate, _Mapping]] = ..., cost_usd: _Optional[_Union[Estimate, _Mapping]] = ..., duration_s: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class Estimate(_message.Message):
    __slots__ = ("value", "low", "high")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    value: float
    low: float
    high: float
    def __init__(self, value: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class GetItemRequest(_message.Message):
    __slots__ = ("job_id", "task", "item", "repeat")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    item: int
    repeat: int
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ...) -> None: ...

class GetItemResponse(_message.Message):
    __slots__ = ("item",)
    ITEM_FIELD_NUMBER: _ClassVar[int]
    item: StoredItem
    def __init__(self, item: _Optional[_Union[StoredItem, _Mapping]] = ...) -> None: ...

class ListJudgesRequest(_message.Message):
    __slots__ = ("job_id", "task", "item", "repeat")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    item: int
    repeat: int
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ...) -> None: ...

class ListJudgesResponse(_message.Message):
    __slots__ = ("judges", "people", "outside")
    JUDGES_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    judges: _containers.RepeatedCompositeFieldContainer[JudgeRun]
    people: _containers.RepeatedCompositeFieldContainer[PeopleAgreement]
    outside: _containers.RepeatedCompositeFieldContainer[OutsideJudge]
    def __init__(self, judges: _Optional[_Iterable[_Union[JudgeRun, _Mapping]]] = ..., people: _Optional[_Iterable[_Union[PeopleAgreement, _Mapping]]] = ..., outside: _Optional[_Iterable[_Union[OutsideJudge, _Mapping]]] = ...) -> None: ...

class OutsideJudge(_message.Message):
    __slots__ = ("judge", "rater", "rubric", "judged", "answers", "means", "agreement", "verdicts")
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    RATER_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    MEANS_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    judge: str
    rater: str
    rubric: _rubric_pb2.Rubric
    judged: int
    answers: int
    means: _containers.RepeatedCompositeFieldContainer[CriterionScore]
    agreement: _containers.RepeatedCompositeFieldContainer[JudgeAgreement]
    verdicts: VerdictAgreement
    def __init__(self, judge: _Optional[str] = ..., rater: _Optional[str] = ..., rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ..., judged: _Optional[int] = ..., answers: _Optional[int] = ..., means: _Optional[_Iterable[_Union[CriterionScore, _Mapping]]] = ..., agreement: _Optional[_Iterable[_Union[JudgeAgreement, _Mapping]]] = ..., verdicts: _Optional[_Union[VerdictAgreement, _Mapping]] = ...) -> None: ...

class JudgeRun(_message.Message):
    __slots__ = ("job", "rubric", "result", "judgements", "agreement", "verdicts", "pairs")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    JUDGEMENTS_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    rubric: _rubric_pb2.Rubric
    result: _metric_pb2.TaskResult
    judgements: _containers.RepeatedCompositeFieldContainer[Judgement]
    agreement: _containers.RepeatedCompositeFieldContainer[JudgeAgreement]
    verdicts: VerdictAgreement
    pairs: JudgedPairs
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ..., result: _Optional[_Union[_metric_pb2.TaskResult, _Mapping]] = ..., judgements: _Optional[_Iterable[_Union[Judgement, _Mapping]]] = ..., agreement: _Optional[_Iterable[_Union[JudgeAgreement, _Mapping]]] = ..., verdicts: _Optional[_Union[VerdictAgreement, _Mapping]] = ..., pairs: _Optional[_Union[JudgedPairs, _Mapping]] = ...) -> None: ...

class JudgedPairs(_message.Message):
    __slots__ = ("pairs", "preferences", "people")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PREFERENCES_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    pairs: int
    preferences: _containers.RepeatedCompositeFieldContainer[JudgedPreference]
    people: PreferenceAgreement
    def __init__(self, pairs: _Optional[int] = ..., preferences: _Optional[_Iterable[_Union[JudgedPreference, _Mapping]]] = ..., people: _Optional[_Union[PreferenceAgreement, _Mapping]] = ...) -> None: ...

class JudgedPreference(_message.Message):
    __slots__ = ("metric", "preferred", "better", "equal", "worse", "same_in_both_orders", "first_preferred")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_FIELD_NUMBER: _ClassVar[int]
    BETTER_FIELD_NUMBER: _ClassVar[int]
    EQUAL_FIELD_NUMBER: _ClassVar[int]
    WORSE_FIELD_NUMBER: _ClassVar[int]
    SAME_IN_BOTH_ORDERS_FIELD_NUMBER: _ClassVar[int]
    FIRST_PREFERRED_FIELD_NUMBER: _ClassVar[int]
    metric: str
    preferred: Interval
    better: int
    equal: int
    worse: int
    same_in_both_orders: Interval
    first_preferred: Interval
    def __init__(self, metric: _Optional[str] = ..., preferred: _Optional[_Union[Interval, _Mapping]] = ..., better: _Optional[int] = ..., equal: _Optional[int] = ..., worse: _Optional[int] = ..., same_in_both_orders: _Optional[_Union[Interval, _Mapping]] = ..., first_preferred: _Optional[_Union[Interval, _Mapping]] = ...) -> None: ...

class PreferenceAgreement(_message.Message):
    __slots__ = ("pairs", "accuracy", "kappa")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    KAPPA_FIELD_NUMBER: _ClassVar[int]
    pairs: int
    accuracy: Interval
    kappa: Interval
    def __init__(self, pairs: _Optional[int] = ..., accuracy: _Optional[_Union[Interval, _Mapping]] = ..., kappa: _Optional[_Union[Interval, _Mapping]] = ...) -> None: ...

class VerdictAgreement(_message.Message):
    __slots__ = ("answers", "accuracy", "kappa")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    KAPPA_FIELD_NUMBER: _ClassVar[int]
    answers: int
    accuracy: Interval
    kappa: Interval
    def __init__(self, answers: _Optional[int] = ..., accuracy: _Optional[_Union[Interval, _Mapping]] = ..., kappa: _Optional[_Union[Interval, _Mapping]] = ...) -> None: ...

class JudgeAgreement(_message.Message):
    __slots__ = ("metric", "answers", "accuracy", "kappa", "bias", "combined", "people", "alpha", "ratings_to_halve")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    KAPPA_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    COMBINED_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    RATINGS_TO_HALVE_FIELD_NUMBER: _ClassVar[int]
    metric: str
    answers: int
    accuracy: Interval
    kappa: Interval
    bias: Interval
    combined: Interval
    people: Interval
    alpha: Interval
    ratings_to_halve: int
    def __init__(self, metric: _Optional[str] = ..., answers: _Optional[int] = ..., accuracy: _Optional[_Union[Interval, _Mapping]] = ..., kappa: _Optional[_Union[Interval, _Mapping]] = ..., bias: _Optional[_Union[Interval, _Mapping]] = ..., combined: _Optional[_Union[Interval, _Mapping]] = ..., people: _Optional[_Union[Interval, _Mapping]] = ..., alpha: _Optional[_Union[Interval, _Mapping]] = ..., ratings_to_halve: _Optional[int] = ...) -> None: ...

class PeopleAgreement(_message.Message):
    __slots__ = ("rubric", "raters", "answers", "shared", "criteria")
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    RATERS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    CRITERIA_FIELD_NUMBER: _ClassVar[int]
    rubric: _rubric_pb2.Rubric
    raters: int
    answers: int
    shared: int
    criteria: _containers.RepeatedCompositeFieldContainer[CriterionAlpha]
    def __init__(self, rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ..., raters: _Optional[int] = ..., answers: _Optional[int] = ..., shared: _Optional[int] = ..., criteria: _Optional[_Iterable[_Union[CriterionAlpha, _Mapping]]] = ...) -> None: ...

class CriterionAlpha(_message.Message):
    __slots__ = ("criterion", "alpha")
    CRITERION_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    criterion: str
    alpha: Interval
    def __init__(self, criterion: _Optional[str] = ..., alpha: _Optional[_Union[Interval, _Mapping]] = ...) -> None: ...

class Interval(_message.Message):
    __slots__ = ("value", "low", "high", "n")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    value: float
    low: float
    high: float
    n: int
    def __init__(self, value: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., n: _Optional[int] = ...) -> None: ...

class Judgement(_message.Message):
    __slots__ = ("number", "outcome", "scores", "response", "other_first")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIRST_FIELD_NUMBER: _ClassVar[int]
    number: int
    outcome: _item_result_pb2.Outcome
    scores: str
    response: str
    other_first: bool
    def __init__(self, number: _Optional[int] = ..., outcome: _Optional[_Union[_item_result_pb2.Outcome, str]] = ..., scores: _Optional[str] = ..., response: _Optional[str] = ..., other_first: _Optional[bool] = ...) -> None: ...

class Rating(_message.Message):
    __slots__ = ("task", "item", "repeat", "scores", "note", "rater", "rated_at", "rubric_digest", "judge")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    RATER_FIELD_NUMBER: _ClassVar[int]
    RATED_AT_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_DIGEST_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    task: str
    item: int
    repeat: int
    scores: str
    note: str
    rater: str
    rated_at: _timestamp_pb2.Timestamp
    rubric_digest: str
    judge: str
    def __init__(self, task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., scores: _Optional[str] = ..., note: _Optional[str] = ..., rater: _Optional[str] = ..., rated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rubric_digest: _Optional[str] = ..., judge: _Optional[str] = ...) -> None: ...

class AnswerToRate(_message.Message):
    __slots__ = ("task", "item", "repeat", "custom_id", "prompt", "reference", "answer")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    task: str
    item: int
    repeat: int
    custom_id: str
    prompt: str
    reference: str
    answer: str
    def __init__(self, task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., custom_id: _Optional[str] = ..., prompt: _Optional[str] = ..., reference: _Optional[str] = ..., answer: _Optional[str] = ...) -> None: ...

class Experiment(_message.Message):
    __slots__ = ("name", "owner", "created_at", "dataset_id", "prompts", "scenarios", "repeats", "rubric", "definition", "jobs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    SCENARIOS_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    name: str
    owner: str
    created_at: _timestamp_pb2.Timestamp
    dataset_id: str
    prompts: _containers.RepeatedScalarFieldContainer[str]
    scenarios: int
    repeats: int
    rubric: _rubric_pb2.Rubric
    definition: str
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    def __init__(self, name: _Optional[str] = ..., owner: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., dataset_id: _Optional[str] = ..., prompts: _Optional[_Iterable[str]] = ..., scenarios: _Optional[int] = ..., repeats: _Optional[int] = ..., rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ..., definition: _Optional[str] = ..., jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ...) -> None: ...

class ListDecisionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "schedule_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    schedule_id: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., schedule_id: _Optional[str] = ...) -> None: ...

class ListDecisionsResponse(_message.Message):
    __slots__ = ("decisions", "next_page_token")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[_decision_pb2.Decision]
    next_page_token: str
    def __init__(self, decisions: _Optional[_Iterable[_Union[_decision_pb2.Decision, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetDecisionRequest(_message.Message):
    __slots__ = ("decision_id",)
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    def __init__(self, decision_id: _Optional[str] = ...) -> None: ...

class GetDecisionResponse(_message.Message):
    __slots__ = ("decision",)
    DECISION_FIELD_NUMBER: _ClassVar[int]
    decision: _decision_pb2.Decision
    def __init__(self, decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class GetNoiseRequest(_message.Message):
    __slots__ = ("job_ids",)
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class GetNoiseResponse(_message.Message):
    __slots__ = ("noise",)
    NOISE_FIELD_NUMBER: _ClassVar[int]
    noise: _noise_pb2.Noise
    def __init__(self, noise: _Optional[_Union[_noise_pb2.Noise, _Mapping]] = ...) -> None: ...

class GetReplayRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetReplayResponse(_message.Message):
    __slots__ = ("replay",)
    REPLAY_FIELD_NUMBER: _ClassVar[int]
    replay: _noise_pb2.Replay
    def __init__(self, replay: _Optional[_Union[_noise_pb2.Replay, _Mapping]] = ...) -> None: ...

class ListExperimentsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListExperimentsResponse(_message.Message):
    __slots__ = ("experiments", "next_page_token")
    EXPERIMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    experiments: _containers.RepeatedCompositeFieldContainer[Experiment]
    next_page_token: str
    def __init__(self, experiments: _Optional[_Iterable[_Union[Experiment, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetExperimentRequest(_message.Message):
    __slots__ = ("name", "source", "judge")
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SOURCE_UNSPECIFIED: _ClassVar[GetExperimentRequest.Source]
        SOURCE_JUDGE: _ClassVar[GetExperimentRequest.Source]
        SOURCE_PEOPLE: _ClassVar[GetExperimentRequest.Source]
        SOURCE_COMBINED: _ClassVar[GetExperimentRequest.Source]
    SOURCE_UNSPECIFIED: GetExperimentRequest.Source
    SOURCE_JUDGE: GetExperimentRequest.Source
    SOURCE_PEOPLE: GetExperimentRequest.Source
    SOURCE_COMBINED: GetExperimentRequest.Source
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    source: GetExperimentRequest.Source
    judge: str
    def __init__(self, name: _Optional[str] = ..., source: _Optional[_Union[GetExperimentRequest.Source, str]] = ..., judge: _Optional[str] = ...) -> None: ...

class GetExperimentResponse(_message.Message):
    __slots__ = ("experiment", "source", "judge", "judges", "rows", "models", "prompts_with_same_first", "prompts_compared", "uncounted_job_ids", "live_judges")
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    JUDGES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_WITH_SAME_FIRST_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_COMPARED_FIELD_NUMBER: _ClassVar[int]
    UNCOUNTED_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    LIVE_JUDGES_FIELD_NUMBER: _ClassVar[int]
    experiment: Experiment
    source: GetExperimentRequest.Source
    judge: str
    judges: _containers.RepeatedScalarFieldContainer[str]
    rows: _containers.RepeatedCompositeFieldContainer[ExperimentRow]
    models: _containers.RepeatedCompositeFieldContainer[ExperimentModel]
    prompts_with_same_first: int
    prompts_compared: int
    uncounted_job_ids: _containers.RepeatedScalarFieldContainer[str]
    live_judges: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ..., source: _Optional[_Union[GetExperimentRequest.Source, str]] = ..., judge: _Optional[str] = ..., judges: _Optional[_Iterable[str]] = ..., rows: _Optional[_Iterable[_Union[ExperimentRow, _Mapping]]] = ..., models: _Optional[_Iterable[_Union[ExperimentModel, _Mapping]]] = ..., prompts_with_same_first: _Optional[int] = ..., prompts_compared: _Optional[int] = ..., uncounted_job_ids: _Optional[_Iterable[str]] = ..., live_judges: _Optional[_Iterable[str]] = ...) -> None: ...

class ExperimentRow(_message.Message):
    __slots__ = ("job_id", "endpoint", "model", "prompt", "rank", "rank_low", "rank_high", "rows", "answered", "errors", "scored", "judge_failures", "composite", "criteria", "to_first", "diversity", "latency_s", "tokens_per_s", "cost_usd")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    RANK_LOW_FIELD_NUMBER: _ClassVar[int]
    RANK_HIGH_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    SCORED_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FAILURES_FIELD_NUMBER: _ClassVar[int]
    COMPOSITE_FIELD_NUMBER: _ClassVar[int]
    CRITERIA_FIELD_NUMBER: _ClassVar[int]
    TO_FIRST_FIELD_NUMBER: _ClassVar[int]
    DIVERSITY_FIELD_NUMBER: _ClassVar[int]
    LATENCY_S_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_S_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    endpoint: str
    model: str
    prompt: str
    rank: int
    rank_low: int
    rank_high: int
    rows: int
    answered: int
    errors: int
    scored: int
    judge_failures: int
    composite: Interval
    criteria: _containers.RepeatedCompositeFieldContainer[CriterionScore]
    to_first: PairedDifference
    diversity: Interval
    latency_s: float
    tokens_per_s: float
    cost_usd: float
    def __init__(self, job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., prompt: _Optional[str] = ..., rank: _Optional[int] = ..., rank_low: _Optional[int] = ..., rank_high: _Optional[int] = ..., rows: _Optional[int] = ..., answered: _Optional[int] = ..., errors: _Optional[int] = ..., scored: _Optional[int] = ..., judge_failures: _Optional[int] = ..., composite: _Optional[_Union[Interval, _Mapping]] = ..., criteria: _Optional[_Iterable[_Union[CriterionScore, _Mapping]]] = ..., to_first: _Optional[_Union[PairedDifference, _Mapping]] = ..., diversity: _Optional[_Union[Interval, _Mapping]] = ..., latency_s: _Optional[float] = ..., tokens_per_s: _Optional[float] = ..., cost_usd: _Optional[float] = ...) -> None: ...

class CriterionScore(_message.Message):
    __slots__ = ("criterion", "score")
    CRITERION_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    criterion: str
    score: Interval
    def __init__(self, criterion: _Optional[str] = ..., score: _Optional[_Union[Interval, _Mapping]] = ...) -> None: ...

class PairedDifference(_message.Message):
    __slots__ = ("difference", "p_value")
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    difference: Interval
    p_value: float
    def __init__(self, difference: _Optional[_Union[Interval, _Mapping]] = ..., p_value: _Optional[float] = ...) -> None: ...

class ExperimentModel(_message.Message):
    __slots__ = ("job_id", "endpoint", "model", "mean", "best_prompt", "worst_prompt", "best", "worst")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    BEST_PROMPT_FIELD_NUMBER: _ClassVar[int]
    WORST_PROMPT_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    endpoint: str
    model: str
    mean: Interval
    best_prompt: str
    worst_prompt: str
    best: float
    worst: float
    def __init__(self, job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., mean: _Optional[_Union[Interval, _Mapping]] = ..., best_prompt: _Optional[str] = ..., worst_prompt: _Optional[str] = ..., best: _Optional[float] = ..., worst: _Optional[float] = ...) -> None: ...

class ListExperimentRunsRequest(_message.Message):
    __slots__ = ("name", "job_id", "prompt", "judge_pending", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    JUDGE_PENDING_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    job_id: str
    prompt: str
    judge_pending: bool
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., job_id: _Optional[str] = ..., prompt: _Optional[str] = ..., judge_pending: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListExperimentRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[ExperimentRun]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[ExperimentRun, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ExperimentRun(_message.Message):
    __slots__ = ("job_id", "endpoint", "model", "prompt", "scenario", "number", "task", "item", "repeat", "outcome", "answer", "candidates", "judge_pending", "judged", "rated", "latency_s", "input_tokens", "output_tokens")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    JUDGE_PENDING_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    RATED_FIELD_NUMBER: _ClassVar[int]
    LATENCY_S_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    endpoint: str
    model: str
    prompt: str
    scenario: str
    number: int
    task: str
    item: int
    repeat: int
    outcome: _item_result_pb2.Outcome
    answer: str
    candidates: _containers.RepeatedScalarFieldContainer[str]
    judge_pending: bool
    judged: _containers.RepeatedCompositeFieldContainer[CriterionShare]
    rated: _containers.RepeatedCompositeFieldContainer[CriterionShare]
    latency_s: float
    input_tokens: int
    output_tokens: int
    def __init__(self, job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., prompt: _Optional[str] = ..., scenario: _Optional[str] = ..., number: _Optional[int] = ..., task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., outcome: _Optional[_Union[_item_result_pb2.Outcome, str]] = ..., answer: _Optional[str] = ..., candidates: _Optional[_Iterable[str]] = ..., judge_pending: _Optional[bool] = ..., judged: _Optional[_Iterable[_Union[CriterionShare, _Mapping]]] = ..., rated: _Optional[_Iterable[_Union[CriterionShare, _Mapping]]] = ..., latency_s: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...

class CriterionShare(_message.Message):
    __slots__ = ("criterion", "share")
    CRITERION_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    criterion: str
    share: float
    def __init__(self, criterion: _Optional[str] = ..., share: _Optional[float] = ...) -> None: ...

class ListUnratedRequest(_message.Message):
    __slots__ = ("job_id", "rubric", "page_size", "page_token", "judge")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    rubric: _rubric_pb2.Rubric
    page_size: int
    page_token: str
    judge: str
    def __init__(self, job_id: _Optional[str] = ..., rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., judge: _Optional[str] = ...) -> None: ...

class ListUnratedResponse(_message.Message):
    __slots__ = ("answers", "next_page_token", "rated", "unrated", "rubric")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RATED_FIELD_NUMBER: _ClassVar[int]
    UNRATED_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[AnswerToRate]
    next_page_token: str
    rated: int
    unrated: int
    rubric: _rubric_pb2.Rubric
    def __init__(self, answers: _Optional[_Iterable[_Union[AnswerToRate, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., rated: _Optional[int] = ..., unrated: _Optional[int] = ..., rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ...) -> None: ...

class RateAnswersRequest(_message.Message):
    __slots__ = ("job_id", "rubric", "ratings", "judge")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    RATINGS_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    rubric: _rubric_pb2.Rubric
    ratings: _containers.RepeatedCompositeFieldContainer[Rating]
    judge: str
    def __init__(self, job_id: _Optional[str] = ..., rubric: _Optional[_Union[_rubric_pb2.Rubric, _Mapping]] = ..., ratings: _Optional[_Iterable[_Union[Rating, _Mapping]]] = ..., judge: _Optional[str] = ...) -> None: ...

class RateAnswersResponse(_message.Message):
    __slots__ = ("stored", "unchanged")
    STORED_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    stored: int
    unchanged: int
    def __init__(self, stored: _Optional[int] = ..., unchanged: _Optional[int] = ...) -> None: ...

class ListRatingsRequest(_message.Message):
    __slots__ = ("job_id", "rubric_digest", "rater", "page_size", "page_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RATER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    rubric_digest: str
    rater: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., rubric_digest: _Optional[str] = ..., rater: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRatingsResponse(_message.Message):
    __slots__ = ("ratings", "next_page_token", "rubrics")
    RATINGS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RUBRICS_FIELD_NUMBER: _ClassVar[int]
    ratings: _containers.RepeatedCompositeFieldContainer[Rating]
    next_page_token: str
    rubrics: _containers.RepeatedCompositeFieldContainer[_rubric_pb2.Rubric]
    def __init__(self, ratings: _Optional[_Iterable[_Union[Rating, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., rubrics: _Optional[_Iterable[_Union[_rubric_pb2.Rubric, _Mapping]]] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("job_id", "page_size", "page_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_job_pb2.JobEvent]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[_job_pb2.JobEvent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SealJobRequest(_message.Message):
    __slots__ = ("job", "results_sequence")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    results_sequence: int
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., results_sequence: _Optional[int] = ...) -> None: ...

class SealJobResponse(_message.Message):
    __slots__ = ("missing", "infrastructure_errors", "result")
    MISSING_FIELD_NUMBER: _ClassVar[int]
    INFRASTRUCTURE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    missing: int
    infrastructure_errors: int
    result: _metric_pb2.JobResult
    def __init__(self, missing: _Optional[int] = ..., infrastructure_errors: _Optional[int] = ..., result: _Optional[_Union[_metric_pb2.JobResult, _Mapping]] = ...) -> None: ...

class ListStoredItemsRequest(_message.Message):
    __slots__ = ("job_id", "results_sequence")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    results_sequence: int
    def __init__(self, job_id: _Optional[str] = ..., results_sequence: _Optional[int] = ...) -> None: ...

class ListStoredItemsResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[StoredTaskItems]
    def __init__(self, tasks: _Optional[_Iterable[_Union[StoredTaskItems, _Mapping]]] = ...) -> None: ...

class FindResponsesRequest(_message.Message):
    __slots__ = ("job_id", "task", "positions", "identities", "import_id", "items", "repeat", "owner", "results_sequence")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    IDENTITIES_FIELD_NUMBER: _ClassVar[int]
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    positions: _containers.RepeatedScalarFieldContainer[int]
    identities: _containers.RepeatedScalarFieldContainer[str]
    import_id: str
    items: _containers.RepeatedScalarFieldContainer[int]
    repeat: int
    owner: str
    results_sequence: int
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., positions: _Optional[_Iterable[int]] = ..., identities: _Optional[_Iterable[str]] = ..., import_id: _Optional[str] = ..., items: _Optional[_Iterable[int]] = ..., repeat: _Optional[int] = ..., owner: _Optional[str] = ..., results_sequence: _Optional[int] = ...) -> None: ...

class FindResponsesResponse(_message.Message):
    __slots__ = ("results", "answers")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_item_result_pb2.ItemResult]
    answers: _containers.RepeatedCompositeFieldContainer[ImportedAnswer]
    def __init__(self, results: _Optional[_Iterable[_Union[_item_result_pb2.ItemResult, _Mapping]]] = ..., answers: _Optional[_Iterable[_Union[ImportedAnswer, _Mapping]]] = ...) -> None: ...

class AdmitCallRequest(_message.Message):
    __slots__ = ("call_id", "usage_sequence")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    USAGE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    usage_sequence: int
    def __init__(self, call_id: _Optional[str] = ..., usage_sequence: _Optional[int] = ...) -> None: ...

class AdmitCallResponse(_message.Message):
    __slots__ = ("admitted", "cost_usd", "other_models")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    OTHER_MODELS_FIELD_NUMBER: _ClassVar[int]
    admitted: bool
    cost_usd: float
    other_models: int
    def __init__(self, admitted: _Optional[bool] = ..., cost_usd: _Optional[float] = ..., other_models: _Optional[int] = ...) -> None: ...

class GetImportRequest(_message.Message):
    __slots__ = ("import_id", "task", "after", "with_rows")
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WITH_ROWS_FIELD_NUMBER: _ClassVar[int]
    import_id: str
    task: str
    after: int
    with_rows: bool
    def __init__(self, import_id: _Optional[str] = ..., task: _Optional[str] = ..., after: _Optional[int] = ..., with_rows: _Optional[bool] = ...) -> None: ...

class GetImportResponse(_message.Message):
    __slots__ = ("run", "owner", "tasks", "items", "prompts", "rows")
    RUN_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    run: ImportedRun
    owner: str
    tasks: _containers.RepeatedCompositeFieldContainer[ImportedTask]
    items: _containers.RepeatedScalarFieldContainer[int]
    prompts: _containers.RepeatedScalarFieldContainer[int]
    rows: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, run: _Optional[_Union[ImportedRun, _Mapping]] = ..., owner: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[ImportedTask, _Mapping]]] = ..., items: _Optional[_Iterable[int]] = ..., prompts: _Optional[_Iterable[int]] = ..., rows: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportedTask(_message.Message):
    __slots__ = ("task", "items", "answers", "repeats")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    task: str
    items: int
    answers: int
    repeats: int
    def __init__(self, task: _Optional[str] = ..., items: _Optional[int] = ..., answers: _Optional[int] = ..., repeats: _Optional[int] = ...) -> None: ...

class StoredTaskItems(_message.Message):
    __slots__ = ("task", "positions")
    TASK_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    task: str
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, task: _Optional[str] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...

class GetOverviewRequest(_message.Message):
    __slots__ = ("suite", "days", "project_id", "metric")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    suite: str
    days: int
    project_id: int
    metric: str
    def __init__(self, suite: _Optional[str] = ..., days: _Optional[int] = ..., project_id: _Optional[int] = ..., metric: _Optional[str] = ...) -> None: ...

class GetOverviewResponse(_message.Message):
    __slots__ = ("mean", "runs_with_metric", "total_jobs", "completed_jobs", "failed_jobs", "cancelled_jobs", "models", "latest", "complete_jobs", "means")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    RUNS_WITH_METRIC_FIELD_NUMBER: _ClassVar[int]
    TOTAL_JOBS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_JOBS_FIELD_NUMBER: _ClassVar[int]
    FAILED_JOBS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_JOBS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_JOBS_FIELD_NUMBER: _ClassVar[int]
    MEANS_FIELD_NUMBER: _ClassVar[int]
    mean: float
    runs_with_metric: int
    total_jobs: int
    completed_jobs: int
    failed_jobs: int
    cancelled_jobs: int
    models: int
    latest: _job_pb2.Job
    complete_jobs: int
    means: _containers.RepeatedCompositeFieldContainer[OverviewMean]
    def __init__(self, mean: _Optional[float] = ..., runs_with_metric: _Optional[int] = ..., total_jobs: _Optional[int] = ..., completed_jobs: _Optional[int] = ..., failed_jobs: _Optional[int] = ..., cancelled_jobs: _Optional[int] = ..., models: _Optional[int] = ..., latest: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., complete_jobs: _Optional[int] = ..., means: _Optional[_Iterable[_Union[OverviewMean, _Mapping]]] = ...) -> None: ...

class OverviewMean(_message.Message):
    __slots__ = ("suite", "mode", "mean", "runs")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    suite: str
    mode: _suite_pb2.Mode
    mean: float
    runs: int
    def __init__(self, suite: _Optional[str] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., mean: _Optional[float] = ..., runs: _Optional[int] = ...) -> None: ...

class ListTrendsRequest(_message.Message):
    __slots__ = ("suite", "metric", "days", "model", "project_id", "mode", "limit", "points", "configurations", "item_set")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    suite: str
    metric: str
    days: int
    model: str
    project_id: int
    mode: _suite_pb2.Mode
    limit: int
    points: int
    configurations: _containers.RepeatedScalarFieldContainer[str]
    item_set: str
    def __init__(self, suite: _Optional[str] = ..., metric: _Optional[str] = ..., days: _Optional[int] = ..., model: _Optional[str] = ..., project_id: _Optional[int] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., limit: _Optional[int] = ..., points: _Optional[int] = ..., configurations: _Optional[_Iterable[str]] = ..., item_set: _Optional[str] = ...) -> None: ...

class ListTrendsResponse(_message.Message):
    __slots__ = ("trends",)
    TRENDS_FIELD_NUMBER: _ClassVar[int]
    trends: _containers.RepeatedCompositeFieldContainer[Trend]
    def __init__(self, trends: _Optional[_Iterable[_Union[Trend, _Mapping]]] = ...) -> None: ...

class Trend(_message.Message):
    __slots__ = ("configuration", "model", "endpoint", "name", "item_set", "subset", "baseline", "points")
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    configuration: str
    model: str
    endpoint: str
    name: str
    item_set: str
    subset: bool
    baseline: bool
    points: _containers.RepeatedCompositeFieldContainer[TrendPoint]
    def __init__(self, configuration: _Optional[str] = ..., model: _Optional[str] = ..., endpoint: _Optional[str] = ..., name: _Optional[str] = ..., item_set: _Optional[str] = ..., subset: _Optional[bool] = ..., baseline: _Optional[bool] = ..., points: _Optional[_Iterable[_Union[TrendPoint, _Mapping]]] = ...) -> None: ...

class TrendPoint(_message.Message):
    __slots__ = ("job_id", "completed_at", "score")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    completed_at: _timestamp_pb2.Timestamp
    score: _metric_pb2.Metric
    def __init__(self, job_id: _Optional[str] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., score: _Optional[_Union[_metric_pb2.Metric, _Mapping]] = ...) -> None: ...

class Configuration(_message.Message):
    __slots__ = ("configuration", "model", "endpoint", "name", "alias", "job_id", "suite", "run_count", "last_run_at", "alias_taken_from")
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_AT_FIELD_NUMBER: _ClassVar[int]
    ALIAS_TAKEN_FROM_FIELD_NUMBER: _ClassVar[int]
    configuration: str
    model: str
    endpoint: str
    name: str
    alias: str
    job_id: str
    suite: str
    run_count: int
    last_run_at: _timestamp_pb2.Timestamp
    alias_taken_from: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, configuration: _Optional[str] = ..., model: _Optional[str] = ..., endpoint: _Optional[str] = ..., name: _Optional[str] = ..., alias: _Optional[str] = ..., job_id: _Optional[str] = ..., suite: _Optional[str] = ..., run_count: _Optional[int] = ..., last_run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., alias_taken_from: _Optional[_Iterable[str]] = ...) -> None: ...

class ListConfigurationsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "model", "named", "project_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NAMED_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    model: str
    named: bool
    project_id: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., model: _Optional[str] = ..., named: _Optional[bool] = ..., project_id: _Optional[int] = ...) -> None: ...

class ListConfigurationsResponse(_message.Message):
    __slots__ = ("configurations", "next_page_token")
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    configurations: _containers.RepeatedCompositeFieldContainer[Configuration]
    next_page_token: str
    def __init__(self, configurations: _Optional[_Iterable[_Union[Configuration, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NameConfigurationRequest(_message.Message):
    __slots__ = ("configuration", "name", "alias")
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    configuration: str
    name: str
    alias: str
    def __init__(self, configuration: _Optional[str] = ..., name: _Optional[str] = ..., alias: _Optional[str] = ...) -> None: ...

class NameConfigurationResponse(_message.Message):
    __slots__ = ("configuration",)
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    configuration: Configuration
    def __init__(self, configuration: _Optional[_Union[Configuration, _Mapping]] = ...) -> None: ...

class MarkRunRequest(_message.Message):
    __slots__ = ("job_id", "mark", "reason", "superseded_by")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    mark: RunMark
    reason: str
    superseded_by: str
    def __init__(self, job_id: _Optional[str] = ..., mark: _Optional[_Union[RunMark, str]] = ..., reason: _Optional[str] = ..., superseded_by: _Optional[str] = ...) -> None: ...

class MarkRunResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _metric_pb2.JobResult
    def __init__(self, result: _Optional[_Union[_metric_pb2.JobResult, _Mapping]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("kind", "format", "jobs", "items")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[ExportRequest.Kind]
        KIND_JOBS: _ClassVar[ExportRequest.Kind]
        KIND_METRICS: _ClassVar[ExportRequest.Kind]
        KIND_ITEMS: _ClassVar[ExportRequest.Kind]
        KIND_BATCH_OUTPUT: _ClassVar[ExportRequest.Kind]
        KIND_GOLDEN: _ClassVar[ExportRequest.Kind]
        KIND_PREFERENCES: _ClassVar[ExportRequest.Kind]
    KIND_UNSPECIFIED: ExportRequest.Kind
    KIND_JOBS: ExportRequest.Kind
    KIND_METRICS: ExportRequest.Kind
    KIND_ITEMS: ExportRequest.Kind
    KIND_BATCH_OUTPUT: ExportRequest.Kind
    KIND_GOLDEN: ExportRequest.Kind
    KIND_PREFERENCES: ExportRequest.Kind
    class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FORMAT_UNSPECIFIED: _ClassVar[ExportRequest.Format]
        FORMAT_CSV: _ClassVar[ExportRequest.Format]
        FORMAT_JSON: _ClassVar[ExportRequest.Format]
        FORMAT_JSONL: _ClassVar[ExportRequest.Format]
        FORMAT_PARQUET: _ClassVar[ExportRequest.Format]
    FORMAT_UNSPECIFIED: ExportRequest.Format
    FORMAT_CSV: ExportRequest.Format
    FORMAT_JSON: ExportRequest.Format
    FORMAT_JSONL: ExportRequest.Format
    FORMAT_PARQUET: ExportRequest.Format
    KIND_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    kind: ExportRequest.Kind
    format: ExportRequest.Format
    jobs: ResultsServiceListJobsRequest
    items: ListItemsRequest
    def __init__(self, kind: _Optional[_Union[ExportRequest.Kind, str]] = ..., format: _Optional[_Union[ExportRequest.Format, str]] = ..., jobs: _Optional[_Union[ResultsServiceListJobsRequest, _Mapping]] = ..., items: _Optional[_Union[ListItemsRequest, _Mapping]] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("data", "left_out")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    left_out: int
    def __init__(self, data: _Optional[bytes] = ..., left_out: _Optional[int] = ...) -> None: ...

class ImportAnswersRequest(_message.Message):
    __slots__ = ("run", "answers", "again")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    run: ImportedRun
    answers: _containers.RepeatedCompositeFieldContainer[ImportedAnswer]
    again: bool
    def __init__(self, run: _Optional[_Union[ImportedRun, _Mapping]] = ..., answers: _Optional[_Iterable[_Union[ImportedAnswer, _Mapping]]] = ..., again: _Optional[bool] = ...) -> None: ...

class ImportAnswersResponse(_message.Message):
    __slots__ = ("import_id", "answers", "known", "job_id", "repeats")
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    import_id: str
    answers: int
    known: bool
    job_id: str
    repeats: int
    def __init__(self, import_id: _Optional[str] = ..., answers: _Optional[int] = ..., known: _Optional[bool] = ..., job_id: _Optional[str] = ..., repeats: _Optional[int] = ...) -> None: ...

class ImportedRun(_message.Message):
    __slots__ = ("tool", "tool_version", "model", "suite", "mode", "parameters", "digest", "completed_at", "template", "prompt_hashes", "dataset_id")
    class PromptHashesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOOL_FIELD_NUMBER: _ClassVar[int]
    TOOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_HASHES_FIELD_NUMBER: _ClassVar[int]
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    tool: str
    tool_version: str
    model: str
    suite: str
    mode: _suite_pb2.Mode
    parameters: str
    digest: str
    completed_at: _timestamp_pb2.Timestamp
    template: str
    prompt_hashes: _containers.ScalarMap[str, str]
    dataset_id: str
    def __init__(self, tool: _Optional[str] = ..., tool_version: _Optional[str] = ..., model: _Optional[str] = ..., suite: _Optional[str] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., parameters: _Optional[str] = ..., digest: _Optional[str] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., template: _Optional[str] = ..., prompt_hashes: _Optional[_Mapping[str, str]] = ..., dataset_id: _Optional[str] = ...) -> None: ...

class ImportedAnswer(_message.Message):
    __slots__ = ("task", "item", "repeat", "row", "prompt", "response", "finish_reason", "continuations", "latency_ms", "input_tokens", "output_tokens", "error", "reasoning", "tool_calls", "reasoning_tokens", "ttft_ms", "cost_usd", "served_model")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    CONTINUATIONS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TTFT_MS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    task: str
    item: int
    repeat: int
    row: str
    prompt: str
    response: str
    finish_reason: str
    continuations: _containers.RepeatedCompositeFieldContainer[_item_result_pb2.Continuation]
    latency_ms: float
    input_tokens: int
    output_tokens: int
    error: str
    reasoning: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[_content_pb2.ToolCall]
    reasoning_tokens: int
    ttft_ms: float
    cost_usd: float
    served_model: str
    def __init__(self, task: _Optional[str] = ..., item: _Optional[int] = ..., repeat: _Optional[int] = ..., row: _Optional[str] = ..., prompt: _Optional[str] = ..., response: _Optional[str] = ..., finish_reason: _Optional[str] = ..., continuations: _Optional[_Iterable[_Union[_item_result_pb2.Continuation, _Mapping]]] = ..., latency_ms: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., error: _Optional[str] = ..., reasoning: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[_content_pb2.ToolCall, _Mapping]]] = ..., reasoning_tokens: _Optional[int] = ..., ttft_ms: _Optional[float] = ..., cost_usd: _Optional[float] = ..., served_model: _Optional[str] = ...) -> None: ...

class ListCallsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "owner", "endpoint", "model", "started_after")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STARTED_AFTER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    owner: str
    endpoint: str
    model: str
    started_after: _timestamp_pb2.Timestamp
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., owner: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., started_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListCallsResponse(_message.Message):
    __slots__ = ("calls", "next_page_token")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[_call_pb2.Call]
    next_page_token: str
    def __init__(self, calls: _Optional[_Iterable[_Union[_call_pb2.Call, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetCallUsageRequest(_message.Message):
    __slots__ = ("owner", "started_after")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    STARTED_AFTER_FIELD_NUMBER: _ClassVar[int]
    owner: str
    started_after: _timestamp_pb2.Timestamp
    def __init__(self, owner: _Optional[str] = ..., started_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetCallUsageResponse(_message.Message):
    __slots__ = ("usage",)
    USAGE_FIELD_NUMBER: _ClassVar[int]
    usage: _containers.RepeatedCompositeFieldContainer[_call_pb2.CallUsage]
    def __init__(self, usage: _Optional[_Iterable[_Union[_call_pb2.CallUsage, _Mapping]]] = ...) -> None: ...

class ListRecordedRunsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRecordedRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[_call_pb2.RecordedRun]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[_call_pb2.RecordedRun, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CloseRecordedRunRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CloseRecordedRunResponse(_message.Message):
    __slots__ = ("run", "dataset_id", "job_ids", "specs", "request_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run: _call_pb2.RecordedRun
    dataset_id: str
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    specs: _containers.RepeatedCompositeFieldContainer[_job_pb2.JobSpec]
    request_id: str
    def __init__(self, run: _Optional[_Union[_call_pb2.RecordedRun, _Mapping]] = ..., dataset_id: _Optional[str] = ..., job_ids: _Optional[_Iterable[str]] = ..., specs: _Optional[_Iterable[_Union[_job_pb2.JobSpec, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteRecordedRunRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteRecordedRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: _call_pb2.RecordedRun
    def __init__(self, run: _Optional[_Union[_call_pb2.RecordedRun, _Mapping]] = ...) -> None: ...

class GetWatchRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...

class GetWatchResponse(_message.Message):
    __slots__ = ("watch",)
    WATCH_FIELD_NUMBER: _ClassVar[int]
    watch: _watch_pb2.Watch
    def __init__(self, watch: _Optional[_Union[_watch_pb2.Watch, _Mapping]] = ...) -> None: ...

class GetDigestRequest(_message.Message):
    __slots__ = ("begin_at", "end_at", "schedule_id", "project_id")
    BEGIN_AT_FIELD_NUMBER: _ClassVar[int]
    END_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    begin_at: _timestamp_pb2.Timestamp
    end_at: _timestamp_pb2.Timestamp
    schedule_id: str
    project_id: int
    def __init__(self, begin_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., schedule_id: _Optional[str] = ..., project_id: _Optional[int] = ...) -> None: ...

class GetDigestResponse(_message.Message):
    __slots__ = ("digest",)
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: _digest_pb2.Digest
    def __init__(self, digest: _Optional[_Union[_digest_pb2.Digest, _Mapping]] = ...) -> None: ...
