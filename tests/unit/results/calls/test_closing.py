"""Closing a recorded run while services are killed at any step: closing again finishes it, and makes nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from services.bus import Datasets
from services.errors import InvalidRequestError, NotFoundError
from services.results.calls import closing, recorded
from services.results.calls.closing import RecordedRuns
from services.results.datasets import child, index
from services.results.datasets.deleting import Expiry
from services.results.datasets.frames import Shard
from services.results.datasets.garbage_collection import Collector, ShardHolds
from services.results.datasets.uploading import UploadLimits, Uploads
from services.results.imports import store as imports
from services.results.storage.database import Connection, Database
from tests.unit.results.calls.test_recorded import NOW, Stream, made
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.call_pb2 import Call, RecordedRun, RunEnd

T = TypeVar("T")


class Killed(BaseException):
    """The process is gone: nothing that it begins from here on happens."""


class Steps:
    """Counts what one process does to the outside, and kills it after one of these steps."""

    def __init__(self, last: int | None = None) -> None:
        self._left = last
        self._dead = False

    async def take(self, step: Callable[[], Any]) -> Any:
        if self._dead:
            raise Killed
        if self._left is None:
            return await step()
        self._left -= 1
        self._dead = not self._left
        done = await step()
        if self._dead:
            raise Killed
        return done


class Disk(Datasets):
    """Datasets that survive every process."""

    def __init__(self) -> None:
        self.shards_: dict[str, bytes] = {}
        self.manifests: dict[str, dataset_pb2.DatasetManifest] = {}
        self.steps = Steps()

    async def put_shard(self, digest: str, data: bytes) -> None:
        async def put() -> None:
            self.shards_[digest] = data

        await self.steps.take(put)

    async def put_manifest(self, manifest: dataset_pb2.DatasetManifest) -> None:
        async def put() -> None:
            self.manifests[manifest.dataset.dataset_id] = manifest

        await self.steps.take(put)

    async def list(self) -> set[str]:
        return set(self.manifests)

    async def get_manifest(self, dataset_id: str) -> dataset_pb2.DatasetManifest | None:
        return self.manifests.get(dataset_id)


class Mortal(Database):
    """Writes as long as its process lives."""

    steps = Steps()

    async def write(self, change: Callable[[Connection], T], *, of_jobs: bool = True) -> T:
        return await self.steps.take(partial(super().write, change, of_jobs=of_jobs))  # type: ignore[no-any-return]

    async def checkpoint(self) -> None:
        await self.steps.take(super().checkpoint)


class World:
    """What outlives the processes, and a results service in its present life. The scheduler makes jobs once for each
    request, and the results service hears of them late."""

    def __init__(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connection = connection
        self.stream = Stream(connection)
        self.disk = Disk()
        self.jobs: dict[str, list[job_pb2.Job]] = {}
        self.at_end: Callable[[], object] = lambda: None
        monkeypatch.setattr(child, "read", self._read)
        monkeypatch.setattr(closing, "_NEWS_S", 0)

    async def start(self, steps: Steps | None = None) -> None:
        self.steps = steps or Steps()
        database = Mortal(self.connection)
        await imports.forget_unfinished(database)
        holds = ShardHolds()
        collector = Collector(self.disk, database, holds)
        await collector.reconcile()
        self.disk.steps = database.steps = self.steps
        uploads = Uploads(self.disk, database, holds, collector, Expiry(database, self.disk.delete), UploadLimits())
        room: Any = SimpleNamespace(require=lambda: None, guard=lambda pieces: pieces)
        bus: Any = SimpleNamespace(
            publish_run_end=self._publish_run_end, last_usage=self._last_usage, purge_run_texts=self._purge
        )
        feed: Any = SimpleNamespace(reached=self._reached, position=0)
        self.runs = RecordedRuns(bus, database, feed, feed, uploads, room)
        self._database = database

    async def close(self, name: str = "support") -> pb.CloseRecordedRunResponse:
        """As the gateway does it. The jobs' ids are in the answer."""
        made = await self.runs.close("ann", name)
        if made.specs:
            made.job_ids.extend(await self.steps.take(lambda: self._create(made)))
        return made

    def hear_of_jobs(self) -> None:
        for created in self.jobs.values():
            for job in created:
                imports.note_job(self.connection, job)

    def count(self, table: str) -> int:
        ((found,),) = self.connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(found)

    def answers(self, import_id: str) -> list[str]:
        rows = self.connection.execute(
            "SELECT response FROM imported_answers WHERE import_id = $id ORDER BY item", {"id": import_id}
        ).fetchall()
        return [response for (response,) in rows]

    async def _create(self, made: pb.CloseRecordedRunResponse) -> list[str]:
        specs = list(made.specs)
        if made.request_id not in self.jobs:
            first = sum(map(len, self.jobs.values()))
            self.jobs[made.request_id] = [
                job_pb2.Job(job_id=f"{first + place:03}", spec=spec) for place, spec in enumerate(specs)
            ]
        assert [job.spec for job in self.jobs[made.request_id]] == specs, "one request has one content"
        return [job.job_id for job in self.jobs[made.request_id]]

    async def _publish_run_end(self, run: RecordedRun, ended: RunEnd) -> int:
        async def publish() -> int:
            self.at_end()
            self.stream.send_end(run, ended)
            return len(self.stream.sent)

        return int(await self.steps.take(publish))

    async def _last_usage(self) -> int:
        return len(self.stream.sent)

    async def _reached(self, position: int, timeout_s: float) -> None: ...

    async def _purge(self, run: RecordedRun, last: int) -> None: ...

    async def _read(
        self, asked: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes], *_: Any
    ) -> AsyncGenerator[Shard | dataset_pb2.Dataset]:
        lines = [line async for line in pieces]
        assert lines, "an empty file is no dataset"
        for line in lines:
            yield Shard(hashlib.sha256(line).digest(), 1, line)
        yield dataset_pb2.Dataset(rows=len(lines), digest=hashlib.sha256(b"".join(lines)).hexdigest())


