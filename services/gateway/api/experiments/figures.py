"""What experiments asked and found: `GET /api/bench/runs/{experiment}` and `/leaderboard/{experiment}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from services.experiments import documents
from services.gateway.api.answers import members
from services.gateway.api.answers.metrics import FIGURE
from services.gateway.api.declare.endpoint import BENCH, JSON, Call, Endpoint
from services.gateway.api.experiments.run import EXPERIMENT
from services.gateway.fields.checks import JOB_ID, boolean, one_of, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    STRING,
    Schema,
    about,
    array,
    enum,
    null,
    pair,
    shape,
    table,
)
from services.gateway.http.responses import CSV, JSONResponse, csv_of
from services.gateway.reads.jobs import checked_id
from services.words.enums import EXPERIMENT_SOURCES, OUTCOMES
from touchstone.v1 import results_service_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_UNSPECIFIED

_PROMPT = about(STRING, "The prompt's id.")
_RUN: dict[str, Schema] = {
    "job_id": members.JOB_ID,
    "provider": members.PROVIDER,
    "model": members.MODEL,
    "prompt": _PROMPT,
    "scenario": about(STRING, "The scenario's id."),
    "number": about(COUNT, "Which of the repeats, from 1."),
    "task": members.TASK,
    "item": about(COUNT, "Its place among the job's items, from 0."),
    "repeat": members.REPEAT,
    "outcome": about(null(enum(*OUTCOMES)), "How the question ended. null while it waits."),
    "answer": about(STRING, "The answer, of at most 64 KB."),
    "candidates": about(array(STRING), "The tips in the answer."),
    "judge_pending": about(BOOLEAN, "Answered, and not scored yet by any judge or person."),
    "judged": about(table(SHARE), "By criterion, the judges' mean as a share of the scale. Empty without."),
    "rated": about(table(SHARE), "By criterion, people's mean as a share of the scale. Empty without."),
    "latency_s": about(NUMBER, "Seconds for the answer."),
    "input_tokens": about(COUNT, "Tokens of the prompt."),
    "output_tokens": about(COUNT, "Generated tokens."),
}
_AS_THEY_ARE = (
    *("job_id", "model", "prompt", "scenario", "number", "task", "item", "repeat"),
    *("answer", "judge_pending", "latency_s", "input_tokens", "output_tokens"),
)
RUNS: Schema = shape(
    {
        "runs": about(array(shape(_RUN, name="ExperimentRun")), "Model by model, then as the rows are."),
        "next_page_token": NEXT_PAGE_TOKEN,
    },
    name="ExperimentRuns",
)
_COUNTS: dict[str, Schema] = {
    "rows": about(COUNT, "Questions."),
    "answered": about(COUNT, "Questions with an answer."),
    "errors": about(COUNT, "Questions that failed without an answer."),
    "scored": about(COUNT, "Answers with a score."),
    "judge_failures": about(COUNT, "Answers whose judgement failed. They move no score."),
}
_ROW: dict[str, Schema] = {
    "rank": about(null({"type": "integer", "minimum": 1}), "From 1. null without scores."),
    "rank_range": about(
        null(pair(COUNT)), "The ranks that the paired tests leave open. null without scores: then any rank is."
    ),
    "job_id": members.JOB_ID,
    "provider": members.PROVIDER,
    "model": members.MODEL,
    "prompt": _PROMPT,
    **_COUNTS,
    "composite": about(null(FIGURE), "The mean share of the scales, from 0 to 1. null without scores."),
    "criteria": about(table(FIGURE), "The same for each criterion."),
    "to_first": about(
        null(
            shape(
                {
                    "difference": about(FIGURE, "`composite` minus that of the first row."),
                    "p_value": about(NUMBER, "The p-value of the paired test, after the correction for all pairs."),
                },
                name="DifferenceToFirst",
            )
        ),
        "The difference from the first row, on the scenarios that both have. null in the first row.",
    ),
    "diversity": about(null(FIGURE), "How much the tips of an answer differ, from 0 to 1. null without two tips."),
    "latency_s": about(NUMBER, "The median of the seconds for an answer."),
    "tokens_per_s": about(null(NUMBER), "Generated tokens per second. null if unknown."),
    "cost_usd": members.COST_USD,
}
_MODEL: dict[str, Schema] = {
    "job_id": members.JOB_ID,
    "provider": members.PROVIDER,
    "model": members.MODEL,
    "mean": about(null(FIGURE), "The mean of its prompts' composites. null unless all have scores."),
    "best_prompt": about(
        null(STRING), "The prompt with its highest composite. null without scores, and if all are equal."
    ),
    "best": about(null(NUMBER), "That composite."),
    "worst_prompt": about(null(STRING), "The prompt with its lowest composite. null without scores."),
    "worst": about(null(NUMBER), "That composite."),
}
BOARD: Schema = shape(
    {
        "experiment": about(EXPERIMENT, "The experiment."),
        "source": about(null(enum(*EXPERIMENT_SOURCES)), "Whose scores rank. null without scores."),
        "judge": about(null(STRING), "The judge of these scores, as `provider/model`. null without one."),
        "judges": about(
            array(STRING),
            "The judges that have scored answers, as `provider/model`. The same model with other sampling parameters "
            "is another judge: these follow its name.",
        ),
        "leaderboard": about(
            array(shape(_ROW, name="ExperimentRow")), "A row for each model and prompt: by rank, then without scores."
        ),
        "models": about(array(shape(_MODEL, name="ExperimentModel")), "Each model over all prompts."),
        "prompts_with_same_first": about(
            COUNT, "Of how many prompts the model with the highest mean over prompts is the first."
        ),
        "prompts_compared": about(COUNT, "The prompts of which all models have scores."),
        "uncounted_jobs": about(
            array(members.JOB_ID), "Jobs that are marked invalid or superseded, or build on one: they have no scores."
        ),
        "live_judges": about(array(STRING), "Judges that wait, run or are still to start, as `provider/model`."),
    },
    name="ExperimentBoard",
)


async def runs(call: Call) -> JSONResponse:
    """What an experiment asked and what was answered. 403 for callers who are not admins, 404 for an unknown name."""
    query = call.query
    request = results_service_pb2.ListExperimentRunsRequest(
        name=call.path["experiment"],
        job_id=checked_id(query["job_id"]) if query["job_id"] else "",
        prompt=query["prompt"],
        judge_pending=query["judge_pending"],
        page_size=query["limit"],
        page_token=query["page_token"],
    )
    found = await call.ask(call.ctx.backend.results.ListExperimentRuns, request)
    return JSONResponse({"runs": [_run(one) for one in found.runs], "next_page_token": found.next_page_token})


def _run(one: results_service_pb2.ExperimentRun) -> Mapping[str, Any]:
    plain = {name: getattr(one, name) for name in _AS_THEY_ARE}
    return plain | {
        "provider": one.endpoint,
        "outcome": None if one.outcome == OUTCOME_UNSPECIFIED else OUTCOMES.of(one.outcome),
        "candidates": list(one.candidates),
        "judged": {score.criterion: score.share for score in one.judged},
        "rated": {score.criterion: score.share for score in one.rated},
    }


async def leaderboard(call: Call) -> Response:
    """Models and prompts by their scores. 403 for callers who are not admins, 404 for an unknown name."""
    query, name = call.query, call.path["experiment"]
    request = results_service_pb2.GetExperimentRequest(
        name=name, source=EXPERIMENT_SOURCES.get(query["source"]), judge=query["judge"]
    )
    found = await call.ask(call.ctx.backend.results.GetExperiment, request)
    if query["format"] == "csv":
        headers = {"Content-Disposition": f'attachment; filename="touchstone-{found.experiment.name}.csv"'}
        names = [criterion.name for criterion in found.experiment.rubric.criteria]
        return Response(csv_of([_line(row, names) for row in found.rows]), media_type=CSV, headers=headers)
    return JSONResponse(documents.leaderboard(found))


def _line(row: results_service_pb2.ExperimentRow, criteria: Sequence[str]) -> dict[str, Any]:
    """A row without nested values."""
    known = documents.row_of(row)
    (low, high), first = known.pop("rank_range") or (None, None), known.pop("to_first") or {}
    scores = known.pop("criteria")
    figures = {
        "composite": known.pop("composite"),
        **{f"criteria.{name}": scores.get(name) for name in criteria},
        "diversity": known.pop("diversity"),
    }
    return {
        "rank": known.pop("rank"),
        "rank_low": low,
        "rank_high": high,
        **known,
        **{name: value for one, held in figures.items() for name, value in _ends(one, held).items()},
        **_ends("to_first", first.get("difference")),
        "p_value": first.get("p_value"),
    }


def _ends(name: str, held: Mapping[str, Any] | None) -> dict[str, Any]:
    low, high = held["ci95"] if held else (None, None)
    return {name: held["value"] if held else None, f"{name}_low": low, f"{name}_high": high}


EXPERIMENT_RUNS = Endpoint(
    "GET",
    "/runs/{experiment}",
    runs,
    "listExperimentRuns",
    "List what an experiment asked, with answers and scores. For admins.",
    RUNS,
    query=(
        Parameter("job_id", JOB_ID, "Only this job.", ""),
        Parameter("prompt", text(64), "Only this prompt.", ""),
        Parameter("judge_pending", boolean, "Only answers without any score.", False),
        limit(100, 500),
        PAGE_TOKEN,
    ),
    gives={"job_id": "/runs/0/job_id", "task": "/runs/0/task", "item": "/runs/0/item"},
    base=BENCH,
)
EXPERIMENT_BOARD = Endpoint(
    "GET",
    "/leaderboard/{experiment}",
    leaderboard,
    "getExperimentLeaderboard",
    "Rank the models and prompts of an experiment. Also as CSV. For admins.",
    BOARD,
    media=(JSON, "text/csv"),
    query=(
        Parameter(
            "source",
            one_of(*EXPERIMENT_SOURCES),
            "Whose scores rank. If absent, a judge's where one has scored answers, else people's.",
        ),
        Parameter("judge", text(600), "The judge, as in `judges`. The first one if absent.", ""),
        Parameter("format", one_of("json", "csv"), "How it is written.", "json"),
    ),
    base=BENCH,
)
