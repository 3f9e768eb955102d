"""Watches from the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.client.fakes import JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import results_service_pb2, schedule_pb2, scheduler_service_pb2, watch_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
WATCH = "0c3bb0a4-2c6b-5a0e-9d0d-6a6c2f0f3b1e"


def found(**fields: Any) -> watch_pb2.Watch:
    made = watch_pb2.Watch(
        schedule_id=WATCH,
        reference_job_id=JOB,
        asked=90,
        left_out=2,
        reference_mean=0.8,
        mean=0.5,
        raised_by=watch_pb2.WATCH_SIGNAL_SCORE,
        raised_after=74,
        since_job_id=OTHER,
        runs=[watch_pb2.WatchRun(job_id=OTHER, asked=30, changed=12)],
        changes=[
            watch_pb2.WatchChange(
                job_id=OTHER, task="rows", item=7, answer_before="yes", answer_now="no", score_before=1, score_now=0
            )
        ],
        served=[watch_pb2.WatchServed(model="gpt-4-0613")],
    )
    made.since_at.FromJsonString("2026-11-20T06:00:00Z")
    made.MergeFrom(watch_pb2.Watch(**fields))
    return made


@pytest.fixture
def watching(fakes: Fakes) -> Fakes:
    schedule = schedule_pb2.Schedule(schedule_id=WATCH, spec=dataset_job(JOB, "one", "COMPLETED").spec)
    schedule.next_at.FromJsonString("2026-11-21T06:00:00Z")
    schedule.spec.watching.items, schedule.spec.watching.total, schedule.spec.watching.known_runs = 30, 300, 4
    fakes.answers |= {
        "StartWatch": scheduler_service_pb2.StartWatchResponse(schedule=schedule),
        "ListSchedules": scheduler_service_pb2.ListSchedulesResponse(
            schedules=[schedule, schedule_pb2.Schedule(schedule_id="other")]
        ),
        "GetWatch": results_service_pb2.GetWatchResponse(watch=found()),
    }
    return fakes


def test_a_watch_is_created_with_daily_canaries(watching: Fakes, capsys: Captured) -> None:
    assert main(["watch", "create", JOB, "--again", OTHER, "--model", "two", "--label", "api"]) == 0
    (request,) = watching.requests("StartWatch")
    assert (request.reference_job_id, request.again_job_id, request.model) == (JOB, OTHER, "two")
    assert (request.cron, request.items, request.error) == ("0 6 * * *", 30, 0.01)
    out, err = capsys.readouterr()
    assert out == f"{WATCH}\n"
    assert "300 items on which 4 runs of other models differ most, 30 each time. First: " in err


def test_only_watches_are_listed(watching: Fakes, capsys: Captured) -> None:
    assert main(["watch", "list", "--format", "json"]) == 0
    assert "other" not in capsys.readouterr().out


def test_an_alarm_says_since_when_and_which_items(watching: Fakes, capsys: Captured) -> None:
    assert main(["watch", "show", WATCH]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "This is not the model of the reference any more: its answers are worse than those of the reference. Since "
        f"about 2026-11-20 06:00 UTC (run {OTHER}); seen after 74 items. 2 items without an answer left out. "
        "The provider names: gpt-4-0613." in said
    )
    assert "rows 7 yes no" in said


def test_without_an_alarm_the_exit_code_is_0(watching: Fakes, capsys: Captured) -> None:
    quiet = found()
    quiet.ClearField("raised_by")
    watching.answers["GetWatch"] = results_service_pb2.GetWatchResponse(watch=quiet)
    assert main(["watch", "show", WATCH, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["raised_by"] is None


def test_wrong_numbers_are_refused(watching: Fakes, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["watch", "create", JOB, "--items", "101"])
    assert "between 1 and 100" in capsys.readouterr().err
