"""Comparisons as a gate gets them, and services in which the candidate ends as told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from services import errors
from tests.unit.client.fakes import JOB, OTHER, Answer, Fakes, job, metric, result
from touchstone.v1 import comparison_pb2, endpoint_pb2, job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

ARGUMENTS = ["gate", "--suite", "glue", "--provider", "openai", "--model", "new", "--baseline", "base"]


def difference(
    value: float, low: float, high: float, p: float, task: str = "", **more: Any
) -> comparison_pb2.Difference:
    """Candidate − baseline, as Compare says it: the better run is `a`."""
    metric_name = "accuracy" if task else "score"
    if value >= 0:
        a, b = OTHER, JOB
    else:
        a, b, value, low, high = JOB, OTHER, -value, -high, -low
    return comparison_pb2.Difference(
        a=a, b=b, task=task, metric=metric_name, difference=value, low=low, high=high, p_value=p, n=1000, **more
    )


def compared(*differences: comparison_pb2.Difference, reason: str = "") -> comparison_pb2.CompareResponse:
    runs = [
        comparison_pb2.ComparedRun(job_id=OTHER, model="new", scores=[metric("score", 0.7)], not_ranked_reason=reason),
        comparison_pb2.ComparedRun(job_id=JOB, model="base", scores=[metric("score", 0.71)]),
    ]
    return comparison_pb2.CompareResponse(
        suite="glue", runs=runs, differences=differences, items=2000, margin=0.01, alpha=0.1, metrics=["score"]
    )


PASSING = compared(difference(-0.002, -0.008, 0.004, 0.6), difference(0.01, -0.01, 0.03, 0.4, "rte"))
REGRESSING = compared(difference(-0.05, -0.07, -0.03, 0.001), difference(-0.09, -0.1, -0.08, 0.001, "rte"))
UNDECIDED = compared(difference(-0.01, -0.04, 0.02, 0.6))


@dataclass
class Pipeline:
    """Runs the gate against services in which the candidate ends as told."""

    fakes: Fakes
    comparison: Any = field(default_factory=lambda: PASSING)
    states: list[job_pb2.Job] = field(default_factory=lambda: [job(OTHER, "RUNNING", "new"), job(OTHER, model="new")])
    stored: list[Any] = field(default_factory=list)
    """How the results service answers for the candidate's job until it has heard of its end."""
    last_time: Any = field(default_factory=lambda: errors.NotFoundError("'new@mine' has no run."))

    def run(self, *more: str) -> int:
        of_base = results_service_pb2.Configuration(
            configuration="hash-of-base", model="base", endpoint="e", alias="prod"
        )
        listed = results_service_pb2.ListConfigurationsResponse(configurations=[of_base])
        jobs = results_service_pb2.ResultsServiceListJobsResponse(jobs=[job(model="base")])
        mine = endpoint_pb2.Endpoint(endpoint="mine", kind="openai")
        told: dict[str, Answer] = {
            "ListConfigurations": lambda request: listed if request.model in ("", "base") else type(listed)(),
            "Results.ListJobs": jobs,
            "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
                job=self.states[-1] if request.job_id == OTHER else job(request.job_id, model="base")
            ),
            "Results.GetJob": lambda request: (
                self.stored.pop(0)
                if self.stored and request.job_id == OTHER
                else results_service_pb2.ResultsServiceGetJobResponse(job=job(request.job_id))
            ),
            "GetJobResult": results_service_pb2.GetJobResultResponse(result=result()),
            "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=[mine]),
            "CreateJob": scheduler_service_pb2.CreateJobResponse(job=job(OTHER, "PENDING", "new")),
            "WatchJob": [scheduler_service_pb2.WatchJobResponse(job=state) for state in self.states],
            "Compare": lambda request: self.comparison if OTHER in request.subjects else self.last_time,
        }
        self.fakes.answers = told | self.fakes.answers
        return main([*ARGUMENTS, "--max-drop", "0.01", *more])


def main_with_job(pipeline: Pipeline) -> int:
    pipeline.run()
    pipeline.fakes.heard.clear()
    return main(["gate", "--job", OTHER, "--baseline", "base", "--max-drop", "0.01"])
