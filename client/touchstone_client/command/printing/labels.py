"""Names of jobs that are shown together."""

from __future__ import annotations

from collections.abc import Sequence

from touchstone.v1 import job_pb2

_DIGITS = 6


def labels(jobs: Sequence[job_pb2.Job]) -> dict[str, str]:
    """By job: the model if that is unique, else with its endpoint, else with the end of the job's id, whose beginning
    is the time."""
    return distinct({job.job_id: (job.spec.model, job.spec.endpoint) for job in jobs})


def distinct(known: dict[str, tuple[str, str]]) -> dict[str, str]:
    """As `labels`, from names and endpoints by job; a name may have no endpoint."""
    short = {job_id: name for job_id, (name, _) in known.items()}
    longer = {job_id: f"{name}@{endpoint}" if endpoint else name for job_id, (name, endpoint) in known.items()}
    for way in (short, longer):
        if len({*way.values()}) == len(known):
            return way
    return {job_id: f"{name} …{job_id[-_DIGITS:]}" for job_id, name in short.items()}
