"""`/configurations`, what leaderboards rank, and `POST /results/{job_id}/mark`."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import JOB_ID, Field, boolean, one_of, record, text
from services.gateway.fields.query import MODEL, NEXT_PAGE_TOKEN, PAGE_TOKEN, PROJECT, Parameter, limit
from services.gateway.fields.schema import COUNT, STRING, TIME, about, array, enum, null, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs
from services.words.enums import MARKS
from touchstone.v1 import results_service_pb2

_NAME = text(64, least=0, pattern=r"[A-Za-z0-9._-]*", means='of letters, digits, ".", "_" and "-"')
_MARK = record(
    {
        "mark": Field(one_of(*MARKS), required=True, about="`valid` takes the run back into rankings."),
        "reason": Field(text(500, least=0), about="Why. Required unless the mark is `valid`."),
        "superseded_by": Field(JOB_ID, about="The job in its place. Required for `superseded`, and refused otherwise."),
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
    """Sets a name and an alias; "" removes one, an absent one stays. An alias moves within its suite."""
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
        raise FieldErrors([("reason", f"reason is required for {word}.")])
    if (word == "superseded") != ("superseded_by" in body):
        words = "superseded_by, the run that replaces it, is required for superseded and not allowed otherwise."
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
    "configuration": members.CONFIGURATION,
    "model": members.MODEL,
    "provider": members.PROVIDER,
    "name": members.CONFIGURATION_NAME,
    "alias": members.ALIAS,
    "job_id": about(STRING, "The job of the newest run."),
    "suite": members.SUITE,
    "run_count": about(COUNT, "The number of runs."),
    "last_run_at": about(null(TIME), "When the newest run ended."),
}
_CONFIGURATION = shape(_MEMBERS, name="Configuration")
_NAMED = shape(
    _MEMBERS | {"alias_taken_from": about(array(STRING), "The configurations that lost the alias to this one.")},
    name="NamedConfiguration",
)
CONFIGURATIONS = Endpoint(
    "GET",
    "/configurations",
    configurations,
    "listConfigurations",
    "List what leaderboards rank, with names and aliases.",
    answer=shape(
        {"configurations": about(array(_CONFIGURATION), "Newest run first."), "next_page_token": NEXT_PAGE_TOKEN},
        name="Configurations",
    ),
    query=(
        MODEL,
        Parameter("named", boolean, "Only configurations with a name or an alias.", False),
        Parameter("project_id", PROJECT.check, "Only configurations with a run of this project. 0 means all.", 0),
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
    body=record(
        {
            "name": Field(_NAME, about="The name. Unique within a suite. An empty text removes it."),
            "alias": Field(
                _NAME, about="The alias. It moves from the configuration that had it. An empty text removes it."
            ),
        },
        name="NameRequest",
    ),
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
            "job_id": members.JOB_ID,
            "mark": about(enum(*MARKS), "The run's mark."),
            "reason": about(null(STRING), "The reason that was given."),
            "superseded_by": about(null(STRING), "The job in its place."),
            "not_ranked_reason": about(null(STRING), "Why the run has no rank. null if it can have one."),
        },
        name="Marked",
    ),
    body=_MARK,
    errors=(409,),
)
