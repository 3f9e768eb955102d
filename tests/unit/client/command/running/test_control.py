"""Cancelling and retrying from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import JOB, Fakes
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_cancel_and_retry_name_the_job(told: Fakes, capsys: Captured) -> None:
    assert main(["cancel", JOB]) == 0
    assert capsys.readouterr().out == f"{JOB} is cancelled.\n"
    assert main(["retry", JOB, "--no-watch"]) == 0
    assert capsys.readouterr().out == f"{JOB}\n"
