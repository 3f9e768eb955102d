import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import content_pb2 as _content_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Call(_message.Message):
    __slots__ = ("call_id", "owner", "endpoint", "model", "api", "stream", "started_at", "outcome", "status", "error", "latency_ms", "ttft_ms", "input_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "evaluator", "served_model", "run", "texts", "budget_usd", "reserved_usd")
    class Api(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        API_UNSPECIFIED: _ClassVar[Call.Api]
        API_CHAT: _ClassVar[Call.Api]
        API_RESPONSES: _ClassVar[Call.Api]
    API_UNSPECIFIED: Call.Api
    API_CHAT: Call.Api
    API_RESPONSES: Call.Api
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[Call.Outcome]
        OUTCOME_ANSWERED: _ClassVar[Call.Outcome]
        OUTCOME_REFUSED: _ClassVar[Call.Outcome]
        OUTCOME_FAILED: _ClassVar[Call.Outcome]
        OUTCOME_CANCELLED: _ClassVar[Call.Outcome]
    OUTCOME_UNSPECIFIED: Call.Outcome
    OUTCOME_ANSWERED: Call.Outcome
    OUTCOME_REFUSED: Call.Outcome
    OUTCOME_FAILED: Call.Outcome
    OUTCOME_CANCELLED: Call.Outcome
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    API_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    TTFT_MS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_FIELD_NUMBER: _ClassVar[int]
    RESERVED_USD_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    owner: str
    endpoint: str
    model: str
    api: Call.Api
    stream: bool
    started_at: _timestamp_pb2.Timestamp
    outcome: Call.Outcome
    status: int
    error: str
    latency_ms: float
    ttft_ms: float
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float
    evaluator: str
    served_model: str
    run: str
    texts: int
    budget_usd: float
    reserved_usd: float
    def __init__(self, call_id: _Optional[str] = ..., owner: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., api: _Optional[_Union[Call.Api, str]] = ..., stream: _Optional[bool] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[Call.Outcome, str]] = ..., status: _Optional[int] = ..., error: _Optional[str] = ..., latency_ms: _Optional[float] = ..., ttft_ms: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., evaluator: _Optional[str] = ..., served_model: _Optional[str] = ..., run: _Optional[str] = ..., texts: _Optional[int] = ..., budget_usd: _Optional[float] = ..., reserved_usd: _Optional[float] = ...) -> None: ...

class CallText(_message.Message):
    __slots__ = ("call_id", "part", "data")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    part: int
    data: bytes
    def __init__(self, call_id: _Optional[str] = ..., part: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class RecordedCall(_message.Message):
    __slots__ = ("request", "response", "reasoning", "finish_reason", "tool_calls", "error")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    request: str
    response: str
    reasoning: str
    finish_reason: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[_content_pb2.ToolCall]
    error: str
    def __init__(self, request: _Optional[str] = ..., response: _Optional[str] = ..., reasoning: _Optional[str] = ..., finish_reason: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[_content_pb2.ToolCall, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class RunEnd(_message.Message):
    __slots__ = ("run_id", "ended_at", "discarded")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    ended_at: _timestamp_pb2.Timestamp
    discarded: bool
    def __init__(self, run_id: _Optional[str] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., discarded: _Optional[bool] = ...) -> None: ...

class RecordedRun(_message.Message):
    __slots__ = ("run_id", "name", "owner", "opened_at", "last_at", "calls", "failed", "unfinished", "bytes", "models", "closed_at", "cost_usd")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OPENED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    owner: str
    opened_at: _timestamp_pb2.Timestamp
    last_at: _timestamp_pb2.Timestamp
    calls: int
    failed: int
    unfinished: int
    bytes: int
    models: _containers.RepeatedScalarFieldContainer[str]
    closed_at: _timestamp_pb2.Timestamp
    cost_usd: float
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., owner: _Optional[str] = ..., opened_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., calls: _Optional[int] = ..., failed: _Optional[int] = ..., unfinished: _Optional[int] = ..., bytes: _Optional[int] = ..., models: _Optional[_Iterable[str]] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cost_usd: _Optional[float] = ...) -> None: ...

class CallUsage(_message.Message):
    __slots__ = ("owner", "endpoint", "model", "calls", "answered", "input_tokens", "output_tokens", "cost_usd", "unpriced", "last_at")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_FIELD_NUMBER: _ClassVar[int]
    owner: str
    endpoint: str
    model: str
    calls: int
    answered: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: int
    last_at: _timestamp_pb2.Timestamp
    def __init__(self, owner: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., calls: _Optional[int] = ..., answered: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., unpriced: _Optional[int] = ..., last_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
