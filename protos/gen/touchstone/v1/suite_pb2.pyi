from touchstone.v1 import scoring_pb2 as _scoring_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_GENERATE: _ClassVar[Mode]
    MODE_LOGLIKELIHOOD: _ClassVar[Mode]

class Weighting(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WEIGHTING_UNSPECIFIED: _ClassVar[Weighting]
    WEIGHTING_ITEMS: _ClassVar[Weighting]
    WEIGHTING_TASKS: _ClassVar[Weighting]
MODE_UNSPECIFIED: Mode
MODE_GENERATE: Mode
MODE_LOGLIKELIHOOD: Mode
WEIGHTING_UNSPECIFIED: Weighting
WEIGHTING_ITEMS: Weighting
WEIGHTING_TASKS: Weighting

class Suite(_message.Message):
    __slots__ = ("suite", "title", "description", "tasks", "open", "weighting", "plugin")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    suite: str
    title: str
    description: str
    tasks: _containers.RepeatedCompositeFieldContainer[TaskInfo]
    open: bool
    weighting: Weighting
    plugin: str
    def __init__(self, suite: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[TaskInfo, _Mapping]]] = ..., open: _Optional[bool] = ..., weighting: _Optional[_Union[Weighting, str]] = ..., plugin: _Optional[str] = ...) -> None: ...

class TaskInfo(_message.Message):
    __slots__ = ("task", "title", "metrics", "modes", "max_shots", "published_items", "score_group", "data", "category", "beside", "reading")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    MODES_FIELD_NUMBER: _ClassVar[int]
    MAX_SHOTS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    SCORE_GROUP_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    task: str
    title: str
    metrics: _containers.RepeatedCompositeFieldContainer[MetricSpec]
    modes: _containers.RepeatedScalarFieldContainer[Mode]
    max_shots: int
    published_items: int
    score_group: str
    data: DataSource
    category: str
    beside: bool
    reading: _scoring_pb2.Reading
    def __init__(self, task: _Optional[str] = ..., title: _Optional[str] = ..., metrics: _Optional[_Iterable[_Union[MetricSpec, _Mapping]]] = ..., modes: _Optional[_Iterable[_Union[Mode, str]]] = ..., max_shots: _Optional[int] = ..., published_items: _Optional[int] = ..., score_group: _Optional[str] = ..., data: _Optional[_Union[DataSource, _Mapping]] = ..., category: _Optional[str] = ..., beside: _Optional[bool] = ..., reading: _Optional[_Union[_scoring_pb2.Reading, str]] = ...) -> None: ...

class DataSource(_message.Message):
    __slots__ = ("dataset", "config", "split", "revision")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    config: str
    split: str
    revision: str
    def __init__(self, dataset: _Optional[str] = ..., config: _Optional[str] = ..., split: _Optional[str] = ..., revision: _Optional[str] = ...) -> None: ...

class MetricSpec(_message.Message):
    __slots__ = ("metric", "positive_label", "rule", "statistic", "over", "beside")
    class Rule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RULE_UNSPECIFIED: _ClassVar[MetricSpec.Rule]
        RULE_MEAN: _ClassVar[MetricSpec.Rule]
        RULE_ALL: _ClassVar[MetricSpec.Rule]
        RULE_EQUAL: _ClassVar[MetricSpec.Rule]
        RULE_ANY: _ClassVar[MetricSpec.Rule]
        RULE_MAJORITY: _ClassVar[MetricSpec.Rule]
    RULE_UNSPECIFIED: MetricSpec.Rule
    RULE_MEAN: MetricSpec.Rule
    RULE_ALL: MetricSpec.Rule
    RULE_EQUAL: MetricSpec.Rule
    RULE_ANY: MetricSpec.Rule
    RULE_MAJORITY: MetricSpec.Rule
    METRIC_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_LABEL_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    STATISTIC_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    metric: str
    positive_label: str
    rule: MetricSpec.Rule
    statistic: str
    over: str
    beside: bool
    def __init__(self, metric: _Optional[str] = ..., positive_label: _Optional[str] = ..., rule: _Optional[_Union[MetricSpec.Rule, str]] = ..., statistic: _Optional[str] = ..., over: _Optional[str] = ..., beside: _Optional[bool] = ...) -> None: ...
