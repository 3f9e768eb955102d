"""`POST /decisions`: models are asked the same items until it is known which one is better."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from services.errors import InvalidRequestError, LimitReachedError
from services.gateway.api.answers import members
from services.gateway.api.dataset_runs.run import SCORING_FIELDS, set_scoring
from services.gateway.api.decisions.body import DECISION_ID
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.jobs.run import MODEL, QUEUE_FULL, QUEUEING, WORK, sampling_of, task_problems
from services.gateway.fields.checks import Field, Problem, integer, list_of, number, record, text
from services.gateway.fields.job import in_rest, option, options_of
from services.gateway.fields.schema import UUID, about, array, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs
from services.words.decisions import DEFAULT_ERROR, LEAST_ERROR, MOST_ERROR, MOST_MARGIN, MOST_MODELS
from services.words.fields import INT64_MAX
from services.words.job_options import fill
from touchstone.v1 import job_pb2, scheduler_service_pb2, suite_pb2

_OF_SUITES = ("tasks", "mode", "shots")
_SUITE_OPTIONS: dict[str, Field] = {name: option(name) for name in _OF_SUITES}
_BOTH: dict[str, Field] = {name: WORK[name] for name in ("limit", "seed", "reading", "stream", "reuse", "labels")}
_SIDE = record(
    MODEL
    | {
        "shots": option("shots", "Worked examples in each prompt for this model, in place of those for both."),
        "dataset_id": Field(text(100), about="The same rows with another template, for this model."),
    },
    name="DecisionModel",
)
ASKED: dict[str, Field] = {
    "baseline": Field(_SIDE, required=True, about="The model to compare with, and its parameters."),
    "candidate": Field(_SIDE, required=True, about="The model that the verdict is about, and its parameters."),
    "further_candidates": Field(
        list_of(_SIDE, MOST_MODELS - 2, least=0),
        about="Further models. It is then a race for the best one: a job stops as soon as another model is better.",
    ),
    "suite": Field(text(200), about="The suite. This or `dataset_id` is required."),
    "dataset_id": Field(text(100), about="The dataset's id, in place of a suite."),
    "error": Field(
        number(LEAST_ERROR, MOST_ERROR), about="The most probability of a wrong verdict.", default=DEFAULT_ERROR
    ),
    "margin": Field(number(0, MOST_MARGIN), about="Differences of the mean score below this do not matter.", default=0),
    "order_seed": Field(integer(-INT64_MAX - 1, INT64_MAX), about="The seed of the order of the items.", default=0),
    **_SUITE_OPTIONS,
    **_BOTH,
    **SCORING_FIELDS,
    "budget_usd": option("budget_usd", "The most that each of the two jobs may cost. It needs known prices."),
    "project_id": option("project_id"),
}
BODY = record(
    ASKED
    | {
        "priority": option(
            "priority", "The place in the queue. If absent, `high` for suites and `normal` for datasets."
        ),
        "request_id": QUEUEING["request_id"],
    },
    name="DecisionRequest",
)
_STARTED = shape(
    {
        "decision_id": DECISION_ID,
        "baseline_job_id": about(members.JOB_ID, "The baseline's job."),
        "candidate_job_id": about(members.JOB_ID, "The candidate's job."),
        "further_job_ids": about(array(UUID), "The jobs of further candidates, in their order."),
        "message": members.MESSAGE,
    },
    name="DecisionStarted",
)


async def start(call: Call) -> JSONResponse:
    """Answers once all jobs are queued. 400 for an unknown suite or provider, 422 for wrong fields, 429 when full."""
    body = call.body
    request = await request_of(call, body)
    # Calls are repeated when a scheduler is silent: without an id that would start two decisions.
    request.request_id = body.get("request_id") or uuid.uuid4().hex
    try:
        made = await call.ask(call.ctx.backend.scheduler.StartDecision, request)
    except LimitReachedError as error:
        raise LimitReachedError(QUEUE_FULL, error.retry_after_s) from error
    except InvalidRequestError as error:
        # The scheduler names fields of its message, which users of the API never see.
        raise InvalidRequestError(in_rest(error.message)) from error
    work = body.get("suite") or body["dataset_id"]
    return JSONResponse(
        {
            "decision_id": made.decision_id,
            "baseline_job_id": made.baseline.job_id,
            "candidate_job_id": made.candidate.job_id,
            "further_job_ids": [job.job_id for job in made.further_candidates],
            "message": f"{'All' if made.further_candidates else 'Both'} models are asked the same items of {work}.",
        }
    )


async def request_of(
    call: Call, body: Mapping[str, Any], prefix: str = ""
) -> scheduler_service_pb2.StartDecisionRequest:
    """The request, without an id, from checked members of ASKED, and possibly a priority; `prefix` precedes the names
    of fields. Raises InvalidRequestError for an unknown suite or provider, FieldErrors for the rest."""
    if problems := _problems(body):
        raise FieldErrors([(f"{prefix}{name}", sentence) for name, sentence in problems])
    return scheduler_service_pb2.StartDecisionRequest(
        baseline=await _spec(call, body, f"{prefix}baseline", body["baseline"]),
        candidate=await _spec(call, body, f"{prefix}candidate", body["candidate"]),
        further_candidates=[await _spec(call, body, f"{prefix}{path}", side) for path, side in _further(body)],
        error=body.get("error") or 0,
        margin=body.get("margin") or 0,
        seed=body.get("order_seed") or 0,
    )


def _problems(body: Mapping[str, Any]) -> list[Problem]:
    if ("suite" in body) == ("dataset_id" in body):
        return [("suite", "Give suite or dataset_id.")]
    others: Sequence[str] = tuple(SCORING_FIELDS) if "suite" in body else _OF_SUITES
    kind = "datasets" if "suite" in body else "suites"
    given = [name for name in others if name in body]
    own = "dataset_id" if "suite" in body else "shots"
    models = [("baseline", body["baseline"]), ("candidate", body["candidate"]), *_further(body)]
    given += [f"{path}.{own}" for path, side in models if side.get(own) is not None]
    return [(name, f"{name} is for {kind}. Leave it out.") for name in given]


def _further(body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Further candidates of a checked body, with their paths."""
    return [(f"further_candidates[{place}]", one) for place, one in enumerate(body.get("further_candidates") or [])]


async def _spec(call: Call, body: Mapping[str, Any], path: str, config: Mapping[str, Any]) -> job_pb2.JobSpec:
    """The job of a model, which is at this path. Raises as `request_of`."""
    endpoint = await call.ctx.catalogue.endpoint(config["provider"], f"{path}.provider")
    spec = job_pb2.JobSpec(
        endpoint=endpoint.endpoint,
        model=config["model"].strip(),
        sampling=sampling_of(config, path),
        mode=suite_pb2.MODE_GENERATE,
    )
    if "suite" in body:
        suite = await call.ctx.catalogue.suite(body["suite"])
        if problems := task_problems(body.get("tasks") or [], suite):
            raise FieldErrors(problems)
        spec.suite.suite = body["suite"]
    else:
        spec.dataset.dataset_id = jobs.checked_dataset(config.get("dataset_id") or body["dataset_id"])
        set_scoring(spec, body)
    fill(spec, options_of(body) | ({"shots": config["shots"]} if config.get("shots") is not None else {}))
    return spec


START_DECISION = Endpoint(
    "POST",
    "/decisions",
    start,
    "startDecision",
    "Start a decision whether a model is better than another, or which is the best. Jobs stop as soon as it is known.",
    answer=_STARTED,
    body=BODY,
    errors=(404, 409),
    gives={"decision_id": "/decision_id", "job_id": "/baseline_job_id"},
)
