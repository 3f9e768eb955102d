import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Endpoint(_message.Message):
    __slots__ = ("endpoint", "kind", "state", "detail", "server", "concurrency", "slots_total", "slots_busy", "exclusive", "requests_per_minute", "max_model_b", "models", "refreshed_at", "listing_ms", "baseline", "resident_model", "capabilities")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Endpoint.State]
        STATE_REACHABLE: _ClassVar[Endpoint.State]
        STATE_LIMITED: _ClassVar[Endpoint.State]
        STATE_DOWN: _ClassVar[Endpoint.State]
        STATE_NOT_CONFIGURED: _ClassVar[Endpoint.State]
        STATE_ABSENT: _ClassVar[Endpoint.State]
    STATE_UNSPECIFIED: Endpoint.State
    STATE_REACHABLE: Endpoint.State
    STATE_LIMITED: Endpoint.State
    STATE_DOWN: Endpoint.State
    STATE_NOT_CONFIGURED: Endpoint.State
    STATE_ABSENT: Endpoint.State
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_BUSY_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    MAX_MODEL_B_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    REFRESHED_AT_FIELD_NUMBER: _ClassVar[int]
    LISTING_MS_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_MODEL_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    kind: str
    state: Endpoint.State
    detail: str
    server: str
    concurrency: int
    slots_total: int
    slots_busy: int
    exclusive: bool
    requests_per_minute: int
    max_model_b: float
    models: _containers.RepeatedCompositeFieldContainer[Model]
    refreshed_at: _timestamp_pb2.Timestamp
    listing_ms: float
    baseline: bool
    resident_model: str
    capabilities: Capabilities
    def __init__(self, endpoint: _Optional[str] = ..., kind: _Optional[str] = ..., state: _Optional[_Union[Endpoint.State, str]] = ..., detail: _Optional[str] = ..., server: _Optional[str] = ..., concurrency: _Optional[int] = ..., slots_total: _Optional[int] = ..., slots_busy: _Optional[int] = ..., exclusive: _Optional[bool] = ..., requests_per_minute: _Optional[int] = ..., max_model_b: _Optional[float] = ..., models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., refreshed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., listing_ms: _Optional[float] = ..., baseline: _Optional[bool] = ..., resident_model: _Optional[str] = ..., capabilities: _Optional[_Union[Capabilities, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("model", "digest", "parameters_b", "quantization", "disk_bytes", "memory_bytes", "context_length", "description", "baseline", "capabilities", "input_price", "output_price", "setup", "prices")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_B_FIELD_NUMBER: _ClassVar[int]
    QUANTIZATION_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    INPUT_PRICE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_PRICE_FIELD_NUMBER: _ClassVar[int]
    SETUP_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    model: str
    digest: str
    parameters_b: float
    quantization: str
    disk_bytes: int
    memory_bytes: int
    context_length: int
    description: str
    baseline: bool
    capabilities: Capabilities
    input_price: float
    output_price: float
    setup: str
    prices: Prices
    def __init__(self, model: _Optional[str] = ..., digest: _Optional[str] = ..., parameters_b: _Optional[float] = ..., quantization: _Optional[str] = ..., disk_bytes: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., context_length: _Optional[int] = ..., description: _Optional[str] = ..., baseline: _Optional[bool] = ..., capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., input_price: _Optional[float] = ..., output_price: _Optional[float] = ..., setup: _Optional[str] = ..., prices: _Optional[_Union[Prices, _Mapping]] = ...) -> None: ...

class Prices(_message.Message):
    __slots__ = ("input", "output", "long_prompts", "batch_share", "source", "as_of", "table_digest")
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SOURCE_UNSPECIFIED: _ClassVar[Prices.Source]
        SOURCE_ENDPOINTS_FILE: _ClassVar[Prices.Source]
        SOURCE_PROVIDER: _ClassVar[Prices.Source]
        SOURCE_LIST: _ClassVar[Prices.Source]
    SOURCE_UNSPECIFIED: Prices.Source
    SOURCE_ENDPOINTS_FILE: Prices.Source
    SOURCE_PROVIDER: Prices.Source
    SOURCE_LIST: Prices.Source
    class LongPrompts(_message.Message):
        __slots__ = ("above_tokens", "input", "output")
        ABOVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
        INPUT_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        above_tokens: int
        input: float
        output: float
        def __init__(self, above_tokens: _Optional[int] = ..., input: _Optional[float] = ..., output: _Optional[float] = ...) -> None: ...
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    LONG_PROMPTS_FIELD_NUMBER: _ClassVar[int]
    BATCH_SHARE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    TABLE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    input: float
    output: float
    long_prompts: Prices.LongPrompts
    batch_share: float
    source: Prices.Source
    as_of: str
    table_digest: str
    def __init__(self, input: _Optional[float] = ..., output: _Optional[float] = ..., long_prompts: _Optional[_Union[Prices.LongPrompts, _Mapping]] = ..., batch_share: _Optional[float] = ..., source: _Optional[_Union[Prices.Source, str]] = ..., as_of: _Optional[str] = ..., table_digest: _Optional[str] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("greedy", "reasoning", "stop", "seed", "sampling", "loglikelihood", "tools", "images")
    GREEDY_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    LOGLIKELIHOOD_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    greedy: bool
    reasoning: bool
    stop: bool
    seed: bool
    sampling: bool
    loglikelihood: bool
    tools: bool
    images: bool
    def __init__(self, greedy: _Optional[bool] = ..., reasoning: _Optional[bool] = ..., stop: _Optional[bool] = ..., seed: _Optional[bool] = ..., sampling: _Optional[bool] = ..., loglikelihood: _Optional[bool] = ..., tools: _Optional[bool] = ..., images: _Optional[bool] = ...) -> None: ...
