"""`POST /replay/{job_id}` asks items of a completed job again; `GET /results/{job_id}/replay` says what changed."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.boards.noise import FLIPS, TIMEOUT_S, flips_body
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.jobs.reuse import priority
from services.gateway.api.jobs.run import QUEUEING, queue, queueing
from services.gateway.fields.checks import Field, integer, record
from services.gateway.fields.job import option
from services.gateway.fields.schema import COUNT, NUMBER, STRING, about, array, enum, null, pair, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words import replays
from services.words.enums import REPLAY_VERDICTS
from touchstone.v1 import results_service_pb2

BODY = record(
    {
        "items": Field(
            integer(1, replays.MOST_ITEMS),
            about="About how many items, as many of each task. They are always the same.",
            default=replays.USUAL_ITEMS,
        ),
        "budget_usd": option("budget_usd", "The most that the new job may cost, instead of the job's budget."),
        **QUEUEING,
    },
    name="ReplayRequest",
)


async def replay(call: Call) -> JSONResponse:
    """A new job that asks items of a completed job again, in the same way. It never ranks. 404 for an unknown id, 409
    for a job that has not completed."""
    source = await jobs.find(call.ctx.backend, call.job_id, call.caller)
    spec = replays.spec_of(source, call.body.get("items", replays.USUAL_ITEMS))
    spec.budget_usd = call.body.get("budget_usd", spec.budget_usd)
    spec.priority = priority(call)
    return await queue(call, spec, f"Asking items of job {source.job_id} again")


async def result(call: Call) -> JSONResponse:
    """404 before the end of the replay, 409 for a job other than a replay."""
    backend = call.ctx.backend
    request = results_service_pb2.GetReplayRequest(job_id=call.job_id)
    found = (await backend.ask(backend.results.GetReplay, request, call.caller, timeout_s=TIMEOUT_S)).replay
    measured = found.HasField("measured")
    body: dict[str, Any] = {
        "job_id": found.job_id,
        "replayed_job_id": found.replayed_job_id,
        "items": found.items,
        "flips": flips_body(found.flips),
        "higher": found.higher,
        "lower": found.lower,
        "score_then": found.score_then,
        "score_now": found.score_now,
        "measured": flips_body(found.measured) | {"runs": found.measured_runs} if measured else None,
        "beyond": {"share": found.beyond, "interval": [found.beyond_low, found.beyond_high]} if measured else None,
        "verdict": REPLAY_VERDICTS.of(found.verdict) or None,
        "words": list(found.words),
    }
    return JSONResponse({"replay": body})


_SHARE = about(NUMBER, "The share.")
_INTERVAL = about(pair(NUMBER), "Its 95 % interval, over items like these.")
REPLAY = Endpoint(
    "POST",
    "/replay/{job_id}",
    replay,
    "replayJob",
    "Ask items of a completed job again, as a new job that never ranks.",
    errors=(409,),
    **queueing(BODY, needed=False),
)
REPLAY_RESULT = Endpoint(
    "GET",
    "/results/{job_id}/replay",
    result,
    "getReplay",
    "Get how many answers changed in a replay, and whether more than by chance.",
    answer=shape(
        {
            "replay": about(
                shape(
                    {
                        "job_id": about(members.JOB_ID, "The replay."),
                        "replayed_job_id": about(members.JOB_ID, "The job whose items were asked again."),
                        "items": about(COUNT, "The number of items with a score then and now."),
                        "flips": about(FLIPS, "Between the two jobs."),
                        "higher": about(COUNT, "Items whose score is higher now."),
                        "lower": about(COUNT, "Items whose score is lower now."),
                        "score_then": about(NUMBER, "The mean score then."),
                        "score_now": about(NUMBER, "The mean score now."),
                        "measured": about(
                            null(
                                shape(
                                    {
                                        "share": _SHARE,
                                        "interval": _INTERVAL,
                                        "runs": about(COUNT, "The runs that were compared with each other."),
                                    },
                                    name="MeasuredFlips",
                                )
                            ),
                            "Between runs of the job's configuration on these items. null where that was not measured.",
                        ),
                        "beyond": about(
                            null(shape({"share": _SHARE, "interval": _INTERVAL}, name="FlipsBeyond")),
                            "`flips` minus `measured`.",
                        ),
                        "verdict": about(
                            null(enum(*REPLAY_VERDICTS)),
                            "Whether more flip than by chance: the interval of `beyond` is above 0. null where nothing "
                            "was measured.",
                        ),
                        "words": about(array(STRING), "All of it in sentences."),
                    },
                    name="Replay",
                ),
                "What the replay found.",
            )
        },
        name="ReplayAnswer",
    ),
    errors=(409, 504),
)
