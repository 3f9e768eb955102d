from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reading(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    READING_UNSPECIFIED: _ClassVar[Reading]
    READING_STRICT: _ClassVar[Reading]
    READING_MARKED: _ClassVar[Reading]
    READING_LENIENT: _ClassVar[Reading]

class AnswerMatch(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANSWER_MATCH_UNSPECIFIED: _ClassVar[AnswerMatch]
    ANSWER_MATCH_LAST: _ClassVar[AnswerMatch]
    ANSWER_MATCH_FIRST: _ClassVar[AnswerMatch]
READING_UNSPECIFIED: Reading
READING_STRICT: Reading
READING_MARKED: Reading
READING_LENIENT: Reading
ANSWER_MATCH_UNSPECIFIED: AnswerMatch
ANSWER_MATCH_LAST: AnswerMatch
ANSWER_MATCH_FIRST: AnswerMatch

class Scoring(_message.Message):
    __slots__ = ("scorer", "reference_field", "group_field", "tolerance", "tolerance_is_relative", "fields", "choices", "answer_pattern", "answer_match", "schema", "rubric")
    SCORER_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_IS_RELATIVE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    ANSWER_PATTERN_FIELD_NUMBER: _ClassVar[int]
    ANSWER_MATCH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RUBRIC_FIELD_NUMBER: _ClassVar[int]
    scorer: str
    reference_field: str
    group_field: str
    tolerance: float
    tolerance_is_relative: bool
    fields: _containers.RepeatedScalarFieldContainer[str]
    choices: _containers.RepeatedScalarFieldContainer[str]
    answer_pattern: str
    answer_match: AnswerMatch
    schema: str
    rubric: str
    def __init__(self, scorer: _Optional[str] = ..., reference_field: _Optional[str] = ..., group_field: _Optional[str] = ..., tolerance: _Optional[float] = ..., tolerance_is_relative: _Optional[bool] = ..., fields: _Optional[_Iterable[str]] = ..., choices: _Optional[_Iterable[str]] = ..., answer_pattern: _Optional[str] = ..., answer_match: _Optional[_Union[AnswerMatch, str]] = ..., schema: _Optional[str] = ..., rubric: _Optional[str] = ...) -> None: ...
