"""`POST /compare` and `GET /compare`: finished runs against each other, on the items that they share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from services.errors import NotFoundError
from services.gateway.api.boards import comparison
from services.gateway.api.declare.endpoint import JSON, Call, Endpoint
from services.gateway.fields.checks import Field, integer, list_of, number, one_of, record, text
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import about, shape
from services.gateway.http.responses import CSV, JSONResponse, csv_cell
from services.gateway.reads import jobs
from services.words.enums import MODES, WEIGHTINGS
from services.words.fields import INT64_MAX
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
            about="Two or more of: a job's id, a configuration's name, alias or hash, `model@endpoint`, or a model.",
        ),
        "benchmark_suite": Field(
            text(200),
            about=f"The suite, or a dataset's id. If absent, `{DEFAULT_SUITE}`, or the suite that the jobs ran.",
        ),
        "metrics": Field(list_of(text(100), 20), about="`score` or metrics. The first one ranks. `score` if absent."),
        "weighting": Field(
            one_of(*WEIGHTINGS), about="What has equal weight in the suite's figures. The suite's own rule if absent."
        ),
        "mode": Field(one_of(*MODES), about="The mode of the runs. If absent, `generate`, or the mode of the jobs."),
        "baseline": Field(text(400), about="The model to compare the others with. If absent, every pair is compared."),
        "margin": Field(
            number(0, 2, above=True),
            about="The largest difference that does not matter, in the metric's range.",
            default=0.01,
        ),
        "seed": Field(integer(0, INT64_MAX), about="The seed of resampling.", default=0),
        "project_id": Field(integer(0, INT64_MAX), about="Only runs of this project. 0 means all.", default=0),
        "alpha": Field(number(0.0001, 0.5), about="The family-wise error rate.", default=0.05),
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


async def compare_jobs(call: Call) -> Response:
    """As a file. 400 for fewer than two jobs or jobs of several suites; 404 for a job without a finished run."""
    query = call.query
    request = comparison_pb2.CompareRequest(
        subjects=[jobs.checked_id(name.strip()) for name in query["job_ids"].split(",") if name.strip()],
        baseline=jobs.checked_id(query["baseline"]) if query["baseline"] else "",
        margin=query["margin"],
    )
    backend = call.ctx.backend
    found = await backend.ask(backend.results.Compare, request, call.caller, timeout_s=TIMEOUT_S)
    headers = {
        "Content-Disposition": f'attachment; filename="touchstone-comparison.{query["format"]}"',
        "X-Content-Type-Options": "nosniff",
    }
    if query["format"] == "json":
        return JSONResponse({"comparison": comparison.body(found)}, headers=headers)
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\r\n")
    lines.writerow(comparison.CSV_COLUMNS)
    lines.writerows([csv_cell(value) for value in row] for row in comparison.rows(found))
    return Response(written.getvalue(), media_type=CSV, headers=headers)


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
    answer=shape({"comparison": about(comparison.COMPARISON, "The comparison.")}, name="Compared"),
    body=_BODY,
    errors=(404, 504),
)
COMPARE_JOBS = Endpoint(
    "GET",
    "/compare",
    compare_jobs,
    "compareJobs",
    "Get a comparison of finished jobs as a file: `compareModels` as JSON, or its differences as CSV.",
    answer=about({}, "The file's content."),
    media=(JSON, "text/csv"),
    query=(
        Parameter("job_ids", text(800), "Two or more jobs of one suite, joined by commas.", required=True),
        Parameter("baseline", text(100), "The job to compare the others with. If absent, every pair is compared.", ""),
        Parameter("margin", number(0, 2, above=True), "The largest difference that does not matter.", 0.01),
        Parameter("format", one_of("json", "csv"), "How the file is written.", "json"),
    ),
    errors=(404, 504),
)
