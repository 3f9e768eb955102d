"""`GET /side-by-side`: two to four runs' answers to the same rows, row beside row."""

from __future__ import annotations

from typing import Any

from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.checks import JOB_ID, boolean, one_of, text
from services.gateway.api.conditions import CONDITIONS, conditions_of
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.items import ITEM, item_body
from services.gateway.api.job import JOB_ROW, row
from services.gateway.api.query import PAGE_TOKEN, Parameter, limit
from services.gateway.api.results import TOKEN
from services.gateway.api.schema import BOOLEAN, COUNT, NUMBER, STRING, about, array, enum, null, pair, shape
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import results_service_pb2

LEAST_JOBS, MOST_JOBS = 2, 4
TIMEOUT_S = 20.0
_LISTING = results_service_pb2.ListSideBySideRequest
_PART = results_service_pb2.WordDiff.Part
FILTERS = {
    "all": _LISTING.FILTER_UNSPECIFIED,
    "agree": _LISTING.FILTER_AGREE,
    "disagree": _LISTING.FILTER_DISAGREE,
    "only_right": _LISTING.FILTER_ONLY_RIGHT,
    "only_wrong": _LISTING.FILTER_ONLY_WRONG,
    "all_right": _LISTING.FILTER_ALL_RIGHT,
    "all_wrong": _LISTING.FILTER_ALL_WRONG,
}
_OF_ONE = ("only_right", "only_wrong")
_PARTS = {_PART.KIND_SAME: "same", _PART.KIND_REMOVED: "removed", _PART.KIND_ADDED: "added"}


async def side_by_side(call: Call) -> JSONResponse:
    """400 for jobs that have no row in common, 404 for an unknown one."""
    query = call.query
    request = results_service_pb2.ListSideBySideRequest(
        job_ids=_job_ids(query["job_ids"]),
        task=query["task"],
        filter=FILTERS[query["filter"]],
        only_job_id=jobs.checked_id(query["only_job_id"]) if query["only_job_id"] else "",
        query=query["query"],
        conditions=conditions_of(query),
        page_size=query["limit"],
        page_token=query["page_token"],
        with_diffs=query["diffs"],
    )
    if (query["filter"] in _OF_ONE) != bool(request.only_job_id):
        raise FieldErrors([("only_job_id", f"only_job_id is one of job_ids, for filter={' or '.join(_OF_ONE)}.")])
    if request.only_job_id and request.only_job_id not in request.job_ids:
        raise FieldErrors([("only_job_id", "only_job_id must be one of job_ids.")])
    backend = call.ctx.backend
    found = await backend.ask(backend.results.ListSideBySide, request, call.caller, timeout_s=TIMEOUT_S)
    return JSONResponse(
        {
            "runs": [_run(run) for run in found.runs],
            "rows": [_row(one) for one in found.rows],
            "total": found.total_size,
            "counts": {name: getattr(found, f"count_{name}") for name in _COUNTED},
            "next_page_token": found.next_page_token,
        }
    )


def _job_ids(written: str) -> list[str]:
    """Raises FieldErrors for another number of jobs, NotFoundError for what can be no id."""
    found = [jobs.checked_id(name.strip()) for name in written.split(",") if name.strip()]
    if not LEAST_JOBS <= len(found) <= MOST_JOBS or len(set(found)) < len(found):
        words = f"job_ids must name {LEAST_JOBS} to {MOST_JOBS} different jobs, joined by commas."
        raise FieldErrors([("job_ids", words)])
    return found


def _run(run: results_service_pb2.SideBySideRun) -> dict[str, Any]:
    return {
        "job": row(run.job),
        "rows": run.rows,
        "mean_score": run.mean_score if run.HasField("mean_score") else None,
        "ci95": [run.score_ci95_low, run.score_ci95_high] if run.HasField("score_ci95_low") else None,
        "only_right": run.only_right,
        "only_wrong": run.only_wrong,
        "mean_latency_ms": run.mean_latency_ms,
        "input_tokens": figures.tokens(run.input_tokens, run.input_untold),
        "output_tokens": figures.tokens(run.output_tokens, run.output_untold),
        "input_untold": run.input_untold,
        "output_untold": run.output_untold,
        "cost_usd": figures.cost(run),
    }


def _row(one: results_service_pb2.SideBySideRow) -> dict[str, Any]:
    return {
        "custom_id": one.custom_id or None,
        "task": one.task,
        "item": one.item,
        "repeat": one.repeat,
        "agree": one.agree,
        "items": [item_body(stored) if stored.job_id else None for stored in one.items],
        "diffs": [
            [{"kind": _PARTS.get(part.kind, "same"), "text": part.text} for part in diff.parts] for diff in one.diffs
        ],
    }


_COUNTED = ("all", "agree", "all_right", "all_wrong")
_RUN = {
    "job": JOB_ROW,
    "rows": about(COUNT, "Rows that all of the runs have."),
    "mean_score": about(null(NUMBER), "The score on those, by the job's own rule; null where nothing is scored."),
    "ci95": about(null(pair(NUMBER)), "95 % interval of `mean_score`."),
    "only_right": COUNT,
    "only_wrong": COUNT,
    "mean_latency_ms": NUMBER,
    "input_tokens": about(null(COUNT), "Of answers that tell it; null where none does."),
    "output_tokens": null(COUNT),
    "input_untold": about(COUNT, "Answers whose provider does not tell how many tokens it read."),
    "output_untold": COUNT,
    "cost_usd": null(NUMBER),
}
_WORDS = shape({"kind": enum(*_PARTS.values()), "text": STRING}, name="DiffPart")
_ROW = {
    "custom_id": null(STRING),
    "task": STRING,
    "item": COUNT,
    "repeat": COUNT,
    "agree": about(BOOLEAN, "All predictions are equal; without predictions, all responses."),
    "items": about(array(null(ITEM)), "In the order of `job_ids`, texts cut to 2 KB; null where a job has none."),
    "diffs": about(array(array(_WORDS)), "With `diffs`: each response against the first one's, word by word."),
}
SIDE_BY_SIDE = Endpoint(
    "GET",
    "/side-by-side",
    side_by_side,
    "listSideBySide",
    "Answers of two to four jobs to the same rows, row beside row.",
    answer=shape(
        {
            "runs": array(shape(_RUN, name="SideBySideRun")),
            "rows": array(shape(_ROW, name="SideBySideRow")),
            "total": about(COUNT, "Matches."),
            "counts": about(shape(dict.fromkeys(_COUNTED, COUNT)), "Whatever the filter, same task and query."),
            "next_page_token": TOKEN,
        },
        name="SideBySide",
    ),
    query=(
        Parameter("job_ids", text(200), "Two to four jobs, joined by commas.", required=True),
        Parameter("task", text(200), "Only this task.", ""),
        Parameter("filter", one_of(*FILTERS), "Which rows.", "all"),
        Parameter("only_job_id", JOB_ID, "The one of them that `only_right` and `only_wrong` are about.", ""),
        Parameter("query", text(200), "Text in any of the jobs' items.", ""),
        *CONDITIONS,
        Parameter("diffs", boolean, "With differences of words against the first job.", False),
        limit(50, 100),
        PAGE_TOKEN,
    ),
    errors=(404,),
)
