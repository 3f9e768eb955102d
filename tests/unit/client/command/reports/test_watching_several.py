"""Watching all jobs that live."""

from __future__ import annotations

import itertools
import json
from typing import Any

import grpc
import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes
from touchstone.v1 import scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_status_without_a_job_shows_all_that_live(pair: Fakes, capsys: Captured) -> None:
    assert main(["status", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(row["job_id"], row["status"], row["benchmark_suite"]) for row in shown] == [
        (JOB, "running", DATASET),
        (OTHER, "running", DATASET),
    ]


def test_a_watch_without_a_job_follows_all_to_their_end(pair: Fakes, capsys: Captured) -> None:
    assert main(["status", "--watch"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["one: Completed", "two: Running", "two: Completed"]
    assert [line.split()[:2] for line in captured.out.splitlines()[1:]] == [[JOB, "completed"], [OTHER, "completed"]]


def test_a_watch_of_all_outlasts_a_scheduler_that_restarts(pair: Fakes) -> None:
    there: Any = pair.answers["GetQueue"]
    # The channel itself tries a call five times.
    asked = itertools.count()
    pair.answers["GetQueue"] = lambda request: grpc.StatusCode.UNAVAILABLE if 1 <= next(asked) <= 6 else there(request)
    assert main(["status", "--watch"]) == 0
    assert next(asked) > 7


def test_a_watch_of_all_says_when_a_job_was_lost(pair: Fakes, capsys: Captured) -> None:
    lost = errors.NotFoundError("Job x was never heard of.")
    pair.answers |= {"Scheduler.GetJob": lost, "Results.GetJob": lost}
    assert main(["status", "--watch"]) == 2
    assert "never heard of" in capsys.readouterr().err


def test_nothing_to_watch_is_said(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse()
    assert main(["status", "--watch"]) == 0
    assert "No jobs are running or waiting." in capsys.readouterr().out
