import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import endpoint_pb2 as _endpoint_pb2
from touchstone.v1 import item_result_pb2 as _item_result_pb2
from touchstone.v1 import scoring_pb2 as _scoring_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]

class LastAssistant(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAST_ASSISTANT_UNSPECIFIED: _ClassVar[LastAssistant]
    LAST_ASSISTANT_REFERENCE: _ClassVar[LastAssistant]
    LAST_ASSISTANT_PREFILL: _ClassVar[LastAssistant]
    LAST_ASSISTANT_REFUSE: _ClassVar[LastAssistant]

class DecisionVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_VERDICT_UNSPECIFIED: _ClassVar[DecisionVerdict]
    DECISION_VERDICT_BETTER: _ClassVar[DecisionVerdict]
    DECISION_VERDICT_WORSE: _ClassVar[DecisionVerdict]
    DECISION_VERDICT_EQUIVALENT: _ClassVar[DecisionVerdict]
    DECISION_VERDICT_NO_DIFFERENCE: _ClassVar[DecisionVerdict]
    DECISION_VERDICT_BEST: _ClassVar[DecisionVerdict]
PRIORITY_UNSPECIFIED: Priority
PRIORITY_LOW: Priority
PRIORITY_NORMAL: Priority
PRIORITY_HIGH: Priority
LAST_ASSISTANT_UNSPECIFIED: LastAssistant
LAST_ASSISTANT_REFERENCE: LastAssistant
LAST_ASSISTANT_PREFILL: LastAssistant
LAST_ASSISTANT_REFUSE: LastAssistant
DECISION_VERDICT_UNSPECIFIED: DecisionVerdict
DECISION_VERDICT_BETTER: DecisionVerdict
DECISION_VERDICT_WORSE: DecisionVerdict
DECISION_VERDICT_EQUIVALENT: DecisionVerdict
DECISION_VERDICT_NO_DIFFERENCE: DecisionVerdict
DECISION_VERDICT_BEST: DecisionVerdict

class Job(_message.Message):
    __slots__ = ("job_id", "owner", "spec", "state", "attempt", "created_at", "started_at", "finished_at", "reason", "incomplete", "plan", "item_set", "subset", "progress", "receipt", "baseline", "attempt_started_at", "published_items", "reason_detail", "deleted_at", "decided")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Job.State]
        STATE_PENDING: _ClassVar[Job.State]
        STATE_PLANNING: _ClassVar[Job.State]
        STATE_RUNNING: _ClassVar[Job.State]
        STATE_FINALIZING: _ClassVar[Job.State]
        STATE_COMPLETED: _ClassVar[Job.State]
        STATE_FAILED: _ClassVar[Job.State]
        STATE_CANCELLED: _ClassVar[Job.State]
    STATE_UNSPECIFIED: Job.State
    STATE_PENDING: Job.State
    STATE_PLANNING: Job.State
    STATE_RUNNING: Job.State
    STATE_FINALIZING: Job.State
    STATE_COMPLETED: Job.State
    STATE_FAILED: Job.State
    STATE_CANCELLED: Job.State
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    REASON_DETAIL_FIELD_NUMBER: _ClassVar[int]
    DELETED_AT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    owner: str
    spec: JobSpec
    state: Job.State
    attempt: int
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    reason: str
    incomplete: bool
    plan: _containers.RepeatedCompositeFieldContainer[TaskPlan]
    item_set: str
    subset: bool
    progress: Progress
    receipt: Receipt
    baseline: bool
    attempt_started_at: _timestamp_pb2.Timestamp
    published_items: int
    reason_detail: str
    deleted_at: _timestamp_pb2.Timestamp
    decided: Decided
    def __init__(self, job_id: _Optional[str] = ..., owner: _Optional[str] = ..., spec: _Optional[_Union[JobSpec, _Mapping]] = ..., state: _Optional[_Union[Job.State, str]] = ..., attempt: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., incomplete: _Optional[bool] = ..., plan: _Optional[_Iterable[_Union[TaskPlan, _Mapping]]] = ..., item_set: _Optional[str] = ..., subset: _Optional[bool] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ..., baseline: _Optional[bool] = ..., attempt_started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., published_items: _Optional[int] = ..., reason_detail: _Optional[str] = ..., deleted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., decided: _Optional[_Union[Decided, _Mapping]] = ...) -> None: ...

