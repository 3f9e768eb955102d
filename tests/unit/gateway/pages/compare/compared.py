"""Comparisons as the results service answers them."""

from __future__ import annotations

from typing import Any

from services.gateway.pages.compare.figures import Figures, Known, figures_of
from services.gateway.pages.compare.view import View
from touchstone.v1 import comparison_pb2, job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.comparison_pb2 import CompareResponse

JOBS = tuple(f"00000000-0000-4000-8000-{number:012d}" for number in range(1, 11))
BETTER, WORSE = comparison_pb2.VERDICT_BETTER, comparison_pb2.VERDICT_WORSE
OPEN, SAME = comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN, comparison_pb2.VERDICT_EQUIVALENT
NOT = comparison_pb2.VERDICT_NOT_COMPARABLE


def found(*models: str, tasks: tuple[str, ...] = ("t",), **fields: Any) -> CompareResponse:
    """One run per model, best first, each of the jobs `JOBS` in turn, without differences."""
    answer = CompareResponse(suite="glue", metrics=["score"], items=400, margin=0.01, alpha=0.05, **fields)
    for place, model in enumerate(models):
        run = answer.runs.add(subject=JOBS[place], job_id=JOBS[place], model=model, endpoint="e", configuration="c")
        run.scores.add(metric="score", mean=0.8 - place / 100, ci95_low=0.7, ci95_high=0.9, n=400)
        for task in tasks:
            run.tasks.add(task=task).metrics.add(metric="accuracy", mean=0.7 - place / 100, n=100)
    return answer


def add(answer: CompareResponse, a: int, b: int, task: str = "", **fields: Any) -> None:
    """A difference of two runs by their places."""
    known: dict[str, Any] = {"difference": 0.05, "low": 0.01, "high": 0.09, "p_value": 0.004, "verdict": BETTER}
    known |= {"metric": "accuracy" if task else "score", "n": 400, "test": "exact McNemar"} | fields
    answer.differences.add(a=JOBS[a], b=JOBS[b], task=task, title=task.upper(), **known)


def figures(answer: CompareResponse, *, view: View | None = None, **known: Any) -> Figures:
    """Compared with the last run unless the view says otherwise."""
    chosen = view or View(tuple(run.job_id for run in answer.runs))
    return figures_of(chosen, Known(answer, known.pop("jobs", {}), known.pop("results", {}), **known))


def priced(cost: float, items: int = 1000) -> metric_pb2.JobResult:
    result = metric_pb2.JobResult(cost_usd=cost, latency_p50_ms=120)
    result.tasks.add(task="t", items=items)
    return result


def job(concurrency: int) -> job_pb2.Job:
    return job_pb2.Job(receipt=job_pb2.Receipt(concurrency=concurrency))


def rows(*counts: tuple[str, int, int, int, int]) -> results_service_pb2.ListSideBySideResponse:
    """By task: both right, both wrong, only the first, only the second run."""
    answer = results_service_pb2.ListSideBySideResponse(
        count_all_right=sum(one[1] for one in counts), count_all_wrong=sum(one[2] for one in counts)
    )
    for task, right, wrong, first, second in counts:
        answer.tasks.add(task=task, all_right=right, all_wrong=wrong, only_right=[first, second])
    for side in (3, 4):
        answer.runs.add(only_right=sum(int(one[side]) for one in counts))
    return answer
