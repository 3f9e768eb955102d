"""`GET /side-by-side`: two to four runs' answers to the same rows, side by side."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.answers.job import JOB_ROW, row
from services.gateway.api.answers.metrics import METRIC, metric_body
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.items.conditions import CONDITIONS, conditions_of
from services.gateway.api.items.listing import ITEM, item_body
from services.gateway.fields.checks import JOB_ID, boolean, one_of, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import BOOLEAN, COUNT, NUMBER, STRING, about, array, enum, null, pair, shape, table
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs, values
from services.gateway.reads.questions import LEAST_JOBS, MOST_JOBS, OF_ONE_JOB, ask_side_by_side
from services.words.enums import DIFF_PARTS, SIDE_BY_SIDE_FILTERS
from touchstone.v1 import results_service_pb2


async def side_by_side(call: Call) -> JSONResponse:
    """400 for jobs that have no row in common, 404 for an unknown one."""
    query = call.query
    request = results_service_pb2.ListSideBySideRequest(
        job_ids=_job_ids(query["job_ids"]),
        task=query["task"],
        filter=SIDE_BY_SIDE_FILTERS[query["filter"]],
        only_job_id=jobs.checked_id(query["only_job_id"]) if query["only_job_id"] else "",
        query=query["query"],
        conditions=conditions_of(query),
        page_size=query["limit"],
        page_token=query["page_token"],
        with_diffs=query["diffs"],
    )
    if (query["filter"] in OF_ONE_JOB) != bool(request.only_job_id):
        raise FieldErrors(
            [("only_job_id", f"only_job_id is required for filter={' or '.join(OF_ONE_JOB)}, and only then.")]
        )
    if request.only_job_id and request.only_job_id not in request.job_ids:
        raise FieldErrors([("only_job_id", "only_job_id must be one of job_ids.")])
    found = await ask_side_by_side(call.ctx.backend, request, call.caller)
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
    """Raises FieldErrors for another number of jobs, NotFoundError for an impossible id."""
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
        "further_metrics": {metric.metric: metric_body(metric) for metric in run.further_metrics},
        "only_right": run.only_right,
        "only_wrong": run.only_wrong,
        "mean_latency_ms": run.mean_latency_ms,
        "input_tokens": values.tokens(run.input_tokens, run.input_untold),
        "output_tokens": values.tokens(run.output_tokens, run.output_untold),
        "input_untold": run.input_untold,
        "output_untold": run.output_untold,
        "cost_usd": values.cost(run),
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
            [{"kind": DIFF_PARTS.of(part.kind, "same"), "text": part.text} for part in diff.parts] for diff in one.diffs
        ],
    }


_COUNTED = ("all", "agree", "all_right", "all_wrong")
_RUN = {
    "job": about(JOB_ROW, "The job."),
    "rows": about(COUNT, "The number of rows that all of the jobs answered."),
    "mean_score": about(null(NUMBER), "The job's score on those rows, by its own rule. null if nothing is scored."),
    "ci95": about(null(pair(NUMBER)), "The 95 % interval of `mean_score`."),
    "further_metrics": about(table(METRIC), "The metrics of further scorers on those rows, by name."),
    "only_right": about(COUNT, "Rows that only this job has right."),
    "only_wrong": about(COUNT, "Rows that only this job has wrong."),
    "mean_latency_ms": about(NUMBER, "The mean time to a whole answer, in milliseconds."),
    "input_tokens": members.INPUT_TOKENS,
    "output_tokens": members.OUTPUT_TOKENS,
    "input_untold": members.INPUT_UNTOLD,
    "output_untold": members.OUTPUT_UNTOLD,
    "cost_usd": members.COST_USD,
}
_WORDS = shape(
    {
        "kind": about(enum(*DIFF_PARTS), "Whether the words are in both responses, or in one."),
        "text": about(STRING, "The words."),
    },
    name="DiffPart",
)
_ROW = {
    "custom_id": about(null(STRING), "The id that the uploaded row has."),
    "task": members.TASK,
    "item": members.ITEM,
    "repeat": members.REPEAT,
    "agree": about(BOOLEAN, "Whether all predictions are equal, or all responses if there are no predictions."),
    "items": about(
        array(null(ITEM)), "The items in the order of `job_ids`, with texts cut to 2 KB. null if a job has none."
    ),
    "diffs": about(array(array(_WORDS)), "With `diffs`: how each response differs from the first one, word by word."),
}
SIDE_BY_SIDE = Endpoint(
    "GET",
    "/side-by-side",
    side_by_side,
    "listSideBySide",
    "List the answers of two to four jobs to the same rows.",
    answer=shape(
        {
            "runs": about(array(shape(_RUN, name="SideBySideRun")), "The jobs with their figures."),
            "rows": about(array(shape(_ROW, name="SideBySideRow")), "The rows with their answers."),
            "total": about(COUNT, "The number of matches."),
            "counts": about(
                shape({name: about(COUNT, f"Rows with `filter={name}`.") for name in _COUNTED}),
                "The number of rows by filter, with the same other parameters.",
            ),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="SideBySide",
    ),
    query=(
        Parameter("job_ids", text(200), "Two to four jobs or benchmarks, joined by commas.", required=True),
        Parameter("task", text(200), "Only this task.", ""),
        Parameter(
            "filter",
            one_of(*SIDE_BY_SIDE_FILTERS),
            "Which rows. `only_right` and `only_wrong` need `only_job_id`.",
            "all",
        ),
        Parameter("only_job_id", JOB_ID, "The job that `only_right` and `only_wrong` are about.", ""),
        Parameter("query", text(200), "A text in any of the jobs' items.", ""),
        *CONDITIONS,
        Parameter("diffs", boolean, "Adds the words in which each response differs from the first job's.", False),
        limit(50, 100),
        PAGE_TOKEN,
    ),
    errors=(404,),
)
