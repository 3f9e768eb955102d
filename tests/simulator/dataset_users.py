"""What users do with datasets in some of the simulated worlds: upload, run jobs over them, delete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

import grpc

from services import rpc
from tests.simulator.calls import Wires
from tests.simulator.dataset_history import Datasets
from tests.simulator.processes import RESULTS
from tests.simulator.users import Users
from touchstone.v1 import dataset_service_pb2 as pb
from touchstone.v1 import dataset_service_pb2_grpc, job_pb2

_UPLOAD_S, _DELETE_S = 30.0, 15.0
"""The gateway waits for an hour, and for thirty seconds."""
_ROWS = [range(1), range(3), range(5), range(2, 6)]
"""By number: these have shards in common."""
_PIECE_BYTES = 100
_LAST_TRIES = 30

Asked = tuple[str, range]
"""The request id of an upload and its rows."""


class DatasetUsers:
    """Operations drawn by `chance`, each noted in `datasets` once it is acknowledged; jobs are those of `users`."""

    def __init__(self, wires: Wires, chance: Random, users: Users, datasets: Datasets) -> None:
        self._chance, self._users, self._datasets = chance, users, datasets
        channel: Any = wires.channel(RESULTS)
        self._stub = dataset_service_pb2_grpc.DatasetServiceStub(channel)
        self._asked: list[Asked] = []

    def operations(self) -> list[tuple[int, Callable[[], Awaitable[None]]]]:
        """What may be done now, each with its weight."""
        kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [(4, self.upload)]
        if self._datasets.kept:
            kinds += [(8, self.run), (8, self.delete), (2, self.at_once), (1, self.upload_again)]
        return kinds

    async def begin(self) -> None:
        """A job, most often over a dataset."""
        await self.upload()
        await (self.run() if self._datasets.kept else self._users.create())

    # -- uploads ---------------------------------------------------------------------------------------------------

    async def upload(self) -> None:
        request_id = f"upload-{self._users.unknown()}" if self._chance.random() < 0.8 else ""
        self._asked.append((request_id, self._chance.choice(_ROWS)))
        await self._upload(*self._asked[-1])

    async def upload_again(self) -> None:
        """What somebody has uploaded before."""
        if self._asked:
            await self._upload(*self._chance.choice(self._asked))

    async def _upload(self, request_id: str, rows: range) -> None:
        for _ in range(self._chance.randint(1, 3)):
            # Some ask again although they were answered, and some before they are.
            times = 2 if self._chance.random() < 0.15 else 1
            made = await asyncio.gather(*(self._sent(request_id, rows) for _ in range(times)))
            if any(made) and self._chance.random() < 0.8:
                return
            await asyncio.sleep(self._chance.uniform(0.05, 1.0))

    async def _sent(self, request_id: str, rows: range) -> str:
        """The dataset; empty when the upload was refused, or when nobody knows."""

        async def pieces() -> AsyncIterator[pb.UploadDatasetRequest]:
            first = pb.UploadDatasetRequest(request_id=request_id)
            first.options.name = "rows.jsonl"
            yield first
            content = b"".join(
                json.dumps({"prompt": f"Question {number}?", "reference": str(number)}).encode() + b"\n"
                for number in rows
            )
            for start in range(0, len(content), _PIECE_BYTES):
                yield pb.UploadDatasetRequest(data=content[start : start + _PIECE_BYTES])

        def send(_: Any, *, timeout: float, metadata: Any) -> Awaitable[Any]:
            return rpc.send(self._stub.UploadDataset(timeout=timeout, metadata=metadata), pieces())

        within = _UPLOAD_S if self._chance.random() < 0.8 else self._chance.uniform(0.0, 0.3)
        answer = await self._users.ask(f"upload {len(rows)} rows {request_id}", send, None, within)
        if answer is None:
            return ""
        self._datasets.uploaded(request_id, len(rows), answer.dataset)
        return str(answer.dataset.dataset_id)

    # -- jobs and deletions ----------------------------------------------------------------------------------------

    def _some(self) -> str:
        return self._chance.choice(list(self._datasets.kept))

    async def run(self) -> None:
        await self._users.create_of(self.spec(self._some()))

    def spec(self, dataset_id: str) -> job_pb2.JobSpec:
        """A job over a dataset."""
        spec = self._users.bare_spec()
        spec.dataset.dataset_id = dataset_id
        spec.dataset.limit = self._chance.choice([0, 0, 1, 2])
        return spec

    async def delete(self) -> None:
        await self._delete(self._some())

    async def at_once(self) -> None:
        """Several that touch the same dataset."""
        dataset_id = self._some()

        async def upload_soon() -> None:
            await asyncio.sleep(self._chance.choice([0.0, 0.02, 0.1]))
            await (self.upload_again() if self._chance.random() < 0.5 else self.upload())

        works = [self._delete(dataset_id), self._users.create_of(self.spec(dataset_id)), upload_soon()]
        await asyncio.gather(*self._chance.sample(works, 3))

    async def _delete(self, dataset_id: str) -> bool:
        """Whether it is deleted."""
        datasets, refused = self._datasets, grpc.StatusCode.FAILED_PRECONDITION
        before = datasets.ask(dataset_id)
        request = pb.DeleteDatasetRequest(dataset_id=dataset_id)
        within = _DELETE_S if self._chance.random() < 0.8 else self._chance.uniform(0.0, 0.3)
        answer = await self._users.ask(f"delete {dataset_id[:8]}", self._stub.DeleteDataset, request, within)
        if answer is not None:
            datasets.acknowledged(dataset_id, before)
        elif self._users.code == refused:
            datasets.refused(dataset_id)
        elif self._users.code == grpc.StatusCode.NOT_FOUND:
            datasets.not_found(dataset_id)
        return answer is not None or self._users.code == grpc.StatusCode.NOT_FOUND

    # -- after all faults ------------------------------------------------------------------------------------------

    async def last(self) -> str:
        """Uploads a dataset, when everything should work again; empty when none can be uploaded."""
        for _ in range(_LAST_TRIES):
            if dataset_id := await self._sent("upload-last", _ROWS[-1]):
                return dataset_id
            await asyncio.sleep(1.0)
        return ""

    async def delete_last(self, dataset_id: str) -> bool:
        """Whether a dataset that no job uses can be deleted."""
        for _ in range(_LAST_TRIES):
            if await self._delete(dataset_id):
                return True
            await asyncio.sleep(1.0)
        return False
