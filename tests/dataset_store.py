"""Datasets for tests: rows made into a manifest and shards, and a store of them in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from services import further_fields
from services.bus import Datasets
from services.errors import NotFoundError, UnavailableError
from touchstone.v1.content_pb2 import ContentPart, Image
from touchstone.v1.dataset_pb2 import ChatMessage, Dataset, DatasetManifest, DatasetRow, Shard, ShardRows
from touchstone.v1.scoring_pb2 import Scoring

DATASET_ID = "ds_" + "a" * 32


def row(
    number: int,
    prompt: str | Sequence[tuple[str, str]] = "",
    reference: Any = None,
    metadata: Any = None,
    **sampling: Any,
) -> DatasetRow:
    """A row with one user message, or with these roles and contents."""
    messages = [("user", prompt or f"Question {number}?")] if isinstance(prompt, str) else prompt
    made = DatasetRow(
        custom_id=f"row-{number}",
        messages=[ChatMessage(role=role, content=content) for role, content in messages],
        reference="" if reference is None else json.dumps(reference),
        metadata="" if metadata is None else json.dumps(metadata),
    )
    for name, value in sampling.items():
        if name == "stop":
            made.stop.extend(value)
        elif name == "extra":
            further_fields.write(made.sampling, value)
        else:
            setattr(made.sampling, name, value)
    return made


def with_image(number: int, data: bytes, text: str = "What is this?", **options: Any) -> DatasetRow:
    """A row whose message has a text and a picture."""
    made = row(number, text, **options)
    image = Image(media_type="image/png", data=data, size=len(data), digest=sha256(data).hexdigest())
    made.messages[0].parts.extend([ContentPart(text=text), ContentPart(image=image)])
    made.has_parts = True
    return made


def with_call(number: int, arguments: str = '{"city": "Lyon"}', **options: Any) -> DatasetRow:
    """A row whose conversation calls the tool `weather` and has its result."""
    made = row(number, [("user", "How is it?"), ("assistant", ""), ("tool", "Rain")], **options)
    made.messages[1].tool_calls.add(id="call_1", name="weather", arguments=arguments)
    made.messages[2].tool_call_id = "call_1"
    made.has_parts = True
    return made


class MemoryStore:
    """Implements `DatasetStore`. `silent` is how often it does not answer first; `read` lists the shards asked for."""

    def __init__(self) -> None:
        self.manifests: dict[str, DatasetManifest] = {}
        self.shards: dict[str, bytes] = {}
        self.read: list[str] = []
        self.silent = 0

    def add(
        self,
        rows: Sequence[DatasetRow],
        shard_rows: int = 1000,
        scoring: Scoring | None = None,
        name: str = "questions.jsonl",
        dataset_id: str = DATASET_ID,
    ) -> DatasetManifest:
        """Stores a dataset."""
        shards: list[Shard] = []
        for start in range(0, len(rows), shard_rows):
            part = ShardRows(rows=rows[start : start + shard_rows])
            data = part.SerializeToString()
            digest = sha256(data).hexdigest()
            self.shards[digest] = data
            shards.append(Shard(digest=digest, rows=len(part.rows), bytes=len(data)))
        digest = sha256("".join(shard.digest for shard in shards).encode()).hexdigest()
        dataset = Dataset(dataset_id=dataset_id, name=name, rows=len(rows), digest=digest, scoring=scoring)
        self.manifests[dataset_id] = DatasetManifest(dataset=dataset, shards=shards)
        return self.manifests[dataset_id]

    async def get_manifest(self, dataset_id: str) -> DatasetManifest | None:
        self._answer()
        return self.manifests.get(dataset_id)

    async def get_shard(self, digest: str) -> ShardRows:
        self._answer()
        self.read.append(digest)
        if digest not in self.shards:
            raise NotFoundError("gone")
        return ShardRows.FromString(self.shards[digest])

    async def copy_to(self, store: Datasets) -> None:
        """Writes all of it into the object store."""
        for digest, data in self.shards.items():
            await store.put_shard(digest, data)
        for manifest in self.manifests.values():
            await store.put_manifest(manifest)

    def _answer(self) -> None:
        if self.silent:
            self.silent -= 1
            raise UnavailableError("NATS does not answer.")
