"""Experiments as they are stored: a dataset of rows, and the jobs over it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.errors import NotFoundError
from services.experiments.scenarios import default_id
from services.results import paging
from services.results.datasets import index
from services.results.storage.database import Connection
from services.words import refusals, rubrics
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric

MOST_JOBS = 100


@dataclass(frozen=True, slots=True)
class Stored:
    """`prompts` and `scenarios` are ids. Rows are in the order of prompts, then scenarios, then repeats. `jobs` are the
    newest of each model, in the order of their creation."""

    dataset: dataset_pb2.Dataset
    prompts: Sequence[str]
    scenarios: Sequence[str]
    repeats: int
    rubric: Rubric
    jobs: Sequence[job_pb2.Job]

    @property
    def rows(self) -> int:
        """What each model is asked."""
        return len(self.prompts) * len(self.scenarios) * self.repeats

    def message(self) -> pb.Experiment:
        source = self.dataset.experiment
        return pb.Experiment(
            name=source.name,
            owner=self.dataset.owner,
            created_at=self.dataset.uploaded_at,
            dataset_id=self.dataset.dataset_id,
            prompts=self.prompts,
            scenarios=len(self.scenarios),
            repeats=self.repeats,
            rubric=self.rubric,
            definition=source.definition,
            jobs=self.jobs,
        )


def find(connection: Connection, name: str) -> Stored:
    """Raises NotFoundError."""
    dataset = index.of_experiment(connection, name)
    if dataset is None:
        raise NotFoundError(refusals.not_found("Experiment", name))
    return _stored(dataset, _jobs(connection, [dataset]).get(dataset.dataset_id, []))


def list_experiments(connection: Connection, request: pb.ListExperimentsRequest) -> pb.ListExperimentsResponse:
    """Newest first. Raises InvalidRequestError for a bad page."""
    size = paging.page_size(request.page_size, 20, 100)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    before = (paging.time_of(after[0]), str(after[1])) if after else None
    datasets = index.of_experiments(connection, before, size + 1)
    jobs = _jobs(connection, datasets)
    listed = (_listed(_stored(dataset, jobs.get(dataset.dataset_id, []))) for dataset in datasets)
    page, token = paging.fill_page(listed, size, filter_, _key)
    return pb.ListExperimentsResponse(experiments=page, next_page_token=token)


def _stored(dataset: dataset_pb2.Dataset, jobs: Sequence[job_pb2.Job]) -> Stored:
    made: dict[str, Any] = json.loads(dataset.experiment.definition)
    scenarios = made["scenarios"]
    return Stored(
        dataset,
        [prompt["id"] for prompt in made["prompts"]],
        scenarios.get("ids") or [default_id(place) for place in range(scenarios["count"])],
        made["repeats"],
        rubrics.of_value(made["rubric"]),
        jobs,
    )


def _jobs(connection: Connection, datasets: Sequence[dataset_pb2.Dataset]) -> dict[str, list[job_pb2.Job]]:
    """By dataset."""
    names = {dataset.dataset_id: dataset.experiment.name for dataset in datasets}
    rows = connection.execute(
        "SELECT suite, endpoint, model, job FROM jobs WHERE suite IN (SELECT unnest($ids::VARCHAR[])) "
        "ORDER BY created_at, job_id",
        {"ids": list(names)},
    ).fetchall()
    found: dict[str, dict[tuple[str, str], job_pb2.Job]] = {}
    for dataset_id, endpoint, model, blob in rows:
        job = job_pb2.Job.FromString(blob)
        # Anybody may run a job of their own over these rows.
        if job.spec.experiment_name == names[dataset_id]:
            of_dataset = found.setdefault(dataset_id, {})
            of_dataset.pop((endpoint, model), None)
            of_dataset[endpoint, model] = job
    return {dataset_id: list(jobs.values())[:MOST_JOBS] for dataset_id, jobs in found.items()}


def _listed(stored: Stored) -> pb.Experiment:
    made = stored.message()
    made.ClearField("definition")
    for job in made.jobs:
        job.ClearField("plan")
        job.ClearField("receipt")
    return made


def _key(experiment: pb.Experiment) -> paging.Key:
    return [experiment.created_at.ToMicroseconds(), experiment.dataset_id]
