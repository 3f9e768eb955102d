"""Starts experiments and continues them: one job for each model, over one dataset of prompts and scenarios.

The scheduler keeps nothing of an experiment but its jobs, which name it. So a call that ended at any point is made good
by the same call:

- before the results service has made the rows, there is nothing;
- before the jobs are stored, there are rows without a job. The same rows are found by the experiment's name;
- jobs with further judges, jobs and judges that run again, and new jobs are stored in one write each, in this order.
  Between two of them, the call does what is left.

Whether a model has a job is looked up under the lock in which its job is created. So calls at the same time make one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import fsum

from services.chat_requests import strict_json
from services.chat_requests.faults import WrongRowError
from services.errors import ConflictError, InvalidRequestError
from services.experiments import plain_values, reading
from services.experiments.definition import Definition, Model, judge_too_large, too_large, without_answers
from services.experiments.fields import DefinitionError
from services.rpc import Identity, check_request_id
from services.scheduler.admission import judging_rules
from services.scheduler.admission.validation import check_judges
from services.scheduler.jobs import budget
from services.scheduler.jobs.job import Job
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.scheduler.requests.experiment_judges import NamedJudges, named
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.spec_context import Context
from services.words import refusals, rubrics
from services.words.endpoints import named as listed_as
from services.words.enums import PRIORITIES
from touchstone.v1 import dataset_pb2, endpoint_pb2, job_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

MOST_BYTES = 3 * 1024 * 1024
_MOST_FAULTS = 100
"""Fields of a refused definition that are named."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to run over which rows, and the jobs over these that the results service knows. Without an id, the rows
    are still to be made."""

    definition: Definition
    specs: dict[Model, job_pb2.JobSpec]
    rows: dataset_pb2.Dataset
    known: Sequence[job_pb2.Job]


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The jobs that there are, those of them that run again, and new ones, which are not queued yet."""

    there: dict[Model, Job]
    again: list[Job]
    new: dict[Model, Job]
    judges: NamedJudges
    share: float
    """US dollars that each job may spend from now on; 0 for any amount."""


