import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Call(_message.Message):
    __slots__ = ("call_id", "owner", "endpoint", "model", "api", "stream", "started_at", "outcome", "status", "error", "latency_ms", "ttft_ms", "input_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "evaluator", "served_model")
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
    def __init__(self, call_id: _Optional[str] = ..., owner: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., api: _Optional[_Union[Call.Api, str]] = ..., stream: _Optional[bool] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[Call.Outcome, str]] = ..., status: _Optional[int] = ..., error: _Optional[str] = ..., latency_ms: _Optional[float] = ..., ttft_ms: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., evaluator: _Optional[str] = ..., served_model: _Optional[str] = ...) -> None: ...

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
