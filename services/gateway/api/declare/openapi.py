"""The OpenAPI 3.1 document, made from the endpoints themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import services
from services.gateway.access.auth import LocalAccess
from services.gateway.api.declare.endpoint import JSON, OPENAI, Call, Endpoint
from services.gateway.fields.checks import JOB_ID_PATTERN
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import OBJECT, STRING, Schema, about, array, null, shape
from services.gateway.http.responses import JSONResponse
from services.words.jobs import RUN_NAME

_PATH: dict[str, Schema] = {
    "job_id": about({"type": "string", "pattern": JOB_ID_PATTERN}, "A job's id, or a benchmark's."),
    "benchmark_id": about({"type": "string", "pattern": JOB_ID_PATTERN}, "A benchmark's id, or its job's."),
    "dataset_id": about({"type": "string", "pattern": "^ds_[0-9a-f]{32}$"}, "A dataset's id."),
    "decision_id": about({"type": "string", "pattern": JOB_ID_PATTERN}, "A decision's id, or that of a job of it."),
    "experiment": about({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"}, "An experiment's name."),
    "task": about(STRING, "A task of the job."),
    "item": about({"type": "integer", "minimum": 0}, "Row in the published split, from 0."),
    "configuration": about(STRING, "A configuration's hash, name or alias."),
    "name": about({"type": "string", "pattern": RUN_NAME}, "A recorded run's name."),
    "evaluator": about({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,80}$"}, "An evaluator's name."),
    "schedule_id": about({"type": "string", "format": "uuid"}, "A schedule's id."),
    "webhook_id": about({"type": "string", "format": "uuid"}, "A webhook's id."),
    "delivery_id": about(STRING, "A delivery's id."),
    "file_id": about(STRING, "A file's id."),
    "batch_id": about(STRING, "A batch's id."),
    "model": about(STRING, "A model's id, as `GET /v1/models` lists it."),
}
_FIELD = shape(
    {
        "field": about(STRING, "The field, such as `config.model`."),
        "message": about(STRING, "What is wrong with it."),
    }
)
_LINE = shape(
    {"line": about({"type": "integer"}, "The line, from 1."), "reason": about(STRING, "What is wrong with it.")}
)
_REASON = shape(
    {
        "reason": about(STRING, "What is wrong and what to do. `…` replaces quoted values and numbers that differ."),
        "count": about({"type": "integer"}, "The number of lines with this fault in the whole file."),
        "lines": about(array({"type": "integer"}), "The first of them, at most 20."),
    }
)
_ERROR = shape(
    {
        "detail": about(STRING, "What is wrong and what to do."),
        "retry_after": about({"type": "integer"}, "Seconds until another try makes sense."),
        "errors": about(array(_FIELD), "One entry per wrong field."),
        "error": about(STRING, "The same as `detail`, of a refused upload."),
        "lines": about(array(_LINE), "The first wrong lines of a refused upload."),
        "bad_lines": about({"type": "integer"}, "The number of its wrong lines."),
        "reasons": about(array(_REASON), "Its wrong lines by reason, the most frequent first, at most 100."),
        "other_lines": about({"type": "integer"}, "The number of its wrong lines with none of these reasons."),
    },
    name="Error",
    optional=("retry_after", "errors", "error", "lines", "bad_lines", "reasons", "other_lines"),
)
_OPENAI_ERROR = shape(
    {
        "error": about(
            shape(
                {
                    "message": about(STRING, "What is wrong and what to do."),
                    "type": about(STRING, "The kind of error, such as `invalid_request_error`."),
                    "param": about(null(STRING), "The field at fault."),
                    "code": about(null(STRING), "The error's code, such as `model_not_found`."),
                }
            ),
            "What OpenAI's clients raise.",
        )
    },
    name="OpenAIError",
)
_STATUSES = {
    400: "The request cannot be read, or names something that does not exist.",
    401: "No valid token.",
    402: "The budget does not allow it.",
    403: "Not yours, or not from here.",
    404: "Not found.",
    405: "The path does not have this method. `Allow` names those that it has.",
    409: "Not possible in the present state.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The operation does not take a body of this type.",
    422: "Fields are missing, unknown, of the wrong type or out of range.",
    429: "A limit is reached: requests in a minute, waiting jobs, or open streams.",
    500: "Internal error. The logs have the details.",
    501: "Known, but not available in this installation.",
    502: "The provider failed.",
    503: "A service does not answer. Try again in a moment.",
    504: "It took too long.",
}
_ALWAYS = (400, 401, 403, 405, 429, 500, 501, 503, 504)
_OPENAI_FORM = "openai-"
_PATH_NAMES = re.compile(r"{(\w+)}")


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole document; named schemas appear once, under components."""
    components: dict[str, Schema] = {}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        operation = _lifted(_operation(endpoint, endpoints), components)
        paths.setdefault(endpoint.route, {})[endpoint.method.lower()] = operation
    error = {JSON: {"schema": _lifted(_ERROR, components)}}
    openai_error = {JSON: {"schema": _lifted(_OPENAI_ERROR, components)}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Touchstone",
            "version": services.__version__,
            "description": "Self-service benchmarking of AI models.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": {
                f"{form}{status}": {"description": words, "content": content}
                for form, content in (("", error), (_OPENAI_FORM, openai_error))
                for status, words in _STATUSES.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def statuses(endpoint: Endpoint) -> list[int]:
    """Every error that the endpoint may return."""
    follow = {*_ALWAYS, *endpoint.errors}
    if endpoint.query:
        follow.add(422)
    if endpoint.body is not None or endpoint.reads:
        follow |= {413, 415, 422}
    if endpoint.base == OPENAI:
        follow -= {422}
    if endpoint.reads:
        follow.add(408)
    if _names(endpoint):
        follow.add(404)
    return sorted(follow)


def _operation(endpoint: Endpoint, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    ok: dict[str, Any] = {
        "description": "OK",
        "content": {media: {"schema": endpoint.answer} for media in endpoint.media},
    }
    if links := _links(endpoint, endpoints):
        ok["links"] = links
    form = _OPENAI_FORM if endpoint.base == OPENAI else ""
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.about,
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": _PATH[name]} for name in _names(endpoint)),
            *(_query_parameter(parameter) for parameter in endpoint.query),
        ],
        "responses": {"200": ok}
        | {str(status): {"$ref": f"#/components/responses/{form}{status}"} for status in statuses(endpoint)},
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body_needed,
            "content": {JSON: {"schema": endpoint.body.schema}},
        }
    if endpoint.reads:
        content = {media: {"schema": schema} for media, schema in endpoint.reads.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _names(endpoint: Endpoint) -> list[str]:
    return _PATH_NAMES.findall(endpoint.route)


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.about,
        "schema": parameter.schema,
    }


def _links(endpoint: Endpoint, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """To every endpoint whose path can be filled from this one's answer and path."""
    own, links = _names(endpoint), {}
    for other in endpoints:
        wanted = _names(other)
        if not any(name in endpoint.gives for name in wanted) or not all(
            name in endpoint.gives or name in own for name in wanted
        ):
            continue
        links[other.name] = {
            "operationId": other.name,
            "parameters": {
                name: f"$response.body#{endpoint.gives[name]}" if name in endpoint.gives else f"$request.path.{name}"
                for name in wanted
            },
        }
    return links


def _lifted(part: Any, components: dict[str, Schema]) -> Any:
    """The part with references instead of named schemas, which go to `components`."""
    if isinstance(part, list):
        return [_lifted(one, components) for one in part]
    if not isinstance(part, dict):
        return part
    name = part.get("title")
    inner = {key: _lifted(value, components) for key, value in part.items()}
    if not isinstance(name, str) or part.get("type") != "object":
        return inner
    reference = {"$ref": f"#/components/schemas/{name}"}
    words = {"description": inner.pop("description")} if "description" in inner else {}
    if components.setdefault(name, inner) != inner:
        raise ValueError(f"two schemas are called {name}")
    return reference | words


def endpoint(listed: Sequence[Endpoint], others: Sequence[Endpoint] = ()) -> Endpoint:
    """`GET /openapi.json`, which also describes itself, and then the others. In local mode it needs no token."""

    async def openapi(call: Call) -> JSONResponse:
        local = isinstance(call.ctx.access, LocalAccess)
        return JSONResponse(described | {"security": []} if local else described)

    made = Endpoint("GET", "/openapi.json", openapi, "getOpenAPI", "This document.", answer=OBJECT)
    described = document((*listed, made, *others))
    return made
