"""What REST and the command line say of experiments and of judges, as values of JSON."""

from __future__ import annotations

import json
from typing import Any

from services import numbers
from services.words import rubrics
from services.words.enums import EXPERIMENT_SOURCES
from services.words.jobs import status_of
from services.words.times import iso
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

COUNTS = ("rows", "answered", "errors", "scored", "judge_failures")
"""Of a row of the leaderboard."""
_AGREED = ("accuracy", "kappa", "bias", "alpha", "people", "combined")
"""Figures of a judge's agreement with people."""


def leaderboard(found: pb.GetExperimentResponse) -> dict[str, Any]:
    return {
        "experiment": experiment(found.experiment),
        "source": EXPERIMENT_SOURCES.of(found.source) or None,
        "judge": found.judge or None,
        "judges": list(found.judges),
        "leaderboard": [row_of(row) for row in found.rows],
        "models": [_model(model) for model in found.models],
        "prompts_with_same_first": found.prompts_with_same_first,
        "prompts_compared": found.prompts_compared,
        "uncounted_jobs": list(found.uncounted_job_ids),
        "live_judges": list(found.live_judges),
    }


def experiment(one: pb.Experiment) -> dict[str, Any]:
    return {
        "name": one.name,
        "owner": one.owner,
        "created_at": iso(one.created_at),
        "dataset_id": one.dataset_id or None,
        "prompts": list(one.prompts),
        "scenarios": one.scenarios,
        "repeats": one.repeats,
        "rubric": json.loads(rubrics.written(one.rubric)) if one.HasField("rubric") else None,
        "jobs": [job(each) for each in one.jobs],
    }


def job(one: job_pb2.Job) -> dict[str, Any]:
    return {
        "job_id": one.job_id,
        "provider": one.spec.endpoint,
        "model": one.spec.model,
        "status": status_of(one.state),
        "items_done": one.progress.items_done,
        "items_total": one.progress.items_total,
    }


def row_of(row: pb.ExperimentRow) -> dict[str, Any]:
    """A model with a prompt."""
    first = row.to_first
    return {
        "rank": row.rank or None,
        "rank_range": [row.rank_low, row.rank_high] if row.rank else None,
        "job_id": row.job_id,
        "provider": row.endpoint,
        "model": row.model,
        "prompt": row.prompt,
        **{name: getattr(row, name) for name in COUNTS},
        "composite": figure_of(row, "composite"),
        "criteria": {one.criterion: figure(one.score) for one in row.criteria},
        "to_first": {"difference": figure(first.difference), "p_value": first.p_value}
        if row.HasField("to_first")
        else None,
        "diversity": figure_of(row, "diversity"),
        "latency_s": row.latency_s,
        "tokens_per_s": row.tokens_per_s or None,
        "cost_usd": numbers.job_usd(row.cost_usd) if row.HasField("cost_usd") else None,
    }


def _model(model: pb.ExperimentModel) -> dict[str, Any]:
    scored = bool(model.best_prompt)
    return {
        "job_id": model.job_id,
        "provider": model.endpoint,
        "model": model.model,
        "mean": figure_of(model, "mean"),
        "best_prompt": model.best_prompt or None,
        "best": model.best if scored else None,
        "worst_prompt": model.worst_prompt or None,
        "worst": model.worst if scored else None,
    }


def outside_judge(found: pb.OutsideJudge) -> dict[str, Any]:
    """A judge outside Touchstone, and what it found in a job's answers."""
    return {
        "judge": found.judge,
        "rater": found.rater,
        "rubric": json.loads(rubrics.written(found.rubric)),
        "judged": found.judged,
        "answers": found.answers,
        "means": {one.criterion: figure_of(one, "score") for one in found.means},
        **against_people(found),
    }


def against_people(found: pb.JudgeRun | pb.OutsideJudge) -> dict[str, Any]:
    """How a judge agrees with people's scores, by metric, and with their verdicts."""
    return {
        "agreement": {one.metric: _agreement(one) for one in found.agreement},
        "verdicts": agreed(found.verdicts, "answers") if found.HasField("verdicts") else None,
    }


def agreed(found: pb.VerdictAgreement | pb.PreferenceAgreement, counted: str) -> dict[str, Any]:
    """Of a judge against people; `counted` names what has both."""
    return {counted: getattr(found, counted), **{name: figure_of(found, name) for name in ("accuracy", "kappa")}}


def _agreement(found: pb.JudgeAgreement) -> dict[str, Any]:
    figures = {name: figure_of(found, name) for name in _AGREED}
    return {"answers": found.answers, **figures, "ratings_to_halve": found.ratings_to_halve}


def figure_of(message: Any, name: str) -> dict[str, Any] | None:
    """The Interval in a field of the message; None if it is absent."""
    return figure(getattr(message, name)) if message.HasField(name) else None


def figure(interval: pb.Interval) -> dict[str, Any]:
    """An estimate with the ends of its 95 % interval and the number of what it is from."""
    return {"value": interval.value, "ci95": [interval.low, interval.high], "n": interval.n}
