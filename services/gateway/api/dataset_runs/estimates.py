"""`POST /admin/benchmarks/estimate` and `GET /admin/benchmarks/{id}/estimate`: the time and cost of a run, from a
pilot."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers.members import PRICES, prices
from services.gateway.api.dataset_runs.body import ID, find
from services.gateway.api.dataset_runs.run import FIELDS, STARTED, specs_of, start
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.fields.checks import Field, integer, record
from services.gateway.fields.job import PILOT_LABEL, option
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import COUNT, NUMBER, Schema, about, array, null, shape
from services.gateway.http.responses import JSONResponse
from services.words.fields import INT32_MAX
from touchstone.v1 import results_service_pb2

DEFAULT_PILOT, LEAST_PILOT, MOST_PILOT = 30, 5, 1000
_BODY = record(
    FIELDS
    | {
        "pilot": Field(
            integer(LEAST_PILOT, MOST_PILOT), about="The rows to ask now: a seeded sample.", default=DEFAULT_PILOT
        ),
        "limit": option("limit", "The rows of the run to estimate. All if absent."),
    },
    name="EstimateRequest",
)


async def pilot(call: Call) -> JSONResponse:
    """Queues a pilot of some rows for each model; when it has answers, its estimate can be read. The run itself can
    take its answers, with reuse."""
    body = call.body
    limit = body.get("limit", 0)
    specs = await specs_of(call)
    for spec in specs:
        spec.dataset.limit = min(body.get("pilot", DEFAULT_PILOT), limit or INT32_MAX)
        spec.labels[PILOT_LABEL] = str(limit)
    pilots = [_pilot(one, limit) for one in await start(call, specs)]
    return JSONResponse(pilots[0] if "model_id" in body else {"pilots": pilots})


def _pilot(started: dict[str, Any], limit: int) -> dict[str, Any]:
    return {"pilot": started["benchmark_id"], "items": limit or None, "benchmark": started}


async def estimate(call: Call) -> JSONResponse:
    """409 while the run has too few answers for an estimate."""
    job = await find(call)
    request = results_service_pb2.EstimateRunRequest(
        job_id=job.job_id, items=call.query["items"], concurrency=call.query["concurrency"]
    )
    found = await call.ask(call.ctx.backend.results.EstimateRun, request)
    return JSONResponse(
        {
            "items": found.items,
            "pilot_items": found.pilot_items,
            "input_tokens": _figure(found.input_tokens),
            "output_tokens": _figure(found.output_tokens),
            "cost_usd": _figure(found.cost_usd) if found.HasField("cost_usd") else None,
            "prices": prices(job.receipt.prices) if job.receipt.HasField("prices") else None,
            "duration_seconds": _figure(found.duration_s),
        }
    )


def _figure(one: results_service_pb2.Estimate) -> dict[str, float]:
    return {"value": one.value, "low": one.low, "high": one.high}


_FIGURE: Schema = shape(
    {
        "value": about(NUMBER, "The estimate."),
        "low": about(NUMBER, "The lower end of its 95 % interval."),
        "high": about(NUMBER, "The upper end of its 95 % interval."),
    },
    name="Estimate",
)
_PILOT = shape(
    {
        "pilot": about(ID, "The pilot's id. Read its estimate when it is completed."),
        "items": about(null(COUNT), "The rows of the run to estimate. null means all."),
        "benchmark": about(STARTED, "The pilot, a run like any other."),
    },
    name="Pilot",
)
PILOT = Endpoint(
    "POST",
    "/benchmarks/estimate",
    pilot,
    "pilotBenchmark",
    "Run a pilot of a few rows, to estimate a larger run.",
    answer={"anyOf": [_PILOT, shape({"pilots": about(array(_PILOT), "A pilot per model.")}, name="Pilots")]},
    body=_BODY,
    errors=(404, 409),
    gives={"benchmark_id": "/pilot"},
    base=ADMIN,
)
ESTIMATE = Endpoint(
    "GET",
    "/benchmarks/{benchmark_id}/estimate",
    estimate,
    "estimateBenchmark",
    "Estimate a run from the rows that another one has answered.",
    answer=shape(
        {
            "items": about(COUNT, "The rows of the run."),
            "pilot_items": about(COUNT, "The answered rows that the estimate rests on."),
            "input_tokens": about(_FIGURE, "Tokens of the prompts."),
            "output_tokens": about(_FIGURE, "Generated tokens."),
            "cost_usd": about(null(_FIGURE), "US dollars. null if no price is known."),
            "prices": about(null(PRICES), "The prices of the pilot's answers. null if they are not known."),
            "duration_seconds": about(_FIGURE, "Seconds of running, without the wait in the queue."),
        },
        name="RunEstimate",
    ),
    query=(
        Parameter("items", integer(0, INT32_MAX), "The rows of the run. 0 means all of the dataset.", 0),
        Parameter("concurrency", integer(0, 100_000), "Calls at once. 0 means as many as the pilot had.", 0),
    ),
    errors=(409,),
    base=ADMIN,
)
