from touchstone.v1 import content_pb2 as _content_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_ANSWERED: _ClassVar[Outcome]
    OUTCOME_UNPARSED: _ClassVar[Outcome]
    OUTCOME_OUTPUT_TRUNCATED: _ClassVar[Outcome]
    OUTCOME_REFUSED: _ClassVar[Outcome]
    OUTCOME_INPUT_TRUNCATED: _ClassVar[Outcome]
    OUTCOME_INFRASTRUCTURE_ERROR: _ClassVar[Outcome]
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_ANSWERED: Outcome
OUTCOME_UNPARSED: Outcome
OUTCOME_OUTPUT_TRUNCATED: Outcome
OUTCOME_REFUSED: Outcome
OUTCOME_INPUT_TRUNCATED: Outcome
OUTCOME_INFRASTRUCTURE_ERROR: Outcome

class ItemResult(_message.Message):
    __slots__ = ("item", "repeat", "item_hash", "prompt_hash", "prompt", "response", "reasoning", "outcome", "prediction", "reference", "statistics", "group", "custom_id", "extraction", "latency_ms", "input_tokens", "output_tokens", "finish_reason", "calls", "error", "scorer_version", "served_model", "position", "continuations", "ttft_ms", "reused", "parameters", "identity", "cost_usd", "reasoning_tokens", "metadata", "messages", "source_job", "input_untold", "output_untold", "tool_calls", "logprobs", "shared_parameters")
    class StatisticsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    ITEM_HASH_FIELD_NUMBER: _ClassVar[int]
    PROMPT_HASH_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_ID_FIELD_NUMBER: _ClassVar[int]
    EXTRACTION_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SCORER_VERSION_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CONTINUATIONS_FIELD_NUMBER: _ClassVar[int]
    TTFT_MS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_JOB_FIELD_NUMBER: _ClassVar[int]
    INPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_UNTOLD_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    SHARED_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    item: int
    repeat: int
    item_hash: str
    prompt_hash: str
    prompt: str
    response: str
    reasoning: str
    outcome: Outcome
    prediction: str
    reference: str
    statistics: _containers.ScalarMap[str, float]
    group: str
    custom_id: str
    extraction: str
    latency_ms: float
    input_tokens: int
    output_tokens: int
    finish_reason: str
    calls: int
    error: str
    scorer_version: str
    served_model: str
    position: int
    continuations: _containers.RepeatedCompositeFieldContainer[Continuation]
    ttft_ms: float
    reused: bool
    parameters: str
    identity: str
    cost_usd: float
    reasoning_tokens: int
    metadata: str
    messages: str
    source_job: str
    input_untold: bool
    output_untold: bool
    tool_calls: _containers.RepeatedCompositeFieldContainer[_content_pb2.ToolCall]
    logprobs: _containers.RepeatedCompositeFieldContainer[_content_pb2.TokenLogprob]
    shared_parameters: int
    def __init__(self, item: _Optional[int] = ..., repeat: _Optional[int] = ..., item_hash: _Optional[str] = ..., prompt_hash: _Optional[str] = ..., prompt: _Optional[str] = ..., response: _Optional[str] = ..., reasoning: _Optional[str] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., prediction: _Optional[str] = ..., reference: _Optional[str] = ..., statistics: _Optional[_Mapping[str, float]] = ..., group: _Optional[str] = ..., custom_id: _Optional[str] = ..., extraction: _Optional[str] = ..., latency_ms: _Optional[float] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., finish_reason: _Optional[str] = ..., calls: _Optional[int] = ..., error: _Optional[str] = ..., scorer_version: _Optional[str] = ..., served_model: _Optional[str] = ..., position: _Optional[int] = ..., continuations: _Optional[_Iterable[_Union[Continuation, _Mapping]]] = ..., ttft_ms: _Optional[float] = ..., reused: _Optional[bool] = ..., parameters: _Optional[str] = ..., identity: _Optional[str] = ..., cost_usd: _Optional[float] = ..., reasoning_tokens: _Optional[int] = ..., metadata: _Optional[str] = ..., messages: _Optional[str] = ..., source_job: _Optional[str] = ..., input_untold: _Optional[bool] = ..., output_untold: _Optional[bool] = ..., tool_calls: _Optional[_Iterable[_Union[_content_pb2.ToolCall, _Mapping]]] = ..., logprobs: _Optional[_Iterable[_Union[_content_pb2.TokenLogprob, _Mapping]]] = ..., shared_parameters: _Optional[int] = ...) -> None: ...

class Continuation(_message.Message):
    __slots__ = ("text", "loglikelihood", "tokens", "greedy")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOGLIKELIHOOD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    GREEDY_FIELD_NUMBER: _ClassVar[int]
    text: str
    loglikelihood: float
    tokens: int
    greedy: bool
    def __init__(self, text: _Optional[str] = ..., loglikelihood: _Optional[float] = ..., tokens: _Optional[int] = ..., greedy: _Optional[bool] = ...) -> None: ...

class ItemResultBatch(_message.Message):
    __slots__ = ("job_id", "attempt", "unit", "task", "items", "evaluator", "parameters")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    attempt: int
    unit: int
    task: str
    items: _containers.RepeatedCompositeFieldContainer[ItemResult]
    evaluator: str
    parameters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_id: _Optional[str] = ..., attempt: _Optional[int] = ..., unit: _Optional[int] = ..., task: _Optional[str] = ..., items: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., evaluator: _Optional[str] = ..., parameters: _Optional[_Iterable[str]] = ...) -> None: ...
