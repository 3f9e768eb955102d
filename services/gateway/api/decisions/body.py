"""Decisions as answers give them: `GET /decisions` and one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    SHARE,
    STRING,
    UUID,
    Schema,
    about,
    array,
    enum,
    null,
    pair,
    shape,
)
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import decisions, jobs
from services.gateway.reads.datasets import sampling_body
from services.words.enums import DECISION_VERDICTS, RACER_STATES
from services.words.jobs import stage_of, status_of, suite_of
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2

DECISION_ID = about(members.JOB_ID, "The decision's id: that of the baseline's job.")
_SIDE: Schema = shape(
    {
        "job_id": members.JOB_ID,
        "provider": members.PROVIDER,
        "model": members.MODEL,
        "parameters": about(OBJECT, "The sampling parameters."),
        "status": members.STATUS,
        "phase": members.PHASE,
    },
    name="DecisionSide",
)
_POINT: Schema = shape(
    {
        "pairs": about(COUNT, "After this many items that both had answered."),
        "better": about(NUMBER, "The evidence that the candidate is better, as a natural logarithm."),
        "worse": about(NUMBER, "The evidence that it is worse."),
        "equivalent": about(null(NUMBER), "The evidence that they differ by less than the margin. null without one."),
        "chance": about(SHARE, "The chance that a comparison of all items would show a difference or equivalence."),
        "difference": about(NUMBER, "The mean score in these items minus that of the other model."),
        "interval": about(pair(NUMBER), "It holds the true difference, together with those of all other points."),
    },
    name="DecisionPoint",
)
_PATH = about(array(_POINT), "How it went, oldest first, in at most some 200 points. Empty where there is none.")
_SAVED: Schema = shape(
    {
        "items": about(COUNT, "Calls that were not made, of all jobs together."),
        "tokens": about(null(COUNT), "Tokens read and generated. null if no answer's are known."),
        "cost_usd": about(null(NUMBER), "US dollars. null if no price is known."),
        "seconds": about(NUMBER, "Seconds, of the slowest job."),
    },
    name="DecisionSavings",
)
_RACER: dict[str, Schema] = {
    **_SIDE["properties"],
    "state": about(null(enum(*RACER_STATES)), "What is known of it. null while nothing is."),
    "against_job_id": about(null(UUID), "The job of the model that it is compared with: the one that beat it, if any."),
    "beaten_at": about(null(COUNT), "Items of the order after which it was beaten. null for others."),
    "pairs": about(COUNT, "Items that count of the two, up to a verdict on them."),
    "failed": about(COUNT, "Items up to there that are left out: one of the two has no answer after all retries."),
    "difference": about(null(NUMBER), "Its mean score in these items minus that of the other."),
    "interval": about(null(pair(NUMBER)), "It holds the true difference, together with those of all other pairs."),
}
_ROW: dict[str, Schema] = {
    "decision_id": DECISION_ID,
    "suite": members.SUITE,
    "baseline": about(_SIDE, "The model to compare with."),
    "candidate": about(null(_SIDE), "The model that the verdict is about. null in a race."),
    "racers": about(
        array(shape(_RACER, name="Racer")), "Of a race, its models, the baseline first. Empty for a decision of two."
    ),
    "live": about(BOOLEAN, "Whether a job of it still waits or runs."),
    "verdict": about(null(enum(*DECISION_VERDICTS)), "What was found. null while it is not known, and without one."),
    "words": about(STRING, "What was found, as a sentence."),
    "decided_at": about(null(COUNT), "Items that both had answered when it was known. null without a verdict."),
    "pairs": about(
        COUNT,
        "Items that count: of the order's first ones, up to one that both have yet to answer. "
        "Of stopped jobs: up to the verdict.",
    ),
    "items_total": about(COUNT, "Items of each job. 0 until they are counted."),
    "difference": about(
        null(NUMBER),
        "The mean score of the candidate minus that of the baseline in the items after which it was known, or in all.",
    ),
    "interval": about(
        null(pair(NUMBER)), "It holds the true difference at all looks together, with the error of the decision."
    ),
    "error": about(NUMBER, "The most probability of a wrong verdict."),
    "margin": about(NUMBER, "Differences below this count as none. 0 if each one matters."),
    "saved": about(
        null(_SAVED), "What was not asked, at what the answers took on average. null until all jobs have ended."
    ),
    "schedule_id": about(null(UUID), "The schedule that started it. null for others."),
    "owner": members.OWNER,
    "project_id": members.PROJECT_ID,
    "created_at": members.CREATED_AT,
}
DECISION = shape(
    _ROW
    | {
        "racers": about(
            array(shape(_RACER | {"path": _PATH}, name="RacerDetail")),
            "Of a race, its models, the baseline first. Empty for a decision of two.",
        ),
        "order_seed": about(INTEGER, "The seed of the order of the items."),
        "failed": about(
            COUNT, "Items up to there or to the verdict that are left out: a job has no answer after all retries."
        ),
        "path": _PATH,
        "threshold": about(NUMBER, "A verdict is reached when the evidence for it is this high."),
        "unlikely": about(SHARE, "The jobs also stop when `chance` falls below this."),
        "note": about(null(STRING), "Why there can be no verdict. null if there can be one."),
    },
    name="Decision",
)


def _side(job: job_pb2.Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "provider": job.spec.endpoint,
        "model": job.spec.model,
        "parameters": sampling_body(job.spec.sampling),
        "status": status_of(job.state),
        "phase": stage_of(job),
    }


def _measured(found: decision_pb2.Decision | decision_pb2.Racer) -> dict[str, Any]:
    """The difference and its interval, with null for what is not known."""
    has_interval = found.HasField("low") and found.HasField("high")
    return {
        "difference": found.difference if found.HasField("difference") else None,
        "interval": [found.low, found.high] if has_interval else None,
    }


def _racer(racer: decision_pb2.Racer) -> dict[str, Any]:
    return {
        **_side(racer.job),
        "state": RACER_STATES.of(racer.state) or None,
        "against_job_id": racer.against_job_id or None,
        "beaten_at": racer.beaten_at or None,
        "pairs": racer.pairs,
        "failed": racer.failed,
        **_measured(racer),
    }


def _path(points: Iterable[decision_pb2.DecisionPoint], margin: float) -> list[dict[str, Any]]:
    return [
        {
            "pairs": point.pairs,
            "better": point.better,
            "worse": point.worse,
            "equivalent": point.equivalent if margin else None,
            "chance": point.chance,
            "difference": point.difference,
            "interval": [point.low, point.high],
        }
        for point in points
    ]


def _row(found: decision_pb2.Decision) -> dict[str, Any]:
    deciding = found.baseline.spec.deciding
    return {
        "decision_id": found.decision_id,
        "suite": suite_of(found.baseline.spec),
        "baseline": _side(found.baseline),
        "candidate": None if found.racers else _side(found.candidate),
        "racers": [_racer(racer) for racer in found.racers],
        "live": decisions.is_live(found),
        "verdict": DECISION_VERDICTS.of(found.verdict) or None,
        "words": decisions.words(found),
        "decided_at": found.decided_at or None,
        "pairs": found.pairs,
        "items_total": found.items_total,
        **_measured(found),
        "error": deciding.error,
        "margin": deciding.margin,
        "saved": _saved(found.saved) if found.HasField("saved") else None,
        "schedule_id": found.baseline.spec.schedule_id or None,
        "owner": found.baseline.owner,
        "project_id": found.baseline.spec.project_id,
        "created_at": jobs.iso(found.baseline.created_at),
    }


def _saved(saved: decision_pb2.DecisionSavings) -> dict[str, Any]:
    return {
        "items": saved.items,
        "tokens": saved.tokens if saved.HasField("tokens") else None,
        "cost_usd": saved.cost_usd if saved.HasField("cost_usd") else None,
        "seconds": saved.seconds,
    }


async def listed(call: Call) -> JSONResponse:
    """Newest first, those that the caller may see."""
    await jobs.settle(call.ctx.backend, call.caller)
    request = results_service_pb2.ListDecisionsRequest(
        page_size=call.query["limit"], page_token=call.query["page_token"], schedule_id=call.query["schedule_id"]
    )
    found = await call.ask(call.ctx.backend.results.ListDecisions, request)
    return JSONResponse({"decisions": [_row(one) for one in found.decisions], "next_page_token": found.next_page_token})


async def show(call: Call) -> JSONResponse:
    """404 for an unknown id, and where a job of it was deleted."""
    found = await decisions.find(call.ctx.backend, call.path["decision_id"], call.caller)
    margin = found.baseline.spec.deciding.margin
    return JSONResponse(
        _row(found)
        | {
            "racers": [_racer(racer) | {"path": _path(racer.path, margin)} for racer in found.racers],
            "order_seed": found.baseline.spec.deciding.seed,
            "failed": found.failed,
            "path": _path(found.path, margin),
            "threshold": found.threshold,
            "unlikely": found.unlikely,
            "note": found.note or None,
        }
    )


LIST_DECISIONS = Endpoint(
    "GET",
    "/decisions",
    listed,
    "listDecisions",
    "List decisions between models, newest first, without their evidence.",
    answer=shape(
        {
            "decisions": about(array(shape(_ROW, name="DecisionRow")), "Newest first."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="Decisions",
    ),
    query=(
        Parameter("schedule_id", text(36), "Only those that this schedule has started.", ""),
        limit(20, 50),
        PAGE_TOKEN,
    ),
    gives={"decision_id": "/decisions/0/decision_id"},
)
SHOW_DECISION = Endpoint(
    "GET",
    "/decisions/{decision_id}",
    show,
    "getDecision",
    "Get a decision, what is known by now, and its evidence.",
    answer=DECISION,
)
