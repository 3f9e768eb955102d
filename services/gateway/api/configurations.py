"""`/configurations`, what leaderboards rank, and `POST /results/{job_id}/mark`."""

from __future__ import annotations

from typing import Any

from services.gateway import jobs
from services.gateway.api.checks import JOB_ID, Field, boolean, one_of, record, text
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.query import MODEL, PAGE_TOKEN, PROJECT, Parameter, limit
from services.gateway.api.results import TOKEN
from services.gateway.api.schema import COUNT, STRING, TIME, UUID, about, array, enum, null, shape
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import results_service_pb2

_NAME = text(64, least=0, pattern=r"[A-Za-z0-9._-]*", means='of letters, digits, ".", "_" and "-"')
MARKS = {
    "valid": results_service_pb2.RUN_MARK_VALID,
    "invalidated": results_service_pb2.RUN_MARK_INVALIDATED,
    "superseded": results_service_pb2.RUN_MARK_SUPERSEDED,
}
_MARK = record(
    {
        "mark": Field(one_of(*MARKS), required=True, about="`valid` takes the run back into rankings."),
        "reason": Field(text(500, least=0), about="Needed unless `valid`."),
        "superseded_by": Field(JOB_ID, about="For `superseded`."),
    },
    name="MarkRequest",
)


async def configurations(call: Call) -> JSONResponse:
    """Newest run first."""
    request = results_service_pb2.ListConfigurationsRequest(
        page_size=call.query["limit"],
        page_token=call.query["page_token"],
        model=call.query["model_name"],
        named=call.query["named"],
        project_id=call.query["project_id"],
    )
    found = await call.ask(call.ctx.backend.results.ListConfigurations, request)
    return JSONResponse(
        {
            "configurations": [_configuration(one) for one in found.configurations],
            "next_page_token": found.next_page_token,
        }
    )


async def name_configuration(call: Call) -> JSONResponse:
    """Gives a name and an alias; "" takes one away, what is absent stays. An alias moves within its suite."""
    if not call.body:
        raise FieldErrors([("name", "Give name, alias or both.")])
    request = results_service_pb2.NameConfigurationRequest(configuration=call.path["configuration"])
    for field in ("name", "alias"):
        if field in call.body:
            setattr(request, field, call.body[field])
    named = await call.ask(call.ctx.backend.results.NameConfiguration, request)
    configuration = named.configuration
    return JSONResponse(_configuration(configuration) | {"alias_taken_from": list(configuration.alias_taken_from)})


def _configuration(one: results_service_pb2.Configuration) -> dict[str, Any]:
    return {
        "configuration": one.configuration,
        "model": one.model,
        "provider": one.endpoint,
        "name": one.name or None,
        "alias": one.alias or None,
        "job_id": one.job_id,
        "suite": one.suite,
        "run_count": one.run_count,
        "last_run_at": jobs.iso(one.last_run_at),
    }


async def mark(call: Call) -> JSONResponse:
    """Takes a finished run out of rankings with a reason, or back in. 403 for other users' jobs."""
    job_id, word, body = call.job_id, call.body["mark"], call.body
    if word != "valid" and not body.get("reason", "").strip():
        raise FieldErrors([("reason", f"reason is needed for {word}: say why, in a sentence.")])
    if (word == "superseded") != ("superseded_by" in body):
        words = "superseded_by is needed for superseded: the run in its place, and for nothing else."
        raise FieldErrors([("superseded_by", words)])
    request = results_service_pb2.MarkRunRequest(
        job_id=job_id,
        mark=MARKS[word],
        reason=body.get("reason", ""),
        superseded_by=jobs.checked_id(body["superseded_by"]) if "superseded_by" in body else "",
    )
    result = (await call.ask(call.ctx.backend.results.MarkRun, request)).result
    return JSONResponse(
        {
            "job_id": job_id,
            "mark": result.mark or "valid",
            "reason": result.mark_reason or None,
            "superseded_by": result.superseded_by or None,
            "not_ranked_reason": result.not_ranked_reason or None,
        }
    )


_MEMBERS = {
    "configuration": about(STRING, "Hash of model, digest, endpoint, sampling, template, mode, shots and prompts."),
    "model": STRING,
    "provider": STRING,
    "name": null(STRING),
    "alias": about(null(STRING), 'A role that moves between configurations of a suite, e.g. "prod".'),
    "job_id": about(STRING, "Newest run."),
    "suite": STRING,
    "run_count": COUNT,
    "last_run_at": null(TIME),
}
_CONFIGURATION = shape(_MEMBERS, name="Configuration")
_NAMED = shape(
    _MEMBERS | {"alias_taken_from": about(array(STRING), "Configurations that lost the alias to this one.")},
    name="NamedConfiguration",
)
CONFIGURATIONS = Endpoint(
    "GET",
    "/configurations",
    configurations,
    "listConfigurations",
    "What leaderboards rank, with names and aliases.",
    answer=shape({"configurations": array(_CONFIGURATION), "next_page_token": TOKEN}, name="Configurations"),
    query=(
        MODEL,
        Parameter("named", boolean, "Only those with a name or an alias.", False),
        Parameter("project_id", PROJECT.check, "Only those with a run of this project; 0 means all.", 0),
        limit(100, 500),
        PAGE_TOKEN,
    ),
    gives={"configuration": "/configurations/0/configuration"},
)
NAME = Endpoint(
    "PUT",
    "/configurations/{configuration}",
    name_configuration,
    "nameConfiguration",
    "Give a configuration a name and an alias.",
    answer=_NAMED,
    body=record({"name": Field(_NAME), "alias": Field(_NAME)}, name="NameRequest"),
    errors=(409,),
)
MARK = Endpoint(
    "POST",
    "/results/{job_id}/mark",
    mark,
    "markRun",
    "Take a finished run out of rankings with a reason, or back in.",
    answer=shape(
        {
            "job_id": UUID,
            "mark": enum(*MARKS),
            "reason": null(STRING),
            "superseded_by": null(STRING),
            "not_ranked_reason": null(STRING),
        },
        name="Marked",
    ),
    body=_MARK,
    errors=(409,),
)
