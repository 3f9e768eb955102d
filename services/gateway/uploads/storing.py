"""Hands an upload to the service that keeps datasets, at that service's pace."""

from __future__ import annotations

from collections.abc import AsyncIterator

from services import rpc
from services.gateway.backend import Backend
from services.gateway.uploads.body import gathered
from touchstone.v1 import dataset_pb2, dataset_service_pb2

MOST_S = 3600.0


async def store(
    backend: Backend,
    caller: rpc.Identity,
    options: dataset_pb2.DatasetOptions,
    pieces: AsyncIterator[bytes],
    request_id: str = "",
) -> dataset_pb2.Dataset:
    """The dataset, once it is stored whole. What `pieces` raises ends the call, and nothing is stored.

    Raises BadLinesError for wrong lines, ConflictError for a request id that has made another dataset, and the
    service's other errors.
    """

    async def requests() -> AsyncIterator[dataset_service_pb2.UploadDatasetRequest]:
        yield dataset_service_pb2.UploadDatasetRequest(options=options, request_id=request_id)
        async for piece in gathered(pieces):
            yield dataset_service_pb2.UploadDatasetRequest(data=piece)

    return (await backend.send(backend.datasets.UploadDataset, requests(), caller, MOST_S)).dataset
