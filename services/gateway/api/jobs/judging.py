"""`POST /judge/{job_id}` judges a completed job's answers; `GET /results/{job_id}/judges` gives its judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from services.experiments.documents import against_people, figure_of, outside_judge
from services.gateway.api.answers import members
from services.gateway.api.answers.metrics import FIGURE, METRIC, metric_body
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.jobs.judged_pairs import PAIRS, pairs_body
from services.gateway.api.jobs.reuse import priority
from services.gateway.api.jobs.run import CONFIG, QUEUEING, judge_of, queue, queueing
from services.gateway.fields.checks import JOB_ID, Field, integer, record, text
from services.gateway.fields.judges import RUBRIC, of_model
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import COUNT, NUMBER, STRING, Schema, about, array, null, pair, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads.jobs import checked_id
from services.gateway.reads.values import is_bounded
from services.words import rubrics
from services.words.enums import OUTCOMES
from services.words.fields import INT32_MAX
from services.words.jobs import status_of
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone.v1.rubric_pb2 import RubricCriterion

BODY = record(
    of_model(CONFIG)
    | {
        "rubric": Field(RUBRIC, about="What it judges by. Required without `against`."),
        "against": Field(
            JOB_ID,
            about="A completed job whose answers to the same rows these are compared with. For each criterion, the "
            "judge says which of the two answers is better. Of the criteria, only names, descriptions and weights "
            "count. Without a rubric it says which answer is better. `repeats` counts in each order of a pair.",
        ),
    }
    | QUEUEING,
    name="JudgeRequest",
)
_ITEM = (
    Parameter("task", text(200), "With `item`, each judge's judgements of this answer as well: its task."),
    Parameter("item", integer(0, INT32_MAX), "The answer's item."),
    Parameter("repeat", integer(0, INT32_MAX), "The answer's repeat. 0 if absent."),
)
_CRITERION: Schema = shape(
    {
        "metric": about(METRIC, "The mean of its scores as shares of the scale, from 0 to 1."),
        "mean_on_scale": about(null(NUMBER), "The mean on the criterion's own scale. Of choices, as `metric.mean`."),
        "ci95_on_scale": about(null(pair(NUMBER)), "The 95 % interval on that scale."),
    },
    name="JudgedCriterion",
)
_JUDGEMENT: Schema = shape(
    {
        "number": about(COUNT, "1 for the first judgement of the answer."),
        "outcome": about(STRING, "Anything but `answered` is a failure of the judge."),
        "scores": about(null({"type": "object"}), "The score of each criterion. null after a failure."),
        "response": about(STRING, "The judge's words."),
        "other_first": about({"type": "boolean"}, "Of two answers, the other job's stood first."),
    },
    name="Judgement",
)
_AGREED: dict[str, Schema] = {
    "accuracy": about(null(FIGURE), "The share of equal scores, of several raters the one that most give."),
    "kappa": about(null(FIGURE), "Cohen's kappa: quadratically weighted for a scale."),
    "bias": about(null(FIGURE), "The mean of the judge's scores minus people's, as shares of the scale."),
    "alpha": about(null(FIGURE), "Krippendorff's alpha of the people among themselves: ordinal for a scale."),
    "combined": about(
        null(FIGURE),
        "People's mean over all answers, from their ratings and all of the judge's scores. A wrong judge does not move "
        "it. null while fewer than 10 answers were rated in the order of `unrated`.",
    ),
    "people": about(null(FIGURE), "The same from the ratings alone."),
}
_PEOPLE: Schema = shape(
    {
        "rubric": about(RUBRIC.schema, "The rubric under which people rated."),
        "raters": about(COUNT, "The people who rated."),
        "answers": about(COUNT, "The answers that at least one of them rated."),
        "shared": about(COUNT, "The answers that two or more of them rated."),
        "alpha": about(
            {"type": "object", "additionalProperties": null(FIGURE)},
            "By criterion, Krippendorff's alpha of the people among themselves: ordinal for a scale.",
        ),
    },
    name="PeopleAgreement",
)
_AGREEMENT: Schema = shape(
    {
        "answers": about(COUNT, "The answers that people and the judge scored."),
        **_AGREED,
        "ratings_to_halve": about(
            COUNT, "How many more ratings in the order of `unrated` would halve the interval of `combined`."
        ),
    },
    name="JudgeAgreement",
)
_VERDICTS: Schema = shape(
    {
        "answers": about(COUNT, "The answers that have the judge's score and a verdict."),
        "accuracy": about(
            FIGURE,
            "The share of them on which they agree: at least half of the scale agrees with golden, less with fix and "
            "wrong.",
        ),
        "kappa": about(null(FIGURE), "Cohen's kappa. null where both put all answers on one and the same side."),
    },
    name="VerdictAgreement",
)
_WITH_PEOPLE = about(
    {"type": "object", "additionalProperties": _AGREEMENT},
    "How the judge agrees with people, by metric. Empty where nobody rated under its rubric.",
)
_WITH_VERDICTS = about(null(_VERDICTS), "How it agrees with people's verdicts. null where no answer has both.")
_OUTSIDE: Schema = shape(
    {
        "judge": about(STRING, "Its name."),
        "rater": about(STRING, "The user who sends its scores."),
        "rubric": about(RUBRIC.schema, "What it judges by."),
        "judged": about(COUNT, "Answers that it has scored."),
        "answers": about(COUNT, "Answers that there are."),
        "means": about(
            {"type": "object", "additionalProperties": null(FIGURE)},
            "Its mean by metric, as shares of the scales, from 0 to 1; the composite comes first where there are "
            "several criteria.",
        ),
        "agreement": _WITH_PEOPLE,
        "verdicts": _WITH_VERDICTS,
    },
    name="OutsideJudge",
)
JUDGES: Schema = shape(
    {
        "job_id": members.JOB_ID,
        "judges": about(
            array(
                shape(
                    {
                        "job_id": about(members.JOB_ID, "The job that judges."),
                        "provider": members.PROVIDER,
                        "model": members.MODEL,
                        "status": members.STATUS,
                        "rubric": about(RUBRIC.schema, "What it judges by."),
                        "criteria": about(
                            {"type": "object", "additionalProperties": _CRITERION},
                            "By name; the composite comes first where there are several.",
                        ),
                        "asked": about(COUNT, "Judgements that were asked for."),
                        "judged": about(COUNT, "Judgements that gave valid scores."),
                        "failed": about(COUNT, "Judgements that could not be read. They move no score."),
                        "agreement": _WITH_PEOPLE,
                        "verdicts": _WITH_VERDICTS,
                        "pairs": about(
                            null(PAIRS),
                            "What it found if it compared the answers with another job's. null for other judges.",
                        ),
                        "judgements": about(array(_JUDGEMENT), "Of the answer that was asked for."),
                    },
                    name="JudgeRun",
                    optional=("judgements",),
                )
            ),
            "The jobs that judge, newest first.",
        ),
        "outside": about(array(_OUTSIDE), "Judges outside Touchstone that have sent scores, by name."),
        "people": about(array(_PEOPLE), "How people agree with each other, by the rubrics under which they rated."),
    },
    name="Judges",
)


async def judge(call: Call) -> JSONResponse:
    """A new job in which a model judges the stored answers of a completed job; that job's model is not called. 404 for
    an unknown id, 409 for a job that has not completed."""
    against = checked_id(call.body["against"]) if call.body.get("against") else ""
    if not (against or call.body.get("rubric")):
        raise FieldErrors([("rubric", "rubric is required without against.")])
    asked = await judge_of(call, call.body)
    spec = job_pb2.JobSpec(
        endpoint=asked.endpoint,
        model=asked.model,
        sampling=asked.sampling,
        budget_usd=asked.budget_usd,
        priority=priority(call),
        judging=job_pb2.Judging(job_id=call.job_id, rubric=asked.rubric, repeats=asked.repeats, against_job_id=against),
    )
    return await queue(call, spec, f"Judging the answers of job {call.job_id}")


async def judges(call: Call) -> JSONResponse:
    """The judges of a job's answers: jobs, newest first, and judges outside. 404 for an unknown id."""
    query = call.query
    if (query["task"] is None) != (query["item"] is None):
        raise FieldErrors([("item", "Give task and item together, or neither.")])
    request = results_service_pb2.ListJudgesRequest(
        job_id=call.job_id, task=query["task"] or "", item=query["item"] or 0, repeat=query["repeat"] or 0
    )
    found = await call.ask(call.ctx.backend.results.ListJudges, request)
    shown = [_shown(run, bool(request.task)) for run in found.judges]
    people, outside = map(_people, found.people), map(outside_judge, found.outside)
    return JSONResponse({"job_id": call.job_id, "judges": shown, "outside": [*outside], "people": [*people]})


