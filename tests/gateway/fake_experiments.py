"""Experiments of the fakes: definitions are read by the real reader; leaderboards are what a test puts there."""

from __future__ import annotations

import json
import uuid
from typing import Any

from services import rpc
from services.errors import ConflictError, NotFoundError
from services.experiments import grid, reading
from services.experiments.definition import Definition
from services.words import refusals
from tests.gateway import fake_admission, fake_data
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
        known = self.world.experiments.get(definition.name)
        if known is not None and list(known.experiment.prompts) != [one.prompt_id for one in definition.prompts]:
            raise ConflictError(f"Experiment {definition.name} has other prompts. Choose another name.")
        answer = scheduler_service_pb2.RunExperimentResponse(
            experiment=definition.name, cells=definition.cells, calls=len(definition.models) * definition.rows
        )
        if known is None and not request.check_only:
            known = pb.GetExperimentResponse(experiment=_made(self.world, definition))
            self.world.experiments[definition.name] = known
        if known is not None:
            answer.dataset_id = known.experiment.dataset_id
            if not request.check_only:
                _add_jobs(self.world, known.experiment, definition)
            answer.jobs.extend(self.world.jobs[job.job_id] for job in known.experiment.jobs)
        return answer


class Boards:
    """What the results service does."""

    world: World

    async def ListExperiments(self, request: Any, context: Any) -> Any:
        rpc.require_admin()
        found = [one.experiment for one in reversed(self.world.experiments.values())]
        page, token = _page(found, request, 20)
        return pb.ListExperimentsResponse(experiments=page, next_page_token=token)

    async def GetExperiment(self, request: Any, context: Any) -> Any:
        """Raises as the service."""
        rpc.require_admin()
        self.world.asked.append(request)
        return self._named(request.name)

    async def ListExperimentRuns(self, request: Any, context: Any) -> Any:
        """Raises as the service."""
        rpc.require_admin()
        self._named(request.name)
        found = [
            one
            for one in self.world.experiment_runs.get(request.name, [])
            if request.job_id in ("", one.job_id)
            and request.prompt in ("", one.prompt)
            and (one.judge_pending or not request.judge_pending)
        ]
        page, token = _page(found, request, 100)
        return pb.ListExperimentRunsResponse(runs=page, next_page_token=token)

    def _named(self, name: str) -> pb.GetExperimentResponse:
        if name not in self.world.experiments:
            raise NotFoundError(refusals.not_found("Experiment", name))
        return self.world.experiments[name]


def _page(found: list[Any], request: Any, most: int) -> tuple[list[Any], str]:
    first, most = int(request.page_token or 0), request.page_size or most
    return found[first : first + most], str(first + most) if len(found) > first + most else ""


def _made(world: World, definition: Definition) -> pb.Experiment:
    dataset_id = f"ds_{uuid.uuid4().hex}"
    world.datasets[dataset_id] = dataset_pb2.Dataset(dataset_id=dataset_id, name=definition.name, rows=definition.rows)
    world.datasets[dataset_id].experiment.name = definition.name
    world.rows[dataset_id] = [_row(row) for row in grid.rows(definition)]
    made = pb.Experiment(
        name=definition.name,
        owner=rpc.identity().user,
        dataset_id=dataset_id,
        prompts=[one.prompt_id for one in definition.prompts],
        scenarios=len(definition.scenarios),
        repeats=definition.repeats,
        rubric=definition.rubric,
    )
    made.created_at.GetCurrentTime()
    return made


def _row(row: dict[str, Any]) -> dataset_pb2.DatasetRow:
    messages = [dataset_pb2.ChatMessage(role=one["role"], content=one["content"]) for one in row["messages"]]
    return dataset_pb2.DatasetRow(
        custom_id=row["custom_id"], messages=messages, metadata=json.dumps(row["metadata"], ensure_ascii=False)
    )


def _add_jobs(world: World, experiment: pb.Experiment, definition: Definition) -> None:
    asked = {(job.spec.endpoint, job.spec.model) for job in experiment.jobs}
    for model in definition.models:
        if (model.provider, model.model) not in asked:
            spec = job_pb2.JobSpec(
                endpoint=model.provider,
                model=model.model,
                dataset=job_pb2.DatasetWork(dataset_id=experiment.dataset_id, name=experiment.name),
            )
            (job,) = fake_admission.created(world, "", [spec])
            experiment.jobs.append(job)
