"""Modes, shots, repeats and stored answers through REST: what reaches the scheduler, what results tell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway import fake_data
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import endpoint_pb2, item_result_pb2, job_pb2, metric_pb2, suite_pb2

BASE = "/api/v1/benchmarking"
CONFIG = {"provider": "ollama", "model": "mistral:latest"}


def finished(gateway: Running) -> job_pb2.Job:
    """A completed run of qwen2.5:7b on demo."""
    world = gateway.world
    job = world.start(world.add(spec(suite="demo"), "local").job_id, ago_s=100)
    return world.finish(job.job_id)


async def test_how_to_ask_reaches_the_scheduler(gateway: Running) -> None:
    sent = {
        "project_id": 1,
        "config": CONFIG,
        "shots": 5,
        "repeats": 3,
        "seed": -7,
        "stream": True,
        "reuse": {"any_job": True, "without_digest": True},
    }
    assert (await gateway.client.post(f"{BASE}/run", json=sent)).status_code == 200
    got = gateway.world.specs[0]
    assert (got.mode, got.stream) == (suite_pb2.MODE_GENERATE, True)
    assert got.reuse == job_pb2.Reuse(any_job=True, without_digest=True)
    assert (got.suite.shots, got.suite.repeats, got.suite.seed) == (5, 3, -7)


async def test_without_them_the_job_is_the_documents(gateway: Running) -> None:
    assert (await gateway.client.post(f"{BASE}/run", json={"project_id": 1, "config": CONFIG})).status_code == 200
    got = gateway.world.specs[0]
    assert got.mode == suite_pb2.MODE_GENERATE
    assert not got.HasField("reuse")
    assert got.suite == job_pb2.SuiteWork(suite="glue")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"mode": "chat"}, "chat is not a valid mode. Use one of: generate, loglikelihood."),
        ({"shots": -1}, "shots must be between 0 and 100."),
        ({"repeats": 65}, "repeats must be between 0 and 64."),
        ({"repeats": 1.5}, "repeats must be a whole number."),
        ({"seed": "1"}, "seed must be a whole number."),
        ({"stream": 1}, "stream must be true or false."),
        ({"reuse": True}, "reuse must be an object."),
        ({"reuse": {"any_job": "yes"}}, "reuse.any_job must be true or false."),
        ({"reuse": {"job_id": "x"}}, "reuse.job_id is not known. Allowed: any_job, without_digest."),
    ],
)
async def test_wrong_ones_are_refused_with_what_is_wrong(gateway: Running, field: dict[str, Any], words: str) -> None:
    answer = await gateway.client.post(f"{BASE}/run", json={"project_id": 1, "config": CONFIG} | field)
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
    assert gateway.world.specs == []


async def test_an_open_suites_task_is_named_in_the_suite(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    suites = [*fake_data.suites(), suite_pb2.Suite(suite="lm_eval", title="lm_eval", open=True)]
    monkeypatch.setattr(fake_data, "suites", lambda *_: suites)
    sent = {"project_id": 1, "config": CONFIG, "suite": "lm_eval:hellaswag"}
    answer = await gateway.client.post(f"{BASE}/run", json=sent)
    assert answer.json()["message"] == "Benchmarking started for suite: lm_eval:hellaswag"
    assert gateway.world.specs[0].suite.suite == "lm_eval:hellaswag"
    named = await gateway.client.post(f"{BASE}/run", json=sent | {"tasks": ["hellaswag"]})
    assert (named.status_code, "as lm_eval:<task>" in named.json()["detail"]) == (422, True)
    closed = await gateway.client.post(f"{BASE}/run", json=sent | {"suite": "glue:cola"})
    assert (closed.status_code, "Invalid benchmark suite." in closed.json()["detail"]) == (400, True)


async def test_a_rescore_is_a_copy_that_takes_the_jobs_answers(gateway: Running) -> None:
    source = finished(gateway)
    answer = await gateway.client.post(f"{BASE}/rescore/{source.job_id}")
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert set(made) == {"job_id", "message", "estimated_duration", "source_job"}
    assert (made["source_job"], made["estimated_duration"]) == (source.job_id, "under 1 minute")
    expected = job_pb2.JobSpec()
    expected.CopyFrom(source.spec)
    expected.reuse.job_id = source.job_id
    expected.priority = job_pb2.PRIORITY_UNSPECIFIED  # the scheduler knows what is usual of such a job
    assert gateway.world.specs[-1] == expected


async def test_a_rerun_may_have_a_budget_of_its_own(gateway: Running) -> None:
    source = finished(gateway)
    gateway.world.results[source.job_id].outcomes.unparsed = 1
    source.spec.budget_usd = 2.0
    for sent, budget in (({}, 2.0), ({"budget_usd": 7.5}, 7.5)):
        answer = await gateway.client.post(f"{BASE}/rerun/{source.job_id}", json={"outcomes": ["unparsed"], **sent})
        assert answer.status_code == 200, answer.text
        assert gateway.world.specs[-1].budget_usd == budget


@pytest.mark.parametrize("text", ["nan", "-1", "0", "1e999", "much", "5,5", "1,25.50", "1_000", "5$", "１２"])
async def test_a_page_refuses_a_budget_that_is_no_amount(gateway: Running, text: str) -> None:
    form = {"outcome": "unparsed", "budget_usd": text}
    job = finished(gateway)
    before = len(gateway.world.specs)
    answer = await gateway.client.post(f"/jobs/{job.job_id}/rerun", data=form)
    problem = "above 0 and at most 1,000,000,000" if text == "0" else "a number"
    sentence = f"Budget must be {problem}. Write it as 5.50 or 1,250."
    assert (answer.status_code, sentence in answer.text) == (400, True), answer.text
    assert len(gateway.world.specs) == before


async def test_a_page_starts_a_rerun_with_a_budget(gateway: Running) -> None:
    form = {"outcome": "unparsed", "budget_usd": "$1,250.50"}
    source = finished(gateway)
    gateway.world.results[source.job_id].outcomes.unparsed = 1
    await gateway.client.post(f"/jobs/{source.job_id}/rerun", data=form)
    assert gateway.world.specs[-1].budget_usd == 1250.5


async def test_a_rerun_takes_the_limit_by_the_name_that_refusals_give_it(gateway: Running) -> None:
    source = finished(gateway)
    gateway.world.results[source.job_id].outcomes.unparsed = 1
    source.spec.sampling.ClearField("max_tokens")
    sent: dict[str, Any] = {"outcomes": ["unparsed"], "budget_usd": 1.0}
    refused = await gateway.client.post(f"{BASE}/rerun/{source.job_id}", json=sent)
    assert refused.json()["detail"].endswith("Set max_tokens.")
    both = await gateway.client.post(
        f"{BASE}/rerun/{source.job_id}", json=sent | {"max_tokens": 512, "num_predict": 512}
    )
    assert (both.status_code, "not both" in both.json()["detail"]) == (422, True)
    answer = await gateway.client.post(f"{BASE}/rerun/{source.job_id}", json=sent | {"max_tokens": 512})
    assert answer.status_code == 200, answer.text
    assert gateway.world.specs[-1].sampling.max_tokens == 512


async def test_lost_calls_are_told_by_rest_and_on_the_page(gateway: Running) -> None:
    job = finished(gateway)
    job.spec.budget_usd = job.progress.cost_usd = 1.0
    job.progress.lost_calls, job.progress.lost_usd = 3, 0.03
    body = (await gateway.client.get(f"{BASE}/results/{job.job_id}")).json()
    assert (body["progress"]["lost_calls"], body["progress"]["lost_usd"]) == (3, 0.03)
    page = (await gateway.client.get(f"/jobs/{job.job_id}")).text
    assert "up to 3 calls, up to $0.030" in page
    job.spec.ClearField("budget_usd")
    job.progress.ClearField("cost_usd")
    page = (await gateway.client.get(f"/jobs/{job.job_id}")).text
    assert "up to 3 calls" not in page, "calls without a price are nobody's cost"


async def test_a_rerun_names_outcomes_and_changes_limits_only(gateway: Running) -> None:
    source = finished(gateway)
    gateway.world.results[source.job_id].outcomes.output_truncated = 1
    sent = {
        "outcomes": ["output_truncated", "infrastructure_error"],
        "num_predict": 2048,
        "num_ctx": 8192,
        "priority": "low",
    }
    answer = await gateway.client.post(f"{BASE}/rerun/{source.job_id}", json=sent)
    assert answer.status_code == 200, answer.text
    got = gateway.world.specs[-1]
    assert list(got.reuse.rerun) == [
        item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
        item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
    ]
    expected = job_pb2.JobSpec()
    expected.CopyFrom(source.spec)
    expected.reuse.CopyFrom(got.reuse)
    expected.sampling.max_tokens, expected.sampling.context_length = 2048, 8192
    expected.priority = job_pb2.PRIORITY_LOW
    assert got == expected


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "outcomes is required."),
        ({"outcomes": []}, "outcomes must hold 1 to 5 entries."),
        ({"outcomes": ["answered"]}, "answered is not a valid outcomes[0]. Use one of: unparsed, output_truncated"),
        ({"outcomes": ["unparsed"], "num_predict": 0}, "num_predict must be between 1"),
        ({"outcomes": ["unparsed"], "budget_usd": 0}, "budget_usd must be above 0"),
        ({"outcomes": ["unparsed"], "budget_usd": "5"}, "budget_usd must be a number"),
        ({"outcomes": ["unparsed"], "max_token": 9}, "max_token is not known. Allowed: outcomes, num_predict"),
        ({"outcomes": ["unparsed"], "temperature": 1}, "temperature is not known."),
    ],
)
async def test_a_wrong_rerun_is_refused(gateway: Running, sent: dict[str, Any], words: str) -> None:
    answer = await gateway.client.post(f"{BASE}/rerun/{finished(gateway).job_id}", json=sent)
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text


@pytest.mark.parametrize("verb", ["rescore", "rerun"])
async def test_an_unknown_source_is_not_found(gateway: Running, verb: str) -> None:
    body = {"outcomes": ["unparsed"]} if verb == "rerun" else None
    unknown = "a967f363-ee96-4bac-9f52-4d169bbc4851"
    answer = await gateway.client.post(f"{BASE}/{verb}/{unknown}", json=body)
    assert (answer.status_code, answer.json()["detail"]) == (404, f"Benchmark job {unknown} not found")


async def test_results_tell_how_was_asked_and_what_the_score_rests_on(gateway: Running) -> None:
    job = finished(gateway)
    job.spec.suite.repeats, job.spec.suite.shots, job.spec.stream = 3, 5, True
    job.spec.reuse.any_job = job.spec.reuse.without_digest = True
    job.receipt.ClearField("model_digest")
    job.receipt.MergeFrom(
        job_pb2.Receipt(
            parameters='{"seed":1,"temperature":0.7}',
            template="endpoint",
            capabilities=endpoint_pb2.Capabilities(greedy=True, stop=False),
            prices=endpoint_pb2.Prices(
                input=2.5, output=15, batch_share=0.5, source="SOURCE_LIST", as_of="2026-10-03", table_digest="0fab"
            ),
        )
    )
    result = gateway.world.results[job.job_id]
    result.MergeFrom(
        metric_pb2.JobResult(
            items_reused=350,
            served_models=["qwen2.5:7b-a", "qwen2.5:7b-b"],
            cost_usd=0.125,
            ttft_p50_ms=40,
            ttft_p95_ms=90,
            score_rule="the mean over tasks",
            reasoning_tokens=12,
            fields=[metric_pb2.FieldResult(task="rows", field="weather.city", answers=8, right=6)],
        )
    )
    average = metric_pb2.Metric(metric="accuracy", mean=0.5, n=10)
    result.averages.add(category="STEM", metric=average, rule="macro", tasks=2)
    body = (await gateway.client.get(f"{BASE}/results/{job.job_id}")).json()
    assert (body["mode"], body["shots"], body["repeats"], body["seed"], body["stream"]) == ("generate", 5, 3, 0, True)
    assert body["reuse"] == {"any_job": True, "without_digest": True}
    assert set(body["receipt"]) == {field.name for field in job_pb2.Receipt.DESCRIPTOR.fields}
    assert body["receipt"]["parameters"] == {"seed": 1, "temperature": 0.7}
    assert body["receipt"]["capabilities"] == {"greedy": True, "stop": False}
    assert body["receipt"]["source_job"] is None
    assert body["receipt"]["prices"] == {
        "input": 2.5,
        "output": 15,
        "long_prompts": None,
        "batch_share": 0.5,
        "source": "list",
        "as_of": "2026-10-03",
        "table_digest": "0fab",
    }
    assert body["data"]["sentiment"]["prompt_hash"] == "5d07aa91"
    shares = body["outcomes"]
    assert set(shares) == {field.name for field in metric_pb2.OutcomeCounts.DESCRIPTOR.fields}
    assert sum(share["share"] for share in shares.values()) == pytest.approx(1)
    stored = sum(share["items"] for share in shares.values())
    assert body["reused"] == {"items": 350, "share": 350 / stored, "without_digest": True}
    (stem,) = body["averages"]
    assert (stem["category"], stem["metric"], stem["rule"], stem["tasks"], stem["mean"]) == (
        "STEM",
        "accuracy",
        "macro",
        2,
        0.5,
    )
    assert body["fields"] == [{"task": "rows", "field": "weather.city", "answers": 8, "right": 6, "share": 0.75}]
    assert (body["cost_usd"], body["score_rule"]) == (0.125, "the mean over tasks")
    assert body["ttft_ms"] == {"p50": 40, "p95": 90}
    assert body["served_models"] == ["qwen2.5:7b-a", "qwen2.5:7b-b"]
    assert body["tokens"]["reasoning"] == 12
    assert body["tasks"]["sentiment"]["items"] == 400


async def test_what_nobody_told_is_null_and_not_zero(gateway: Running) -> None:
    job = finished(gateway)
    job.receipt.Clear()
    body = (await gateway.client.get(f"{BASE}/results/{job.job_id}")).json()
    assert (body["cost_usd"], body["ttft_ms"]) == (None, None)
    assert {value for name, value in body["receipt"].items() if name != "capabilities"} == {None}


async def test_the_estimate_of_a_large_suite_follows_the_models_pace_elsewhere(gateway: Running) -> None:
    job = gateway.world.start(gateway.world.add(spec("mistral:latest", "demo"), "local").job_id, ago_s=160)
    gateway.world.finish(job.job_id)
    sent = {"project_id": 1, "suite": "glue", "config": CONFIG}
    once = (await gateway.client.post(f"{BASE}/run", json=sent)).json()["estimated_duration"]
    assert once == "1-3 hours", "69,711 items at ten a second"
    often = (await gateway.client.post(f"{BASE}/run", json=sent | {"repeats": 64})).json()["estimated_duration"]
    assert often == "3-8 days"
