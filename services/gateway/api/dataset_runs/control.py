"""`POST /admin/benchmarks/{id}/rescore`, `/cancel`, `/retry`."""

from __future__ import annotations

from services.gateway.api.dataset_runs.body import BENCHMARK, benchmark_body, find
from services.gateway.api.dataset_runs.run import SCORING_FIELDS, STARTED, set_scoring, start
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.jobs import listing, reuse
from services.gateway.api.jobs.reuse import RESCORED
from services.gateway.api.jobs.run import QUEUEING
from services.gateway.fields.checks import record
from services.gateway.http.responses import JSONResponse
from services.gateway.reads.jobs import copy_of

_BODY = record(SCORING_FIELDS | RESCORED | QUEUEING, name="RescoreBenchmarkRequest")


async def rescore(call: Call) -> JSONResponse:
    """A new run that scores the stored answers of one without a call, perhaps in another way. 409 for one that is not
    finished."""
    source = await find(call)
    spec = copy_of(source, [])
    set_scoring(spec, call.body)
    spec.priority = reuse.priority(call)
    (started,) = await start(call, [spec])
    return JSONResponse(started)


async def cancel(call: Call) -> JSONResponse:
    """409 for one that is finished."""
    await find(call)
    await listing.stop(call)
    return JSONResponse(benchmark_body(await find(call)))


async def retry(call: Call) -> JSONResponse:
    """409 where nothing is missing."""
    await find(call)
    return JSONResponse(benchmark_body(await reuse.retried(call)))


RESCORE_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/rescore",
    rescore,
    "rescoreBenchmark",
    "Score the stored answers of a finished run again, as a new run that makes no call.",
    answer=STARTED,
    body=_BODY,
    body_needed=False,
    errors=(409,),
    gives={"benchmark_id": "/benchmark_id"},
    base=ADMIN,
)
CANCEL_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/cancel",
    cancel,
    "cancelBenchmark",
    "Cancel a run. Its answers are kept.",
    answer=BENCHMARK,
    errors=(409,),
    base=ADMIN,
)
RETRY_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/retry",
    retry,
    "retryBenchmark",
    "Run the missing items of a failed, cancelled or incomplete run.",
    answer=BENCHMARK,
    errors=(409,),
    base=ADMIN,
)
