"""The JOBS bucket, which only the present leader can write.

Its keys: `job.<id>`, `schedule.<id>`, `drain.<evaluator>`, `owner.<hash>`, `request.<hash>`, `outbox.<event>`, `epoch`
and `floor`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import uuid
from collections.abc import Callable, Sequence
from operator import itemgetter

import nats.errors
import nats.js.errors
from google.protobuf.message import DecodeError

from services import bus
from services.bus import heed_cancel
from services.errors import NotFoundError
from services.scheduler.jobs.job import Job
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.nats.lease import ends_leadership
from services.scheduler.ports import Change, LeadershipLostError
from services.words import refusals
from touchstone.v1 import evaluator_pb2, job_pb2, job_record_pb2, schedule_pb2

Write = tuple[str, bytes, dict[str, str]]
"""Subject, value and headers."""

_COMMIT_S = 5.0


class FencedBucket:
    """The JOBS bucket under one leadership: every write expects the epoch key as this leader wrote it."""

    def __init__(self, connection: bus.Bus, epoch: int) -> None:
        self._bus = connection
        self._epoch = epoch

    def write(self, key: str, value: bytes, headers: dict[str, str] | None = None) -> Write:
        """One message for `atomic`."""
        fence = {
            "Nats-Expected-Last-Subject-Sequence": str(self._epoch),
            "Nats-Expected-Last-Subject-Sequence-Subject": bus.kv_subject(bus.JOBS, bus.EPOCH_KEY),
        }
        return bus.kv_subject(bus.JOBS, key), value, fence | bus.REPLACE | (headers or {})

    async def atomic(self, writes: Sequence[Write]) -> None:
        """Publishes up to 1,000 messages, all or none. Raises LeadershipLostError."""
        client = self._bus.client
        batch = uuid.uuid4().hex
        for i, (subject, data, extra) in enumerate(writes, 1):
            headers = extra | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(i)}
            if i == len(writes):
                headers["Nats-Batch-Commit"] = "1"
            with ends_leadership("the outcome of a write is unknown"):
                if i not in (1, len(writes)):
                    await client.publish(subject, data, headers=headers)
                    continue
                # The first reply says that the batch is open, the last that it is stored.
                reply = await client.request(subject, data, headers=headers, timeout=_COMMIT_S)
            refusal = json.loads(reply.data).get("error") if reply.data else None
            if refusal:
                raise LeadershipLostError(f"a write was refused: {refusal.get('description')}")

    async def remove(self, key: str) -> None:
        """Raises LeadershipLostError."""
        _, _, fence = self.write(key, b"")
        with ends_leadership("a record could not be removed"):
            await self._bus.kv_delete(bus.JOBS, key, fence)


log = logging.getLogger(__name__)

_BATCH = 500
_NAME = re.compile(r"[\w-]+")


class JobStore:
    """Writes under the epoch of one leadership; the audit outbox is relayed by `relay`."""

    def __init__(self, connection: bus.Bus, epoch: int, aside: bus.SettingAside) -> None:
        self._bus = connection
        self._epoch = epoch
        self._aside = aside
        self._bucket = FencedBucket(connection, epoch)
        self._events = 0
        self._outbox: asyncio.Queue[tuple[str, job_pb2.JobEvent]] = asyncio.Queue()
        self.in_outbox: set[str] = set()
        """Jobs with events that earlier leaderships have not relayed."""

    def event_id(self) -> str:
        """Unique and increasing over all leaderships."""
        self._events += 1
        return f"{self._epoch:012d}-{self._events:08d}"

    async def load(self, rehearse: Callable[[Job], object]) -> list[Job]:
        """Every job in the bucket that can be read and with which `rehearse` works; queues unrelayed audit events,
        oldest first. Others are set aside and stay in the bucket, as a newer version may know what they mean."""
        jobs = []
        with ends_leadership("jobs could not be read"):
            async for key, msg in self._bus.kv_all(bus.JOBS, "job.*"):
                async with self._aside.guard(msg):
                    job = Job.load(job_record_pb2.JobRecord.FromString(msg.data))
                    if bus.job_key(job.id) != key:
                        raise ValueError(f"{key} holds job {job.id}.")
                    rehearse(job)
                    jobs.append(job)
            await self._load_outbox()
        return jobs

    async def _load_outbox(self) -> None:
        events: list[tuple[str, job_pb2.JobEvent]] = []
        async for key, msg in self._bus.kv_all(bus.JOBS, "outbox.*"):
            async with self._aside.guard(msg):
                event = job_pb2.JobEvent.FromString(msg.data)
                if f"outbox.{event.event_id}" != key or not _NAME.fullmatch(event.job.job_id):
                    # An event that cannot be published would delay all that follow.
                    raise ValueError(f"{key} holds event {event.event_id!r} of job {event.job.job_id!r}.")
                events.append((key, event))
        for entry in sorted(events, key=itemgetter(0)):
            self._outbox.put_nowait(entry)
        self.in_outbox = {event.job.job_id for _, event in events}

    async def commit(self, changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        writes: list[Write] = []
        owners: dict[str, str] = {}
        requests: dict[str, list[str]] = {}
        events: list[tuple[str, job_pb2.JobEvent]] = []
        for change in changes:
            job = change.job
            headers = bus.JobHeaders(job.state, job.message.attempt, job.message.spec.dataset.dataset_id).encode()
            writes.append(self._bucket.write(bus.job_key(job.id), job.record().SerializeToString(), headers))
            if change.event is None:
                continue
            key = f"outbox.{change.event.event_id}"
            events.append((key, change.event))
            writes.append(self._bucket.write(key, change.event.SerializeToString()))
            owner = job.message.owner
            owners[f"owner.{_hash(owner)}"] = str(pending_by_owner.get(owner, 0))
            if change.event.action == "created" and job.request_id:
                requests.setdefault(_request_key(owner, job.request_id), []).append(job.id)
        texts = owners | {key: " ".join(job_ids) for key, job_ids in requests.items()}
        writes += [self._bucket.write(key, text.encode()) for key, text in texts.items()]
        for i in range(0, len(writes), _BATCH):
            await self._bucket.atomic(writes[i : i + _BATCH])
        for entry in events:
            self._outbox.put_nowait(entry)

    async def forget(self, job: Job) -> None:
        keys = [bus.job_key(job.id)]
        if job.request_id:
            keys.append(_request_key(job.message.owner, job.request_id))
        for key in keys:
            await self._bucket.remove(key)

    async def set_floor(self, sequence: int) -> None:
        await self._bucket.atomic([self._bucket.write(bus.FLOOR_KEY, str(sequence).encode())])

    async def find_request(self, owner: str, request_id: str) -> Sequence[str]:
        with ends_leadership("a request could not be looked up"):
            msg = await self._bus.kv_get(bus.JOBS, _request_key(owner, request_id))
        return msg.data.decode(errors="replace").split() if msg and msg.data else []

    async def last_told(self, job_id: str) -> job_pb2.JobEvent | None:
        with ends_leadership("the audit trail could not be read"):
            try:
                msg = await self._bus.js.get_last_msg(bus.AUDIT, bus.audit_subject(job_id))
            except nats.js.errors.NotFoundError:
                return None
        try:
            return job_pb2.JobEvent.FromString(msg.data or b"")
        except DecodeError:
            # The reader of the trail sets it aside.
            return None

    async def tell(self, event: job_pb2.JobEvent) -> None:
        with ends_leadership("an audit event could not be published"):
            await self._publish(event)

    async def relay(self) -> None:
        """Publishes audit events in order, then removes them from the outbox. At least once; the event id makes a
        repetition harmless."""
        while True:
            heed_cancel()
            key, event = await self._outbox.get()
            while True:
                heed_cancel()
                try:
                    await self._publish(event)
                    await self._bus.kv_delete(bus.JOBS, key)
                    break
                except (nats.errors.Error, nats.js.errors.Error) as error:
                    log.warning("audit event waits: %s", error or type(error).__name__)
                    await asyncio.sleep(0.5)

    async def _publish(self, event: job_pb2.JobEvent) -> None:
        # Within two minutes, the event id prevents a second message.
        headers = {"Nats-Msg-Id": event.event_id}
        await self._bus.js.publish(bus.audit_subject(event.job.job_id), event.SerializeToString(), headers=headers)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _request_key(owner: str, request_id: str) -> str:
    return f"request.{_hash(owner)}.{_hash(request_id)}"


class ScheduleStore:
    """Schedules of one leadership."""

    def __init__(self, connection: bus.Bus, epoch: int, aside: bus.SettingAside) -> None:
        self._bus = connection
        self._aside = aside
        self._bucket = FencedBucket(connection, epoch)

    async def load(self) -> list[schedule_pb2.Schedule]:
        """Those that can be read; others are set aside and stay in the bucket."""
        schedules = []
        with ends_leadership("schedules could not be read"):
            async for key, msg in self._bus.kv_all(bus.JOBS, "schedule.*"):
                async with self._aside.guard(msg):
                    schedule = schedule_pb2.Schedule.FromString(msg.data)
                    if _key(schedule.schedule_id) != key:
                        raise ValueError(f"{key} holds schedule {schedule.schedule_id}.")
                    schedules.append(schedule)
        return schedules

    async def put(self, schedule: schedule_pb2.Schedule) -> None:
        await self._bucket.atomic([self._bucket.write(_key(schedule.schedule_id), schedule.SerializeToString())])

    async def remove(self, schedule_id: str) -> None:
        await self._bucket.remove(_key(schedule_id))


def _key(schedule_id: str) -> str:
    return f"schedule.{schedule_id}"


class Drains:
    """Evaluators that admins drain, under one leadership. Each evaluator reads its own key."""

    def __init__(self, connection: bus.Bus, epoch: int, registry: JobRegistry) -> None:
        self._bus = connection
        self._bucket = FencedBucket(connection, epoch)
        self._registry = registry

    async def load(self) -> None:
        with ends_leadership("drained evaluators could not be read"):
            async for key, msg in self._bus.kv_all(bus.JOBS, bus.drain_key("*")):
                if msg.data:
                    self._registry.fleet.drained.add(key.removeprefix(bus.drain_key("")))

    async def set(self, evaluator: str, drain: bool, actor: str, now: float) -> evaluator_pb2.Evaluator:
        """Drains or resumes an evaluator. Raises NotFoundError for one that was never announced."""
        self._found(evaluator, now)
        await self._registry.finish_anyway(self._set(evaluator, drain, actor))
        return self._found(evaluator, now)

    async def _set(self, evaluator: str, drain: bool, actor: str) -> None:
        drained = self._registry.fleet.drained
        async with self._registry.lock:
            if drain == (evaluator in drained):
                return
            if drain:
                # No unit goes out for it from now on, whatever becomes of the write.
                drained.add(evaluator)
                await self._bucket.atomic([self._bucket.write(bus.drain_key(evaluator), actor.encode())])
            else:
                await self._bucket.remove(bus.drain_key(evaluator))
                drained.discard(evaluator)
        log.info("evaluator %s is %s by %s", evaluator, "drained" if drain else "resumed", actor)
        self._registry.wake.set()

    def _found(self, evaluator: str, now: float) -> evaluator_pb2.Evaluator:
        for one in self._registry.fleet.evaluators(now):
            if one.evaluator == evaluator:
                return one
        raise NotFoundError(refusals.not_found("Evaluator", evaluator))
