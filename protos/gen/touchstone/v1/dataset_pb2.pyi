import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import content_pb2 as _content_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from touchstone.v1 import scoring_pb2 as _scoring_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Dataset(_message.Message):
    __slots__ = ("dataset_id", "name", "owner", "project_id", "format", "rows", "bytes", "digest", "uploaded_at", "rows_with_reference", "prompt_characters", "input_tokens", "longest_prompt_bytes", "metadata_fields", "scoring", "template", "source", "models", "most_max_tokens", "is_file", "last_assistant", "rows_with_last_assistant", "expires_at", "reading", "judging", "experiment", "groups")
    class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FORMAT_UNSPECIFIED: _ClassVar[Dataset.Format]
        FORMAT_BATCH: _ClassVar[Dataset.Format]
        FORMAT_LINES: _ClassVar[Dataset.Format]
        FORMAT_COLUMNS: _ClassVar[Dataset.Format]
        FORMAT_CSV: _ClassVar[Dataset.Format]
        FORMAT_HUB: _ClassVar[Dataset.Format]
        FORMAT_ALPACA: _ClassVar[Dataset.Format]
        FORMAT_SHAREGPT: _ClassVar[Dataset.Format]
        FORMAT_OPENAI_EVALS: _ClassVar[Dataset.Format]
        FORMAT_PROMPT_COMPLETION: _ClassVar[Dataset.Format]
        FORMAT_QUESTION_ANSWER: _ClassVar[Dataset.Format]
        FORMAT_DPO: _ClassVar[Dataset.Format]
        FORMAT_INSPECT: _ClassVar[Dataset.Format]
        FORMAT_PROMPTFOO: _ClassVar[Dataset.Format]
    FORMAT_UNSPECIFIED: Dataset.Format
    FORMAT_BATCH: Dataset.Format
    FORMAT_LINES: Dataset.Format
    FORMAT_COLUMNS: Dataset.Format
    FORMAT_CSV: Dataset.Format
    FORMAT_HUB: Dataset.Format
    FORMAT_ALPACA: Dataset.Format
    FORMAT_SHAREGPT: Dataset.Format
    FORMAT_OPENAI_EVALS: Dataset.Format
    FORMAT_PROMPT_COMPLETION: Dataset.Format
    FORMAT_QUESTION_ANSWER: Dataset.Format
    FORMAT_DPO: Dataset.Format
    FORMAT_INSPECT: Dataset.Format
    FORMAT_PROMPTFOO: Dataset.Format
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    UPLOADED_AT_FIELD_NUMBER: _ClassVar[int]
    ROWS_WITH_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_PROMPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELDS_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    MOST_MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IS_FILE_FIELD_NUMBER: _ClassVar[int]
    LAST_ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    ROWS_WITH_LAST_ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    JUDGING_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    dataset_id: str
    name: str
    owner: str
    project_id: int
    format: Dataset.Format
    rows: int
    bytes: int
    digest: str
    uploaded_at: _timestamp_pb2.Timestamp
    rows_with_reference: int
    prompt_characters: int
    input_tokens: int
    longest_prompt_bytes: int
    metadata_fields: _containers.RepeatedScalarFieldContainer[str]
    scoring: _scoring_pb2.Scoring
    template: str
    source: _suite_pb2.DataSource
    models: _containers.RepeatedScalarFieldContainer[str]
    most_max_tokens: int
    is_file: bool
    last_assistant: _job_pb2.LastAssistant
    rows_with_last_assistant: int
    expires_at: _timestamp_pb2.Timestamp
    reading: str
    judging: _job_pb2.Judging
    experiment: ExperimentSource
    groups: int
    def __init__(self, dataset_id: _Optional[str] = ..., name: _Optional[str] = ..., owner: _Optional[str] = ..., project_id: _Optional[int] = ..., format: _Optional[_Union[Dataset.Format, str]] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., digest: _Optional[str] = ..., uploaded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rows_with_reference: _Optional[int] = ..., prompt_characters: _Optional[int] = ..., input_tokens: _Optional[int] = ..., longest_prompt_bytes: _Optional[int] = ..., metadata_fields: _Optional[_Iterable[str]] = ..., scoring: _Optional[_Union[_scoring_pb2.Scoring, _Mapping]] = ..., template: _Optional[str] = ..., source: _Optional[_Union[_suite_pb2.DataSource, _Mapping]] = ..., models: _Optional[_Iterable[str]] = ..., most_max_tokens: _Optional[int] = ..., is_file: _Optional[bool] = ..., last_assistant: _Optional[_Union[_job_pb2.LastAssistant, str]] = ..., rows_with_last_assistant: _Optional[int] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reading: _Optional[str] = ..., judging: _Optional[_Union[_job_pb2.Judging, _Mapping]] = ..., experiment: _Optional[_Union[ExperimentSource, _Mapping]] = ..., groups: _Optional[int] = ...) -> None: ...

