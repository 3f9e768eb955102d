"""Schedules in the JOBS bucket: `schedule.<id>`, written under the leader's epoch as jobs are."""

from __future__ import annotations

from services import bus
from services.scheduler.nats.errors import ends_leadership
from services.scheduler.nats.fenced_bucket import FencedBucket
from touchstone.v1 import schedule_pb2


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
