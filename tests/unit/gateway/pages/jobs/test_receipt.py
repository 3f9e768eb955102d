"""A job's receipt in words."""

from __future__ import annotations

import pytest

from services.gateway.api.answers import job_results
from services.gateway.pages.jobs import receipt
from services.words import refusals
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


@pytest.mark.parametrize(
    ("digest", "reused", "words"),
    [
        (
            "",
            3,
            f"3 answers. {refusals.REUSED_WITHOUT_DIGEST}",
        ),
        ("", 0, "0 answers"),
        ("sha256:ab", 3, "3 answers"),
    ],
)
def test_answers_that_were_reused_without_a_digest_say_so(digest: str, reused: int, words: str) -> None:
    job = job_pb2.Job(receipt=job_pb2.Receipt(model_digest=digest))
    job.spec.reuse.any_job = job.spec.reuse.without_digest = True
    shown = {name: what for name, what, _ in receipt.rows(job, metric_pb2.JobResult(items_reused=reused))}
    assert shown["Stored answers"] == words


def test_a_served_models_name_cannot_turn_the_line() -> None:
    result = metric_pb2.JobResult(served_models=["qwen\u202e4", "q\u2069b", "c", "d"])
    shown = {name: what for name, what, _ in receipt.rows(job_pb2.Job(), result)}
    assert shown["Served"] == "qwen\\u202e4, q\\u2069b and 2 others"
