"""Jobs as people name them: by the whole id, by a unique part of it, or as the last one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice

import grpc

from services.words.jobs import suite_of
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.errors import InvalidError, NotFoundError

LAST = "last"
READ = 1000
"""The number of newest jobs whose ids are searched."""
_SHORTEST = 4
_SURE = 6
"""The number of digits from which a word counts as part of an id, although it may be a run's name: as many as tables
show."""
_PREFIX = re.compile(r"^(bm_|batch_|…)")
_DIGITS = re.compile(r"[0-9a-f-]+")
_NAMED = 5
"""The most jobs that an ambiguous id lists."""


def job_of(client: Client, word: str) -> str:
    """The id of the named job: an id with or without hyphens, also with the bm_ of the benchmarks API or the batch_ of
    the batches API; at least four characters of its beginning or end; `last`. The service refuses anything else.

    Raises NotFoundError if no job fits, InvalidError if several do.
    """
    if word == LAST:
        return _last(client).job_id
    if whole := _whole(word):
        return whole
    part = _part(word)
    if len(part) < _SHORTEST:
        return word
    found = _fitting(_newest(client), part)
    if not found:
        raise NotFoundError(
            f"None of the newest {READ:,} jobs has an id that starts or ends with {word}. Give the whole id, or "
            "look for it: touchstone list.",
            grpc.StatusCode.NOT_FOUND,
        )
    return _only(word, found)


def run_of(client: Client, word: str) -> str:
    """As `job_of`, for a finished job and a word that may also be the name or hash of a configuration, or a model: such
    a word is returned unchanged."""
    if word == LAST or _whole(word):
        return job_of(client, word)
    part = _part(word)
    found = _fitting(islice(client.jobs(), READ), part) if len(part) >= _SURE else []
    return _only(word, found) if found else word


def _last(client: Client) -> job_pb2.Job:
    # The results service receives a job a moment after the scheduler.
    queue = client.queue()
    known = [*queue.running, *queue.scoring, *queue.pending, *islice(client.jobs(), 1)]
    if not known:
        raise NotFoundError("There is no job yet. Start one: touchstone run.", grpc.StatusCode.NOT_FOUND)
    return max(known, key=lambda job: job.created_at.ToNanoseconds())


def _whole(word: str) -> str:
    """The stored form of a whole id; empty for anything else."""
    digits = _part(word)
    return str(uuid.UUID(digits)) if len(digits) == 32 else ""


def _part(word: str) -> str:
    """The digits of a whole id or of a part of one, without hyphens; empty for anything else."""
    bare = _PREFIX.sub("", word.lower())
    return bare.replace("-", "") if _DIGITS.fullmatch(bare) else ""


def _fitting(jobs: Iterable[job_pb2.Job], part: str) -> list[job_pb2.Job]:
    def fits(job: job_pb2.Job) -> bool:
        digits = job.job_id.replace("-", "")
        return digits.startswith(part) or digits.endswith(part)

    return [*{job.job_id: job for job in jobs if fits(job)}.values()]


def _newest(client: Client) -> Iterator[job_pb2.Job]:
    queue = client.queue()
    yield from queue.running
    yield from queue.scoring
    yield from queue.pending
    yield from islice(client.jobs(), READ)


def _only(word: str, found: list[job_pb2.Job]) -> str:
    if len(found) == 1:
        return found[0].job_id
    listed = "; ".join(f"{job.job_id} ({job.spec.model}, {suite_of(job.spec)})" for job in found[:_NAMED])
    raise InvalidError.of(
        f"{word} fits {len(found)} jobs{', among them' if len(found) > _NAMED else ':'} {listed}. Give more of the id."
    )
