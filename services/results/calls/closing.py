"""Closes recorded runs: their requests become a dataset, and the answers of each model an import over it.

Every step may be repeated: the end of a run by its id, the dataset by its request, imports by their digest, and the
jobs, which the caller creates, by theirs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from weakref import WeakValueDictionary

import nats.errors

import services
from services.bus import Bus, Room
from services.errors import InvalidRequestError, NotFoundError, UnavailableError
from services.results.calls import recorded
from services.results.datasets import index
from services.results.datasets.index import Request
from services.results.datasets.uploading import Uploads
from services.results.imports import store
from services.results.imports.checks import CALLS_BYTES, REASONING_BYTES, RESPONSE_BYTES
from services.results.intake.feeds import Feed
from services.results.storage.database import Connection, Database
from services.results.storage.rounds import rounds
from services.words.jobs import MOST_AT_ONCE, RECORDED, run_name_problem
from touchstone.v1 import dataset_pb2, job_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.call_pb2 import Call, RecordedCall, RecordedRun, RunEnd

log = logging.getLogger(__name__)

_CHECK_S = 2.0
_UNFINISHED_S = 5.0
"""How long closing waits for calls under way."""
_STORED_S = 10.0
_NEWS_S = 5.0
"""How long the news that jobs were created may take."""
_ANSWERS = 200
"""Answers of a message; each has at most half a megabyte."""
_MOST_MODEL = 200
_MOST_FINISH_REASON = 200
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class _Import:
    import_id: str
    dataset_id: str
    job_id: str


class RecordedRuns:
    """The recorded runs of one installation."""

    def __init__(
        self, connection: Bus, database: Database, usage: Feed, events: Feed, uploads: Uploads, room: Room
    ) -> None:
        self._bus = connection
        self._database = database
        self._usage = usage
        self._events = events
        self._uploads = uploads
        self._room = room
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """By owner and name: one change of a run at a time."""

    async def close(self, owner: str, name: str) -> pb.CloseRecordedRunResponse:
        """Closes the open run of that name, or returns what became of the one that was closed last. An earlier run
        whose close was cut off before its jobs existed comes first.

        Raises NotFoundError without such a run, InvalidRequestError for one with calls of too many models, and
        UnavailableError while NATS or the disk does not answer.
        """
        async with self._lock(owner, name):
            run = await self._newest(owner, name)
            if len(run.models) > MOST_AT_ONCE:
                raise InvalidRequestError(
                    f"The recorded run {name} has calls of {len(run.models):,} models, and its jobs are made at once: "
                    f"at most {MOST_AT_ONCE}. Delete it, and record the calls under several names.",
                    "name",
                )
            if not run.HasField("closed_at"):
                await self._settled(run)
                run = await self._end(run)
            made = await self._database.read(partial(_imports, run=run))
            if not all(one is not None and one.job_id for one in made.values()):
                self._room.require()
                made = await self._make(run, made)
        return _response(run, [one for one in made.values() if one is not None])

    async def discard(self, owner: str, name: str) -> RecordedRun:
        """Deletes what a run of that name has recorded: the one that `close` would close. Raises as `close`, and
        NotFoundError for a run that has jobs."""
        async with self._lock(owner, name):
            run = await self._newest(owner, name)
            if run.HasField("closed_at") and await self._has_jobs(run):
                raise NotFoundError(f"The recorded run {name} is closed. Delete its dataset instead.")
            run = await self._end(run, discarded=True)
        await self._tidy_closed(_now())
        return run

    async def keep_tidy(self, max_bytes: int) -> None:
        """Deletes texts that are no longer needed, until cancelled. `max_bytes` bounds those of open runs; 0 means no
        bound."""
        async for _ in rounds(self._database, _CHECK_S):
            with suppress(UnavailableError, nats.errors.Error, OSError):
                await self.tidy(max_bytes, _now())

    async def tidy(self, max_bytes: int, now: datetime) -> None:
        """One round; `now` is UTC without a zone."""
        for run in await self._database.read(partial(recorded.stale, max_bytes=max_bytes, now=now)):
            lock = self._lock(run.owner, run.name)
            if not lock.locked():
                log.info("the recorded run %s of %s is deleted: nobody closed it", run.name, run.owner)
                async with lock:
                    await self._end(run, discarded=True)
        await self._tidy_closed(now)
        if await self._database.read(recorded.has_texts):
            await self._database.write(partial(recorded.forget_texts, now=now))

    async def _tidy_closed(self, now: datetime) -> None:
        for run, position, discarded in await self._database.read(recorded.closed):
            if self._lock(run.owner, run.name).locked():
                continue
            made = await self._database.read(partial(_imports, run=run))
            done = all(one is not None and one.job_id for one in made.values())
            old = run.closed_at.ToDatetime() < now - recorded.KEPT
            if done or discarded or old:
                # First on the stream: the database remembers what is left to do.
                await self._bus.purge_run_texts(run, position)
                await self._database.write(partial(recorded.drop, run_id=run.run_id, now=now))

    async def _newest(self, owner: str, name: str) -> RecordedRun:
        if problem := run_name_problem(name, "name"):
            raise InvalidRequestError(problem, "name")
        # What a call said is on the stream before it is answered, but perhaps not here yet.
        try:
            last = await self._bus.last_usage()
        except (nats.errors.Error, OSError) as error:
            raise UnavailableError("NATS does not answer. Try again in a moment.") from error
        await self._usage.reached(last, _STORED_S)
        run = await self._database.read(partial(recorded.newest, owner=owner, name=name))
        for earlier in await self._database.read(partial(recorded.closed_before, run=run)):
            if not await self._has_jobs(earlier):
                return earlier
        return run

    async def _has_jobs(self, run: RecordedRun) -> bool:
        """Whether the jobs of a closed run exist. Waits a moment for the news: they may have just been created."""
        until = asyncio.get_running_loop().time() + _NEWS_S
        while True:
            made = await self._database.read(partial(_imports, run=run))
            found = [one for one in made.values() if one is not None]
            left = until - asyncio.get_running_loop().time()
            if left <= 0 or len(found) < len(made) or all(one.job_id for one in found):
                return len(found) == len(made) and all(one.job_id for one in found)
            with suppress(UnavailableError):
                await self._events.reached(self._events.position + 1, left)

    def _lock(self, owner: str, name: str) -> asyncio.Lock:
        return self._locks.setdefault((owner, name), asyncio.Lock())

    async def _settled(self, run: RecordedRun) -> None:
        """Waits a moment for calls under way."""
        until = asyncio.get_running_loop().time() + _UNFINISHED_S
        while run.unfinished and (left := until - asyncio.get_running_loop().time()) > 0:
            with suppress(UnavailableError):
                await self._usage.reached(self._usage.position + 1, left)
            run = await self._database.read(partial(recorded.get, run_id=run.run_id))

    async def _end(self, run: RecordedRun, *, discarded: bool = False) -> RecordedRun:
        ended = RunEnd(run_id=run.run_id, discarded=discarded)
        ended.ended_at.GetCurrentTime()
        try:
            position = await self._bus.publish_run_end(run, ended)
        except (nats.errors.Error, OSError) as error:
            raise UnavailableError("NATS does not answer, so the run cannot be closed. Try again.") from error
        await self._usage.reached(position, _STORED_S)
        return await self._database.read(partial(recorded.get, run_id=run.run_id))

    async def _make(self, run: RecordedRun, made: Mapping[str, _Import | None]) -> dict[str, _Import | None]:
        plan = await self._database.read_long(partial(_planned, run_id=run.run_id))
        if not plan.rows:
            raise NotFoundError(
                f"The recorded run {run.name} was closed, but its jobs were not made within a week, so its calls were "
                "deleted. Make them again to record them."
            )
        dataset_id = next((one.dataset_id for one in made.values() if one is not None), "")
        if not dataset_id:
            asked = dataset_pb2.DatasetOptions(name=run.name, owner=run.owner, format=dataset_pb2.Dataset.FORMAT_BATCH)
            asked.last_assistant = job_pb2.LAST_ASSISTANT_PREFILL
            async with self._uploads.place(run.owner):
                lines = self._room.guard(self._lines(run.run_id, plan))
                dataset = await self._uploads.keep(asked, lines, request=Request(run.owner, run.run_id))
            dataset_id = dataset.dataset_id
        found = dict(made)
        for key, one in made.items():
            if one is None:
                requests = self._answers(run, key, dataset_id, plan)
                answer = await store.take(self._database, requests, run.owner, _now())
                found[key] = _Import(answer.import_id, dataset_id, "")
        return found

    async def _lines(self, run_id: str, plan: _Plan) -> AsyncIterator[bytes]:
        """A batch's lines, one for each row."""
        async for row, _, kept in self._texts(plan.rows):
            line = {"custom_id": row, "method": "POST", "url": "/v1/chat/completions"}
            yield f'{json.dumps(line)[:-1]},"body":{kept.request}}}\n'.encode()

    async def _answers(
        self, run: RecordedRun, key: str, dataset_id: str, plan: _Plan
    ) -> AsyncIterator[pb.ImportAnswersRequest]:
        model = key.rpartition("@")[0]
        about = pb.ImportedRun(
            tool=RECORDED,
            tool_version=services.__version__,
            model=model[:_MOST_MODEL],
            dataset_id=dataset_id,
            mode=suite_pb2.MODE_GENERATE,
            digest=_digest(run, key),
        )
        about.completed_at.CopyFrom(run.closed_at)
        # An earlier import of this digest is over a dataset that was deleted.
        request = pb.ImportAnswersRequest(run=about, again=True)
        number = 0
        async for row, call, kept in self._texts(plan.answers[key]):
            request.answers.append(_answer(number, row, call, kept))
            number += 1
            if len(request.answers) == _ANSWERS:
                yield request
                request = pb.ImportAnswersRequest()
        yield request

    async def _texts(self, calls: Mapping[str, str]) -> AsyncIterator[tuple[str, Call, RecordedCall]]:
        """Each row with what its call said. `calls`: row → call."""
        rows = list(calls)
        for start in range(0, len(rows), recorded.CHUNK):
            some = rows[start : start + recorded.CHUNK]
            found = await self._database.read(partial(recorded.some, call_ids=[calls[row] for row in some]))
            for row in some:
                yield row, *found[calls[row]]


