"""Schedules in the JOBS bucket: `schedule.<id>`, written under the leader's epoch as jobs are."""

from __future__ import annotations

from services import bus
from services.scheduler.nats_fence import FencedBucket
from services.scheduler.nats_trouble import ends_leadership
from touchstone.v1 import schedule_pb2


class ScheduleStore:
    """Schedules of one leadership."""

    def __init__(self, connection: bus.Bus, epoch: int) -> None:
        self._bus = connection
        self._bucket = FencedBucket(connection, epoch)

    async def load(self) -> list[schedule_pb2.Schedule]:
        with ends_leadership("schedules could not be read"):
            return [
                schedule_pb2.Schedule.FromString(msg.data) async for _, msg in self._bus.kv_all(bus.JOBS, "schedule.*")
            ]

    async def put(self, schedule: schedule_pb2.Schedule) -> None:
        await self._bucket.atomic([self._bucket.write(_key(schedule.schedule_id), schedule.SerializeToString())])

    async def remove(self, schedule_id: str) -> None:
        await self._bucket.remove(_key(schedule_id))


def _key(schedule_id: str) -> str:
    return f"schedule.{schedule_id}"
