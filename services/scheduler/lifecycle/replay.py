"""What a message on RESULTS means to the scheduler. One that cannot be handled is set aside, and affects at most its
own job: a plan or a fault ends the job with the reason; a unit whose answers are not counted is released again.
"""

from __future__ import annotations

from nats.aio.msg import Msg

from services import bus
from services.scheduler.lifecycle.scheduler import Scheduler
from touchstone.v1 import unit_pb2


class Replay:
    """Passes the messages of RESULTS to a scheduler, both earlier and new ones."""

    def __init__(self, connection: bus.Bus, scheduler: Scheduler, aside: bus.SettingAside) -> None:
        self._bus, self._scheduler, self._aside = connection, scheduler, aside

    async def handle(self, msg: Msg) -> None:
        """Takes a message without its body. Raises only NATS's errors and LeadershipLostError."""
        at = msg.metadata.sequence.stream
        try:
            job_id, unit = bus.parse_results_subject(msg.subject)
            headers = bus.ResultHeaders.decode(msg.headers)
            await self._tell(job_id, unit, headers, at)
        except Exception as error:
            if not bus.is_at_fault(error):
                raise
            found = bus.Found(bus.RESULTS, at, msg.subject, await self._body(at), msg.headers or {})
            await self._aside.take(found, error)
            self._scheduler.on_other(at)
            await self._end_its_job(msg, error)

    async def _tell(self, job_id: str, unit: int, headers: bus.ResultHeaders, at: int) -> None:
        scheduler = self._scheduler
        if headers.kind == bus.KIND_ITEMS:
            scheduler.on_items(job_id, unit, headers, at)
        elif headers.kind == bus.KIND_BEGUN:
            scheduler.on_begun(job_id, unit, headers, at)
        elif headers.kind == bus.KIND_RETURNED:
            scheduler.on_returned(job_id, unit, headers, at)
        elif headers.kind == bus.KIND_PLAN and scheduler.awaits(job_id, headers.attempt):
            await scheduler.on_plan(job_id, headers.attempt, unit_pb2.Plan.FromString(await self._body(at)), at)
        elif headers.kind == bus.KIND_FAULT and scheduler.awaits(job_id, headers.attempt):
            await scheduler.on_fault(job_id, headers.attempt, unit_pb2.Fault.FromString(await self._body(at)), at)
        else:
            scheduler.on_other(at)

    async def _body(self, at: int) -> bytes:
        # Not `direct`: nats-py takes a header `Status` of what is stored for the server's own word.
        return (await self._bus.js.get_msg(bus.RESULTS, seq=at)).data or b""

    async def _end_its_job(self, msg: Msg, error: Exception) -> None:
        try:
            job_id, _ = bus.parse_results_subject(msg.subject)
            headers = bus.ResultHeaders.decode(msg.headers)
        except ValueError:
            return
        if headers.kind in (bus.KIND_PLAN, bus.KIND_FAULT) and self._scheduler.awaits(job_id, headers.attempt):
            fault = unit_pb2.Fault(
                reason=f"The evaluator's {headers.kind} cannot be read ({type(error).__name__}), so the job cannot "
                "continue. An admin can find it among the messages that were set aside. Retry the job."
            )
            await self._scheduler.on_fault(job_id, headers.attempt, fault, msg.metadata.sequence.stream)