@dataclass(slots=True)
class _Plan:
    """`rows`: the id of each row → the call that made it. `answers`: for each model the rows that it has answered → the
    call that answered."""

    rows: dict[str, str] = field(default_factory=dict)
    answers: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))


def _planned(connection: Connection, run_id: str) -> _Plan:
    """Equal requests of different models share a row. Each further equal request of one model is another row, unless it
    repeats one that failed."""
    plan = _Plan()
    asked: defaultdict[tuple[str, str], int] = defaultdict(int)
    failed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for call, kept in recorded.calls(connection, run_id):
        model, request = f"{call.model}@{call.endpoint}", _digest_of(kept.request)
        place = model, request
        if failed[place] and not recorded.error_of(call, kept):
            row = failed[place].pop(0)
        else:
            asked[place] += 1
            row = request if asked[place] == 1 else f"{request}-{asked[place]}"
            if recorded.error_of(call, kept):
                failed[place].append(row)
        plan.rows.setdefault(row, call.call_id)
        plan.answers[model][row] = call.call_id
    return plan


def _digest_of(request: str) -> str:
    same = json.dumps(json.loads(request), sort_keys=True)
    return hashlib.sha256(same.encode()).hexdigest()[:_ID_DIGITS]


def _digest(run: RecordedRun, key: str) -> str:
    """Of an import: closing again finds it by this."""
    return hashlib.sha256(f"{run.run_id}\n{key}".encode()).hexdigest()


