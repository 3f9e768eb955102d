"""An experiment in MLflow: a run for each answer. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services import further_fields
from services.experiments import candidates
from services.results.mlflow.client import Record
from services.words import enums, rubrics
from touchstone.v1 import item_result_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric

ARTIFACT = "artifact:"
"""Begins the names of tags that hold what would be files."""


def record(experiment: pb.Experiment, job: job_pb2.Job, run: pb.ExperimentRun, prompt: str) -> Record:
    """An answer's run. Criteria are on their scales, as judges and people score them; the composite is from 0 to 1.
    People's scores count before judges'. `prompt` is what was sent."""
    made = json.loads(experiment.definition)
    scores, by = (run.rated, "people") if run.rated else (run.judged, "judge")
    answered = run.outcome not in (item_result_pb2.OUTCOME_UNSPECIFIED, item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR)
    files = {"prompt.txt": prompt, "raw.txt": run.answer}
    files["candidates.json"] = json.dumps(list(run.candidates), ensure_ascii=False)
    started_ms = (job.attempt_started_at or job.created_at).ToMilliseconds()
    return Record(
        name=" · ".join((run.model, run.prompt, run.scenario, *([f"r{run.number}"] if run.number > 1 else ()))),
        params=dict(_params(made, job, run)),
        metrics=dict(_metrics(experiment.rubric, run, scores)) if answered else {},
        tags={
            "judge_pending": str(answered and run.judge_pending).lower(),
            "touchstone.outcome": enums.OUTCOMES.of(run.outcome),
            **({"touchstone.scored_by": by} if scores else {}),
            "mlflow.user": job.owner,
            "mlflow.source.name": "Touchstone",
            **{ARTIFACT + name: text for name, text in files.items()},
        },
        started_ms=started_ms,
        ended_ms=max(started_ms, job.finished_at.ToMilliseconds()),
        failed=not answered,
        files=files,
    )


def _params(made: Mapping[str, Any], job: job_pb2.Job, run: pb.ExperimentRun) -> Iterator[tuple[str, str]]:
    hashes = {one["id"]: one["sha256"] for one in made["prompts"]}
    yield from (("provider", run.endpoint), ("model", run.model), ("prompt_version", run.prompt))
    yield from (("prompt_sha256", hashes.get(run.prompt, "")), ("scenario", run.scenario), ("repeat", str(run.number)))
    yield from (("n_tips", str(made["n_tips"])), ("diversity", str(made["diversity"]).lower()))
    yield "rubric", made["rubric"]["version"]
    for field, value in job.spec.sampling.ListFields():
        if field.name not in further_fields.FIELDS:
            yield field.name, str(value)


def _metrics(rubric: Rubric, run: pb.ExperimentRun, scores: Iterable[pb.CriterionShare]) -> Iterator[tuple[str, float]]:
    criteria = {criterion.name: criterion for criterion in rubric.criteria}
    for one in scores:
        yield (
            one.criterion,
            rubrics.on_scale(criteria[one.criterion], one.share) if one.criterion in criteria else one.share,
        )
    yield from (("input_tokens", run.input_tokens), ("output_tokens", run.output_tokens), ("tips", len(run.candidates)))
    if run.latency_s > 0:
        yield "latency_s", run.latency_s
        yield "tokens_per_s", run.output_tokens / run.latency_s
    diversity = candidates.diversity(run.candidates)
    if diversity is not None and math.isfinite(diversity):
        yield "diversity", diversity
