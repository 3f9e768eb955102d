"""DatasetService over gRPC: reads, uploads, deletions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Any

from services import rpc
from services.bus import Bus, Datasets, Room, read_split
from services.errors import InvalidRequestError, PermissionDeniedError
from services.results import visibility
from services.results.datasets import index, stored_rows
from services.results.datasets.deleting import Deletions
from services.results.datasets.garbage_collection import Collector
from services.results.datasets.index import Request, fingerprint
from services.results.datasets.read_servicer import DatasetReadServicer
from services.results.datasets.uploading import Uploads
from services.results.installation import Installation
from services.results.read_queue import Questions
from services.results.storage.database import Database
from services.rpc import Identity
from services.words import refusals, scorers
from services.words.fields import EXPIRY_S
from services.words.scorers import SCORERS
from touchstone.v1 import dataset_pb2, dataset_service_pb2_grpc, scoring_pb2, suite_pb2, token_pb2
from touchstone.v1 import dataset_service_pb2 as pb

NAME_LENGTH = 200
_CLEARED_S = 5.0


def checked(asked: dataset_pb2.DatasetOptions, caller: Identity) -> dataset_pb2.DatasetOptions:
    """The options with the name without folders and the owner. Raises InvalidRequestError for an invalid name or
    owner."""
    return _checked(asked, asked.name.replace("\\", "/").rpartition("/")[2], caller)


def checked_hub(
    asked: dataset_pb2.DatasetOptions, source: suite_pb2.DataSource, caller: Identity
) -> dataset_pb2.DatasetOptions:
    """The same for a split of a Hub dataset, which is called after it unless it has a name."""
    found = _checked(asked, asked.name or f"{source.dataset}/{source.config or 'default'}/{source.split}", caller)
    found.format = dataset_pb2.Dataset.FORMAT_HUB
    return found


def checked_expiry(seconds: int) -> int:
    """Raises InvalidRequestError for a time that is too short or too long."""
    if not EXPIRY_S[0] <= seconds <= EXPIRY_S[1]:
        raise InvalidRequestError(refusals.between("expires_after_s", *EXPIRY_S), "expires_after_s")
    return seconds


def require_scorer(scoring: scoring_pb2.Scoring, plugged: Collection[str]) -> None:
    """Raises InvalidRequestError for a scorer that is neither built in nor one of plug-ins. What else a scoring says is
    looked at where the file is read."""
    option, sentence = scorers.problem(scoring, plugged)
    if option == "scorer":
        raise InvalidRequestError(sentence, "scoring.scorer")


def _checked(asked: dataset_pb2.DatasetOptions, name: str, caller: Identity) -> dataset_pb2.DatasetOptions:
    if asked.project_id < 0:
        raise InvalidRequestError(refusals.at_least("project_id", 0, zero="no project"), "project_id")
    found = dataset_pb2.DatasetOptions()
    found.CopyFrom(asked)
    found.ClearField("judging")
    found.ClearField("experiment")
    found.name = _name(name)
    found.owner = _owner(asked, caller)
    return found


def _name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH:
        raise InvalidRequestError(
            f"The name must have between 1 and {NAME_LENGTH} characters; it has {len(name):,}.", "name"
        )
    if not name.isprintable():
        raise InvalidRequestError("The name has unprintable characters. Rename the file.", "name")
    return name


def _owner(asked: dataset_pb2.DatasetOptions, caller: Identity) -> str:
    return (asked.owner or caller.user) if caller.role == token_pb2.ROLE_SERVICE else caller.user


class DatasetServicer(DatasetReadServicer, dataset_service_pb2_grpc.DatasetServiceServicer):
    """`reads` is the setting. Anybody may upload; a dataset's owner or an admin deletes it."""

    def __init__(
        self,
        connection: Bus,
        store: Datasets,
        database: Database,
        uploads: Uploads,
        deletions: Deletions,
        collector: Collector,
        room: Room,
        questions: Questions,
        reads: str = visibility.OPEN,
    ) -> None:
        super().__init__(store, questions, reads)
        self._bus = connection
        self._database = database
        self._uploads = uploads
        self._deletions = deletions
        self._collector = collector
        self._room = room

    async def UploadDataset(
        self, request_iterator: AsyncIterator[pb.UploadDatasetRequest], context: Any
    ) -> pb.UploadDatasetResponse:
        first = await anext(request_iterator, None)
        if first is None:
            raise InvalidRequestError("The upload is empty. Send options, then the file's bytes.", "options")
        rpc.check_request_id(first.request_id)
        asked = checked(first.options, rpc.identity())
        await self._require_scorer(asked.scoring)
        self._room.require()
        wanted = Request(asked.owner, first.request_id)
        async with self._uploads.place(asked.owner):
            sent = _Sent(first, request_iterator)
            pieces = self._room.guard(sent.pieces())
            dataset = await self._uploads.keep(
                asked, pieces, request=wanted, expires_after_s=lambda: sent.expires_after_s
            )
        return pb.UploadDatasetResponse(dataset=dataset)

    async def PreviewDataset(
        self, request_iterator: AsyncIterator[pb.PreviewDatasetRequest], context: Any
    ) -> pb.PreviewDatasetResponse:
        first = await anext(request_iterator, None)
        if first is None:
            raise InvalidRequestError("The upload is empty. Send options, then the file's bytes.", "options")
        asked = checked(first.options, rpc.identity())
        await self._require_scorer(asked.scoring)
        async with self._uploads.place(asked.owner):
            found = await self._uploads.preview(asked, _pieces(first, request_iterator))
        for row in found.first_rows:
            stored_rows.cut(row)
        found.dataset.name, found.dataset.owner, found.dataset.project_id = asked.name, asked.owner, asked.project_id
        found.dataset.template = asked.template
        found.dataset.scoring.CopyFrom(asked.scoring)
        return found

    async def CreateHubDataset(self, request: pb.CreateHubDatasetRequest, context: Any) -> pb.CreateHubDatasetResponse:
        if not request.source.dataset or not request.source.split:
            raise InvalidRequestError("Name the Hub dataset and its split.", "source")
        if request.limit < 0:
            raise InvalidRequestError(refusals.at_least("limit", 0, zero="all rows"), "limit")
        rpc.check_request_id(request.request_id)
        asked = checked_hub(request.options, request.source, rpc.identity())
        await self._require_scorer(asked.scoring)
        # The Hub may have other rows by now: the request is compared by its content, and nothing is read again.
        wanted = Request(asked.owner, request.request_id, fingerprint(asked, request.source, str(request.limit)))
        dataset = await self._uploads.made_by(wanted)
        if dataset is None:
            self._room.require()
            async with self._uploads.place(asked.owner), read_split(self._bus, request) as split:
                dataset = await self._uploads.keep(asked, self._room.guard(split.pieces), split.source, wanted)
        return pb.CreateHubDatasetResponse(dataset=dataset)

    async def _require_scorer(self, scoring: scoring_pb2.Scoring) -> None:
        """Raises InvalidRequestError; of a name that is not built in also UnavailableError."""
        if scoring.scorer and scoring.scorer not in SCORERS:
            require_scorer(scoring, await Installation(self._bus).scorers())

    async def DeleteDataset(self, request: pb.DeleteDatasetRequest, context: Any) -> pb.DeleteDatasetResponse:
        dataset = await self._visible(request.dataset_id)
        caller = rpc.identity()
        if not caller.is_admin and caller.user != dataset.owner:
            raise PermissionDeniedError(refusals.not_yours("Dataset", dataset.dataset_id, dataset.owner, "delete it"))
        await self._deletions.delete(dataset.dataset_id)
        (jobs,) = await self._database.read(lambda c: index.jobs_over(c, [dataset.dataset_id]))
        # It is deleted. Wait a short time for its shards, so that its room is free for users who need it.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLEARED_S):
                await self._collector.collected()
        # No job was live: one that seems so here has ended a moment ago.
        return pb.DeleteDatasetResponse(finished_jobs=jobs.live + jobs.finished)

    async def _visible(self, dataset_id: str) -> dataset_pb2.Dataset:
        """Raises NotFoundError for a dataset that is not visible to the caller."""
        visible = visibility.of_caller(self._reads)
        return await self._database.read(lambda c: index.get(c, dataset_id, visible))


async def _pieces(
    first: pb.PreviewDatasetRequest, rest: AsyncIterator[pb.PreviewDatasetRequest]
) -> AsyncIterator[bytes]:
    yield first.data
    async for request in rest:
        yield request.data


class _Sent:
    """The messages of an upload. `expires_after_s` is known once `pieces` has ended: it may come after the file."""

    def __init__(self, first: pb.UploadDatasetRequest, rest: AsyncIterator[pb.UploadDatasetRequest]) -> None:
        self._first = first
        self._rest = rest
        self.expires_after_s = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file. Raises InvalidRequestError for an expiry out of range."""
        yield self._read(self._first)
        async for request in self._rest:
            yield self._read(request)

    def _read(self, request: pb.UploadDatasetRequest) -> bytes:
        if request.expires_after_s:
            self.expires_after_s = self.expires_after_s or checked_expiry(request.expires_after_s)
        return request.data
