"""What the scheduler's servicer itself refuses."""

from __future__ import annotations

from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.scheduler.requests.visibility import Reads
from services.scheduler.servicer import Servicer
from tests.unit.scheduler.fakes import spec
from touchstone.v1 import scheduler_service_pb2 as pb


async def test_a_schedule_creates_jobs_or_decisions() -> None:
    async def nothing(request: Any) -> Any: ...

    servicer = Servicer(lambda: None, str, float, Reads(), nothing, nothing)
    decision = pb.StartDecisionRequest(baseline=spec(), candidate=spec())
    request = pb.CreateScheduleRequest(cron="* * * * *", spec=spec(), decision=decision)
    with pytest.raises(InvalidRequestError, match="Leave spec or decision out"):
        await servicer.CreateSchedule(request, None)