@pytest.fixture
def world(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(connection, monkeypatch)


def fill(world: World, name: str = "support", first: int = 1) -> None:
    for place, (text, model) in enumerate((("one", "m"), ("two", "m"), ("one", "other"))):
        world.stream.call(first + place, text, f"{text} by {model}", model=model, run=name)


@pytest.mark.stack
async def test_a_kill_after_any_step_leaves_what_closing_again_finishes(world: World) -> None:
    for step in count(1):
        name = f"run-{step}"
        await world.start(Steps(step))
        fill(world, name, 10 * step)
        before = len(world.disk.manifests), world.count("imports")
        try:
            await world.close(name)
        except Killed:
            await world.start()
        else:
            assert step > 10, "closing takes several steps"
            return
        first = await world.close(name)
        assert await world.close(name) == first
        world.hear_of_jobs()
        done = await world.close(name)
        assert (done.dataset_id, done.job_ids, len(done.specs)) == (first.dataset_id, first.job_ids, 0)
        assert len(done.job_ids) == 2
        listed = [one for one in world.disk.manifests.values() if one.dataset.name == name]
        assert [one.dataset.dataset_id for one in listed] == [first.dataset_id]
        assert (len(world.disk.manifests), world.count("imports")) == (before[0] + 1, before[1] + 2)
        found = [world.answers(spec.reuse.import_id) for spec in first.specs]
        assert found == [["one by m", "two by m"], ["one by other"]]


async def test_two_closes_at_once_are_one(world: World) -> None:
    await world.start()
    fill(world)
    first, second = await asyncio.gather(world.close(), world.close())
    assert first == second
    assert (len(world.disk.manifests), world.count("imports"), len(world.jobs)) == (1, 2, 1)


async def test_a_close_that_was_cut_off_is_finished_before_the_next_run_of_that_name(world: World) -> None:
    await world.start(Steps(1))
    fill(world)
    with pytest.raises(Killed):
        await world.close()
    await world.start()
    fill(world, first=20)
    first = await world.close()
    assert first.run.run_id == made(1).call_id
    world.hear_of_jobs()
    second = await world.close()
    assert second.run.run_id == made(20).call_id
    assert not set(first.job_ids) & set(second.job_ids)
    world.hear_of_jobs()
    assert (await world.close()).job_ids == second.job_ids


@pytest.mark.parametrize("step", range(1, 12))
async def test_a_dataset_that_is_deleted_before_the_jobs_exist_is_made_again(world: World, step: int) -> None:
    fill(world)
    await world.start(Steps(step))
    try:
        await world.close()
    except Killed:
        await world.start()
    lost = [*world.disk.manifests]
    for dataset_id in lost:
        del world.disk.manifests[dataset_id]
        index.mark_deleted(world.connection, dataset_id, NOW.replace(tzinfo=None))
    world.jobs.clear()  # The scheduler creates none over a dataset that is not there.
    done = await world.close()
    assert [*world.disk.manifests] == [done.dataset_id]
    assert done.dataset_id not in lost
    found = [world.answers(spec.reuse.import_id) for spec in done.specs]
    assert found == [["one by m", "two by m"], ["one by other"]]
    assert {spec.dataset.dataset_id for spec in done.specs} == {done.dataset_id}
    assert await world.close() == done
    world.hear_of_jobs()
    assert (await world.close()).job_ids == done.job_ids


async def test_a_call_that_ends_while_its_run_is_closed_is_in_one_run(world: World) -> None:
    await world.start()
    fill(world)
    world.at_end = partial(world.stream.call, 8, "late", "before the end")
    first = await world.close()
    assert world.answers(first.specs[0].reuse.import_id)[-1] == "before the end"
    world.at_end = lambda: None
    world.hear_of_jobs()
    world.stream.call(9, "late", "after the end")
    second = await world.close()
    assert world.answers(second.specs[0].reuse.import_id) == ["after the end"]


async def test_what_is_left_of_a_run_whose_texts_are_gone_is_said(world: World) -> None:
    fill(world)
    await world.start(Steps(1))
    with pytest.raises(Killed):
        await world.close()
    await world.start()
    ((run, _, _),) = recorded.closed(world.connection)
    recorded.drop(world.connection, run.run_id, NOW.replace(tzinfo=None))
    with pytest.raises(NotFoundError, match="The recorded run support was closed, but its jobs were not made"):
        await world.close()
    assert not world.disk.manifests


async def test_a_run_with_calls_of_too_many_models_is_refused_before_it_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.start()
    fill(world)
    monkeypatch.setattr(closing, "MOST_AT_ONCE", 1)
    with pytest.raises(InvalidRequestError, match="calls of 2 models, and its jobs are made at once: at most 1"):
        await world.close()
    assert not recorded.newest(world.stream.connection, "ann", "support").HasField("closed_at")
    assert (len(world.disk.manifests), world.count("imports")) == (0, 0)
    await world.runs.discard("ann", "support")


async def test_a_run_without_jobs_can_be_deleted_after_its_end(world: World) -> None:
    fill(world)
    await world.start(Steps(1))
    with pytest.raises(Killed):
        await world.close()
    await world.start()
    await world.runs.discard("ann", "support")
    with pytest.raises(NotFoundError):
        await world.close()
    assert world.count("recorded_calls") == 0
    fill(world, first=20)
    done = await world.close()
    assert done.run.run_id == made(20).call_id
    world.hear_of_jobs()
    with pytest.raises(NotFoundError, match="Delete its dataset instead"):
        await world.runs.discard("ann", "support")


@pytest.mark.parametrize("closes_first", [True, False])
async def test_deleting_while_closing_deletes_all_or_nothing(world: World, closes_first: bool) -> None:
    await world.start()
    fill(world)
    both: list[Coroutine[Any, Any, object]] = [world.close(), world.runs.discard("ann", "support")]
    first, second = await asyncio.gather(*(both if closes_first else reversed(both)), return_exceptions=True)
    assert not isinstance(first, BaseException)
    # Where the close is not known to have made jobs, deleting takes what is left of the calls, not what was made.
    assert isinstance(second, pb.CloseRecordedRunResponse | RecordedRun | NotFoundError)
    assert len(world.disk.manifests) == closes_first


async def test_answers_as_providers_may_give_them_can_be_closed(world: World) -> None:
    await world.start()
    world.stream.call(1, "empty", "")
    world.stream.call(2, "large", "é" * 1_500_000)
    world.stream.call(3, "odd", "a\0b", finish_reason="x" * 5000, input_tokens=-3, reasoning_tokens=-1)
    world.stream.call(4, "failed", outcome=Call.OUTCOME_FAILED, error="😀" * 1000)
    done = await world.close()
    found = world.answers(done.specs[0].reuse.import_id)
    assert [len(one) for one in found][:1] == [0]
    assert found[2] == "a\0b"
    assert len(found) == 4


async def test_nobody_else_closes_or_deletes_a_run(world: World) -> None:
    await world.start()
    fill(world)
    for call in (world.runs.close, world.runs.discard):
        with pytest.raises(NotFoundError):
            await call("bob", "support")
    assert world.count("recorded_calls") == 3
