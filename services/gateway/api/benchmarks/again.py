"""`POST /admin/benchmarks/{id}/rescore`, `/cancel`, `/retry`."""

from __future__ import annotations

from services.gateway.api import again, results
from services.gateway.api.again import RESCORED
from services.gateway.api.benchmarks.body import BENCHMARK, benchmark_body, find
from services.gateway.api.benchmarks.run import SCORING_FIELDS, STARTED, set_scoring, start
from services.gateway.api.checks import record
from services.gateway.api.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.run import QUEUEING
from services.gateway.responses import JSONResponse

_BODY = record(SCORING_FIELDS | RESCORED | QUEUEING, name="RescoreBenchmarkRequest")


async def rescore(call: Call) -> JSONResponse:
    """A new run that scores the stored answers of one without a call, perhaps in another way. 409 for one that is not
    finished."""
    source = await find(call)
    spec = again.copy_of(source, [])
    set_scoring(spec, call.body)
    spec.priority = again.priority(call)
    (started,) = await start(call, [spec])
    return JSONResponse(started)


async def cancel(call: Call) -> JSONResponse:
    """409 for one that is finished."""
    await find(call)
    await results.stop(call)
    return JSONResponse(benchmark_body(await find(call)))


async def retry(call: Call) -> JSONResponse:
    """409 where nothing is missing."""
    await find(call)
    return JSONResponse(benchmark_body(await again.retried(call)))


RESCORE_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/rescore",
    rescore,
    "rescoreBenchmark",
    "Score the stored answers of a finished run again, as a new run without a call.",
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
    "Stop a run; what was answered is kept.",
    answer=BENCHMARK,
    errors=(409,),
    base=ADMIN,
)
RETRY_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/retry",
    retry,
    "retryBenchmark",
    "Run what is missing of a failed, cancelled or incomplete run.",
    answer=BENCHMARK,
    errors=(409,),
    base=ADMIN,
)
