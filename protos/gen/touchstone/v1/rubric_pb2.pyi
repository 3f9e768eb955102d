from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Rubric(_message.Message):
    __slots__ = ("version", "instructions", "criteria")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    CRITERIA_FIELD_NUMBER: _ClassVar[int]
    version: str
    instructions: str
    criteria: _containers.RepeatedCompositeFieldContainer[RubricCriterion]
    def __init__(self, version: _Optional[str] = ..., instructions: _Optional[str] = ..., criteria: _Optional[_Iterable[_Union[RubricCriterion, _Mapping]]] = ...) -> None: ...

class RubricCriterion(_message.Message):
    __slots__ = ("name", "description", "lowest", "highest", "choices", "examples", "weight")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    lowest: int
    highest: int
    choices: _containers.RepeatedCompositeFieldContainer[RubricChoice]
    examples: _containers.RepeatedCompositeFieldContainer[RubricExample]
    weight: float
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., lowest: _Optional[int] = ..., highest: _Optional[int] = ..., choices: _Optional[_Iterable[_Union[RubricChoice, _Mapping]]] = ..., examples: _Optional[_Iterable[_Union[RubricExample, _Mapping]]] = ..., weight: _Optional[float] = ...) -> None: ...

class RubricChoice(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class RubricExample(_message.Message):
    __slots__ = ("answer", "score", "why")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    answer: str
    score: str
    why: str
    def __init__(self, answer: _Optional[str] = ..., score: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...
