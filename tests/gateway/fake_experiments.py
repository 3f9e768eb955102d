"""Experiments of the fakes, by the services' own rules: definitions are read, kept and compared as there, and figures
are those of the world's jobs, unless a test puts others in their place."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from services import rpc
from services.errors import ConflictError
from services.experiments import grid, reading
from services.experiments.definition import Definition
from services.results.datasets import index
from services.results.experiments import board, preparing, runs, stored
from services.results.storage.database import Connection
from tests.gateway import fake_admission, fake_data, fake_stored
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_pb2, job_pb2, scheduler_service_pb2
from touchstone.v1 import results_service_pb2 as pb


class Runs:
    """What the scheduler does."""

    world: World

    async def RunExperiment(self, request: Any, context: Any) -> Any:
        """Raises as the scheduler."""
        rpc.require_admin()
        self.world.asked.append(request)
        endpoints = fake_data.endpoints()
        usual = next(one.endpoint for one in endpoints if one.kind == "ollama")
        names = [one.endpoint for one in endpoints]
        definition = reading.read(json.loads(request.definition), providers=names, default_provider=usual)
        source = preparing.source_of(definition)
        known = next((one for one in _datasets(self.world) if one.experiment.name == definition.name), None)
        if known is not None and (wrong := preparing.differing(known.experiment, source)):
            raise ConflictError(wrong)
        if known is None and not request.check_only:
            known = _kept(self.world, definition, source)
        return scheduler_service_pb2.RunExperimentResponse(
            experiment=definition.name,
            dataset_id="" if known is None else known.dataset_id,
            jobs=[] if known is None else _jobs(self.world, definition, known, make=not request.check_only),
            cells=definition.cells,
            calls=len(definition.models) * definition.rows,
            deleted_judges=self.world.deleted_judges,
        )


class Boards:
    """What the results service does."""

    world: World

    async def ListExperiments(self, request: Any, context: Any) -> Any:
        """Raises as the service."""
        rpc.require_admin()
        return stored.list_experiments(_connection(self.world), request)

    async def GetExperiment(self, request: Any, context: Any) -> Any:
        """Raises as the service."""
        rpc.require_admin()
        self.world.asked.append(request)
        return self.world.experiments.get(request.name) or board.get_experiment(_connection(self.world), request)

    async def ListExperimentRuns(self, request: Any, context: Any) -> Any:
        """Raises as the service."""
        rpc.require_admin()
        if request.name in self.world.experiment_runs:
            return _page(self.world.experiment_runs[request.name], request)
        return runs.list_runs(_connection(self.world), request)


def _page(known: list[pb.ExperimentRun], request: pb.ListExperimentRunsRequest) -> pb.ListExperimentRunsResponse:
    found = [
        one
        for one in known
        if request.job_id in ("", one.job_id)
        and request.prompt in ("", one.prompt)
        and (one.judge_pending or not request.judge_pending)
    ]
    first, most = int(request.page_token or 0), request.page_size or 100
    token = str(first + most) if len(found) > first + most else ""
    return pb.ListExperimentRunsResponse(runs=found[first : first + most], next_page_token=token)


def _datasets(world: World) -> list[dataset_pb2.Dataset]:
    return [one for one in world.datasets.values() if one.HasField("experiment")]


def _connection(world: World) -> Connection:
    """A database with the world's experiments and what their jobs answered."""
    jobs = [job for job in world.jobs.values() if job.spec.experiment_name]
    connection = fake_stored.holding(world, jobs, items=True)
    for dataset in _datasets(world):
        index.add(connection, dataset_pb2.DatasetManifest(dataset=dataset), datetime.now(UTC))
    return connection


def _kept(world: World, definition: Definition, source: dataset_pb2.ExperimentSource) -> dataset_pb2.Dataset:
    made = dataset_pb2.Dataset(
        dataset_id=f"ds_{uuid.uuid4().hex}",
        name=definition.name,
        owner=rpc.identity().user,
        rows=definition.rows,
        experiment=source,
    )
    made.uploaded_at.GetCurrentTime()
    world.datasets[made.dataset_id] = made
    world.rows[made.dataset_id] = [_row(row) for row in grid.rows(definition)]
    return made


def _row(row: dict[str, Any]) -> dataset_pb2.DatasetRow:
    messages = [dataset_pb2.ChatMessage(role=one["role"], content=one["content"]) for one in row["messages"]]
    return dataset_pb2.DatasetRow(
        custom_id=row["custom_id"], messages=messages, metadata=json.dumps(row["metadata"], ensure_ascii=False)
    )


def _jobs(world: World, definition: Definition, dataset: dataset_pb2.Dataset, *, make: bool) -> list[job_pb2.Job]:
    """In the order of the models: those that there are and, with `make`, new ones."""
    there = {
        (job.spec.endpoint, job.spec.model): job
        for job in world.jobs.values()
        if job.spec.experiment_name == definition.name
    }
    for model in definition.models if make else ():
        place = model.provider, model.model
        if place not in there:
            work = job_pb2.DatasetWork(dataset_id=dataset.dataset_id)
            spec = job_pb2.JobSpec(endpoint=model.provider, model=model.model, dataset=work)
            (there[place],) = fake_admission.created(world, "", [spec])
            there[place].spec.experiment_name = definition.name
    wanted = [(model.provider, model.model) for model in definition.models]
    return [there[place] for place in wanted if place in there]
