"""Starts watches: schedules whose jobs ask a few items of a reference run each time."""

from __future__ import annotations

from services.errors import ConflictError
from services.rpc import Identity
from services.scheduler.admission import watch_rules
from services.scheduler.ports import Results
from services.scheduler.requests.job_requests import Desk
from services.scheduler.schedules.schedules import Timetable
from touchstone.v1 import job_pb2, schedule_pb2
from touchstone.v1 import scheduler_service_pb2 as pb


class Watches:
    """Those of one leadership."""

    def __init__(self, desk: Desk, results: Results, timetable: Timetable) -> None:
        self._desk, self._results, self._timetable = desk, results, timetable

    async def start(self, caller: Identity, request: pb.StartWatchRequest) -> schedule_pb2.Schedule:
        """Raises InvalidRequestError, NotFoundError and ConflictError for what cannot be a reference, and as
        `Timetable.create`."""
        watching = watch_rules.watching_of(request)
        reference = await self._desk.visible(caller, watching.reference_job_id)
        if watching.again_job_id:
            await self._desk.visible(caller, watching.again_job_id)
        if reference.state != job_pb2.Job.STATE_COMPLETED:
            raise ConflictError(f"Job {reference.job_id} has not completed. Watch with a completed job as reference.")
        spec = watch_rules.spec_of(reference, request)
        chosen = await self._results.choose_canaries(watching, caller.user)
        return await self._timetable.create(
            caller, request.request_id, request.cron, request.time_zone, spec, request.label, chosen
        )
