"""What judges said of one answer, and which answer a judgement is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from services import json_values
from services.errors import TouchstoneError
from services.gateway import context
from services.words import judging_rows, phrases, rubrics
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2
from touchstone.v1.rubric_pb2 import RubricCriterion

LONG = 240
"""Characters of a judge's words that are shown at once; longer ones are folded."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge said once. `outcome` is empty unless the judge failed; `words` are its reason, or all that it
    wrote."""

    number: int
    outcome: str
    scores: list[tuple[str, str]]
    words: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge said of one answer: the job that judges, its model, its rubric's version, and its judgements."""

    job_id: str
    model: str
    rubric: str
    said: list[Said]


async def opinions(request: Request, of_item: results_service_pb2.GetItemRequest, judged: bool) -> list[Opinion]:
    """What judges said of an answer; none while the results service is silent, and unless the job may have some."""
    if not judged:
        return []
    call = results_service_pb2.ListJudgesRequest(
        job_id=of_item.job_id, task=of_item.task, item=of_item.item, repeat=of_item.repeat
    )
    return [
        Opinion(run.job.job_id, run.job.spec.model, run.rubric.version, [_said(run, one) for one in run.judgements])
        for run in (await ask(request, call)).judges
        if run.judgements
    ]


async def ask(request: Request, call: results_service_pb2.ListJudgesRequest) -> results_service_pb2.ListJudgesResponse:
    """The judges of a job and the people who rated it; none while the results service is silent."""
    ctx = context.of(request)
    try:
        return await ctx.backend.ask(ctx.backend.results.ListJudges, call, context.identity(request))
    except TouchstoneError:
        return results_service_pb2.ListJudgesResponse()


def _said(run: results_service_pb2.JudgeRun, judgement: results_service_pb2.Judgement) -> Said:
    failed = judgement.outcome != item_result_pb2.OUTCOME_ANSWERED
    given = {} if failed else _object(judgement.scores)
    if run.job.spec.judging.against_job_id:
        this = rubrics.SECOND if judgement.other_first else rubrics.FIRST
        scores = {name: _preferred(score, this) for name, score in given.items()}
    else:
        scores = {one.name: _score(one, given[one.name]) for one in run.rubric.criteria if one.name in given}
    return Said(
        number=judgement.number,
        outcome=phrases.UNREAD.get(judgement.outcome, "no answer") if failed else "",
        scores=list(scores.items()),
        words=_words(judgement.response),
    )


def _preferred(score: Any, this: str) -> str:
    """What a judge prefers of two answers, of which the one in place `this` is shown."""
    if score == rubrics.TIE:
        return "neither"
    return f"{'this' if score == this else 'the other'} answer, which stood {score}"


def _score(criterion: RubricCriterion, score: Any) -> str:
    return str(score) if criterion.choices else f"{score} of {criterion.lowest}–{criterion.highest}".replace("-", "−")


def _words(response: str) -> str:
    """The reason of a judgement in the form that was asked for, else the whole response."""
    reason = _object(response).get("reason")
    return reason if isinstance(reason, str) and reason.strip() else response


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json_values.parsed(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def judged_item(job: job_pb2.Job, custom_id: str) -> str:
    """The address of the answer that a judge's row is about; empty for a row of another job."""
    found = judging_rows.PLACE.fullmatch(custom_id)
    if not job.spec.HasField("judging") or found is None:
        return ""
    _, task, item, repeat = found.groups()
    address = f"/jobs/{job.spec.judging.job_id}/items/{quote(task, safe='')}/{int(item)}"
    return f"{address}?repeat={int(repeat)}" if int(repeat) else address
