"""The OpenAPI document: complete, well-formed, and what requests are checked by."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from services.gateway import api
from services.gateway.api import openapi
from services.gateway.api.endpoint import Endpoint
from tests.gateway import conformance
from tests.gateway.gateway_server import Running

DOCUMENTED = {
    ("POST", f"{api.BASE}/run"),
    ("GET", f"{api.BASE}/results/{{job_id}}"),
    ("POST", f"{api.BASE}/cancel/{{job_id}}"),
    ("GET", f"{api.BASE}/results"),
    ("GET", f"{api.BASE}/history"),
    ("GET", f"{api.BASE}/leaderboard"),
    ("POST", "/admin/datasets/upload"),
    ("GET", "/admin/datasets"),
    ("DELETE", "/admin/datasets/{dataset_id}"),
    ("POST", "/admin/benchmarks/run"),
    ("GET", "/admin/benchmarks"),
    ("GET", "/admin/benchmarks/{benchmark_id}/results"),
}


async def test_the_document_is_served_and_names_every_endpoint(gateway: Running) -> None:
    answer = await gateway.client.get(f"{api.BASE}/openapi.json")
    served = answer.json()
    assert served == conformance.document()
    assert served["openapi"] == "3.1.0"
    named = {(method.upper(), path) for path, methods in served["paths"].items() for method in methods}
    assert named == {(endpoint.method, endpoint.route) for endpoint in api.ALL}
    assert named >= DOCUMENTED
    assert set(served["components"]["securitySchemes"]) == {"bearer", "key"}


def test_the_guide_names_every_endpoint() -> None:
    guide = (Path(__file__).parents[2] / "docs/api.md").read_text()
    for endpoint in api.ALL:
        assert f"{endpoint.path.partition('{')[0]}" in guide, endpoint.path
        for parameter in endpoint.query:
            assert f"`{parameter.name}`" in guide or f"{parameter.name}=" in guide, f"{endpoint.path}: {parameter.name}"


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    document = conformance.document()
    for reference in set(re.findall(r"'\$ref': '#/([^']+)'", str(document))):
        part: Any = document
        for name in reference.split("/"):
            part = part[name]
    for name, schema in document["components"]["schemas"].items():
        jsonschema_rs.Draft202012Validator(schema | {"components": document["components"]}), name


def test_operations_have_names_of_their_own_and_links_lead_to_them() -> None:
    names = [endpoint.name for endpoint in api.ALL]
    assert len(set(names)) == len(names)
    run = conformance.document()["paths"][f"{api.BASE}/run"]["post"]["responses"]["200"]
    assert run["links"]["cancelJob"] == {
        "operationId": "cancelJob",
        "parameters": {"job_id": "$response.body#/job_id"},
    }
    items = conformance.document()["paths"][f"{api.BASE}/results/{{job_id}}/items"]["get"]["responses"]["200"]
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
    request = httpx.Request(method, f"http://x{api.BASE}{path}")
    with pytest.raises((AssertionError, KeyError)):
        await conformance.conforms(httpx.Response(status, json=body, request=request))
