import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import endpoint_pb2 as _endpoint_pb2
from touchstone.v1 import evaluator_pb2 as _evaluator_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from touchstone.v1 import queue_pb2 as _queue_pb2
from touchstone.v1 import schedule_pb2 as _schedule_pb2
from touchstone.v1 import set_aside_pb2 as _set_aside_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from touchstone.v1 import webhook_pb2 as _webhook_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateJobRequest(_message.Message):
    __slots__ = ("request_id", "spec")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    spec: _job_pb2.JobSpec
    def __init__(self, request_id: _Optional[str] = ..., spec: _Optional[_Union[_job_pb2.JobSpec, _Mapping]] = ...) -> None: ...

class CreateJobResponse(_message.Message):
    __slots__ = ("job", "webhook_secret")
    JOB_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_SECRET_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    webhook_secret: str
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., webhook_secret: _Optional[str] = ...) -> None: ...

class CreateJobsRequest(_message.Message):
    __slots__ = ("request_id", "specs")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    specs: _containers.RepeatedCompositeFieldContainer[_job_pb2.JobSpec]
    def __init__(self, request_id: _Optional[str] = ..., specs: _Optional[_Iterable[_Union[_job_pb2.JobSpec, _Mapping]]] = ...) -> None: ...

class CreateJobsResponse(_message.Message):
    __slots__ = ("jobs", "webhook_secret")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_SECRET_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    webhook_secret: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., webhook_secret: _Optional[str] = ...) -> None: ...

class RunExperimentRequest(_message.Message):
    __slots__ = ("request_id", "definition", "judges", "check_only")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    JUDGES_FIELD_NUMBER: _ClassVar[int]
    CHECK_ONLY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    definition: str
    judges: _containers.RepeatedCompositeFieldContainer[_job_pb2.Judge]
    check_only: bool
    def __init__(self, request_id: _Optional[str] = ..., definition: _Optional[str] = ..., judges: _Optional[_Iterable[_Union[_job_pb2.Judge, _Mapping]]] = ..., check_only: _Optional[bool] = ...) -> None: ...

class RunExperimentResponse(_message.Message):
    __slots__ = ("experiment", "dataset_id", "jobs", "cells", "calls", "deleted_judges")
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    DELETED_JUDGES_FIELD_NUMBER: _ClassVar[int]
    experiment: str
    dataset_id: str
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    cells: int
    calls: int
    deleted_judges: _containers.RepeatedCompositeFieldContainer[DeletedJudge]
    def __init__(self, experiment: _Optional[str] = ..., dataset_id: _Optional[str] = ..., jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., cells: _Optional[int] = ..., calls: _Optional[int] = ..., deleted_judges: _Optional[_Iterable[_Union[DeletedJudge, _Mapping]]] = ...) -> None: ...

class DeletedJudge(_message.Message):
    __slots__ = ("judge", "job_ids")
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    judge: int
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, judge: _Optional[int] = ..., job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class StartDecisionRequest(_message.Message):
    __slots__ = ("request_id", "baseline", "candidate", "error", "margin", "seed", "further_candidates")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    FURTHER_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    baseline: _job_pb2.JobSpec
    candidate: _job_pb2.JobSpec
    error: float
    margin: float
    seed: int
    further_candidates: _containers.RepeatedCompositeFieldContainer[_job_pb2.JobSpec]
    def __init__(self, request_id: _Optional[str] = ..., baseline: _Optional[_Union[_job_pb2.JobSpec, _Mapping]] = ..., candidate: _Optional[_Union[_job_pb2.JobSpec, _Mapping]] = ..., error: _Optional[float] = ..., margin: _Optional[float] = ..., seed: _Optional[int] = ..., further_candidates: _Optional[_Iterable[_Union[_job_pb2.JobSpec, _Mapping]]] = ...) -> None: ...

