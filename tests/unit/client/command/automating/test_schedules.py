"""Schedules from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import Fakes
from touchstone.v1 import schedule_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_a_schedule_is_a_run_with_a_time(told: Fakes, capsys: Captured) -> None:
    made = schedule_pb2.Schedule(schedule_id="s1")
    made.next_at.FromJsonString("2026-11-23T02:00:00Z")
    told.answers["CreateSchedule"] = scheduler_service_pb2.CreateScheduleResponse(schedule=made)
    told.answers["DeleteSchedule"] = scheduler_service_pb2.DeleteScheduleResponse()
    what = ["--suite", "glue", "--endpoint", "local", "--model", "m", "--limit", "20"]
    assert main(["schedules", "create", "0 3 * * 1", "--time-zone", "Europe/Zurich", "--label", "weekly", *what]) == 0
    (request,) = told.requests("CreateSchedule")
    assert (request.cron, request.time_zone, request.label) == ("0 3 * * 1", "Europe/Zurich", "weekly")
    assert (request.spec.model, request.spec.suite.limit) == ("m", 20)
    assert request.request_id
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("s1\n", "Next: 2026-11-23 02:00 UTC.\n")
    assert main(["schedules", "delete", "s1"]) == 0
