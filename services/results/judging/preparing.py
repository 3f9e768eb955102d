"""The dataset of rows that ask to judge a job's answers. It is kept like an upload, so that the judge's job runs like
any other over a dataset."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from typing import IO

from services.bus import Room
from services.errors import ConflictError, InvalidRequestError
from services.results.datasets.index import Request, fingerprint
from services.results.datasets.uploading import Uploads
from services.results.export.item_rows import read_chunks
from services.results.items import filters
from services.results.judging import request_rows
from services.results.runs import job_reads
from services.results.storage import text_retention
from services.results.storage.database import Connection, Database
from services.results.visibility import EVERYTHING
from services.words import chat, rubrics
from touchstone.v1 import dataset_pb2, job_pb2, results_service_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR
from touchstone.v1.rubric_pb2 import Rubric

_EXPRESSIONS = ("task", "item", "repeat", "outcome", "prompt", "reference", "response", "tool_calls")
_PIECE_BYTES = 1024 * 1024
_IN_MEMORY_BYTES = 8 * 1024 * 1024


class Judgings:
    """Prepares judging, in the places for uploads of the judged job's owner."""

    def __init__(self, database: Database, uploads: Uploads, room: Room) -> None:
        self._database, self._uploads, self._room = database, uploads, room
        self._one = asyncio.Lock()

    async def prepare(self, asked: job_pb2.Judging) -> dataset_pb2.Dataset:
        """The dataset; the same one if it was asked for within a day. Its owner is the job's.

        Raises NotFoundError, InvalidRequestError for a rubric that cannot be used, ConflictError for a job without
        answers to judge, and what keeping an upload raises.
        """
        try:
            rubric = rubrics.parse(asked.rubric)
        except ValueError as error:
            raise InvalidRequestError(f"The rubric {error}.", "judging.rubric") from error
        job = await self._database.read(partial(_judgeable, job_id=asked.job_id))
        judging = job_pb2.Judging(
            job_id=job.job_id, rubric=rubrics.written(rubric), repeats=max(1, asked.repeats), attempt=job.attempt
        )
        options = dataset_pb2.DatasetOptions(
            name=f"{rubric.version} for job {job.job_id}",
            owner=job.owner,
            project_id=job.spec.project_id,
            format=dataset_pb2.Dataset.FORMAT_LINES,
            judging=judging,
        )
        options.scoring.scorer, options.scoring.rubric = "judgement", judging.rubric
        # No user can choose an id with spaces.
        request_id = f"judging {fingerprint(judging, request_rows.VERSION).hex()[:40]}"
        request = Request(job.owner, request_id, fingerprint(options, request_rows.VERSION))
        async with self._one:
            made = await self._uploads.made_by(request)
            if made is not None:
                return made
            self._room.require()
            with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as file:
                await self._database.read_long(partial(_write, file=file, job=job, rubric=rubric, judging=judging))
                async with self._uploads.place(job.owner):
                    return await self._uploads.keep(options, _pieces(file), request=request)


def _judgeable(connection: Connection, job_id: str) -> job_pb2.Job:
    job = job_reads.get_job(connection, job_id, EVERYTHING)
    # The seal comes before the news that the job has completed.
    if job_reads.sealed_result(connection, job_id, job.attempt) is None:
        raise ConflictError(f"Job {job_id} has not completed. Judge its answers once it has.")
    if job.spec.HasField("judging"):
        raise ConflictError(f"Job {job_id} judges answers itself. Name the job whose answers are to be judged.")
    if text_retention.dropped_at(connection, job_id):
        raise ConflictError(f"The texts of job {job_id} are no longer stored. Run it again to judge its answers.")
    return job


def _write(connection: Connection, file: IO[bytes], job: job_pb2.Job, rubric: Rubric, judging: job_pb2.Judging) -> None:
    """A line for each judgement, in the order of the items. Raises ConflictError where there is nothing to judge."""
    wanted = results_service_pb2.ListItemsRequest(job_id=job.job_id)
    for chunk in read_chunks(connection, filters.choose(connection, wanted, EVERYTHING), _EXPRESSIONS):
        for found in chunk:
            task, item, repeat, outcome, prompt, reference, response, tool_calls = found.values
            if outcome == OUTCOME_INFRASTRUCTURE_ERROR:
                continue
            answer = chat.answer_text(response, chat.read_calls(tool_calls)) if tool_calls else response
            for judgement in range(1, judging.repeats + 1):
                file.write(request_rows.line(rubric, task, item, repeat, judgement, prompt, reference, answer))
    if not file.tell():
        raise ConflictError(f"Job {job.job_id} has no answers to judge.")
    file.seek(0)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
        yield piece
