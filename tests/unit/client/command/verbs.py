"""What verbs are given and shown."""

from __future__ import annotations

from tests.unit.client.fakes import JOB, OTHER, metric
from touchstone.v1 import comparison_pb2

RUN = ["run", "--project-id", "7", "--suite", "glue", "--provider", "ollama", "--model", "mistral:latest"]


def comparison() -> comparison_pb2.CompareResponse:
    runs = [
        comparison_pb2.ComparedRun(job_id=JOB, model="one", rank_low=1, rank_high=1, scores=[metric("score", 0.8)]),
        comparison_pb2.ComparedRun(job_id=OTHER, model="two", rank_low=2, rank_high=2, scores=[metric("score", 0.7)]),
    ]
    whole = comparison_pb2.Difference(
        a=JOB, b=OTHER, metric="score", difference=0.1, low=0.06, high=0.14, p_value=0.0004, n=2000,
        test="stratified z", verdict=comparison_pb2.VERDICT_BETTER, words="one is better than two by 0.1000.",
    )  # fmt: skip
    task = comparison_pb2.Difference(
        a=JOB, b=OTHER, task="rte", metric="accuracy", difference=0.02, low=-0.03, high=0.07, p_value=0.4, n=277,
        p_adjusted=0.8, correction="holm", test="exact McNemar", verdict=comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN,
        smallest_difference=0.08,
    )  # fmt: skip
    return comparison_pb2.CompareResponse(
        suite="glue",
        runs=runs,
        differences=[whole, task],
        recommendations=["Use one."],
        items=2277,
        margin=0.01,
        alpha=0.05,
    )
