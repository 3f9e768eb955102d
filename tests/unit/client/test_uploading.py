"""Uploads are read and sent in pieces."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.unit.client.fakes import DATASET, Fakes
from tests.unit.client.uploads import CONTENT, STORED, as_path, sent
from touchstone.v1 import dataset_service_pb2
from touchstone_client import Client, InvalidError
from touchstone_client.uploading import PIECE

SOURCES: dict[str, Callable[[Path], Any]] = {
    "path": as_path,
    "file": lambda folder: io.FileIO(as_path(folder)),
    "memory": lambda folder: io.BytesIO(CONTENT),
    "bytes": lambda folder: CONTENT,
    "pieces": lambda folder: iter([CONTENT[:10], CONTENT[10:]]),
}
NAMES = {"path": "rows.jsonl", "file": "rows.jsonl"}


@pytest.mark.parametrize("kind", SOURCES)
def test_whatever_holds_the_rows_is_sent_in_pieces(fakes: Fakes, tmp_path: Path, kind: str) -> None:
    fakes.answers["UploadDataset"] = STORED
    source, told = SOURCES[kind](tmp_path), list[int]()
    with Client() as client:
        made = client.upload_dataset(source, sent=told.append, template="{{prompt}}", project_id=7)
    options, content, longest = sent(fakes)
    assert (made.dataset_id, content == CONTENT) == (DATASET, True)
    assert (options.name, options.template, options.project_id) == (NAMES.get(kind, "dataset"), "{{prompt}}", 7)
    assert longest <= PIECE < len(CONTENT)
    assert told == sorted(told)
    assert told[-1] == len(CONTENT)


def test_a_file_is_read_as_it_is_sent(fakes: Fakes) -> None:
    """Not whole before: one that never ends is refused all the same."""
    made = 0

    def endless() -> Iterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield b"x" * PIECE

    def refuses(request_iterator: Iterator[Any], context: grpc.ServicerContext) -> Any:
        next(request_iterator)
        next(request_iterator)
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Too large.")

    server = grpc.server(ThreadPoolExecutor(1))
    handler = grpc.stream_unary_rpc_method_handler(
        refuses,
        dataset_service_pb2.UploadDatasetRequest.FromString,
        dataset_service_pb2.UploadDatasetResponse.SerializeToString,
    )
    handlers = grpc.method_handlers_generic_handler("touchstone.v1.DatasetService", {"UploadDataset": handler})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        settings = type(fakes.settings)(results=f"127.0.0.1:{port}")
        with Client(settings) as client, pytest.raises(InvalidError, match="Too large"):
            client.upload_dataset(endless())
    finally:
        server.stop(None).wait()
    assert made < 100


def test_a_file_open_as_text_is_refused_in_words(fakes: Fakes) -> None:
    fakes.answers["UploadDataset"] = STORED
    with Client() as client, pytest.raises(TypeError, match='mode "rb"'):
        client.upload_dataset(io.StringIO("text"))  # type: ignore[arg-type]  # What the test is about.


def test_what_goes_wrong_in_reading_is_what_the_caller_hears(fakes: Fakes) -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise OSError("The disk is gone.")

    fakes.answers["UploadDataset"] = STORED
    with Client() as client, pytest.raises(OSError, match="The disk is gone"):
        client.upload_dataset(broken())
