"""The OpenAPI document: complete, well-formed, and what requests are checked by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import pytest

from services.gateway.api import routes as api
from services.gateway.api.declare import openapi
from services.gateway.api.declare.endpoint import BASE, Endpoint
from tests.gateway import conformance
from tests.gateway.gateway_server import Running

DOCUMENTED = {
    ("POST", f"{BASE}/run"),
    ("GET", f"{BASE}/results/{{job_id}}"),
    ("POST", f"{BASE}/cancel/{{job_id}}"),
    ("GET", f"{BASE}/results"),
    ("GET", f"{BASE}/history"),
    ("GET", f"{BASE}/leaderboard"),
    ("POST", "/admin/datasets/upload"),
    ("GET", "/admin/datasets"),
    ("DELETE", "/admin/datasets/{dataset_id}"),
    ("POST", "/admin/benchmarks/run"),
    ("GET", "/admin/benchmarks"),
    ("GET", "/admin/benchmarks/{benchmark_id}/results"),
}


@pytest.mark.parametrize("path", ["/openapi.json", f"{BASE}/openapi.json"])
async def test_the_document_is_served_and_names_every_endpoint(gateway: Running, path: str) -> None:
    answer = await gateway.client.get(path)
    served = answer.json()
    assert served == conformance.document() | {"security": []}, "local mode asks for no token"
    assert served["openapi"] == "3.1.0"
    named = {(method.upper(), path) for path, methods in served["paths"].items() for method in methods}
    assert named == {(endpoint.method, endpoint.route) for endpoint in api.DOCUMENTED}
    assert named >= DOCUMENTED
    assert set(served["components"]["securitySchemes"]) == {"bearer", "key"}


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    document = conformance.document()
    references = set(re.findall(r"'\$ref': '#/([^']+)'", str(document)))
    assert len(references) > 100
    assert [reference for reference in sorted(references) if not _leads_somewhere(document, reference)] == []
    wrong = [
        name for name, schema in document["components"]["schemas"].items() if not jsonschema_rs.meta.is_valid(schema)
    ]
    assert wrong == []


def _leads_somewhere(document: dict[str, Any], reference: str) -> bool:
    part: Any = document
    for name in reference.split("/"):
        part = part.get(name) if isinstance(part, dict) else None
    return isinstance(part, dict)


def described(part: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every member and parameter below a part of the document, with its description."""
    if isinstance(part, list):
        for place, one in enumerate(part):
            yield from described(one, f"{path}/{place}")
    if not isinstance(part, dict):
        return
    members = part.get("properties", {}) if "type" in part else {}
    for name, member in members.items():
        yield f"{path}/{name}", member.get("description", "")
    if part.get("in") == "query":
        yield f"{path}?{part['name']}", part["description"]
    for name, inner in part.items():
        yield from described(inner, f"{path}/{name}")


def test_every_member_and_parameter_is_described_in_sentences() -> None:
    found = dict(described(conformance.document(), ""))
    assert len(found) > 500
    assert [path for path, words in found.items() if not re.fullmatch(r"(?s)(null|[A-Z0-9`\"a]).*\.", words)] == []
    assert [
        path for path, words in found.items() if max(map(len, map(str.split, re.split(r"[.:] ", words)))) > 25
    ] == []


def test_operations_have_names_of_their_own_and_links_lead_to_them() -> None:
    names = [endpoint.name for endpoint in api.DOCUMENTED]
    assert len(set(names)) == len(names)
    run = conformance.document()["paths"][f"{BASE}/run"]["post"]["responses"]["200"]
    assert run["links"]["cancelJob"] == {
        "operationId": "cancelJob",
        "parameters": {"job_id": "$response.body#/job_id"},
    }
    items = conformance.document()["paths"][f"{BASE}/results/{{job_id}}/items"]["get"]["responses"]["200"]
    assert items["links"]["getItem"]["parameters"] == {
        "job_id": "$request.path.job_id",
        "task": "$response.body#/items/0/task",
        "item": "$response.body#/items/0/item",
    }


@pytest.mark.parametrize("endpoint", [e for e in api.ALL if e.body], ids=lambda endpoint: endpoint.name)
def test_bodies_are_judged_by_their_checks_as_by_their_schemas(endpoint: Endpoint) -> None:
    assert endpoint.body is not None
    valid = jsonschema_rs.Draft202012Validator(endpoint.body.schema)
    values: list[Any] = [
        None,
        True,
        0,
        1,
        -1,
        1.5,
        101,
        2**31,
        2**63,
        "",
        "x",
        "x" * 4001,
        "\x00",
        [],
        ["x"],
        {},
        {"y": 1},
    ]
    for name, schema in endpoint.body.schema["properties"].items():
        needed = {n: _example(endpoint.body.schema["properties"][n]) for n in endpoint.body.schema["required"]}
        for value in [*values, *schema.get("enum", [])]:
            body = needed | {name: value}
            judged = not list(endpoint.body.judge(body, ""))
            blank = isinstance(value, str) and value and not value.strip()
            # The schema cannot say "not blank", and calls 1.0 an integer; nothing here is either.
            if not blank and (value is not None or name not in needed):
                assert judged == valid.is_valid(body), f"{name}={value!r}"


def _example(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "array":
        return [_example(schema["items"])]
    if kind == "object":
        return {name: _example(schema["properties"][name]) for name in schema["required"]}
    if kind == "string":
        return "https://hooks.example/x" if "https?" in schema["pattern"] else "x"
    return schema["minimum"]


def test_two_schemas_of_one_name_are_a_mistake() -> None:
    twice = [
        Endpoint("GET", f"/{n}", api.ALL[0].handler, str(n), "", answer={"title": "A", "type": "object", "x": n})
        for n in range(2)
    ]
    with pytest.raises(ValueError, match="two schemas are called A"):
        openapi.document(twice)


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/results", 200, {"results": [], "total": 0}),
        ("/results", 200, {"results": [], "total": 0, "next_page_token": "", "more": 1}),
        ("/results", 200, {"results": [], "total": "0", "next_page_token": ""}),
        ("/results", 404, {"detail": "x"}),
        ("/results", 422, {"detail": ""}),
        ("/run", 422, {"message": "x"}),
    ],
)
async def test_an_answer_that_the_document_does_not_say_is_caught(path: str, status: int, body: Any) -> None:
    method = "POST" if path == "/run" else "GET"
    request = httpx.Request(method, f"http://x{BASE}{path}")
    with pytest.raises((AssertionError, KeyError)):
        await conformance.conforms(httpx.Response(status, json=body, request=request))


def test_query_parameters_tell_their_defaults_where_they_may_be_sent() -> None:
    shown = {
        (operation["operationId"], parameter["name"]): parameter["schema"].get("default")
        for methods in conformance.document()["paths"].values()
        for operation in methods.values()
        for parameter in operation["parameters"]
        if parameter["in"] == "query"
    }
    assert shown["listResults", "limit"] == 20
    assert shown["listResults", "status"] is None
