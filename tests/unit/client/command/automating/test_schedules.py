"""Schedules from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import Fakes
from touchstone.v1 import schedule_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_a_schedule_of_decisions_is_a_decision_with_a_time(told: Fakes, capsys: Captured) -> None:
    made = schedule_pb2.Schedule(schedule_id="s1")
    made.next_at.FromJsonString("2026-11-23T02:00:00Z")
    told.answers["CreateSchedule"] = scheduler_service_pb2.CreateScheduleResponse(schedule=made)
    what = ["--suite", "glue", "--margin", "0.02", "--error", "0.1", "--order-seed", "7", "--set", "2:temperature=0.7"]
    assert (
        main(["schedules", "decide", "0 3 * * 1", "one@local", "two@local", "three@local", "--label", "nightly", *what])
        == 0
    )
    (request,) = told.requests("CreateSchedule")
    decision = request.decision
    assert (request.cron, request.label, request.HasField("spec")) == ("0 3 * * 1", "nightly", False)
    assert (decision.margin, decision.error, decision.seed, decision.request_id) == (0.02, 0.1, 7, "")
    models = [one.model for one in (decision.baseline, decision.candidate, *decision.further_candidates)]
    assert models == ["one", "two", "three"]
    assert decision.candidate.sampling.temperature == 0.7
    assert request.request_id
    assert capsys.readouterr().out == "s1\n"


def test_a_list_names_the_models_of_decisions(told: Fakes, capsys: Captured) -> None:
    one = schedule_pb2.Schedule(schedule_id="s1", last_job_id="d1")
    one.spec.model, one.spec.endpoint, one.spec.suite.suite = "old", "e", "glue"
    one.candidates.add(model="new")
    told.answers["ListSchedules"] = scheduler_service_pb2.ListSchedulesResponse(schedules=[one])
    assert main(["schedules", "list"]) == 0
    assert "new against old" in capsys.readouterr().out


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
