"""A job's receipt in words."""

from __future__ import annotations

import pytest

from services.gateway.api.answers import job_results
from services.gateway.pages.jobs import receipt
from touchstone.v1 import job_pb2, metric_pb2


@pytest.mark.parametrize(
    ("parameters", "names", "words"),
    [
        ('{"temperature":0}', [], '{"temperature":0}'),
        ('{"temperature":0}', ["max_tokens", "stop"], '{"temperature":0}, and what rows ask for: max_tokens, stop'),
        ("", ["seed"], "what rows ask for: seed"),
        ("", [], ""),
    ],
)
def test_what_was_sent_names_what_rows_ask_for(parameters: str, names: list[str], words: str) -> None:
    job = job_pb2.Job(
        receipt=job_pb2.Receipt(parameters=parameters), plan=[job_pb2.TaskPlan(task="rows", row_parameters=names)]
    )
    shown = {name: what for name, what, _ in receipt.rows(job, metric_pb2.JobResult())}
    assert shown.get("Sent", "") == words
    assert job_results.data(job.plan[0])["row_parameters"] == names


def test_a_served_models_name_cannot_turn_the_line() -> None:
    result = metric_pb2.JobResult(served_models=["qwen\u202e4", "q\u2069b", "c", "d"])
    shown = {name: what for name, what, _ in receipt.rows(job_pb2.Job(), result)}
    assert shown["Served"] == "qwen\\u202e4, q\\u2069b and 2 others"
