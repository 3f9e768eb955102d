import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import item_result_pb2 as _item_result_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from touchstone.v1 import metric_pb2 as _metric_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResultsServiceGetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ResultsServiceGetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ResultsServiceListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "model", "suite", "states", "owner", "project_id", "created_after")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AFTER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    model: str
    suite: str
    states: _containers.RepeatedScalarFieldContainer[_job_pb2.Job.State]
    owner: str
    project_id: int
    created_after: _timestamp_pb2.Timestamp
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., model: _Optional[str] = ..., suite: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_job_pb2.Job.State, str]]] = ..., owner: _Optional[str] = ..., project_id: _Optional[int] = ..., created_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ResultsServiceListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token", "total_size")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    next_page_token: str
    total_size: int
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("suite", "metric", "limit", "item_set", "mode", "endpoint")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    suite: str
    metric: str
    limit: int
    item_set: str
    mode: _suite_pb2.Mode
    endpoint: str
    def __init__(self, suite: _Optional[str] = ..., metric: _Optional[str] = ..., limit: _Optional[int] = ..., item_set: _Optional[str] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., endpoint: _Optional[str] = ...) -> None: ...

class GetLeaderboardResponse(_message.Message):
    __slots__ = ("entries", "total_models", "last_updated", "item_set", "subset", "items", "published_items", "metrics")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MODELS_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATED_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LeaderboardEntry]
    total_models: int
    last_updated: _timestamp_pb2.Timestamp
    item_set: str
    subset: bool
    items: int
    published_items: int
    metrics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, entries: _Optional[_Iterable[_Union[_metric_pb2.LeaderboardEntry, _Mapping]]] = ..., total_models: _Optional[int] = ..., last_updated: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., item_set: _Optional[str] = ..., subset: _Optional[bool] = ..., items: _Optional[int] = ..., published_items: _Optional[int] = ..., metrics: _Optional[_Iterable[str]] = ...) -> None: ...

class ListItemsRequest(_message.Message):
    __slots__ = ("job_id", "task", "filter", "query", "page_size", "page_token")
    class Filter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FILTER_UNSPECIFIED: _ClassVar[ListItemsRequest.Filter]
        FILTER_FAILURES: _ClassVar[ListItemsRequest.Filter]
        FILTER_UNPARSED: _ClassVar[ListItemsRequest.Filter]
        FILTER_ERRORS: _ClassVar[ListItemsRequest.Filter]
        FILTER_CORRECT: _ClassVar[ListItemsRequest.Filter]
    FILTER_UNSPECIFIED: ListItemsRequest.Filter
    FILTER_FAILURES: ListItemsRequest.Filter
    FILTER_UNPARSED: ListItemsRequest.Filter
    FILTER_ERRORS: ListItemsRequest.Filter
    FILTER_CORRECT: ListItemsRequest.Filter
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    filter: ListItemsRequest.Filter
    query: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., filter: _Optional[_Union[ListItemsRequest.Filter, str]] = ..., query: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListItemsResponse(_message.Message):
    __slots__ = ("items", "next_page_token", "total_size", "count_all", "count_failures", "count_unparsed", "count_errors")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FAILURES_FIELD_NUMBER: _ClassVar[int]
    COUNT_UNPARSED_FIELD_NUMBER: _ClassVar[int]
    COUNT_ERRORS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StoredItem]
    next_page_token: str
    total_size: int
    count_all: int
    count_failures: int
    count_unparsed: int
    count_errors: int
    def __init__(self, items: _Optional[_Iterable[_Union[StoredItem, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ..., count_all: _Optional[int] = ..., count_failures: _Optional[int] = ..., count_unparsed: _Optional[int] = ..., count_errors: _Optional[int] = ...) -> None: ...

class StoredItem(_message.Message):
    __slots__ = ("job_id", "task", "attempt", "result", "evaluator")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    attempt: int
    result: _item_result_pb2.ItemResult
    evaluator: str
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., attempt: _Optional[int] = ..., result: _Optional[_Union[_item_result_pb2.ItemResult, _Mapping]] = ..., evaluator: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("job_id", "task", "positions", "identities")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    IDENTITIES_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    task: str
    positions: _containers.RepeatedScalarFieldContainer[int]
    identities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_id: _Optional[str] = ..., task: _Optional[str] = ..., positions: _Optional[_Iterable[int]] = ..., identities: _Optional[_Iterable[str]] = ...) -> None: ...

class FindResponsesResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_item_result_pb2.ItemResult]
    def __init__(self, results: _Optional[_Iterable[_Union[_item_result_pb2.ItemResult, _Mapping]]] = ...) -> None: ...

class StoredTaskItems(_message.Message):
    __slots__ = ("task", "positions")
    TASK_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    task: str
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, task: _Optional[str] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...