class Experiments:
    """Those of one registry."""

    def __init__(self, registry: JobRegistry, results: Results, desk: Desk) -> None:
        self._registry, self._results, self._desk = registry, results, desk

    async def run(self, caller: Identity, request: pb.RunExperimentRequest) -> pb.RunExperimentResponse:
        """Raises as `Desk.create`, and ConflictError where an experiment of this name has other rows, a job would
        have too many judges, or nothing is left of the budget."""
        check_request_id(request.request_id)
        endpoints = self._registry.fleet.endpoints(self._registry.now())
        definition = await asyncio.to_thread(_read, request, endpoints)
        specs = {model: _spec(definition, model, request.judges) for model in definition.models}
        text = definition.written()
        rows = await self._results.prepare_experiment(caller.user, text, check_only=True)
        known = await self._results.jobs_over(rows.dataset_id) if rows.dataset_id else []
        if not rows.dataset_id:
            rows = dataset_pb2.Dataset(owner=caller.user, rows=definition.rows)
        jobs = self._jobs(_Asked(definition, specs, rows, known))
        if request.check_only:
            return self._answer(definition, rows, jobs, jobs.there)
        if not rows.dataset_id:
            rows = await self._results.prepare_experiment(caller.user, text)
        started = self._start(caller, _Asked(definition, specs, rows, known))
        jobs = await self._registry.finish_anyway(started)
        return self._answer(definition, rows, jobs, jobs.there | jobs.new)

    def _answer(
        self, definition: Definition, rows: dataset_pb2.Dataset, jobs: _Jobs, stored: Mapping[Model, Job]
    ) -> pb.RunExperimentResponse:
        shown = self._registry.views([stored[model] for model in definition.models if model in stored])
        for job in shown:
            for judge in job.spec.judges:
                # A hundred jobs with all their rubrics would not fit into one answer.
                judge.ClearField("rubric")
        return pb.RunExperimentResponse(
            experiment=definition.name,
            dataset_id=rows.dataset_id,
            jobs=shown,
            cells=definition.cells,
            calls=definition.cells * definition.repeats,
            deleted_judges=[pb.DeletedJudge(judge=place, job_ids=ids) for place, ids in jobs.judges.deleted.items()],
        )

    async def _start(self, caller: Identity, asked: _Asked) -> _Jobs:
        registry = self._registry
        async with registry.lock:
            registry.require_stored()
            jobs = self._jobs(asked)
            await self._change_judges(caller, jobs)
            for job in jobs.again:
                job.message.spec.budget_usd = _spent(job) + jobs.share if jobs.share else 0.0
                job.message.spec.max_model_b = asked.definition.max_model_b
            for judge in jobs.judges.again:
                jobs.judges.limit(judge)
            again = jobs.again + jobs.judges.again
            for job in again:
                job.retry(registry.now())
                registry.jobs[job.id] = job
            if again:
                await registry.commit_all(again, caller.user, "retried")
            if jobs.new:
                registry.jobs |= {job.id: job for job in jobs.new.values()}
                await registry.commit_all([*jobs.new.values()], caller.user, "created")
            return jobs

    async def _change_judges(self, caller: Identity, jobs: _Jobs) -> None:
        registry, named = self._registry, jobs.judges
        changed = [job for job in jobs.there.values() if job.id in named.lists]
        for job in changed:
            if job.id not in registry.jobs:
                job.earlier_judges = len(job.message.spec.judges)
                registry.jobs[job.id] = job
            del job.message.spec.judges[:]
            job.message.spec.judges.extend(named.lists[job.id])
        for judge in named.waiting:
            named.limit(judge)
        if changed or named.waiting:
            await registry.commit_all(changed + named.waiting, caller.user, "judges")

    def _jobs(self, asked: _Asked) -> _Jobs:
        """Raises what refuses the whole call: then no job is created or runs again."""
        there = self._there(asked)
        missing = [model for model in asked.definition.models if model not in there]
        again = [there[model] for model in asked.definition.models if model in there and there[model].can_retry]
        share = _share(asked.definition, there.values(), again, len(missing))
        again = [job for job in again if _affordable(job, share)]
        judges = self._judges(asked, there, {job.id for job in again})
        context = Context(None, asked.rows)
        wanted = []
        for model in missing:
            spec = job_pb2.JobSpec()
            spec.CopyFrom(asked.specs[model])
            spec.dataset.dataset_id, spec.budget_usd = asked.rows.dataset_id, share
            wanted.append((spec, context))
        with _fields():
            made = self._desk.made(asked.rows.owner, wanted)
        if made or again or judges.again:
            self._desk.require_room(asked.rows.owner, len(made) + len(again) + len(judges.again))
        return _Jobs(there, again, dict(zip(missing, made, strict=True)), judges, share)

    def _there(self, asked: _Asked) -> dict[Model, Job]:
        """The newest job of each of the models."""
        registry = self._registry
        known = registry.jobs | {
            one.job_id: Job(one)
            for one in asked.known
            if one.job_id not in registry.jobs and one.job_id not in registry.deleted
        }
        found: dict[Model, Job] = {}
        for _, job in sorted(known.items()):
            spec = job.message.spec
            model = Model(spec.endpoint, spec.model)
            ours = spec.experiment_name == asked.definition.name and not spec.HasField("judging")
            if ours and model in asked.specs and spec.dataset.dataset_id == asked.rows.dataset_id:
                found[model] = job
        return found

    def _judges(self, asked: _Asked, there: dict[Model, Job], again: Collection[str]) -> NamedJudges:
        judges = next(iter(asked.specs.values())).judges
        known = [*self._registry.jobs.values(), *self._registry.deleted.values()]
        found = named(asked.definition.name, judges, there.values(), known, again)
        if found.lists:
            with _fields():
                check_judges(judges, self._registry.fleet, self._registry.now())
        return found