class Decided(_message.Message):
    __slots__ = ("verdict", "pairs", "difference", "low", "high", "against_job_id", "counted", "failed")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    AGAINST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    verdict: DecisionVerdict
    pairs: int
    difference: float
    low: float
    high: float
    against_job_id: str
    counted: int
    failed: int
    def __init__(self, verdict: _Optional[_Union[DecisionVerdict, str]] = ..., pairs: _Optional[int] = ..., difference: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., against_job_id: _Optional[str] = ..., counted: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class JobSpec(_message.Message):
    __slots__ = ("endpoint", "model", "sampling", "mode", "priority", "project_id", "time_limit_s", "suite", "dataset", "experiment", "reuse", "stream", "webhook_url", "schedule_id", "labels", "budget_usd", "provider_batch", "reading", "judges", "judging", "experiment_name", "max_model_b", "deciding", "watching", "replays_job_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    REUSE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_URL_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_BATCH_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    JUDGES_FIELD_NUMBER: _ClassVar[int]
    JUDGING_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_NAME_FIELD_NUMBER: _ClassVar[int]
    MAX_MODEL_B_FIELD_NUMBER: _ClassVar[int]
    DECIDING_FIELD_NUMBER: _ClassVar[int]
    WATCHING_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    model: str
    sampling: Sampling
    mode: _suite_pb2.Mode
    priority: Priority
    project_id: int
    time_limit_s: int
    suite: SuiteWork
    dataset: DatasetWork
    experiment: ExperimentWork
    reuse: Reuse
    stream: bool
    webhook_url: str
    schedule_id: str
    labels: _containers.ScalarMap[str, str]
    budget_usd: float
    provider_batch: bool
    reading: _scoring_pb2.Reading
    judges: _containers.RepeatedCompositeFieldContainer[Judge]
    judging: Judging
    experiment_name: str
    max_model_b: float
    deciding: Deciding
    watching: Watching
    replays_job_id: str
    def __init__(self, endpoint: _Optional[str] = ..., model: _Optional[str] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., mode: _Optional[_Union[_suite_pb2.Mode, str]] = ..., priority: _Optional[_Union[Priority, str]] = ..., project_id: _Optional[int] = ..., time_limit_s: _Optional[int] = ..., suite: _Optional[_Union[SuiteWork, _Mapping]] = ..., dataset: _Optional[_Union[DatasetWork, _Mapping]] = ..., experiment: _Optional[_Union[ExperimentWork, _Mapping]] = ..., reuse: _Optional[_Union[Reuse, _Mapping]] = ..., stream: _Optional[bool] = ..., webhook_url: _Optional[str] = ..., schedule_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., budget_usd: _Optional[float] = ..., provider_batch: _Optional[bool] = ..., reading: _Optional[_Union[_scoring_pb2.Reading, str]] = ..., judges: _Optional[_Iterable[_Union[Judge, _Mapping]]] = ..., judging: _Optional[_Union[Judging, _Mapping]] = ..., experiment_name: _Optional[str] = ..., max_model_b: _Optional[float] = ..., deciding: _Optional[_Union[Deciding, _Mapping]] = ..., watching: _Optional[_Union[Watching, _Mapping]] = ..., replays_job_id: _Optional[str] = ...) -> None: ...

class Watching(_message.Message):
    __slots__ = ("reference_job_id", "again_job_id", "items", "error", "seed", "canaries", "start", "total", "known_runs")
    REFERENCE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AGAIN_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    KNOWN_RUNS_FIELD_NUMBER: _ClassVar[int]
    reference_job_id: str
    again_job_id: str
    items: int
    error: float
    seed: int
    canaries: _containers.RepeatedCompositeFieldContainer[Canary]
    start: int
    total: int
    known_runs: int
    def __init__(self, reference_job_id: _Optional[str] = ..., again_job_id: _Optional[str] = ..., items: _Optional[int] = ..., error: _Optional[float] = ..., seed: _Optional[int] = ..., canaries: _Optional[_Iterable[_Union[Canary, _Mapping]]] = ..., start: _Optional[int] = ..., total: _Optional[int] = ..., known_runs: _Optional[int] = ...) -> None: ...

class Canary(_message.Message):
    __slots__ = ("task", "item")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    task: str
    item: int
    def __init__(self, task: _Optional[str] = ..., item: _Optional[int] = ...) -> None: ...

class Deciding(_message.Message):
    __slots__ = ("against_job_id", "candidate", "error", "margin", "seed", "race_job_ids")
    AGAINST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    RACE_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    against_job_id: str
    candidate: bool
    error: float
    margin: float
    seed: int
    race_job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, against_job_id: _Optional[str] = ..., candidate: _Optional[bool] = ..., error: _Optional[float] = ..., margin: _Optional[float] = ..., seed: _Optional[int] = ..., race_job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Judge(_message.Message):
    __slots__ = ("endpoint", "model", "sampling", "rubric", "repeats", "budget_usd", "max_model_b")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_FIELD_NUMBER: _ClassVar[int]
    MAX_MODEL_B_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    model: str
    sampling: Sampling
    rubric: str
    repeats: int
    budget_usd: float
    max_model_b: float
    def __init__(self, endpoint: _Optional[str] = ..., model: _Optional[str] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., rubric: _Optional[str] = ..., repeats: _Optional[int] = ..., budget_usd: _Optional[float] = ..., max_model_b: _Optional[float] = ...) -> None: ...

class Judging(_message.Message):
    __slots__ = ("job_id", "rubric", "repeats", "attempt", "against_job_id", "against_attempt", "equal_pairs")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AGAINST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AGAINST_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EQUAL_PAIRS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    rubric: str
    repeats: int
    attempt: int
    against_job_id: str
    against_attempt: int
    equal_pairs: int
    def __init__(self, job_id: _Optional[str] = ..., rubric: _Optional[str] = ..., repeats: _Optional[int] = ..., attempt: _Optional[int] = ..., against_job_id: _Optional[str] = ..., against_attempt: _Optional[int] = ..., equal_pairs: _Optional[int] = ...) -> None: ...

class Reuse(_message.Message):
    __slots__ = ("job_id", "rerun", "any_job", "import_id", "without_digest")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RERUN_FIELD_NUMBER: _ClassVar[int]
    ANY_JOB_FIELD_NUMBER: _ClassVar[int]
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    rerun: _containers.RepeatedScalarFieldContainer[_item_result_pb2.Outcome]
    any_job: bool
    import_id: str
    without_digest: bool
    def __init__(self, job_id: _Optional[str] = ..., rerun: _Optional[_Iterable[_Union[_item_result_pb2.Outcome, str]]] = ..., any_job: _Optional[bool] = ..., import_id: _Optional[str] = ..., without_digest: _Optional[bool] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_p", "top_k", "max_tokens", "context_length", "seed", "repeat_penalty", "extra", "extra_json", "min_p")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    REPEAT_PENALTY_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    EXTRA_JSON_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    top_k: int
    max_tokens: int
    context_length: int
    seed: int
    repeat_penalty: float
    extra: _struct_pb2.Struct
    extra_json: str
    min_p: float
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., max_tokens: _Optional[int] = ..., context_length: _Optional[int] = ..., seed: _Optional[int] = ..., repeat_penalty: _Optional[float] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., extra_json: _Optional[str] = ..., min_p: _Optional[float] = ...) -> None: ...

class SuiteWork(_message.Message):
    __slots__ = ("suite", "tasks", "limit", "shots", "repeats", "seed")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SHOTS_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    suite: str
    tasks: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    shots: int
    repeats: int
    seed: int
    def __init__(self, suite: _Optional[str] = ..., tasks: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., shots: _Optional[int] = ..., repeats: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class DatasetWork(_message.Message):
    __slots__ = ("dataset_id", "limit", "scorer", "seed", "scoring", "name", "digest", "last_assistant", "further")
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SCORER_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    LAST_ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    FURTHER_FIELD_NUMBER: _ClassVar[int]
    dataset_id: str
    limit: int
    scorer: str
    seed: int
    scoring: _scoring_pb2.Scoring
    name: str
    digest: str
    last_assistant: LastAssistant
    further: _containers.RepeatedCompositeFieldContainer[_scoring_pb2.Scoring]
    def __init__(self, dataset_id: _Optional[str] = ..., limit: _Optional[int] = ..., scorer: _Optional[str] = ..., seed: _Optional[int] = ..., scoring: _Optional[_Union[_scoring_pb2.Scoring, _Mapping]] = ..., name: _Optional[str] = ..., digest: _Optional[str] = ..., last_assistant: _Optional[_Union[LastAssistant, str]] = ..., further: _Optional[_Iterable[_Union[_scoring_pb2.Scoring, _Mapping]]] = ...) -> None: ...

class ExperimentWork(_message.Message):
    __slots__ = ("experiment", "prompt_versions", "scenarios", "tips", "diversity", "max_model_b")
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    PROMPT_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    SCENARIOS_FIELD_NUMBER: _ClassVar[int]
    TIPS_FIELD_NUMBER: _ClassVar[int]
    DIVERSITY_FIELD_NUMBER: _ClassVar[int]
    MAX_MODEL_B_FIELD_NUMBER: _ClassVar[int]
    experiment: str
    prompt_versions: _containers.RepeatedScalarFieldContainer[str]
    scenarios: int
    tips: int
    diversity: bool
    max_model_b: float
    def __init__(self, experiment: _Optional[str] = ..., prompt_versions: _Optional[_Iterable[str]] = ..., scenarios: _Optional[int] = ..., tips: _Optional[int] = ..., diversity: _Optional[bool] = ..., max_model_b: _Optional[float] = ...) -> None: ...

class TaskPlan(_message.Message):
    __slots__ = ("task", "title", "version", "scorer_version", "items", "published_items", "data", "item_set", "metrics", "unit_size", "score_group", "prompt_hash", "repeats", "category", "beside", "most_cost_usd", "row_parameters", "reading", "weighting", "plugin", "question_set", "clusters")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCORER_VERSION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ITEM_SET_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    UNIT_SIZE_FIELD_NUMBER: _ClassVar[int]
    SCORE_GROUP_FIELD_NUMBER: _ClassVar[int]
    PROMPT_HASH_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    MOST_COST_USD_FIELD_NUMBER: _ClassVar[int]
    ROW_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    QUESTION_SET_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    task: str
    title: str
    version: str
    scorer_version: str
    items: int
    published_items: int
    data: _suite_pb2.DataSource
    item_set: str
    metrics: _containers.RepeatedCompositeFieldContainer[_suite_pb2.MetricSpec]
    unit_size: int
    score_group: str
    prompt_hash: str
    repeats: int
    category: str
    beside: bool
    most_cost_usd: float
    row_parameters: _containers.RepeatedScalarFieldContainer[str]
    reading: _scoring_pb2.Reading
    weighting: _suite_pb2.Weighting
    plugin: str
    question_set: str
    clusters: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, task: _Optional[str] = ..., title: _Optional[str] = ..., version: _Optional[str] = ..., scorer_version: _Optional[str] = ..., items: _Optional[int] = ..., published_items: _Optional[int] = ..., data: _Optional[_Union[_suite_pb2.DataSource, _Mapping]] = ..., item_set: _Optional[str] = ..., metrics: _Optional[_Iterable[_Union[_suite_pb2.MetricSpec, _Mapping]]] = ..., unit_size: _Optional[int] = ..., score_group: _Optional[str] = ..., prompt_hash: _Optional[str] = ..., repeats: _Optional[int] = ..., category: _Optional[str] = ..., beside: _Optional[bool] = ..., most_cost_usd: _Optional[float] = ..., row_parameters: _Optional[_Iterable[str]] = ..., reading: _Optional[_Union[_scoring_pb2.Reading, str]] = ..., weighting: _Optional[_Union[_suite_pb2.Weighting, str]] = ..., plugin: _Optional[str] = ..., question_set: _Optional[str] = ..., clusters: _Optional[_Iterable[int]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("items_total", "items_done", "items_failed", "units_total", "units_done", "units_released", "items_per_second", "tokens_per_second", "eta_s", "eta_low_s", "eta_high_s", "current_step", "tasks", "rate_history", "queue_position", "elapsed_s", "time_limit_s", "output_tokens", "cost_usd", "reserved_usd", "output_untold", "lost_usd", "lost_calls", "starts_in_s")
    ITEMS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ITEMS_DONE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FAILED_FIELD_NUMBER: _ClassVar[int]
    UNITS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNITS_DONE_FIELD_NUMBER: _ClassVar[int]
    UNITS_RELEASED_FIELD_NUMBER: _ClassVar[int]
    ITEMS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    ETA_S_FIELD_NUMBER: _ClassVar[int]
    ETA_LOW_S_FIELD_NUMBER: _ClassVar[int]
    ETA_HIGH_S_FIELD_NUMBER: _ClassVar[int]
    CURRENT_STEP_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    RATE_HISTORY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    RESERVED_USD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    LOST_USD_FIELD_NUMBER: _ClassVar[int]
    LOST_CALLS_FIELD_NUMBER: _ClassVar[int]
    STARTS_IN_S_FIELD_NUMBER: _ClassVar[int]
    items_total: int
    items_done: int
    items_failed: int
    units_total: int
    units_done: int
    units_released: int
    items_per_second: float
    tokens_per_second: float
    eta_s: float
    eta_low_s: float
    eta_high_s: float
    current_step: str
    tasks: _containers.RepeatedCompositeFieldContainer[TaskProgress]
    rate_history: _containers.RepeatedScalarFieldContainer[float]
    queue_position: int
    elapsed_s: float
    time_limit_s: int
    output_tokens: int
    cost_usd: float
    reserved_usd: float
    output_untold: int
    lost_usd: float
    lost_calls: int
    starts_in_s: float
    def __init__(self, items_total: _Optional[int] = ..., items_done: _Optional[int] = ..., items_failed: _Optional[int] = ..., units_total: _Optional[int] = ..., units_done: _Optional[int] = ..., units_released: _Optional[int] = ..., items_per_second: _Optional[float] = ..., tokens_per_second: _Optional[float] = ..., eta_s: _Optional[float] = ..., eta_low_s: _Optional[float] = ..., eta_high_s: _Optional[float] = ..., current_step: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[TaskProgress, _Mapping]]] = ..., rate_history: _Optional[_Iterable[float]] = ..., queue_position: _Optional[int] = ..., elapsed_s: _Optional[float] = ..., time_limit_s: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., reserved_usd: _Optional[float] = ..., output_untold: _Optional[int] = ..., lost_usd: _Optional[float] = ..., lost_calls: _Optional[int] = ..., starts_in_s: _Optional[float] = ...) -> None: ...

class TaskProgress(_message.Message):
    __slots__ = ("task", "items_total", "items_done", "items_failed", "running")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEMS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ITEMS_DONE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FAILED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    task: str
    items_total: int
    items_done: int
    items_failed: int
    running: bool
    def __init__(self, task: _Optional[str] = ..., items_total: _Optional[int] = ..., items_done: _Optional[int] = ..., items_failed: _Optional[int] = ..., running: _Optional[bool] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("endpoint_kind", "server", "model_digest", "software", "concurrency", "configuration", "parameters", "template", "source_job", "capabilities", "setup", "import_counts", "prices")
    ENDPOINT_KIND_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_JOB_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    SETUP_FIELD_NUMBER: _ClassVar[int]
    IMPORT_COUNTS_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    endpoint_kind: str
    server: str
    model_digest: str
    software: str
    concurrency: int
    configuration: str
    parameters: str
    template: str
    source_job: str
    capabilities: _endpoint_pb2.Capabilities
    setup: str
    import_counts: ImportCounts
    prices: _endpoint_pb2.Prices
    def __init__(self, endpoint_kind: _Optional[str] = ..., server: _Optional[str] = ..., model_digest: _Optional[str] = ..., software: _Optional[str] = ..., concurrency: _Optional[int] = ..., configuration: _Optional[str] = ..., parameters: _Optional[str] = ..., template: _Optional[str] = ..., source_job: _Optional[str] = ..., capabilities: _Optional[_Union[_endpoint_pb2.Capabilities, _Mapping]] = ..., setup: _Optional[str] = ..., import_counts: _Optional[_Union[ImportCounts, _Mapping]] = ..., prices: _Optional[_Union[_endpoint_pb2.Prices, _Mapping]] = ...) -> None: ...

class ImportCounts(_message.Message):
    __slots__ = ("answers", "unmatched", "unmatched_example", "repeated")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    UNMATCHED_FIELD_NUMBER: _ClassVar[int]
    UNMATCHED_EXAMPLE_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    answers: int
    unmatched: int
    unmatched_example: str
    repeated: int
    def __init__(self, answers: _Optional[int] = ..., unmatched: _Optional[int] = ..., unmatched_example: _Optional[str] = ..., repeated: _Optional[int] = ...) -> None: ...

class JobEvent(_message.Message):
    __slots__ = ("event_id", "occurred_at", "actor", "action", "job")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    occurred_at: _timestamp_pb2.Timestamp
    actor: str
    action: str
    job: Job
    def __init__(self, event_id: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., action: _Optional[str] = ..., job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...
