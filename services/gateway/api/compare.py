"""`POST /compare`: finished runs against each other, on the items that they share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from services.errors import NotFoundError
from services.gateway import jobs
from services.gateway.api import comparison
from services.gateway.api.checks import Field, integer, list_of, number, one_of, record, text
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.figures import MODES, WEIGHTINGS
from services.gateway.api.schema import shape
from services.gateway.parameters import INT64_MAX
from services.gateway.responses import JSONResponse
from touchstone.v1 import comparison_pb2

TIMEOUT_S = 60.0
DEFAULT_SUITE = "glue"
_JOB = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_BODY = record(
    {
        # Fewer than two are refused by the results service, as a name and a job may mean one run.
        "model_ids": Field(
            list_of(text(400), 20, least=0),
            required=True,
            about="At least two of: a job's id, a configuration's name, alias or hash, model@endpoint, or a model.",
        ),
        "benchmark_suite": Field(
            text(200), about=f"{DEFAULT_SUITE} when left out; with jobs alone, the suite that they ran."
        ),
        "metrics": Field(
            list_of(text(100), 20), about='"score" or metrics, of which the first one ranks; "score" when left out.'
        ),
        "weighting": Field(
            one_of(*WEIGHTINGS), about="What counts alike in the suite's figures; the suite's own rule when left out."
        ),
        "mode": Field(one_of(*MODES), about="generate when left out; with jobs alone, the mode that they ran in."),
        "baseline": Field(text(400), about="One of them that the others are compared with; every pair when left out."),
        "margin": Field(
            number(0, 2, above=True),
            about="Largest difference that does not matter, in the metric's range.",
            default=0.01,
        ),
        "seed": Field(integer(0, INT64_MAX), about="Of resampling.", default=0),
        "project_id": Field(integer(0, INT64_MAX), about="Only runs of this project; 0 means all.", default=0),
        "alpha": Field(number(0.0001, 0.5), about="Family-wise error rate.", default=0.05),
    },
    name="CompareRequest",
)


async def compare(call: Call) -> JSONResponse:
    """400 for too few models, an unknown suite or metric, or a name of several configurations; 404 for a model without
    a finished run."""
    request = _request(call.body)
    backend = call.ctx.backend
    try:
        found = await backend.ask(backend.results.Compare, request, call.caller, timeout_s=TIMEOUT_S)
    except NotFoundError:
        await call.ctx.catalogue.require_suite(request.suite)
        raise
    return JSONResponse({"comparison": comparison.body(found)})


def _subject(name: str) -> str:
    """A benchmark's id as its job's; any other name as it is."""
    return jobs.checked_id(name) if jobs.is_benchmark(name) else name


def _request(body: Mapping[str, Any]) -> comparison_pb2.CompareRequest:
    subjects, baseline = [_subject(name) for name in body["model_ids"]], _subject(body.get("baseline", ""))
    names = [*subjects, baseline]
    jobs_alone = all(_JOB.fullmatch(name.strip()) for name in names if name)
    return comparison_pb2.CompareRequest(
        subjects=subjects,
        suite=body.get("benchmark_suite") or ("" if jobs_alone else DEFAULT_SUITE),
        mode=MODES[body["mode"]] if "mode" in body else None,
        metrics=body.get("metrics", []),
        baseline=baseline,
        margin=body.get("margin", 0),
        seed=body.get("seed", 0),
        project_id=body.get("project_id", 0),
        alpha=body.get("alpha", 0),
        weighting=WEIGHTINGS.get(body.get("weighting", "")),
    )


COMPARE = Endpoint(
    "POST",
    "/compare",
    compare,
    "compareModels",
    "Compare models on the items that they share.",
    answer=shape({"comparison": comparison.COMPARISON}),
    body=_BODY,
    errors=(404, 504),
)
