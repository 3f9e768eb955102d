import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from touchstone.v1 import endpoint_pb2 as _endpoint_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Evaluator(_message.Message):
    __slots__ = ("evaluator", "host", "software", "started_at", "announced_at", "endpoints", "suites", "units_in_flight", "draining", "live", "plugins", "drain_requested")
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    SUITES_FIELD_NUMBER: _ClassVar[int]
    UNITS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    PLUGINS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    evaluator: str
    host: str
    software: str
    started_at: _timestamp_pb2.Timestamp
    announced_at: _timestamp_pb2.Timestamp
    endpoints: _containers.RepeatedCompositeFieldContainer[_endpoint_pb2.Endpoint]
    suites: _containers.RepeatedCompositeFieldContainer[_suite_pb2.Suite]
    units_in_flight: int
    draining: bool
    live: bool
    plugins: _containers.RepeatedCompositeFieldContainer[Plugin]
    drain_requested: bool
    def __init__(self, evaluator: _Optional[str] = ..., host: _Optional[str] = ..., software: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., announced_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., endpoints: _Optional[_Iterable[_Union[_endpoint_pb2.Endpoint, _Mapping]]] = ..., suites: _Optional[_Iterable[_Union[_suite_pb2.Suite, _Mapping]]] = ..., units_in_flight: _Optional[int] = ..., draining: _Optional[bool] = ..., live: _Optional[bool] = ..., plugins: _Optional[_Iterable[_Union[Plugin, _Mapping]]] = ..., drain_requested: _Optional[bool] = ...) -> None: ...

class Plugin(_message.Message):
    __slots__ = ("package", "version", "parts")
    PACKAGE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    package: str
    version: str
    parts: _containers.RepeatedCompositeFieldContainer[PluginPart]
    def __init__(self, package: _Optional[str] = ..., version: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[PluginPart, _Mapping]]] = ...) -> None: ...

class PluginPart(_message.Message):
    __slots__ = ("part", "name", "title", "version", "left_out")
    PART_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    part: str
    name: str
    title: str
    version: str
    left_out: str
    def __init__(self, part: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., version: _Optional[str] = ..., left_out: _Optional[str] = ...) -> None: ...