def _shown(run: results_service_pb2.JudgeRun, of_item: bool) -> Mapping[str, Any]:
    outcomes = run.result.outcomes
    body = {
        "job_id": run.job.job_id,
        "provider": run.job.spec.endpoint,
        "model": run.job.spec.model,
        "status": status_of(run.job.state),
        "rubric": json.loads(rubrics.written(run.rubric)),
        "criteria": dict(_criteria(run)),
        "asked": run.result.items_planned,
        "judged": outcomes.answered,
        **against_people(run),
        "pairs": pairs_body(run) if run.HasField("pairs") else None,
        "failed": run.result.items - outcomes.answered - outcomes.infrastructure_error,
    }
    if of_item:
        body["judgements"] = [
            {
                "number": one.number,
                "outcome": OUTCOMES.of(one.outcome),
                "scores": json.loads(one.scores) if one.scores else None,
                "response": one.response,
                "other_first": one.other_first,
            }
            for one in run.judgements
        ]
    return body


def _people(found: results_service_pb2.PeopleAgreement) -> dict[str, Any]:
    return {
        "rubric": json.loads(rubrics.written(found.rubric)),
        "raters": found.raters,
        "answers": found.answers,
        "shared": found.shared,
        "alpha": {one.criterion: figure_of(one, "alpha") for one in found.criteria},
    }


def _criteria(run: results_service_pb2.JudgeRun) -> list[tuple[str, dict[str, Any]]]:
    shown = []
    for metric in run.result.metrics:
        criterion = next((one for one in run.rubric.criteria if one.name == metric.metric), None)
        ends = (metric.ci95_low, metric.ci95_high)
        mean = metric.mean if metric.HasField("mean") and not is_bounded(metric) else None
        known = mean is not None and metric.HasField("ci95_low")
        shown.append(
            (
                metric.metric,
                {
                    "metric": metric_body(metric),
                    "mean_on_scale": None if mean is None else _on_scale(criterion, mean),
                    "ci95_on_scale": [_on_scale(criterion, end) for end in ends] if known else None,
                },
            )
        )
    return shown


def _on_scale(criterion: RubricCriterion | None, share: float) -> float:
    """The composite is a share already."""
    return share if criterion is None else rubrics.on_scale(criterion, share)


JUDGE = Endpoint(
    "POST",
    "/judge/{job_id}",
    judge,
    "judgeJob",
    "Judge the stored answers of a completed job by a rubric, as a new job.",
    errors=(409,),
    **queueing(BODY),
)
LIST_JUDGES = Endpoint(
    "GET",
    "/results/{job_id}/judges",
    judges,
    "listJudges",
    "The judges of a job's answers, with their scores.",
    JUDGES,
    query=_ITEM,
)
