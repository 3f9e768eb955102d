"""`GET /digest`: what changed in a time."""

from __future__ import annotations

from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import integer, text
from services.gateway.fields.query import PROJECT, Parameter
from services.gateway.fields.schema import COUNT, NUMBER, STRING, TIME, Schema, about, array, enum, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads.questions import DIGEST_S, digest_request
from services.words.digests import DAYS, MOST_DAYS, body
from services.words.enums import COMPARISON_VERDICTS, MODES


async def digest(call: Call) -> JSONResponse:
    """400 for a time that is not one."""
    request = digest_request(call.query["days"], call.query["to"], call.query["schedule_id"], call.query["project_id"])
    backend = call.ctx.backend
    found = (await backend.ask(backend.results.GetDigest, request, call.caller, timeout_s=DIGEST_S)).digest
    return JSONResponse(body(found))


_RUN: Schema = shape(
    {
        "job_id": members.JOB_ID,
        "finished_at": about(null(TIME), "When it ended."),
        "score": about(null(NUMBER), "Its score."),
        "served_models": about(array(STRING), "The models that the provider says it served. At most 5."),
        "model_digest": about(STRING, "The digest of the weights. Empty if it is not known."),
        "server": about(STRING, "The endpoint's server and its version. Empty if it is not known."),
        "software": about(STRING, "The version of Touchstone."),
        "cost_usd": members.COST_USD,
        "median_latency_ms": about(null(NUMBER), "The median time of an answer. null without calls."),
    },
    name="DigestRun",
)
_VERDICT = enum(*COMPARISON_VERDICTS)
_SERIES = shape(
    {
        "model": members.MODEL,
        "provider": members.PROVIDER,
        "suite": members.SUITE,
        "schedule_id": about(null(STRING), "The schedule that made the runs."),
        "mode": about(null(enum(*MODES)), "How the suite's items were asked."),
        "part_items": about(null(COUNT), "Items of each run. null if they are all of the suite's."),
        "runs": about(COUNT, "Completed runs in the time."),
        "verdict": about(null(_VERDICT), "What a comparison says of `after` against `before`."),
        "words": about(STRING, "The sentence of that comparison, or why there is none."),
        "items": about(COUNT, "Items that both answered."),
        "became_right": about(COUNT, "Of these, items that only `after` has right."),
        "became_wrong": about(COUNT, "Of these, items that only `before` has right."),
        "changes": about(array(STRING), "What else is not as it was: served model, weights, versions."),
        "before": about(null(_RUN), "The newest run before the time, else the first one in it."),
        "after": about(_RUN, "The newest run in the time."),
    },
    name="DigestSeries",
)
_TURNED = shape(
    {
        "a": about(STRING, "`model@provider`."),
        "b": about(STRING, "The model that it is compared with."),
        "a_job_id": about(STRING, "The newest run of `a`."),
        "b_job_id": about(STRING, "The newest run of `b`."),
        "suite": members.SUITE,
        "before": about(_VERDICT, "What the comparison said of `a` before."),
        "after": about(_VERDICT, "What it says now."),
    },
    name="TurnedVerdict",
)
DIGEST = Endpoint(
    "GET",
    "/digest",
    digest,
    "getDigest",
    "What changed in a time: verdicts, items, served models and versions, cost and speed.",
    answer=shape(
        {
            "from": about(null(TIME), "When the time begins."),
            "to": about(null(TIME), "When it ends; that moment is not in it."),
            "series": about(array(_SERIES), "Runs of one model on one suite, the newest first. At most 50."),
            "turned": about(array(_TURNED), "Verdicts between two models that are not what they were."),
            "left_out": about(COUNT, "Further series."),
        },
        name="Digest",
    ),
    query=(
        Parameter("days", integer(1, MOST_DAYS), "The days before `to`.", DAYS),
        Parameter("to", text(40), "When the time ends, in ISO 8601. UTC if it names no zone. Now if absent.", ""),
        Parameter("schedule_id", text(36), "Only runs of this schedule.", ""),
        PROJECT,
    ),
)
