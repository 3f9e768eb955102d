"""What a job runs, in words: a suite by its name, a dataset by the name that it was uploaded with."""

from __future__ import annotations

from services.gateway import jobs
from touchstone.v1 import job_pb2

_ACRONYMS = ("glue", "mmlu")


def work_of(job: job_pb2.Job) -> str:
    """The suite's or the dataset's name."""
    return job.spec.dataset.name or jobs.suite_of(job)


def dataset_of(job: job_pb2.Job) -> str:
    """The dataset's id; empty for other work."""
    return job.spec.dataset.dataset_id


def heading(job: job_pb2.Job) -> str:
    """As `work_of`, for a heading. A dataset's name is shown as it is written."""
    name = work_of(job)
    if dataset_of(job):
        return name
    return name.upper() if name in _ACRONYMS else name.title()
