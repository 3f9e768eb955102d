"""The calls of DatasetService that only read: from a database, or a copy of one, and rows from NATS."""

from __future__ import annotations

from typing import Any

from services.bus import Datasets
from services.results import visibility
from services.results.datasets import index, stored_rows
from services.results.read_queue import Questions
from services.results.storage.database import Connection
from touchstone.v1 import dataset_service_pb2 as pb


class DatasetReadServicer:
    """`reads` is the setting."""

    def __init__(self, store: Datasets, questions: Questions, reads: str = visibility.OPEN) -> None:
        self._store = store
        self._questions = questions
        self._reads = reads

    async def GetDataset(self, request: pb.GetDatasetRequest, context: Any) -> pb.GetDatasetResponse:
        visible = visibility.of_caller(self._reads)

        def ask(connection: Connection) -> pb.GetDatasetResponse:
            dataset = index.get(connection, request.dataset_id, visible)
            (jobs,) = index.jobs_over(connection, [request.dataset_id])
            return pb.GetDatasetResponse(dataset=dataset, live_jobs=jobs.live, finished_jobs=jobs.finished)

        return await self._questions.once(request, visible, lambda: self._questions.read(ask))

    async def ListDatasets(self, request: pb.ListDatasetsRequest, context: Any) -> pb.ListDatasetsResponse:
        visible = visibility.of_caller(self._reads)
        return await self._questions.once(
            request, visible, lambda: self._questions.read(lambda c: index.list_datasets(c, request, visible))
        )

    async def ListDatasetRows(self, request: pb.ListDatasetRowsRequest, context: Any) -> pb.ListDatasetRowsResponse:
        visible = visibility.of_caller(self._reads)

        async def rows() -> pb.ListDatasetRowsResponse:
            await self._questions.read(lambda c: index.get(c, request.dataset_id, visible))
            return await self._questions.read_shards(stored_rows.list_rows(self._store, request))

        return await self._questions.once(request, visible, rows)
