"""Leaderboards of experiments for the fakes, of any size, with figures that agree with each other."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Sequence

from services.experiments.prompts import SHIPPED, shipped
from services.experiments.reading import shipped_rubric
from services.words import rubrics
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric

JUDGE = "ollama/mistral:7b"
LONG = "a" * 64
"""The longest name."""


def add(
    world: World,
    name: str,
    models: Sequence[str] = ("gemma3:4b", "phi4-mini", "qwen2.5:7b"),
    prompts: Sequence[tuple[str, str]] = (),
    *,
    scenarios: int = 20,
    scored: bool = True,
    live: bool = False,
    rubric: Rubric | None = None,
) -> pb.GetExperimentResponse:
    """An experiment with a job for each model. `prompts` are ids with templates, the shipped ones if there are none.
    Without `scored` no answer has a score; with `live` the last job runs and the one before it waits."""
    asked = list(prompts) or [(one, shipped(one).text) for one in SHIPPED]
    by = rubric or shipped_rubric()
    source = dataset_pb2.ExperimentSource(name=name, definition=_definition(asked, scenarios, by))
    dataset = dataset_pb2.Dataset(
        dataset_id=f"ds_{uuid.uuid4().hex}", name=name, owner="m.keller", rows=len(asked) * scenarios, experiment=source
    )
    dataset.uploaded_at.GetCurrentTime()
    world.datasets[dataset.dataset_id], world.rows[dataset.dataset_id] = dataset, []
    world.experiment_runs[name] = []
    experiment = pb.Experiment(
        name=name,
        owner=dataset.owner,
        created_at=dataset.uploaded_at,
        dataset_id=dataset.dataset_id,
        prompts=[one for one, _ in asked],
        scenarios=scenarios,
        repeats=1,
        rubric=by,
        definition=source.definition,
    )
    for place, model in enumerate(models):
        spec = job_pb2.JobSpec(endpoint="ollama", model=model, experiment_name=name)
        spec.dataset.dataset_id, spec.dataset.name = dataset.dataset_id, name
        experiment.jobs.append(_job(world, spec, len(models) - place if live else 0, dataset.rows))
    found = pb.GetExperimentResponse(experiment=experiment)
    _rank(found, scored)
    world.experiments[name] = found
    return found


def odd(world: World) -> pb.GetExperimentResponse:
    """Long and hostile names and templates; a job that failed; a rubric with other scales."""
    rubric = rubrics.of_value(
        {
            "version": "odd-v1",
            "criteria": [
                {"name": "tone_of_the_whole_answer_in_all_parts", "lowest": -2, "highest": 2, "weight": 1},
                {"name": "length", "choices": [{"name": "short", "value": 1}, {"name": "long", "value": 0}]},
            ],
        }
    )
    prompts = [("p" * 64, HOSTILE * 400), ("v-2.b_c", '<script>alert("x")</script>{{about}}')]
    found = add(world, LONG, (HOSTILE, f"vendor/{'m' * 80}:70b-instruct"), prompts, rubric=rubric)
    job = found.experiment.jobs[0]
    job.state, job.reason = job_pb2.Job.STATE_FAILED, HOSTILE
    world.jobs[job.job_id].CopyFrom(job)
    for row in found.rows:
        row.errors, row.judge_failures, row.answered, row.scored = 3, 2, row.rows - 3, row.rows - 5
    return found


def large(world: World) -> pb.GetExperimentResponse:
    """10 models with 20 prompts in 200 scenarios."""
    models = [f"vendor-{number}/model-{number}:7b" for number in range(10)]
    return add(world, "large", models, [(f"prompt-{n}", f"{n} {{{{about}}}}") for n in range(20)], scenarios=200)


def _definition(asked: Sequence[tuple[str, str]], scenarios: int, rubric: Rubric) -> str:
    held = {
        "prompts": [
            {"id": one, "sha256": f"{place:064x}", "template": text} for place, (one, text) in enumerate(asked)
        ],
        "scenarios": {"set": "tips", "count": scenarios},
        "repeats": 1,
        "rubric": json.loads(rubrics.written(rubric)),
        "n_tips": 5,
        "diversity": True,
        "temperature": 0.7,
    }
    return json.dumps(held)


def _job(world: World, spec: job_pb2.JobSpec, from_last: int, rows: int) -> job_pb2.Job:
    job = world.add(spec, "m.keller")
    job.progress.items_total = rows
    if from_last != 2:
        world.start(job.job_id)
        job.progress.items_total = rows
        job.progress.items_done = rows // 3
    if from_last not in (1, 2):
        world.finish(job.job_id)
        job.progress.items_total = job.progress.items_done = rows
    job.progress.cost_usd = 0.012
    return job


def _rank(found: pb.GetExperimentResponse, scored: bool) -> None:
    drawn = random.Random(len(found.experiment.jobs))
    experiment = found.experiment
    rows = [_row(experiment, job, prompt, drawn, scored) for job in experiment.jobs for prompt in experiment.prompts]
    rows.sort(key=lambda row: -row.composite.value)
    ranked = [row for row in rows if row.HasField("composite")]
    for place, row in enumerate(ranked, 1):
        row.rank, row.rank_low, row.rank_high = place, max(1, place - 2), min(len(ranked), place + 2)
        if place > 1:
            gap = row.composite.value - ranked[0].composite.value
            row.to_first.difference.CopyFrom(pb.Interval(value=gap, low=gap - 0.04, high=gap + 0.04, n=20))
            row.to_first.p_value = 0.3 if gap > -0.04 else 0.004
    found.rows.extend(rows)
    for job in experiment.jobs:
        model = found.models.add(job_id=job.job_id, endpoint=job.spec.endpoint, model=job.spec.model)
        own = {row.prompt: row.composite.value for row in ranked if row.job_id == job.job_id}
        if own:
            model.best_prompt, model.worst_prompt = (
                max(own, key=lambda one: own[one]),
                min(own, key=lambda one: own[one]),
            )
            model.best, model.worst = own[model.best_prompt], own[model.worst_prompt]
        if len(own) == len(experiment.prompts):
            mean = sum(own.values()) / len(own)
            model.mean.CopyFrom(pb.Interval(value=mean, low=mean - 0.05, high=mean + 0.05, n=20))
    if ranked:
        found.source, found.judge = pb.GetExperimentRequest.SOURCE_JUDGE, JUDGE
        found.judges.append(JUDGE)
        found.prompts_compared = len(experiment.prompts)
        found.prompts_with_same_first = max(1, len(experiment.prompts) - 1)


def _row(
    experiment: pb.Experiment, job: job_pb2.Job, prompt: str, drawn: random.Random, scored: bool
) -> pb.ExperimentRow:
    row = pb.ExperimentRow(job_id=job.job_id, endpoint=job.spec.endpoint, model=job.spec.model, prompt=prompt)
    row.rows = experiment.scenarios
    if job.state != job_pb2.Job.STATE_COMPLETED:
        return row
    row.answered, row.latency_s, row.tokens_per_s, row.cost_usd = row.rows, 0.4 + drawn.random(), 61.5, 0.004
    row.diversity.CopyFrom(pb.Interval(value=0.81, low=0.76, high=0.86, n=row.rows))
    if scored:
        row.scored = row.rows - 1
        row.judge_failures = 1
        value = 0.5 + drawn.random() / 4
        row.composite.CopyFrom(pb.Interval(value=value, low=value - 0.05, high=value + 0.05, n=row.rows))
        for criterion in experiment.rubric.criteria:
            share = min(1.0, value + drawn.random() / 10)
            score = pb.Interval(value=share, low=share - 0.05, high=min(1.0, share + 0.05), n=row.scored)
            row.criteria.add(criterion=criterion.name, score=score)
    return row
