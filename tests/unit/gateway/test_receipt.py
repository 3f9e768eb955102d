"""A job's receipt in words."""

from __future__ import annotations

import pytest

from services.gateway.api import figures
from services.gateway.pages import receipt
from services.gateway.pages.datasets import about
from touchstone.v1 import dataset_pb2, job_pb2, metric_pb2

_NOTHING = metric_pb2.JobResult()


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
    assert figures.data(job.plan[0])["row_parameters"] == names


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (job_pb2.LAST_ASSISTANT_REFERENCE, "the assistant's is the reference, not in the prompt"),
        (job_pb2.LAST_ASSISTANT_PREFILL, "the assistant's begins the answer, in the prompt"),
        (job_pb2.LAST_ASSISTANT_UNSPECIFIED, ""),
    ],
)
def test_a_run_over_rows_says_what_became_of_the_assistants_last_message(
    done: job_pb2.LastAssistant, words: str
) -> None:
    work = job_pb2.DatasetWork(dataset_id="ds_", name="a.jsonl", last_assistant=done)
    shown = {name: what for name, what, _ in receipt.rows(job_pb2.Job(spec=job_pb2.JobSpec(dataset=work)), _NOTHING)}
    assert shown.get("Last message", "") == words
    half = dataset_pb2.Dataset(rows=4, last_assistant=done, rows_with_last_assistant=2)
    facts = {name: what for name, what, _ in about.facts(half)}
    assert facts.get("Last message", "") == (f"{words}, in 2 of 4 rows" if words else "")


def test_a_served_models_name_cannot_turn_the_line() -> None:
    result = metric_pb2.JobResult(served_models=["qwen\u202e4", "q\u2069b", "c", "d"])
    shown = {name: what for name, what, _ in receipt.rows(job_pb2.Job(), result)}
    assert shown["Served"] == "qwen\\u202e4, q\\u2069b and 2 others"
