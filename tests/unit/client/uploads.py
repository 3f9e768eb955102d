"""A file's rows as the client may be given them, and what was sent of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.client.fakes import Fakes, dataset
from touchstone.v1 import dataset_pb2, dataset_service_pb2

CONTENT = b"".join(b'{"prompt": "%d"}\n' % number for number in range(100_000))
STORED = dataset_service_pb2.UploadDatasetResponse(dataset=dataset())


def sent(fakes: Fakes) -> tuple[dataset_pb2.DatasetOptions, bytes, int]:
    """Options, content and longest piece of the only upload."""
    (messages,) = fakes.requests("UploadDataset")
    assert [message.HasField("options") for message in messages].index(True) == 0
    pieces = [message.data for message in messages]
    return messages[0].options, b"".join(pieces), max(map(len, pieces))


def as_path(folder: Path) -> Any:
    file = folder / "rows.jsonl"
    file.write_bytes(CONTENT)
    return str(file)
