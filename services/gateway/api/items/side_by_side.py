"""`/side-by-side`: two to four runs' answers to the same rows, and which of them a person prefers."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.answers.job import JOB_ROW, row
from services.gateway.api.answers.metrics import METRIC, metric_body
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.items.conditions import CONDITIONS, conditions_of
from services.gateway.api.items.listing import ITEM, item_body
from services.gateway.fields.checks import JOB_ID, Field, boolean, integer, list_of, one_of, record, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import BOOLEAN, COUNT, NUMBER, STRING, about, array, enum, null, pair, shape, table
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs, values
from services.gateway.reads.questions import LEAST_JOBS, MOST_JOBS, OF_ONE_JOB, ask_side_by_side
from services.words.enums import DIFF_PARTS, PREFERENCES, SIDE_BY_SIDE_FILTERS
from services.words.fields import INT32_MAX
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
        judge=query["judge"],
        order_field=query["order_field"],
        descending=query["descending"],
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
            "preferences": _preferences(found),
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
        "preference": _preference(one.preference) if one.HasField("preference") else None,
        "items": [item_body(stored) if stored.job_id else None for stored in one.items],
        "diffs": [
            [{"kind": DIFF_PARTS.of(part.kind, "same"), "text": part.text} for part in diff.parts] for diff in one.diffs
        ],
    }


def _preference(one: results_service_pb2.Preference) -> dict[str, Any]:
    return {
        "choice": PREFERENCES.of(one.choice, "none"),
        "preferred_job_id": one.preferred_job_id or None,
        "blind": one.blind,
        "author": one.author,
        "judged_at": jobs.iso(one.judged_at),
    }


def _preferences(found: results_service_pb2.ListSideBySideResponse) -> dict[str, Any]:
    counts = found.preferences
    return {
        **{name: getattr(counts, name) for name in _TALLIED},
        "jobs": [
            {
                "job_id": run.job.job_id,
                "rows": one.rows,
                "share": one.share if one.HasField("share") else None,
                "ci95": [one.ci95_low, one.ci95_high] if one.HasField("ci95_low") else None,
            }
            for run, one in zip(found.runs, counts.jobs, strict=True)
        ],
        "p": counts.p if counts.HasField("p") else None,
    }


async def prefer(call: Call) -> JSONResponse:
    """Answers the preference. 404 for a job without an answer to the row, 409 where a call for it failed."""
    body = call.body
    request = results_service_pb2.JudgeRowRequest(
        job_ids=[jobs.checked_id(name) for name in body["job_ids"]],
        task=body["task"],
        item=body["item"],
        repeat=body.get("repeat", 0),
        choice=PREFERENCES[body["choice"]],
        preferred_job_id=jobs.checked_id(body["preferred_job_id"]) if body.get("preferred_job_id") else "",
        blind=body.get("blind", False),
    )
    said = (await call.ask(call.ctx.backend.results.JudgeRow, request)).preference
    return JSONResponse(_preference(said))


_TALLIED = ("rows", "judges", "ties", "all_bad", "split")
_COUNTED = ("all", "agree", "all_right", "all_wrong", "judged", "not_judged")
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
_PREFERENCE = shape(
    {
        "choice": about(enum(*PREFERENCES), "What the person prefers. `none` after it was taken back."),
        "preferred_job_id": about(null(STRING), "The job whose answer is `better`."),
        "blind": about(BOOLEAN, "Whether the person did not see which answer is whose."),
        "author": about(STRING, "Who said it."),
        "judged_at": about(STRING, "When."),
    },
    name="Preference",
)
_PREFERRED = shape(
    {
        "job_id": about(STRING, "The job."),
        "rows": about(COUNT, "The number of rows on which its answer is preferred."),
        "share": about(null(NUMBER), "Their share of the rows on which some answer is preferred."),
        "ci95": about(null(pair(NUMBER)), "Wilson's 95 % interval of `share`."),
    },
    name="PreferredJob",
)
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
    "preference": about(null(_PREFERENCE), "What `judge` prefers."),
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
            "preferences": about(
                shape(
                    {
                        "rows": about(COUNT, "The number of judged rows. Each counts once, as most of its judges say."),
                        "judges": about(COUNT, "The number of people."),
                        "ties": about(COUNT, "The number of ties."),
                        "all_bad": about(COUNT, "The number of rows without a good answer."),
                        "split": about(COUNT, "The number of rows on which people are split."),
                        "jobs": about(array(_PREFERRED), "The jobs in the order of `job_ids`."),
                        "p": about(null(NUMBER), "Two-sided p of the sign test, of two jobs."),
                    },
                    name="PreferenceCounts",
                ),
                "What people prefer on all rows of these jobs. No score contains it.",
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
        Parameter("judge", text(200), "Whose preferences to give, and to filter by with `judged` or `not_judged`.", ""),
        Parameter("order_field", text(200), "The metadata field that orders the rows.", ""),
        Parameter("descending", boolean, "Whether `order_field` orders them from the last value to the first.", False),
        Parameter("diffs", boolean, "Adds the words in which each response differs from the first job's.", False),
        limit(50, 100),
        PAGE_TOKEN,
    ),
    errors=(404,),
)


_BODY = record(
    {
        "job_ids": Field(
            list_of(JOB_ID, 4, least=2), required=True, about="Two to four jobs that have an answer to the row."
        ),
        "task": Field(text(200), required=True, about="The task of the row in the first of them."),
        "item": Field(integer(0, INT32_MAX), required=True, about="The number of the item there."),
        "repeat": Field(integer(0, INT32_MAX), about="Which of several answers."),
        "choice": Field(
            one_of(*PREFERENCES), required=True, about="`better` needs `preferred_job_id`. `none` takes it back."
        ),
        "preferred_job_id": Field(JOB_ID, about="The job whose answer is better."),
        "blind": Field(boolean, about="Whether the person did not see which answer is whose."),
    },
    name="PreferenceRequest",
)
PREFER = Endpoint(
    "PUT",
    "/side-by-side/preference",
    prefer,
    "preferAnswer",
    "Say which of two to four jobs' answers to a row you prefer.",
    answer=_PREFERENCE,
    body=_BODY,
    errors=(404, 409),
)
