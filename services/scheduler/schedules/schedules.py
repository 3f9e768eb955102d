"""Schedules: callers' requests, and the jobs that schedules make at their times.

A time makes one job, or the jobs of one decision in one write, through any crash: their request id names schedule and
time, and the schedule moves on only after they are stored. A paused schedule has no next time. One job makes up for
times that passed without a leader, or while a disk had no room for new jobs. When the clock steps back, each schedule
computes its next time again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Callable
from contextlib import suppress

from services.bus import Level
from services.errors import (
    ConflictError,
    DeadlineError,
    InvalidRequestError,
    LimitReachedError,
    NoRoomError,
    NotFoundError,
    PermissionDeniedError,
    TouchstoneError,
    UnavailableError,
)
from services.rpc import Identity, check_request_id
from services.scheduler.admission import decision_rules, watch_rules
from services.scheduler.jobs.job import seconds, stamp
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import LeadershipLostError, Schedules
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.visibility import Reads
from services.scheduler.schedules.cron import Cron, next_time, note_done
from services.telemetry import metrics
from services.words import refusals
from services.words.decisions import decision_id
from services.words.jobs import require_project
from touchstone.v1 import job_pb2, schedule_pb2, token_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

log = logging.getLogger(__name__)

_TICK_S = 1.0
_MOST_LABEL = 80
_LATER_S = 3600


class Timetable:
    """Every schedule, under one leadership. `wall` gives seconds since 1970 by the system's clock, unlike the
    registry's clock, which stops while the machine sleeps."""

    def __init__(
        self, registry: JobRegistry, desk: Desk, store: Schedules, reads: Reads, wall: Callable[[], float]
    ) -> None:
        self._registry, self._desk, self._store, self._reads, self._wall = registry, desk, store, reads, wall
        self._schedules: dict[str, schedule_pb2.Schedule] = {}
        self._lock = asyncio.Lock()
        self._making: set[str] = set()
        self._seen = math.inf
        """What the clock showed last."""

    async def load(self) -> None:
        """Takes over what is stored."""
        self._schedules = {schedule.schedule_id: schedule for schedule in await self._store.load()}

    # -- requests ----------------------------------------------------------------------------------------------

    async def create(
        self,
        caller: Identity,
        request_id: str,
        cron: str,
        time_zone: str,
        spec: job_pb2.JobSpec,
        label: str,
        watching: job_pb2.Watching | None = None,
        decision: pb.StartDecisionRequest | None = None,
    ) -> schedule_pb2.Schedule:
        """Of a watch, if `watching` says what it asks; of decisions, if `decision` says which, its baseline being
        `spec`. The same request id returns the same schedule.

        Raises InvalidRequestError, LimitReachedError, ConflictError, PermissionDeniedError, and what a job with this
        spec would raise.
        """
        check_request_id(request_id)
        limits, now = self._registry.limits, self._wall()
        times = Cron(cron, time_zone)
        times.require_period(limits.schedule_period_s, now)
        if len(label) > _MOST_LABEL or not label.isprintable():
            raise InvalidRequestError(f"label must have at most {_MOST_LABEL} characters, all printable.", "label")
        sides = decision_rules.sides(decision) if decision is not None else []
        specs = decision_rules.specs(decision) if decision is not None else [spec]
        checked, *candidates = [await self._desk.check(caller, one) for one in specs]
        if watching is not None:
            checked.watching.CopyFrom(watching)
        for one, side in zip((checked, *candidates), sides, strict=False):
            one.deciding.CopyFrom(side)
        schedule = schedule_pb2.Schedule(
            schedule_id=str(uuid.uuid4()),
            owner=caller.user,
            label=label,
            cron=" ".join(cron.split()),
            time_zone=time_zone or "UTC",
            spec=checked,
            candidates=candidates,
            request_id=request_id,
        )
        stamp(schedule.created_at, now)
        stamp(schedule.next_at, times.next(now))
        return await self._registry.finish_anyway(self._add(schedule))

    async def _add(self, schedule: schedule_pb2.Schedule) -> schedule_pb2.Schedule:
        async with self._lock:
            mine = [known for known in self._schedules.values() if known.owner == schedule.owner]
            for known in mine:
                if schedule.request_id and known.request_id == schedule.request_id:
                    if _asked(known) != _asked(schedule):
                        raise ConflictError(refusals.id_used(known.request_id, f"schedule {known.schedule_id}"))
                    return known
            most = self._registry.limits.schedules_per_owner
            if len(mine) >= most:
                metrics.REFUSALS.add("schedules")
                raise LimitReachedError(refusals.quota(most, "schedules"), _LATER_S)
            await self._store.put(schedule)
            self._schedules[schedule.schedule_id] = schedule
            return schedule

    def list(self, caller: Identity, owner: str, project_id: int = 0) -> list[schedule_pb2.Schedule]:
        """What the caller may see of one owner and project, or of all for an empty one and 0; oldest first."""
        require_project(project_id)
        found = [
            self._shown(caller, schedule)
            for schedule in self._schedules.values()
            if owner in ("", schedule.owner)
            and project_id in (0, schedule.spec.project_id)
            and self._reads.sees(caller, schedule.owner)
        ]
        return sorted(found, key=lambda schedule: (schedule.created_at.ToNanoseconds(), schedule.schedule_id))

    def _shown(self, caller: Identity, schedule: schedule_pb2.Schedule) -> schedule_pb2.Schedule:
        shown = schedule_pb2.Schedule()
        shown.CopyFrom(schedule)
        shown.ClearField("done")
        del shown.spec.watching.canaries[:]
        if not schedule.spec.HasField("watching"):
            shown.spec.ClearField("watching")
        if self._waits_for_room(schedule, self._wall()):
            shown.last_problem = self._registry.room.sentence
        if not caller.is_admin and caller.user != schedule.owner:
            for spec in (shown.spec, *shown.candidates):
                spec.ClearField("webhook_url")
            shown.ClearField("request_id")
        return shown

    async def delete(self, caller: Identity, schedule_id: str) -> None:
        """Its jobs stay. Raises NotFoundError, PermissionDeniedError."""
        await self._registry.finish_anyway(self._delete(caller, schedule_id))

    async def _delete(self, caller: Identity, schedule_id: str) -> None:
        async with self._lock:
            self._own(caller, schedule_id, "delete it")
            await self._store.remove(schedule_id)
            del self._schedules[schedule_id]

    async def set_paused(self, caller: Identity, schedule_id: str, paused: bool) -> schedule_pb2.Schedule:
        """Pauses or resumes it; one that is so already stays as it is. A time at which its job is being created still
        creates it. Raises NotFoundError, PermissionDeniedError."""
        return await self._registry.finish_anyway(self._set_paused(caller, schedule_id, paused))

    async def _set_paused(self, caller: Identity, schedule_id: str, paused: bool) -> schedule_pb2.Schedule:
        async with self._lock:
            schedule = schedule_pb2.Schedule()
            schedule.CopyFrom(self._own(caller, schedule_id, "change it"))
            if paused != schedule.HasField("paused_at"):
                if paused:
                    stamp(schedule.paused_at, self._wall())
                    schedule.ClearField("next_at")
                else:
                    schedule.ClearField("paused_at")
                    self._plan(schedule, self._wall())
                await self._store.put(schedule)
                self._schedules[schedule_id] = schedule
            return self._shown(caller, schedule)

    def _own(self, caller: Identity, schedule_id: str, act: str) -> schedule_pb2.Schedule:
        """Raises NotFoundError, PermissionDeniedError."""
        schedule = self._schedules.get(schedule_id)
        if schedule is None or not self._reads.sees(caller, schedule.owner):
            raise NotFoundError(refusals.not_found("Schedule", schedule_id))
        if not caller.is_admin and caller.user != schedule.owner:
            raise PermissionDeniedError(refusals.not_yours("Schedule", schedule_id, schedule.owner, act))
        return schedule

    # -- time --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Makes the jobs that are due, until cancelled. Raises LeadershipLostError."""
        async with asyncio.TaskGroup() as group:
            while True:
                now = self._wall()
                if now < self._seen:
                    # At the start, too: the clock may have been set while there was no leader.
                    await self._look_again()
                self._seen = now
                for schedule in self._schedules.values():
                    due = _is_due(schedule, now) and not self._waits_for_room(schedule, now)
                    if due and schedule.schedule_id not in self._making:
                        # In parallel: one may have to wait for the results service.
                        self._making.add(schedule.schedule_id)
                        group.create_task(self._come_due(schedule))
                await asyncio.sleep(_TICK_S)

    def _waits_for_room(self, schedule: schedule_pb2.Schedule, now: float) -> bool:
        return self._registry.room.level is not Level.ENOUGH and _is_due(schedule, now)

    async def _look_again(self) -> None:
        """Moves every next time forward to the earliest time that has not made a job."""
        async with self._lock:
            for known in list(self._schedules.values()):
                schedule = schedule_pb2.Schedule()
                schedule.CopyFrom(known)
                self._plan(schedule, self._wall())
                ahead = schedule.HasField("next_at") and known.HasField("next_at")
                if ahead and self._wall() < seconds(schedule.next_at) < seconds(known.next_at):
                    log.info("schedule %s: the clock was ahead; its next time is earlier again", known.schedule_id)
                    await self._store.put(schedule)
                    self._schedules[schedule.schedule_id] = schedule

    async def _come_due(self, due: schedule_pb2.Schedule) -> None:
        schedule = schedule_pb2.Schedule()
        schedule.CopyFrom(due)
        try:
            await self._make_job(schedule)
            self._move_on(schedule)
            async with self._lock:
                if schedule.schedule_id in self._schedules:
                    # It may have been paused meanwhile.
                    now = self._schedules[schedule.schedule_id]
                    if now.HasField("paused_at"):
                        schedule.paused_at.CopyFrom(now.paused_at)
                        schedule.ClearField("next_at")
                    await self._store.put(schedule)
                    self._schedules[schedule.schedule_id] = schedule
        except NoRoomError:
            # It stays due.
            log.info("schedule %s waits for disk space", schedule.schedule_id)
        finally:
            self._making.discard(schedule.schedule_id)

    async def _make_job(self, schedule: schedule_pb2.Schedule) -> None:
        watches, decides = schedule.spec.HasField("watching"), bool(schedule.candidates)
        if (watches or decides) and self._last_is_live(schedule):
            which = "decision," if decides else "run, job"
            schedule.last_problem = f"Its last {which} {schedule.last_job_id}, has not ended yet."
            return
        specs = _next_jobs(schedule)
        for spec in specs:
            spec.schedule_id = schedule.schedule_id
        owner = Identity(schedule.owner, token_pb2.ROLE_USER)
        try:
            if watches:
                await self._require_reference(schedule)
            job, *_ = await self._desk.create_scheduled(owner, _request_id(schedule), specs)
        except (LeadershipLostError, NoRoomError):
            raise
        except TouchstoneError as error:
            schedule.last_problem = error.message
            log.warning("schedule %s made no job: %s", schedule.schedule_id, error.message)
            return
        schedule.last_problem = ""
        schedule.last_job_id = job.job_id
        if watches:
            # By what the job asks: a repeated time finds its job.
            schedule.canaries_asked = job.spec.watching.start + len(job.spec.watching.canaries)
        schedule.last_at.CopyFrom(job.created_at)

    async def _require_reference(self, schedule: schedule_pb2.Schedule) -> None:
        """Raises NotFoundError if it was deleted: the answers of further runs could be compared with nothing."""
        # Whether its owner may still see it does not matter.
        anybody = Identity(schedule.owner, token_pb2.ROLE_ADMIN)
        with suppress(UnavailableError, DeadlineError):
            await self._desk.visible(anybody, schedule.spec.watching.reference_job_id)

    def _last_is_live(self, schedule: schedule_pb2.Schedule) -> bool:
        """Whether its last job has not ended, or another job of that decision. A retry belongs to no decision."""
        if schedule.candidates:
            # Of a race, the first job may have ended days ago, and is no longer here.
            live = (job.message for job in self._registry.jobs.values() if job.live and job.message.attempt == 1)
            return any(job.spec.HasField("deciding") and decision_id(job) == schedule.last_job_id for job in live)
        last = self._registry.jobs.get(schedule.last_job_id)
        return last is not None and last.live

    def _move_on(self, schedule: schedule_pb2.Schedule) -> None:
        """Past times count as one."""
        with suppress(InvalidRequestError):  # `_plan` reports it.
            note_done(Cron(schedule.cron, schedule.time_zone), seconds(schedule.next_at), schedule)
        self._plan(schedule, self._wall())

    def _plan(self, schedule: schedule_pb2.Schedule, now: float) -> None:
        """Sets the next time after `now`."""
        schedule.ClearField("next_at")
        if schedule.HasField("paused_at"):
            return
        try:
            stamp(schedule.next_at, next_time(Cron(schedule.cron, schedule.time_zone), now, schedule.done))
        except InvalidRequestError as error:
            # The system's list of zones may have lost its own.
            schedule.last_problem = error.message


def _is_due(schedule: schedule_pb2.Schedule, now: float) -> bool:
    return schedule.HasField("next_at") and seconds(schedule.next_at) <= now


def _next_jobs(schedule: schedule_pb2.Schedule) -> list[job_pb2.JobSpec]:
    """Those of its next time, without its id."""
    if schedule.candidates:
        return decision_rules.next_jobs(schedule)
    if schedule.spec.HasField("watching"):
        return [watch_rules.next_run(schedule)]
    spec = job_pb2.JobSpec()
    spec.CopyFrom(schedule.spec)
    return [spec]


def _request_id(schedule: schedule_pb2.Schedule) -> str:
    return f"schedule {schedule.schedule_id} {schedule.next_at.ToSeconds()}"


def _asked(schedule: schedule_pb2.Schedule) -> tuple[object, ...]:
    specs = (spec.SerializeToString(deterministic=True) for spec in (schedule.spec, *schedule.candidates))
    return schedule.cron, schedule.time_zone, schedule.label, *specs