class StartDecisionResponse(_message.Message):
    __slots__ = ("decision_id", "baseline", "candidate", "further_candidates")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    FURTHER_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    baseline: _job_pb2.Job
    candidate: _job_pb2.Job
    further_candidates: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    def __init__(self, decision_id: _Optional[str] = ..., baseline: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., candidate: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., further_candidates: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "owner", "project_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    owner: str
    project_id: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., owner: _Optional[str] = ..., project_id: _Optional[int] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class DeleteJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class DeleteJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RetryJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class RetryJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class SetJobPriorityRequest(_message.Message):
    __slots__ = ("job_id", "priority")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    priority: _job_pb2.Priority
    def __init__(self, job_id: _Optional[str] = ..., priority: _Optional[_Union[_job_pb2.Priority, str]] = ...) -> None: ...

class SetJobPriorityResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("project_id",)
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    project_id: int
    def __init__(self, project_id: _Optional[int] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: _queue_pb2.Queue
    def __init__(self, queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ...) -> None: ...

class ListEvaluatorsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEvaluatorsResponse(_message.Message):
    __slots__ = ("evaluators", "next_page_token")
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    evaluators: _containers.RepeatedCompositeFieldContainer[_evaluator_pb2.Evaluator]
    next_page_token: str
    def __init__(self, evaluators: _Optional[_Iterable[_Union[_evaluator_pb2.Evaluator, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SetEvaluatorDrainRequest(_message.Message):
    __slots__ = ("evaluator", "drain")
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    evaluator: str
    drain: bool
    def __init__(self, evaluator: _Optional[str] = ..., drain: _Optional[bool] = ...) -> None: ...

class SetEvaluatorDrainResponse(_message.Message):
    __slots__ = ("evaluator",)
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    evaluator: _evaluator_pb2.Evaluator
    def __init__(self, evaluator: _Optional[_Union[_evaluator_pb2.Evaluator, _Mapping]] = ...) -> None: ...

class ListEndpointsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEndpointsResponse(_message.Message):
    __slots__ = ("endpoints", "next_page_token")
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    endpoints: _containers.RepeatedCompositeFieldContainer[_endpoint_pb2.Endpoint]
    next_page_token: str
    def __init__(self, endpoints: _Optional[_Iterable[_Union[_endpoint_pb2.Endpoint, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("endpoint", "page_size", "page_token")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    page_size: int
    page_token: str
    def __init__(self, endpoint: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("endpoint", "models", "next_page_token")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    endpoint: _endpoint_pb2.Endpoint
    models: _containers.RepeatedCompositeFieldContainer[_endpoint_pb2.Model]
    next_page_token: str
    def __init__(self, endpoint: _Optional[_Union[_endpoint_pb2.Endpoint, _Mapping]] = ..., models: _Optional[_Iterable[_Union[_endpoint_pb2.Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListSuitesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSuitesResponse(_message.Message):
    __slots__ = ("suites", "next_page_token")
    SUITES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    suites: _containers.RepeatedCompositeFieldContainer[_suite_pb2.Suite]
    next_page_token: str
    def __init__(self, suites: _Optional[_Iterable[_Union[_suite_pb2.Suite, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListJobLogsRequest(_message.Message):
    __slots__ = ("job_id", "page_size", "page_token", "level")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    page_size: int
    page_token: str
    level: str
    def __init__(self, job_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., level: _Optional[str] = ...) -> None: ...

class ListJobLogsResponse(_message.Message):
    __slots__ = ("lines", "next_page_token")
    LINES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[LogLine]
    next_page_token: str
    def __init__(self, lines: _Optional[_Iterable[_Union[LogLine, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("logged_at", "level", "source", "text")
    LOGGED_AT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    logged_at: _timestamp_pb2.Timestamp
    level: str
    source: str
    text: str
    def __init__(self, logged_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., level: _Optional[str] = ..., source: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class CreateScheduleRequest(_message.Message):
    __slots__ = ("request_id", "cron", "time_zone", "spec", "label", "decision")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    cron: str
    time_zone: str
    spec: _job_pb2.JobSpec
    label: str
    decision: StartDecisionRequest
    def __init__(self, request_id: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., spec: _Optional[_Union[_job_pb2.JobSpec, _Mapping]] = ..., label: _Optional[str] = ..., decision: _Optional[_Union[StartDecisionRequest, _Mapping]] = ...) -> None: ...

class CreateScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class StartWatchRequest(_message.Message):
    __slots__ = ("request_id", "reference_job_id", "again_job_id", "endpoint", "model", "cron", "time_zone", "label", "items", "error", "seed")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AGAIN_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    reference_job_id: str
    again_job_id: str
    endpoint: str
    model: str
    cron: str
    time_zone: str
    label: str
    items: int
    error: float
    seed: int
    def __init__(self, request_id: _Optional[str] = ..., reference_job_id: _Optional[str] = ..., again_job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., label: _Optional[str] = ..., items: _Optional[int] = ..., error: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class StartWatchResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "owner", "project_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    owner: str
    project_id: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., owner: _Optional[str] = ..., project_id: _Optional[int] = ...) -> None: ...

class ListSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "next_page_token")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.Schedule]
    next_page_token: str
    def __init__(self, schedules: _Optional[_Iterable[_Union[_schedule_pb2.Schedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SetSchedulePausedRequest(_message.Message):
    __slots__ = ("schedule_id", "paused")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    paused: bool
    def __init__(self, schedule_id: _Optional[str] = ..., paused: _Optional[bool] = ...) -> None: ...

class SetSchedulePausedResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class DeleteScheduleRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...

class DeleteScheduleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateWebhookRequest(_message.Message):
    __slots__ = ("url", "events", "project_id")
    URL_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    url: str
    events: _containers.RepeatedScalarFieldContainer[str]
    project_id: int
    def __init__(self, url: _Optional[str] = ..., events: _Optional[_Iterable[str]] = ..., project_id: _Optional[int] = ...) -> None: ...

class CreateWebhookResponse(_message.Message):
    __slots__ = ("webhook", "secret")
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    webhook: _webhook_pb2.Webhook
    secret: str
    def __init__(self, webhook: _Optional[_Union[_webhook_pb2.Webhook, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class ListWebhooksRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "project_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    project_id: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., project_id: _Optional[int] = ...) -> None: ...

class ListWebhooksResponse(_message.Message):
    __slots__ = ("webhooks", "next_page_token")
    WEBHOOKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    webhooks: _containers.RepeatedCompositeFieldContainer[_webhook_pb2.Webhook]
    next_page_token: str
    def __init__(self, webhooks: _Optional[_Iterable[_Union[_webhook_pb2.Webhook, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteWebhookRequest(_message.Message):
    __slots__ = ("webhook_id",)
    WEBHOOK_ID_FIELD_NUMBER: _ClassVar[int]
    webhook_id: str
    def __init__(self, webhook_id: _Optional[str] = ...) -> None: ...

class DeleteWebhookResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDeadDeliveriesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeadDeliveriesResponse(_message.Message):
    __slots__ = ("deliveries", "next_page_token")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_webhook_pb2.Delivery]
    next_page_token: str
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_webhook_pb2.Delivery, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RedeliverWebhookRequest(_message.Message):
    __slots__ = ("delivery_id",)
    DELIVERY_ID_FIELD_NUMBER: _ClassVar[int]
    delivery_id: str
    def __init__(self, delivery_id: _Optional[str] = ...) -> None: ...

class RedeliverWebhookResponse(_message.Message):
    __slots__ = ("delivery",)
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    delivery: _webhook_pb2.Delivery
    def __init__(self, delivery: _Optional[_Union[_webhook_pb2.Delivery, _Mapping]] = ...) -> None: ...

class ListSetAsideMessagesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSetAsideMessagesResponse(_message.Message):
    __slots__ = ("messages", "next_page_token", "total")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_set_aside_pb2.SetAsideMessage]
    next_page_token: str
    total: int
    def __init__(self, messages: _Optional[_Iterable[_Union[_set_aside_pb2.SetAsideMessage, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total: _Optional[int] = ...) -> None: ...
