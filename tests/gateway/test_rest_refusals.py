"""Bad requests of every kind are answered 4xx with what to do, never 500."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from services.gateway.api import routes as api
from services.gateway.api.declare.endpoint import Endpoint
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import BASE, get
from tests.gateway.test_rest_run import DOCUMENT
from tests.parts import NIGHTLY

HOSTILE = (
    "' OR 1=1 --",
    "a\x00b",
    "\x1b[31m",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \uffff 🙂",
    "../../etc/passwd",
    "9" * 400,
    "-1",
    "1e999",
    "x" * 5000,
)


def path_of(endpoint: Endpoint, job_id: str) -> str:
    filled = {"job_id": job_id, "benchmark_id": job_id, "dataset_id": "ds_" + "0" * 32, "task": "sst2", "item": "0"}
    return endpoint.route.format_map(_Named(filled))


class _Named(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"unknown-{name}"


@pytest.mark.stack
async def test_no_query_breaks_an_endpoint(gateway: Running) -> None:
    job = gateway.world.start(gateway.world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    gateway.world.finish(job.job_id)
    for endpoint in [e for e in api.ALL if e.query and e.method == "GET"]:
        path = path_of(endpoint, job.job_id)
        for number, parameter in enumerate(endpoint.query):
            for value in HOSTILE if NIGHTLY else HOSTILE[number % 3 :: 3]:
                answer = await gateway.client.get(path, params={parameter.name: value})
                assert answer.status_code in (200, 400, 404, 422), (
                    f"{endpoint.name} {parameter.name}={value!r}: {answer.text}"
                )


async def test_unknown_and_repeated_parameters_are_refused_by_name(gateway: Running) -> None:
    for endpoint in api.ALL:
        path = path_of(endpoint, "a967f363-ee96-4bac-9f52-4d169bbc4851")
        answer = await gateway.client.request(endpoint.method, f"{path}?nope=1")
        assert answer.status_code == 400
        words = (
            f"Known parameters: {', '.join(one.name for one in endpoint.query)}."
            if endpoint.query
            else "This path takes none."
        )
        assert answer.json()["detail"] == f"Unknown query parameter 'nope'. {words}"
        if endpoint.query:
            name = endpoint.query[0].name
            twice = await gateway.client.request(endpoint.method, f"{path}?{name}=1&{name}=2")
            assert (twice.status_code, twice.json()["detail"]) == (
                400,
                f"{name} is given more than once. Give it once.",
            )


@pytest.mark.stack
async def test_no_path_breaks_an_endpoint(gateway: Running) -> None:
    for endpoint in [e for e in api.ALL if "{" in e.route]:
        for value in HOSTILE:
            filled = {name: quote(value, safe="") for name in ("job_id", "task", "item", "benchmark_id", "dataset_id")}
            path = endpoint.route.format_map(_Named(filled)).replace("unknown-configuration", quote(value, safe=""))
            answer = await gateway.client.request(endpoint.method, path, json={} if endpoint.body else None)
            assert answer.status_code in (400, 404, 422), f"{endpoint.name} {value!r}: {answer.text}"


@pytest.mark.stack
async def test_no_body_breaks_an_endpoint(gateway: Running) -> None:
    for endpoint in [e for e in api.ALL if e.body]:
        assert endpoint.body is not None
        path = path_of(endpoint, "a967f363-ee96-4bac-9f52-4d169bbc4851")
        values: list[Any] = [None, True, 1, -1, 1e300, 10**40, "", "\x00", "x" * 5000, [], [[]], {}, {"": 1}, {"a": {}}]
        for number, name in enumerate(endpoint.body.schema["properties"]):
            for value in values if NIGHTLY else values[number % 3 :: 3]:
                answer = await gateway.client.request(endpoint.method, path, json={name: value})
                assert answer.status_code in (400, 404, 409, 422), (
                    f"{name}={value!r}: {answer.status_code} {answer.text[:300]}"
                )
        for raw in (
            b"",
            b"{",
            b"[]",
            b"null",
            b'{"a":1e999}',
            b'"\\ud800"',
            b'{"\\ud800":1}',
            b"\xff\xfe",
            b"9" * 5000,
        ):
            headers = {"Content-Type": "application/json"}
            answer = await gateway.client.request(endpoint.method, path, content=raw, headers=headers)
            assert answer.status_code in (400, 404, 422), f"{raw[:20]!r}: {answer.status_code} {answer.text[:300]}"


async def test_numbers_beyond_all_bounds_are_refused_where_any_json_may_stand(gateway: Running) -> None:
    raw = b'{"project_id":1,"config":{"provider":"ollama","model":"m","custom_config":{"x":1e999}}}'
    answer = await gateway.client.post(f"{BASE}/run", content=raw)
    assert (answer.status_code, answer.json()["detail"][:25]) == (400, "1e999 is too large. Send ")
    assert gateway.world.jobs == {}


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
async def test_a_body_that_says_it_is_something_else_is_415(gateway: Running, kind: str) -> None:
    answer = await gateway.client.post(f"{BASE}/run", content=b"{}", headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert answer.json()["detail"].endswith("Send JSON with Content-Type: application/json.")
    for good in ("application/json; charset=utf-8", "APPLICATION/JSON", "application/problem+json"):
        answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers={"Content-Type": good})
        assert answer.status_code == 200


async def test_a_slash_too_many_and_unknown_paths_are_404_and_redirect_nowhere(gateway: Running) -> None:
    for path in (f"{BASE}/results/", f"{BASE}/run/", f"{BASE}//results", f"{BASE}/nope", "/api/v1", "/api/v2/results"):
        for method in ("GET", "POST"):
            answer = await gateway.client.request(method, path)
            assert answer.status_code == 404, path
            assert "openapi.json lists all paths." in answer.json()["detail"]


async def test_other_methods_are_405_with_those_there_are(gateway: Running) -> None:
    for path, allowed in (
        ("/results", "GET, HEAD, OPTIONS"),
        ("/run", "OPTIONS, POST"),
        ("/webhooks", "GET, HEAD, OPTIONS, POST"),
        ("/schedules/x", "DELETE, OPTIONS"),
    ):
        for method in ("PATCH", "TRACE", "QUERY"):
            answer = await gateway.client.request(method, f"{BASE}{path}")
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
            assert answer.json()["detail"] == f"{method} is not offered here. Use {allowed}."
        options = await gateway.client.options(f"{BASE}{path}")
        assert (options.status_code, options.headers["allow"]) == (204, allowed)


async def test_head_is_get_without_a_body(gateway: Running) -> None:
    answer = await gateway.client.head(f"{BASE}/results")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 20
    assert (await gateway.client.head(f"{BASE}/results?limit=0")).status_code == 422


async def test_a_wrong_page_token_is_400(gateway: Running) -> None:
    for path in ("/results", "/schedules", "/webhooks", "/configurations"):
        assert (await get(gateway, f"{path}?page_token=nonsense", 400))["detail"]