def _read(request: pb.RunExperimentRequest, endpoints: Sequence[endpoint_pb2.Endpoint]) -> Definition:
    """Raises DefinitionError."""
    data = request.definition.encode()
    if len(data) > MOST_BYTES:
        raise DefinitionError([("", refusals.too_large("The definition", len(data), MOST_BYTES, "bytes"))])
    try:
        value = strict_json.parse(data, "definition")
    except WrongRowError as error:
        raise DefinitionError(_places(data) or [("", error.reason)]) from error
    default = next((one.endpoint for one in endpoints if one.kind == "ollama"), "")
    definition = reading.read(value, providers=[one.endpoint for one in endpoints], default_provider=default)
    listed = {one.endpoint: one.models for one in endpoints}
    judges = [Model(one.endpoint, one.model) for one in request.judges]
    sizes = {}
    for model in (*definition.models, *judges):
        found = listed_as(listed.get(model.provider, ()), model.model)
        if found is not None and found.parameters_b:
            sizes[model] = found.parameters_b
    refused = [(f"models[{definition.models.index(one)}]", why) for one, why in too_large(definition, sizes)]
    baselines = {one.endpoint for one in endpoints if one.baseline}
    for model, why in without_answers(definition, baselines):
        refused.append((f"models[{definition.models.index(model)}]", why))
    for place, judge in enumerate(judges):
        if why := judge_too_large(definition, judge, sizes):
            refused.append((f"judges[{place}]", why))
    if refused:
        raise DefinitionError(refused)
    return definition


def _places(data: bytes) -> list[tuple[str, str]]:
    """Of a definition that was refused as a whole, the fields that are to blame, each with its sentence; none where
    these are not known."""
    try:
        return [*islice(plain_values.faults(json.loads(data)), _MOST_FAULTS)]
    except (ValueError, RecursionError):
        return []


def _spec(definition: Definition, model: Model, judges: Sequence[job_pb2.Judge]) -> job_pb2.JobSpec:
    """Of a model's job, without its dataset and budget. Raises InvalidRequestError."""
    spec = job_pb2.JobSpec(
        endpoint=model.provider,
        model=model.model,
        sampling=definition.parameters(),
        dataset=job_pb2.DatasetWork(),
        judges=judges,
        experiment_name=definition.name,
        max_model_b=definition.max_model_b,
    )
    if definition.priority:
        spec.priority = PRIORITIES[definition.priority]
    for place, judge in enumerate(spec.judges):
        if judge.rubric:
            raise InvalidRequestError(
                "The judges of an experiment have its rubric. Leave rubric out.", f"judges[{place}].rubric"
            )
        judge.rubric, judge.max_model_b = rubrics.written(definition.rubric), definition.most_judge_b
    with _fields():
        judging_rules.check_form(spec)
    return spec


@contextmanager
def _fields() -> Iterator[None]:
    """Names fields as callers of this request know them."""
    try:
        yield
    except InvalidRequestError as error:
        error.field = error.field.removeprefix("spec.")
        raise


# -- the budget ----------------------------------------------------------------------------------------------------


def _share(definition: Definition, there: Iterable[Job], again: Sequence[Job], new: int) -> float:
    """What each job that begins now may spend: an equal part of what is left of the experiment's budget. What others
    have spent, or may still spend, is not. Raises ConflictError where nothing is left."""
    runs = len(again) + new
    if not definition.budget_usd or not runs:
        return 0.0
    held = fsum(max(job.live * job.message.spec.budget_usd, _spent(job)) for job in there)
    left = definition.budget_usd - held
    if left <= 0:
        raise ConflictError(
            f"Nothing is left of the {budget.dollars(definition.budget_usd)} of experiment {definition.name}: its jobs "
            f"have spent, or may spend, {budget.dollars(held)}. Raise budget_usd."
        )
    return left / runs


def _spent(job: Job) -> float:
    """The most that its calls may have cost."""
    return float(job.message.progress.cost_usd + job.message.progress.reserved_usd)


def _affordable(job: Job, share: float) -> bool:
    """Whether the share pays for a call; such jobs stay as they are, with their reason."""
    costs = [task.most_cost_usd for task in job.message.plan]
    return not share or not costs or min(costs) <= share
