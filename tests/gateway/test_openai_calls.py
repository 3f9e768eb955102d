"""`/v1/chat/completions` and `/v1/responses` before an evaluator is asked, and the lists of calls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone.v1.call_pb2 import Call, CallUsage, RecordedRun

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HELLO = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, {"messages": HELLO}, "model"),
        (CHAT, {"model": "", "messages": HELLO}, "model"),
        (CHAT, {"model": "m"}, "messages"),
        (CHAT, {"model": "m", "messages": "hello"}, "messages"),
        (CHAT, {"model": "m", "messages": HELLO, "stream": "yes"}, "stream"),
        (RESPONSES, {"model": "m"}, "input"),
        (RESPONSES, {"model": "m", "input": {"role": "user"}}, "input"),
    ],
)
async def test_wrong_fields_are_named(gateway: Running, path: str, body: dict[str, Any], param: str) -> None:
    answer = await gateway.client.post(path, json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["type"]) == (param, "invalid_request_error")


async def test_without_nats_models_cannot_be_called(gateway: Running) -> None:
    answer = await gateway.client.post(CHAT, json={"model": "majority@baseline", "messages": HELLO})
    assert answer.status_code == 503
    assert "NATS does not answer" in answer.json()["error"]["message"]
    assert "retry-after" in answer.headers


async def test_other_methods_and_larger_bodies_are_refused(gateway: Running) -> None:
    assert (await gateway.client.get(CHAT)).status_code == 405
    large = [{"role": "user", "content": "x" * 2_000_000}]
    answer = await gateway.client.post(CHAT, json={"model": "nowhere", "messages": large})
    assert answer.status_code == 404
    answer = await gateway.client.post(CHAT, content=b" " * (16 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_calls_and_their_sums_are_listed(gateway: Running) -> None:
    whole = Call(call_id="1", owner="ann", endpoint="local", model="m", api=Call.API_CHAT, status=200, cost_usd=0.5)
    whole.outcome = Call.OUTCOME_ANSWERED
    gateway.world.calls = [whole, Call(call_id="2", owner="ann", endpoint="local", model="m", api=Call.API_RESPONSES)]
    gateway.world.usage = [CallUsage(owner="ann", endpoint="local", model="m", calls=2, cost_usd=0.5)]
    found = (await gateway.client.get("/api/v1/benchmarking/calls?user=ann&limit=5")).json()["calls"]
    assert [(one["api"], one["outcome"], one["cost_usd"]) for one in found] == [
        ("chat", "answered", 0.5),
        ("responses", "unfinished", None),
    ]
    (one,) = (await gateway.client.get("/api/v1/benchmarking/usage?days=3")).json()["usage"]
    assert (one["user"], one["calls"], one["cost_usd"]) == ("ann", 2, 0.5)


async def test_the_history_shows_what_calls_took(gateway: Running) -> None:
    assert "Calls of models" not in (await gateway.client.get("/jobs", headers={"Accept": "text/html"})).text
    gateway.world.usage = [CallUsage(owner="ann", endpoint="local", model="m<b>", calls=1200, cost_usd=0.5, unpriced=1)]
    page = (await gateway.client.get("/jobs", headers={"Accept": "text/html"})).text
    for text in ("Calls of models", "m&lt;b&gt;", "1,200", "$0.50", "1 unpriced"):
        assert text in page


@pytest.mark.parametrize("name", ["", "a/b", "a b", "x" * 101, "caf\xe9"])
async def test_a_wrong_name_of_a_run_is_refused_before_the_call(gateway: Running, name: str) -> None:
    headers = {b"X-Touchstone-Run": name.encode("latin-1")}
    answer = await gateway.client.post(CHAT, json={"model": "nowhere", "messages": HELLO}, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "X-Touchstone-Run"


@pytest.mark.parametrize(
    ("budget", "words"), [("x", "a number"), ("0", "above 0"), ("-1", "above 0"), ("nan", "finite"), ("1", "needs")]
)
async def test_a_wrong_budget_is_refused_before_the_call(gateway: Running, budget: str, words: str) -> None:
    headers = {"X-Touchstone-Budget-USD": budget} | ({} if budget == "1" else {"X-Touchstone-Run": "support"})
    answer = await gateway.client.post(CHAT, json={"model": "nowhere", "messages": HELLO}, headers=headers)
    assert answer.status_code == 400
    told = answer.json()["error"]
    assert words in told["message"]
    assert told["param"] == ("X-Touchstone-Run" if budget == "1" else "X-Touchstone-Budget-USD")


async def test_recorded_runs_are_listed_closed_and_deleted(gateway: Running) -> None:
    run = RecordedRun(
        run_id=str(UUID(int=1)), name="support", owner="ann", calls=3, failed=1, models=["m@local"], cost_usd=0.5
    )
    run.opened_at.FromSeconds(1_790_000_000)
    run.last_at.FromSeconds(1_790_000_060)
    spec = job_pb2.JobSpec(endpoint="baselines", model="majority", suite=job_pb2.SuiteWork(suite="glue"))
    closed = results_service_pb2.CloseRecordedRunResponse(run=run, dataset_id="ds_1", specs=[spec], request_id="1")
    gateway.world.recorded["support"] = closed
    (one,) = (await gateway.client.get("/api/v1/benchmarking/recorded-runs")).json()["runs"]
    assert (one["name"], one["calls"], one["failed"], one["models"]) == ("support", 3, 1, ["m@local"])
    assert one["cost_usd"] == 0.5
    made = (await gateway.client.post("/api/v1/benchmarking/recorded-runs/support/close")).json()
    assert (made["dataset_id"], made["job_ids"]) == ("ds_1", list(gateway.world.jobs))
    again = (await gateway.client.post("/api/v1/benchmarking/recorded-runs/support/close")).json()
    assert again["job_ids"] == made["job_ids"]
    assert (await gateway.client.delete("/api/v1/benchmarking/recorded-runs/support")).json()["deleted"] is True
    missing = await gateway.client.post("/api/v1/benchmarking/recorded-runs/other/close")
    assert missing.status_code == 404
