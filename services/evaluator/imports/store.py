"""Where imported answers are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import grpc

from services import rpc
from services.bus import heed_cancel
from services.errors import DeadlineError, NotFoundError, UnavailableError
from touchstone.v1 import results_internal_service_pb2_grpc
from touchstone.v1.results_service_pb2 import (
    FindResponsesRequest,
    GetImportRequest,
    GetImportResponse,
    ImportedAnswer,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

_ASK_S = 5.0
_PAUSE_S = 1.0
_MOST_ASKED = 1000
_UNKNOWN = (
    "The job uses imported answers, but its evaluator does not know the address of the results service. Set "
    "TOUCHSTONE_RESULTS where the evaluator runs."
)


@dataclass(frozen=True, slots=True)
class ImportedRows:
    """Row numbers that an import has answers for, in increasing order, and the number of each one's prompt, as in
    GetImportResponse.prompts. `rows` are the tool's copies of the rows, if they were asked for."""

    items: Sequence[int]
    prompts: Sequence[int]
    rows: Sequence[str] = ()


class ImportStore(Protocol):
    """Raises NotFoundError for an import that no longer exists."""

    async def run(self, import_id: str) -> GetImportResponse:
        """The run and its tasks, without rows."""
        ...

    async def rows(self, import_id: str, task: str) -> ImportedRows: ...

    def pages(self, import_id: str, task: str) -> AsyncIterator[ImportedRows]:
        """The same in parts of some megabytes, with the tool's copies of the rows."""
        ...

    async def answers(self, import_id: str, task: str, items: Sequence[int], repeat: int) -> list[ImportedAnswer]:
        """The answers with number `repeat` to these items; items without one are left out."""
        ...


class NoImports:
    """For an evaluator that does not know the results service's address."""

    async def run(self, import_id: str) -> GetImportResponse:
        raise NotFoundError(_UNKNOWN)

    async def rows(self, import_id: str, task: str) -> ImportedRows:
        raise NotFoundError(_UNKNOWN)

    def pages(self, import_id: str, task: str) -> AsyncIterator[ImportedRows]:
        raise NotFoundError(_UNKNOWN)

    async def answers(self, import_id: str, task: str, items: Sequence[int], repeat: int) -> list[ImportedAnswer]:
        raise NotFoundError(_UNKNOWN)


class ImportsOfResults:
    """The imports of the results service over gRPC. Waits while it does not answer."""

    def __init__(self, channel: grpc.aio.Channel, service_token: str) -> None:
        self._stub = results_internal_service_pb2_grpc.ResultsInternalServiceStub(channel)
        self._metadata = rpc.metadata(service_token)

    async def run(self, import_id: str) -> GetImportResponse:
        return await self._get(GetImportRequest(import_id=import_id))

    async def rows(self, import_id: str, task: str) -> ImportedRows:
        items: list[int] = []
        prompts: list[int] = []
        async for page in self._pages(GetImportRequest(import_id=import_id, task=task)):
            items += page.items
            prompts += page.prompts
        return ImportedRows(items, prompts)

    async def pages(self, import_id: str, task: str) -> AsyncIterator[ImportedRows]:
        async for page in self._pages(GetImportRequest(import_id=import_id, task=task, with_rows=True)):
            yield ImportedRows(page.items, page.prompts, page.rows)

    async def _pages(self, request: GetImportRequest) -> AsyncIterator[GetImportResponse]:
        while (page := await self._get(request)).items:
            yield page
            request.after = page.items[-1]

    async def answers(self, import_id: str, task: str, items: Sequence[int], repeat: int) -> list[ImportedAnswer]:
        found: list[ImportedAnswer] = []
        for start in range(0, len(items), _MOST_ASKED):
            left = set(items[start : start + _MOST_ASKED])
            while left:
                request = FindResponsesRequest(import_id=import_id, task=task, items=sorted(left), repeat=repeat)
                page = await self._find(request)
                if not page:
                    break
                found += page
                left -= {answer.item for answer in page}
        return found

    async def _get(self, request: GetImportRequest) -> GetImportResponse:
        return await _patiently(lambda: self._stub.GetImport(request, timeout=_ASK_S, metadata=self._metadata))

    async def _find(self, request: FindResponsesRequest) -> Sequence[ImportedAnswer]:
        found = await _patiently(lambda: self._stub.FindResponses(request, timeout=_ASK_S, metadata=self._metadata))
        return found.answers


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    while True:
        heed_cancel()
        try:
            return await ask()
        except grpc.aio.AioRpcError as failure:
            error = rpc.from_rpc_error(failure)
            if not isinstance(error, UnavailableError | DeadlineError):
                raise error from failure
            log.warning("waiting for imported answers: %s", error.message)
            await asyncio.sleep(_PAUSE_S)
