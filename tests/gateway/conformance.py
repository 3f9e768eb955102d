"""Answers of the REST API against its own OpenAPI document, stricter than the document: what it does not name fails."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import httpx
import jsonschema_rs

from services.gateway.api import routes as api
from services.gateway.api.declare import openapi

_METHODS = ("get", "put", "post", "delete")


@functools.cache
def document() -> dict[str, Any]:
    return openapi.document(api.DOCUMENTED)


async def conforms(response: httpx.Response) -> None:
    """An httpx response hook. Raises AssertionError for what the document does not say."""
    path = response.request.url.path
    if not path.startswith(("/api/", "/admin/", "/v1/")):
        return
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind in ("application/json", ""):
        await response.aread()
    check(response.request.method, path, response.status_code, kind, response)


def check(method: str, path: str, status: int, kind: str, response: httpx.Response) -> None:
    template = _template(path)
    if status >= 400:
        assert kind == "application/json", f"{method} {path}: {status} is {kind!r}"
        if method != "HEAD":
            told = response.json()
            said = told["error"]["message"] if path.startswith("/v1/") else told["detail"]
            assert said, f"{method} {path}: {status} without a detail"
    operation = document()["paths"].get(template, {}).get("get" if method == "HEAD" else method.lower())
    if operation is None:
        assert status in (204, 400, 401, 403, 404, 405, 413, 429), f"{method} {path}: {status}"
        return
    assert str(status) in operation["responses"], f"{method} {template}: {status} is not documented"
    content = _resolved(operation["responses"][str(status)])["content"]
    assert kind in content, f"{method} {template}: {status} as {kind!r}; documented {list(content)}"
    if kind == "application/json" and method != "HEAD":
        problems = [
            str(error)
            for error in _validator(template, method.lower(), str(status)).iter_errors(json.loads(response.content))
        ]
        assert not problems, f"{method} {template}: {problems[:3]}"


def check_event(data: str) -> None:
    """The data of an event of a job against what the document says of them."""
    schema = document()["components"]["schemas"]["JobState"]
    whole = _closed(schema) | {"components": {"schemas": _schemas()}}
    problems = [str(error) for error in jsonschema_rs.Draft202012Validator(whole).iter_errors(json.loads(data))]
    assert not problems, f"JobState: {problems[:3]}"


def _template(path: str) -> str:
    found = [template for template, pattern in _patterns().items() if pattern.fullmatch(path)]
    return min(found, key=lambda template: template.count("{"), default="")


@functools.cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {
        template: re.compile(re.sub(r"{\w+}", "[^/]+", template).replace("models/[^/]+", "models/.+"))
        for template in document()["paths"]
    }


def _resolved(part: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = part
    if "$ref" in part:
        found = document()
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
    return found


@functools.cache
def _validator(template: str, method: str, status: str) -> Any:
    operation = document()["paths"][template][method]
    schema = _resolved(operation["responses"][status])["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator(
        _closed(schema) | {"components": {"schemas": _schemas()}}, validate_formats=True
    )


@functools.cache
def _schemas() -> Any:
    """Closing them takes 27 ms, too much for each of hundreds of validators."""
    return _closed(document()["components"]["schemas"])


def _closed(part: Any) -> Any:
    """The schema with every object that names its members holding no others."""
    if isinstance(part, list):
        return [_closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    closed = {name: _closed(value) for name, value in part.items()}
    if "properties" in closed and "type" in closed:
        closed.setdefault("additionalProperties", False)
    return closed
