"""A job as REST shows it."""

from __future__ import annotations

import pytest

from services.gateway.api.answers.job import progress_body
from services.gateway.pages.display import formatting
from touchstone.v1 import job_pb2


@pytest.mark.parametrize("stored", [float("nan"), float("inf"), float("-inf"), -100.0, 1e308])
def test_a_job_with_a_cost_that_cannot_be_is_shown_without_it(stored: float) -> None:
    job = job_pb2.Job(job_id="j", progress=job_pb2.Progress(cost_usd=stored, items_done=3))
    assert progress_body(job)["cost_usd"] is None
    assert progress_body(job)["items_done"] == 3
    assert formatting.cost(job.progress) == ""
    assert formatting.dollars(stored)
