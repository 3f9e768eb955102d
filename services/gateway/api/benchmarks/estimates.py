"""`POST /admin/benchmarks/estimate` and `GET /admin/benchmarks/{id}/estimate`: what a run would take, from a pilot."""

from __future__ import annotations

from typing import Any

from services.gateway.api.benchmarks.body import ID, find
from services.gateway.api.benchmarks.run import FIELDS, STARTED, specs_of, start
from services.gateway.api.checks import Field, integer, record
from services.gateway.api.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.prices import PRICES, prices
from services.gateway.api.query import Parameter
from services.gateway.api.schema import COUNT, NUMBER, Schema, about, array, null, shape
from services.gateway.parameters import INT32_MAX
from services.gateway.responses import JSONResponse
from touchstone.v1 import results_service_pb2

PILOT_LABEL = "pilot"
"""Tells a pilot from other runs in lists, and holds the limit of the run that it is to estimate: 0 for all."""
DEFAULT_PILOT, LEAST_PILOT, MOST_PILOT = 30, 5, 1000
_BODY = record(
    FIELDS
    | {
        "pilot": Field(
            integer(LEAST_PILOT, MOST_PILOT), about="Rows to ask now, a seeded sample.", default=DEFAULT_PILOT
        ),
        "limit": Field(integer(1, INT32_MAX), about="Rows of the run to estimate; all when left out."),
    },
    name="EstimateRequest",
)


async def pilot(call: Call) -> JSONResponse:
    """Queues a pilot of some rows for each model; when it has answers, its estimate can be read. Its answers can be
    taken by the run itself, with reuse."""
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
    """409 while the run has too few answers to learn from."""
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


_FIGURE: Schema = about(
    shape({"value": NUMBER, "low": NUMBER, "high": NUMBER}, name="Estimate"), "With its 95 % interval."
)
_PILOT = shape(
    {
        "pilot": about(ID, "The pilot's id: read its estimate when it is completed."),
        "items": about(null(COUNT), "Rows of the run to estimate; null means all."),
        "benchmark": about(STARTED, "The pilot, which is a run as any other."),
    },
    name="Pilot",
)
PILOT = Endpoint(
    "POST",
    "/benchmarks/estimate",
    pilot,
    "pilotBenchmark",
    "Queue a pilot of some rows, to estimate a run by.",
    answer={"anyOf": [_PILOT, shape({"pilots": array(_PILOT)}, name="Pilots")]},
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
    "What a run would take, from the rows that one has answered.",
    answer=shape(
        {
            "items": COUNT,
            "pilot_items": about(COUNT, "Rows it was learned from."),
            "input_tokens": _FIGURE,
            "output_tokens": _FIGURE,
            "cost_usd": about(null(_FIGURE), "US dollars; null where no price is known."),
            "prices": about(null(PRICES), "At which its answers were charged; null where they are not known."),
            "duration_seconds": about(_FIGURE, "Running, without waiting in the queue."),
        },
        name="RunEstimate",
    ),
    query=(
        Parameter("items", integer(0, INT32_MAX), "Rows of the run; 0 means all of the dataset.", 0),
        Parameter("concurrency", integer(0, 100_000), "Calls at once; 0 means as many as before.", 0),
    ),
    errors=(409,),
    base=ADMIN,
)
