"""The queue and what is at work, on the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import Fakes
from touchstone.v1 import queue_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_the_queue_says_what_everybody_should_know(told: Fakes, capsys: Captured) -> None:
    assert main(["queue"]) == 0
    assert "notice" not in capsys.readouterr().out
    full = queue_pb2.Queue(slots=3, notice="The disk is full.")
    told.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse(queue=full)
    assert main(["queue"]) == 0
    assert "The disk is full." in capsys.readouterr().out
