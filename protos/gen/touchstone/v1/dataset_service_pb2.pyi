from touchstone.v1 import dataset_pb2 as _dataset_pb2
from touchstone.v1 import suite_pb2 as _suite_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UploadDatasetRequest(_message.Message):
    __slots__ = ("options", "data", "request_id", "expires_after_s")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    options: _dataset_pb2.DatasetOptions
    data: bytes
    request_id: str
    expires_after_s: int
    def __init__(self, options: _Optional[_Union[_dataset_pb2.DatasetOptions, _Mapping]] = ..., data: _Optional[bytes] = ..., request_id: _Optional[str] = ..., expires_after_s: _Optional[int] = ...) -> None: ...

class UploadDatasetResponse(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: _dataset_pb2.Dataset
    def __init__(self, dataset: _Optional[_Union[_dataset_pb2.Dataset, _Mapping]] = ...) -> None: ...

class PreviewDatasetRequest(_message.Message):
    __slots__ = ("options", "data")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    options: _dataset_pb2.DatasetOptions
    data: bytes
    def __init__(self, options: _Optional[_Union[_dataset_pb2.DatasetOptions, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class PreviewDatasetResponse(_message.Message):
    __slots__ = ("dataset", "rows_found", "first_rows", "bad_lines", "bad_lines_total", "columns", "readings", "why", "field", "sheets", "reasons", "other_lines")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    ROWS_FOUND_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROWS_FIELD_NUMBER: _ClassVar[int]
    BAD_LINES_FIELD_NUMBER: _ClassVar[int]
    BAD_LINES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    READINGS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    SHEETS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    OTHER_LINES_FIELD_NUMBER: _ClassVar[int]
    dataset: _dataset_pb2.Dataset
    rows_found: int
    first_rows: _containers.RepeatedCompositeFieldContainer[_dataset_pb2.DatasetRow]
    bad_lines: _containers.RepeatedCompositeFieldContainer[_dataset_pb2.BadLine]
    bad_lines_total: int
    columns: _containers.RepeatedScalarFieldContainer[str]
    readings: _containers.RepeatedCompositeFieldContainer[DatasetReading]
    why: str
    field: str
    sheets: _containers.RepeatedScalarFieldContainer[str]
    reasons: _containers.RepeatedCompositeFieldContainer[_dataset_pb2.BadLineReason]
    other_lines: int
    def __init__(self, dataset: _Optional[_Union[_dataset_pb2.Dataset, _Mapping]] = ..., rows_found: _Optional[int] = ..., first_rows: _Optional[_Iterable[_Union[_dataset_pb2.DatasetRow, _Mapping]]] = ..., bad_lines: _Optional[_Iterable[_Union[_dataset_pb2.BadLine, _Mapping]]] = ..., bad_lines_total: _Optional[int] = ..., columns: _Optional[_Iterable[str]] = ..., readings: _Optional[_Iterable[_Union[DatasetReading, _Mapping]]] = ..., why: _Optional[str] = ..., field: _Optional[str] = ..., sheets: _Optional[_Iterable[str]] = ..., reasons: _Optional[_Iterable[_Union[_dataset_pb2.BadLineReason, _Mapping]]] = ..., other_lines: _Optional[int] = ...) -> None: ...

class DatasetReading(_message.Message):
    __slots__ = ("format", "reading")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    format: _dataset_pb2.Dataset.Format
    reading: str
    def __init__(self, format: _Optional[_Union[_dataset_pb2.Dataset.Format, str]] = ..., reading: _Optional[str] = ...) -> None: ...

class CreateHubDatasetRequest(_message.Message):
    __slots__ = ("options", "source", "limit", "request_id")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    options: _dataset_pb2.DatasetOptions
    source: _suite_pb2.DataSource
    limit: int
    request_id: str
    def __init__(self, options: _Optional[_Union[_dataset_pb2.DatasetOptions, _Mapping]] = ..., source: _Optional[_Union[_suite_pb2.DataSource, _Mapping]] = ..., limit: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateHubDatasetResponse(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: _dataset_pb2.Dataset
    def __init__(self, dataset: _Optional[_Union[_dataset_pb2.Dataset, _Mapping]] = ...) -> None: ...

class GetDatasetRequest(_message.Message):
    __slots__ = ("dataset_id",)
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    dataset_id: str
    def __init__(self, dataset_id: _Optional[str] = ...) -> None: ...

class GetDatasetResponse(_message.Message):
    __slots__ = ("dataset", "live_jobs", "finished_jobs")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    LIVE_JOBS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_JOBS_FIELD_NUMBER: _ClassVar[int]
    dataset: _dataset_pb2.Dataset
    live_jobs: int
    finished_jobs: int
    def __init__(self, dataset: _Optional[_Union[_dataset_pb2.Dataset, _Mapping]] = ..., live_jobs: _Optional[int] = ..., finished_jobs: _Optional[int] = ...) -> None: ...

class ListDatasetsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "owner", "project_id", "query", "files")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    owner: str
    project_id: int
    query: str
    files: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., owner: _Optional[str] = ..., project_id: _Optional[int] = ..., query: _Optional[str] = ..., files: _Optional[bool] = ...) -> None: ...

class ListDatasetsResponse(_message.Message):
    __slots__ = ("datasets", "next_page_token", "total_size", "finished_jobs")
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_JOBS_FIELD_NUMBER: _ClassVar[int]
    datasets: _containers.RepeatedCompositeFieldContainer[_dataset_pb2.Dataset]
    next_page_token: str
    total_size: int
    finished_jobs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, datasets: _Optional[_Iterable[_Union[_dataset_pb2.Dataset, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ..., finished_jobs: _Optional[_Iterable[int]] = ...) -> None: ...

class ListDatasetRowsRequest(_message.Message):
    __slots__ = ("dataset_id", "page_size", "page_token", "whole", "first")
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    dataset_id: str
    page_size: int
    page_token: str
    whole: bool
    first: int
    def __init__(self, dataset_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., whole: _Optional[bool] = ..., first: _Optional[int] = ...) -> None: ...

class ListDatasetRowsResponse(_message.Message):
    __slots__ = ("rows", "first", "next_page_token")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[_dataset_pb2.DatasetRow]
    first: int
    next_page_token: str
    def __init__(self, rows: _Optional[_Iterable[_Union[_dataset_pb2.DatasetRow, _Mapping]]] = ..., first: _Optional[int] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteDatasetRequest(_message.Message):
    __slots__ = ("dataset_id",)
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    dataset_id: str
    def __init__(self, dataset_id: _Optional[str] = ...) -> None: ...

class DeleteDatasetResponse(_message.Message):
    __slots__ = ("finished_jobs",)
    FINISHED_JOBS_FIELD_NUMBER: _ClassVar[int]
    finished_jobs: int
    def __init__(self, finished_jobs: _Optional[int] = ...) -> None: ...
