"""The dataset of rows that ask to judge a job's answers. It is kept like an upload, so that the judge's job runs like
any other over a dataset."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import IO, Any

from services.bus import Room
from services.errors import ConflictError, InvalidRequestError
from services.results.datasets.index import Request, fingerprint
from services.results.datasets.uploading import Uploads
from services.results.export.item_rows import read_chunks
from services.results.items import filters
from services.results.judging import request_rows
from services.results.judging.request_rows import Answer
from services.results.runs import job_reads
from services.results.storage import archived_items, text_retention
from services.results.storage.database import Connection, Database, query
from services.results.visibility import EVERYTHING
from services.words import chat, rubrics
from touchstone.v1 import dataset_pb2, job_pb2, results_service_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR
from touchstone.v1.rubric_pb2 import Rubric

_EXPRESSIONS = (
    "task",
    "item",
    "repeat",
    "outcome",
    "prompt",
    "reference",
    "response",
    "tool_calls",
    "custom_id",
    "item_hash",
)
_PIECE_BYTES = 1024 * 1024
_IN_MEMORY_BYTES = 8 * 1024 * 1024


class Judgings:
    """Prepares judging, in the places for uploads of the judged job's owner."""

    def __init__(self, database: Database, uploads: Uploads, room: Room) -> None:
        self._database, self._uploads, self._room = database, uploads, room
        self._one = asyncio.Lock()

    async def prepare(self, asked: job_pb2.Judging) -> dataset_pb2.Dataset:
        """The dataset; the same one if it was asked for within a day. Its owner is the job's. Attempts that are not set
        are those that the service knows.

        Raises NotFoundError, InvalidRequestError for a rubric that cannot be used, ConflictError for a job without
        answers to judge, and what keeping an upload raises.
        """
        try:
            rubric = rubrics.parse(asked.rubric)
        except ValueError as error:
            raise InvalidRequestError(f"The rubric {error}.", "judging.rubric") from error
        job = await self._database.read(partial(_judgeable, job_id=asked.job_id, attempt=asked.attempt))
        judging = job_pb2.Judging(
            job_id=job.job_id, repeats=max(1, asked.repeats), attempt=asked.attempt or job.attempt
        )
        name = f"{rubric.version} for job {job.job_id[-8:]}"
        if asked.against_job_id:
            rubric = rubrics.comparing(rubric)
            other = await self._database.read(
                partial(_judgeable, job_id=asked.against_job_id, attempt=asked.against_attempt)
            )
            judging.against_job_id, judging.against_attempt = other.job_id, asked.against_attempt or other.attempt
            name += f" against job {other.job_id[-8:]}"
        judging.rubric = rubrics.written(rubric)
        options = dataset_pb2.DatasetOptions(
            name=name,
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
                write = _write_pairs if judging.against_job_id else _write
                await self._database.read_long(partial(write, file=file, rubric=rubric, judging=judging))
                options.judging.equal_pairs = judging.equal_pairs
                async with self._uploads.place(job.owner):
                    return await self._uploads.keep(options, _pieces(file), request=request)


def _judgeable(connection: Connection, job_id: str, attempt: int) -> job_pb2.Job:
    job = job_reads.get_job(connection, job_id, EVERYTHING)
    # The seal comes before the news that the job has completed, and even before that of its attempt.
    if job_reads.sealed_result(connection, job_id, attempt or job.attempt) is None:
        raise ConflictError(f"Job {job_id} has not completed. Judge its answers once it has.")
    if job.spec.HasField("judging"):
        raise ConflictError(f"Job {job_id} judges answers itself. Name a job whose answers are to be judged.")
    archived_items.require(connection, job_id)
    if text_retention.dropped_at(connection, job_id):
        raise ConflictError(f"The texts of job {job_id} are no longer stored. Run it again to judge its answers.")
    return job


def _write(connection: Connection, file: IO[bytes], rubric: Rubric, judging: job_pb2.Judging) -> None:
    """A line for each judgement, in the order of the items. Raises ConflictError where there is nothing to judge."""
    for chunk in _answers(connection, judging.job_id):
        for answer, _, _ in chunk:
            file.writelines(request_rows.lines(rubric, answer, judging.repeats))
    if not file.tell():
        raise ConflictError(f"Job {judging.job_id} has no answers to judge.")
    file.seek(0)


def _write_pairs(connection: Connection, file: IO[bytes], rubric: Rubric, judging: job_pb2.Judging) -> None:
    """The same for pairs of answers, and counts the equal ones in `judging`. The rows of the two jobs are matched as in
    the side-by-side view. Raises ConflictError where there is nothing to compare."""
    jobs = [judging.job_id, judging.against_job_id]
    archived_items.require(connection, *jobs)
    keys = connection.execute(query("side_by_side/keys"), {"jobs": jobs}).fetchall()
    by_custom_id = all(told for _, told, _ in keys)
    matched = equal = 0
    for chunk in _answers(connection, judging.job_id):
        others = _others(connection, judging.against_job_id, chunk, by_custom_id)
        for answer, custom_id, item_hash in chunk:
            other = others.get((custom_id,) if by_custom_id else (answer.task, answer.item, answer.repeat, item_hash))
            if other is None:
                continue
            matched += 1
            if other.strip() == answer.text.strip():
                equal += 1
            else:
                file.writelines(request_rows.pair_lines(rubric, answer, other, judging.repeats))
    if not file.tell():
        why = (
            f"all of the {matched:,} answers that both have are equal"
            if matched
            else "they have no answers to the same rows"
        )
        raise ConflictError(f"Jobs {jobs[0]} and {jobs[1]} cannot be compared by a judge: {why}.")
    judging.equal_pairs = equal
    file.seek(0)


_Found = tuple[Answer, str, str]
"""An answer, and the custom id and the hash of its item."""


def _answers(connection: Connection, job_id: str) -> Iterator[list[_Found]]:
    """Those with a final outcome, in the order of the items."""
    wanted = results_service_pb2.ListItemsRequest(job_id=job_id)
    for chunk in read_chunks(connection, filters.choose(connection, wanted, EVERYTHING), _EXPRESSIONS):
        found = []
        for one in chunk:
            task, item, repeat, outcome, prompt, reference, response, tool_calls, *keys = one.values
            if outcome != OUTCOME_INFRASTRUCTURE_ERROR:
                text = _text(response, tool_calls)
                found.append((Answer(task, item, repeat, prompt, reference, text), *keys))
        yield found


def _others(
    connection: Connection, job_id: str, chunk: Sequence[_Found], by_custom_id: bool
) -> dict[tuple[Any, ...], str]:
    """A job's answers to the same rows, by what rows are matched by."""
    rows = connection.execute(
        query("judging/others"),
        {
            "job_id": job_id,
            "by_custom_id": by_custom_id,
            "custom_ids": [custom_id for _, custom_id, _ in chunk],
            "places": [{"task": one.task, "item": one.item, "repeat": one.repeat} for one, _, _ in chunk],
        },
    ).fetchall()
    return {
        (custom_id,) if by_custom_id else (task, item, repeat, item_hash): _text(response, tool_calls)
        for task, item, repeat, custom_id, item_hash, response, tool_calls in rows
    }


def _text(response: str, tool_calls: str | None) -> str:
    return chat.answer_text(response, chat.read_calls(tool_calls)) if tool_calls else response


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
        yield piece