def _answer(number: int, row: str, call: Call, kept: RecordedCall) -> pb.ImportedAnswer:
    tokens = (call.input_tokens, call.output_tokens, call.reasoning_tokens)
    input_tokens, output_tokens, reasoning_tokens = (max(0, min(count, 2**31 - 1)) for count in tokens)
    answer = pb.ImportedAnswer(
        task="rows",
        item=number,
        row=json.dumps({"id": row}),
        finish_reason=_cut(kept.finish_reason, _MOST_FINISH_REASON),
        latency_ms=call.latency_ms,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        error=recorded.error_of(call, kept),
        reasoning=_cut(kept.reasoning, REASONING_BYTES),
        reasoning_tokens=reasoning_tokens,
        ttft_ms=call.ttft_ms,
        cost_usd=call.cost_usd if call.HasField("cost_usd") else None,
        served_model=call.served_model,
    )
    if sum(one.ByteSize() for one in kept.tool_calls) > CALLS_BYTES:
        answer.error = f"The tool calls have more than {CALLS_BYTES:,} bytes, so they are not kept."
    else:
        answer.tool_calls.extend(kept.tool_calls)
    answer.response = _cut(kept.response, RESPONSE_BYTES)
    if len(answer.response) < len(kept.response):
        answer.finish_reason = "length"
    return answer


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def _imports(connection: Connection, run: RecordedRun) -> dict[str, _Import | None]:
    """By model: the import of a run's answers, where there is one."""
    return {key: _import(connection, run, key) for key in run.models}


def _import(connection: Connection, run: RecordedRun, key: str) -> _Import | None:
    """The newest that has a job or can have one, for which its dataset must be there."""
    rows = connection.execute(
        "SELECT import_id, job_id, run FROM imports WHERE owner = $owner AND digest = $digest AND whole "
        "AND (job_id <> '' OR dropped_at IS NULL) ORDER BY created_at DESC",
        {"owner": run.owner, "digest": _digest(run, key)},
    ).fetchall()
    there = index.listed(connection) if any(not job_id for _, job_id, _ in rows) else set()
    for import_id, job_id, about in rows:
        dataset_id = pb.ImportedRun.FromString(about).dataset_id
        if job_id or dataset_id in there:
            return _Import(import_id, dataset_id, job_id)
    return None


def _response(run: RecordedRun, made: list[_Import]) -> pb.CloseRecordedRunResponse:
    answer = pb.CloseRecordedRunResponse(run=run, request_id=run.run_id)
    answer.dataset_id = next((one.dataset_id for one in made), "")
    if all(one.job_id for one in made):
        answer.job_ids.extend(one.job_id for one in made)
        return answer
    for key, one in zip(run.models, made, strict=True):
        model, _, endpoint = key.rpartition("@")
        answer.specs.append(
            job_pb2.JobSpec(
                endpoint=RECORDED,
                model=model[:_MOST_MODEL],
                dataset=job_pb2.DatasetWork(dataset_id=one.dataset_id),
                reuse=job_pb2.Reuse(import_id=one.import_id),
                labels={"run": run.name, "endpoint": endpoint},
            )
        )
    return answer


def _now() -> datetime:
    """UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)
