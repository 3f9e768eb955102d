"""An upload's messages: the options, then the file's bytes in pieces, read while they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, Protocol, TypedDict, TypeVar

from services.words.enums import LAST_ASSISTANT, UPLOAD_FORMATS
from touchstone.v1 import dataset_pb2, dataset_service_pb2, scoring_pb2

Q = TypeVar("Q", dataset_service_pb2.UploadDatasetRequest, dataset_service_pb2.PreviewDatasetRequest)
PIECE = 512 * 1024
"""Bytes of a message: half of the service's limit."""
_UNNAMED = "dataset"


class Readable(Protocol):
    """A file open for reading bytes."""

    def read(self, size: int, /) -> bytes: ...


Source = str | Path | bytes | Readable | Iterable[bytes]
"""A file's path, its content, a file open for reading bytes, or its bytes in pieces."""


class DatasetOptions(TypedDict, total=False):
    """Options of an upload; fields as in the proto's DatasetOptions. `format` is a word of `UPLOAD_FORMATS` in
    `services.words.enums`, `last_assistant` one of `LAST_ASSISTANT` there, `name` the file's own unless given."""

    name: str
    format: str
    template: str
    scoring: scoring_pb2.Scoring
    project_id: int
    custom_id_field: str
    sheet: str
    last_assistant: str


@contextmanager
def messages(
    source: Source, options: DatasetOptions, sent: Callable[[int], object] | None, request_id: str = ""
) -> Iterator[Iterator[dataset_service_pb2.UploadDatasetRequest]]:
    """The upload's messages. `sent` is called with the bytes so far after each. A path's file is closed with the
    block."""

    def first(asked: dataset_pb2.DatasetOptions) -> dataset_service_pb2.UploadDatasetRequest:
        return dataset_service_pb2.UploadDatasetRequest(options=asked, request_id=request_id)

    with _sent(source, options, sent, first) as made:
        yield made


@contextmanager
def preview_messages(
    source: Source, options: DatasetOptions, sent: Callable[[int], object] | None
) -> Iterator[Iterator[dataset_service_pb2.PreviewDatasetRequest]]:
    """The same for a preview."""

    def first(asked: dataset_pb2.DatasetOptions) -> dataset_service_pb2.PreviewDatasetRequest:
        return dataset_service_pb2.PreviewDatasetRequest(options=asked)

    with _sent(source, options, sent, first) as made:
        yield made


@contextmanager
def _sent(
    source: Source,
    options: DatasetOptions,
    sent: Callable[[int], object] | None,
    begin: Callable[[dataset_pb2.DatasetOptions], Q],
) -> Iterator[Iterator[Q]]:
    def made(pieces: Iterable[bytes], name: str = "") -> Iterator[Q]:
        return _messages(begin(options_of(options, name)), pieces, sent)

    if isinstance(source, str | Path):
        with open(source, "rb") as file:
            yield made(_read(file), Path(source).name)
    elif isinstance(source, bytes):
        yield made([source])
    else:
        reads = hasattr(source, "read")
        pieces: Any = _read(source) if reads else source
        yield made(pieces, _name_of(source) if reads else "")


def options_of(options: DatasetOptions, name: str = "") -> dataset_pb2.DatasetOptions:
    """`name` is used if the options have none."""
    format, last = options.get("format", ""), options.get("last_assistant", "")
    return dataset_pb2.DatasetOptions(
        name=options.get("name") or name or _UNNAMED,
        format=UPLOAD_FORMATS[format] if format else None,
        template=options.get("template", ""),
        scoring=options.get("scoring"),
        project_id=options.get("project_id", 0),
        custom_id_field=options.get("custom_id_field", ""),
        sheet=options.get("sheet", ""),
        last_assistant=LAST_ASSISTANT[last] if last else None,
    )


def _name_of(file: object) -> str:
    """Streams without a file, such as standard input, have a number or "<stdin>"."""
    name = getattr(file, "name", "")
    return PurePath(name).name if isinstance(name, str) and not name.startswith("<") else ""


def _read(file: Any) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece


def _messages(first: Q, pieces: Iterable[bytes], sent: Callable[[int], object] | None) -> Iterator[Q]:
    yield first
    message = type(first)
    total = 0
    for piece in pieces:
        if isinstance(piece, str):
            raise TypeError('An upload must be bytes. Open the file with mode "rb".')
        for start in range(0, len(piece), PIECE):
            data = bytes(piece[start : start + PIECE])
            yield message(data=data)
            total += len(data)
            if sent:
                sent(total)