class ExperimentSource(_message.Message):
    __slots__ = ("name", "definition")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    definition: str
    def __init__(self, name: _Optional[str] = ..., definition: _Optional[str] = ...) -> None: ...

class DatasetOptions(_message.Message):
    __slots__ = ("name", "format", "template", "scoring", "project_id", "custom_id_field", "is_file", "owner", "last_assistant", "sheet", "judging", "experiment")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_ID_FIELD_FIELD_NUMBER: _ClassVar[int]
    IS_FILE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LAST_ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    SHEET_FIELD_NUMBER: _ClassVar[int]
    JUDGING_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    format: Dataset.Format
    template: str
    scoring: _scoring_pb2.Scoring
    project_id: int
    custom_id_field: str
    is_file: bool
    owner: str
    last_assistant: _job_pb2.LastAssistant
    sheet: str
    judging: _job_pb2.Judging
    experiment: ExperimentSource
    def __init__(self, name: _Optional[str] = ..., format: _Optional[_Union[Dataset.Format, str]] = ..., template: _Optional[str] = ..., scoring: _Optional[_Union[_scoring_pb2.Scoring, _Mapping]] = ..., project_id: _Optional[int] = ..., custom_id_field: _Optional[str] = ..., is_file: _Optional[bool] = ..., owner: _Optional[str] = ..., last_assistant: _Optional[_Union[_job_pb2.LastAssistant, str]] = ..., sheet: _Optional[str] = ..., judging: _Optional[_Union[_job_pb2.Judging, _Mapping]] = ..., experiment: _Optional[_Union[ExperimentSource, _Mapping]] = ...) -> None: ...

class DatasetRow(_message.Message):
    __slots__ = ("custom_id", "messages", "sampling", "stop", "reference", "metadata", "has_parts")
    CUSTOM_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    HAS_PARTS_FIELD_NUMBER: _ClassVar[int]
    custom_id: str
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    sampling: _job_pb2.Sampling
    stop: _containers.RepeatedScalarFieldContainer[str]
    reference: str
    metadata: str
    has_parts: bool
    def __init__(self, custom_id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., sampling: _Optional[_Union[_job_pb2.Sampling, _Mapping]] = ..., stop: _Optional[_Iterable[str]] = ..., reference: _Optional[str] = ..., metadata: _Optional[str] = ..., has_parts: _Optional[bool] = ...) -> None: ...

class ChatMessage(_message.Message):
    __slots__ = ("role", "content", "parts", "tool_calls", "tool_call_id", "name")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    parts: _containers.RepeatedCompositeFieldContainer[_content_pb2.ContentPart]
    tool_calls: _containers.RepeatedCompositeFieldContainer[_content_pb2.ToolCall]
    tool_call_id: str
    name: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[_content_pb2.ContentPart, _Mapping]]] = ..., tool_calls: _Optional[_Iterable[_Union[_content_pb2.ToolCall, _Mapping]]] = ..., tool_call_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class BadLine(_message.Message):
    __slots__ = ("line", "reason")
    LINE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    line: int
    reason: str
    def __init__(self, line: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class BadLineReason(_message.Message):
    __slots__ = ("reason", "count", "lines")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    reason: str
    count: int
    lines: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, reason: _Optional[str] = ..., count: _Optional[int] = ..., lines: _Optional[_Iterable[int]] = ...) -> None: ...

class BadLineReasons(_message.Message):
    __slots__ = ("reasons", "other_lines")
    REASONS_FIELD_NUMBER: _ClassVar[int]
    OTHER_LINES_FIELD_NUMBER: _ClassVar[int]
    reasons: _containers.RepeatedCompositeFieldContainer[BadLineReason]
    other_lines: int
    def __init__(self, reasons: _Optional[_Iterable[_Union[BadLineReason, _Mapping]]] = ..., other_lines: _Optional[int] = ...) -> None: ...

class DatasetManifest(_message.Message):
    __slots__ = ("dataset", "shards", "deleting", "request_id", "asked")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    DELETING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    dataset: Dataset
    shards: _containers.RepeatedCompositeFieldContainer[Shard]
    deleting: bool
    request_id: str
    asked: bytes
    def __init__(self, dataset: _Optional[_Union[Dataset, _Mapping]] = ..., shards: _Optional[_Iterable[_Union[Shard, _Mapping]]] = ..., deleting: _Optional[bool] = ..., request_id: _Optional[str] = ..., asked: _Optional[bytes] = ...) -> None: ...

class Shard(_message.Message):
    __slots__ = ("digest", "rows", "bytes")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    digest: str
    rows: int
    bytes: int
    def __init__(self, digest: _Optional[str] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class ShardRows(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[DatasetRow]
    def __init__(self, rows: _Optional[_Iterable[_Union[DatasetRow, _Mapping]]] = ...) -> None: ...
