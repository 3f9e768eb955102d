"""Splits that become datasets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pyarrow as pa

from services.evaluator.hub_import.splits import Load, SplitReader
from touchstone.v1.dataset_service_pb2 import CreateHubDatasetRequest
from touchstone.v1.suite_pb2 import DataSource

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LINES = b'{"q": "Why? \xc3\xa9", "label": 1}\n\n{"q": "How?", "options": {"A": "so"}}\n{"q": "Who?"}'


def request(**source: Any) -> CreateHubDatasetRequest:
    limit = source.pop("limit", 0)
    return CreateHubDatasetRequest(
        source=DataSource(**({"dataset": "ours/lamps", "split": "test"} | source)), limit=limit
    )


def opened(reader: SplitReader, asked: CreateHubDatasetRequest) -> tuple[DataSource, list[Any]]:
    async def whole() -> tuple[DataSource, bytes]:
        split = await reader.open(asked)
        return split.source, b"".join([piece async for piece in split.pieces])

    source, data = asyncio.run(whole())
    return source, [json.loads(line) for line in data.splitlines() if line]


def giving(table: pa.Table) -> Load:
    return lambda dataset, config, split, revision: (table, revision or COMMIT)
