"""/admin/benchmarks: models over uploaded rows, watched, read, scored again."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from services.gateway.reads import jobs
from tests.gateway import fake_datasets
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import BASE, TIME
from touchstone.v1 import dataset_pb2, job_pb2, metric_pb2, results_service_pb2

OPTIONS = dataset_pb2.DatasetOptions(name="batch_5k.jsonl")


def dataset(gateway: Running, rows: int = 50, prompt: str = "2+2?") -> str:
    line = json.dumps({"prompt": prompt, "reference": 4, "metadata": {"name": "Ada"}}).encode() + b"\n"
    return fake_datasets.add(gateway.world, OPTIONS, line * rows).dataset_id


async def call(gateway: Running, method: str, path: str, status: int = 200, body: Any = None) -> Any:
    answer = await gateway.client.request(method, f"/admin/benchmarks{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def started(gateway: Running, **more: Any) -> Any:
    body = {"model_id": "mistral:7b", "dataset_id": more.pop("dataset_id", None) or dataset(gateway)} | more
    return await call(gateway, "POST", "/run", body=body)


def job_of(gateway: Running, benchmark: Any) -> job_pb2.Job:
    return gateway.world.jobs[benchmark["job_id"]]


async def finished(gateway: Running, **more: Any) -> Any:
    made = await started(gateway, **more)
    gateway.world.start(made["job_id"], ago_s=100)
    gateway.world.finish(made["job_id"])
    return made


async def test_a_run_starts_with_the_documents_two_fields(gateway: Running) -> None:
    made = await started(gateway)
    assert set(made) >= {"benchmark_id", "status", "started_at"}
    assert made["benchmark_id"] == f"bm_{uuid.UUID(made['job_id']).hex}"
    assert TIME.fullmatch(made["started_at"])
    job = job_of(gateway, made)
    assert (job.spec.endpoint, job.spec.model, job.spec.dataset.name) == ("ollama", "mistral:7b", "batch_5k.jsonl")
    assert (job.spec.priority, made["status"], made["priority"]) == (job_pb2.PRIORITY_NORMAL, "pending", "normal")


async def test_everything_asked_reaches_the_scheduler(gateway: Running) -> None:
    made = await started(
        gateway,
        model_id="gemini-2.5-flash",
        provider="gemini",
        parameters={"temperature": 0.2, "num_predict": 64},
        custom_config={"min_p": 0.1},
        limit=7,
        seed=3,
        scoring={"scorer": "choice", "choices": ["yes", "no"]},
        budget_usd=1.5,
        project_id=9,
        labels={"ticket": "A-1"},
        stream=True,
        priority="low",
        webhook_url="https://hooks.example/x",
        provider_batch=True,
    )
    asked = job_of(gateway, made).spec
    assert (asked.sampling.temperature, asked.sampling.max_tokens, asked.sampling.extra_json) == (
        0.2,
        64,
        '{"min_p":0.1}',
    )
    assert (asked.dataset.limit, asked.dataset.seed, asked.dataset.scoring.scorer) == (7, 3, "choice")
    assert list(asked.dataset.scoring.choices) == ["yes", "no"]
    assert (asked.budget_usd, asked.project_id, dict(asked.labels)) == (1.5, 9, {"ticket": "A-1"})
    assert (asked.stream, asked.priority, asked.provider_batch) == (True, job_pb2.PRIORITY_LOW, True)
    assert asked.webhook_url == "https://hooks.example/x"
    assert made["parameters"] == {"temperature": 0.2, "num_predict": 64, "custom_config": {"min_p": 0.1}}
    assert (made["limit"], made["labels"], made["scoring"]["choices"]) == (7, {"ticket": "A-1"}, ["yes", "no"])
    reused = await started(gateway, reuse={"any_job": True})
    assert job_of(gateway, reused).spec.reuse.any_job


async def test_a_model_is_found_at_the_only_endpoint_that_lists_it(gateway: Running) -> None:
    dataset_id = dataset(gateway)
    for model, endpoint, name in [
        ("mistral:7b", "ollama", "mistral:7b"),
        ("majority@baselines", "baselines", "majority"),
        ("llama3.3:70b@vllm-a", "vllm-a", "llama3.3:70b"),
        ("mistral:7b@ollama", "ollama", "mistral:7b"),
    ]:
        made = await started(gateway, model_id=model, dataset_id=dataset_id, request_id=uuid.uuid4().hex)
        assert (made["provider"], made["model_id"]) == (endpoint, name)
        await call(gateway, "POST", f"/{made['benchmark_id']}/cancel")
    both = await call(gateway, "POST", "/run", 400, {"model_id": "llama3.3:70b", "dataset_id": dataset_id})
    assert both["detail"].startswith("Several endpoints have model 'llama3.3:70b': ollama, vllm-a. Name one of them as")
    for body in ({"model_id": "mistral:8b"}, {"model_id": "mistral:8b", "provider": "ollama"}, {"model_id": "x@y"}):
        unknown = await call(gateway, "POST", "/run", 404, body | {"dataset_id": dataset_id})
        assert unknown["detail"].startswith("Model '")
        assert "mistral:7b" in unknown["detail"] or body["model_id"] == "x@y"
    wrong = await call(gateway, "POST", "/run", 400, {"model_id": "m", "provider": "nope", "dataset_id": dataset_id})
    assert wrong["detail"].startswith("Unknown provider 'nope'.")


async def test_several_models_make_a_run_each_or_none(gateway: Running) -> None:
    dataset_id = dataset(gateway)
    names = ["mistral:7b", "majority@baselines", "gemma3:4b"]
    body = {"model_ids": names, "dataset_id": dataset_id, "request_id": "same"}
    made = await call(gateway, "POST", "/run", body=body)
    assert [one["model_id"] for one in made["benchmarks"]] == ["mistral:7b", "majority", "gemma3:4b"]
    assert list(made) == ["benchmarks"]
    again = await call(gateway, "POST", "/run", body=body)
    assert [one["job_id"] for one in again["benchmarks"]] == [one["job_id"] for one in made["benchmarks"]]
    for _ in range(6):
        await started(gateway, dataset_id=dataset_id)
    before = len(gateway.world.jobs)
    full = await call(gateway, "POST", "/run", 429, body | {"request_id": "other"})
    assert full["detail"] == "Queue is full. Please try again later."
    assert full["retry_after"] == 300
    await call(gateway, "POST", "/run", 404, {"model_ids": ["mistral:7b", "nope"], "dataset_id": dataset_id})
    assert len(gateway.world.jobs) == before


async def test_wrong_bodies_are_422_by_field(gateway: Running) -> None:
    body = {"model_id": "mistral:7b", "dataset_id": dataset(gateway)}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model_id": None}, "Give model_id, or model_ids for several."),
        ({"model_ids": ["a"]}, "Give model_id, or model_ids for several."),
        ({"model_id": None, "model_ids": ["mistral:7b", "mistral:7b@ollama"]}, "'mistral:7b@ollama' is given twice"),
        ({"model_id": None, "model_ids": []}, "model_ids must hold 1 to 20 entries."),
        ({"scorer": "json", "scoring": {"scorer": "json"}}, "Give scorer, or scoring with its options, not both."),
        ({"scorer": "a judge"}, "'a judge' is not a valid scorer. Use one of: exact_match, contains"),
        ({"scoring": {"fields": "a"}}, "scoring.fields must be a list."),
        ({"scoring": {"answer_pattern": "("}}, "scoring.answer_pattern is not a valid RE2 pattern (missing ): ()."),
        ({"scoring": {"answer_pattern": "a" * 1001}}, "scoring.answer_pattern has 1,001 characters"),
        ({"further_scorers": ["json"]}, "further_scorers[0] must be an object."),
        ({"further_scorers": [{"tolerance": -1}]}, "further_scorers[0].tolerance must be between"),
        ({"further_scorers": [{}] * 5}, "further_scorers must hold 0 to 4 entries."),
        ({"budget_usd": 0}, "budget_usd must be above 0 and at most"),
        ({"limit": 0}, "limit must be between 1"),
        ({"labels": {"a": 1}}, "labels.a must be a string."),
        ({"labels": {str(n): "x" for n in range(17)}}, "labels has 17 entries; at most 16 are allowed."),
        ({"labels": {"x" * 65: "x"}}, "labels: a name has 65 characters; at most 64 are allowed."),
        ({"dataset_id": None}, "dataset_id is required."),
        ({"nope": 1}, "nope is not known."),
    ]
    for changed, words in wrong:
        refused = await call(gateway, "POST", "/run", 422, body | changed)
        assert refused["detail"].startswith(words), refused
    missing = await call(gateway, "POST", "/run", 404, body | {"dataset_id": "ds_" + "f" * 32})
    assert "ds_" + "f" * 32 in missing["detail"]
    assert gateway.world.jobs == {}


DOCUMENTED = {
    *("benchmark_id", "model_id", "model_name", "dataset_id", "dataset_name", "status", "progress", "completed"),
    *("total", "throughput", "eta_seconds", "started_at"),
}


async def test_a_throughput_of_tokens_that_nobody_tells_is_null(gateway: Running) -> None:
    made = await started(gateway, model_id="gemini-2.5-flash")
    gateway.world.start(made["job_id"])
    gateway.world.advance(made["job_id"], 49).progress.output_untold = 49
    (row,) = (await call(gateway, "GET", ""))["benchmarks"]
    assert (row["throughput"], row["items_per_second"]) == (None, 3.94)


async def test_the_list_has_every_documented_field_with_live_figures(gateway: Running) -> None:
    made = await started(gateway, model_id="gemini-2.5-flash")
    gateway.world.add(spec("qwen2.5:7b", "glue"), "local")
    gateway.world.start(made["job_id"])
    job = gateway.world.advance(made["job_id"], 49)
    job.progress.cost_usd = 0.25
    got = await call(gateway, "GET", "")
    (row,) = got["benchmarks"]
    assert set(row) >= DOCUMENTED
    assert (row["status"], row["progress"], row["completed"], row["total"]) == ("running", 98, 49, 50)
    assert (row["throughput"], row["items_per_second"], row["cost_usd"]) == (47.3, 3.94, 0.25)
    assert (row["eta_low_seconds"], row["eta_seconds"], row["eta_high_seconds"]) == (0, 0, 0)
    assert (row["dataset_name"], row["total_time_seconds"]) == ("batch_5k.jsonl", None)
    gateway.world.finish(made["job_id"])
    (done,) = (await call(gateway, "GET", ""))["benchmarks"]
    assert (done["status"], done["progress"], done["eta_seconds"]) == ("completed", 100, 0)
    assert done["total_time_seconds"] >= 0
    assert TIME.fullmatch(done["completed_at"])


async def test_live_figures_come_from_the_scheduler_where_results_has_old_ones(gateway: Running) -> None:
    made = await started(gateway)
    stale = job_pb2.Job()
    stale.CopyFrom(job_of(gateway, made))
    gateway.world.start(made["job_id"])
    gateway.world.advance(made["job_id"], 20)
    live = gateway.world.jobs[made["job_id"]]
    gateway.world.stale[made["job_id"]] = stale
    assert (await call(gateway, "GET", ""))["benchmarks"][0]["completed"] == live.progress.items_done == 20
    await gateway.stop_service("scheduler")
    assert (await call(gateway, "GET", ""))["benchmarks"][0]["status"] in ("pending", "running")


async def test_the_list_is_filtered_and_paged(gateway: Running) -> None:
    first, second = dataset(gateway), dataset(gateway)
    for number, dataset_id in enumerate((first, first, second)):
        made = await started(gateway, dataset_id=dataset_id, project_id=number)
        gateway.world.jobs[made["job_id"]].created_at.seconds -= 100 * number
    got = await call(gateway, "GET", "?page_size=2")
    assert (len(got["benchmarks"]), got["total"], bool(got["next_page_token"])) == (2, 3, True)
    rest = await call(gateway, "GET", f"?page_size=2&page_token={got['next_page_token']}")
    assert (len(rest["benchmarks"]), rest["next_page_token"]) == (1, "")
    for query, count in [
        (f"dataset_id={first}", 2),
        ("project_id=2", 1),
        ("status=pending", 3),
        ("status=completed", 0),
        ("model=mistral:7b", 3),
        ("model=mistral", 0),
        ("query=MISTRAL", 3),
        ("owner=nobody", 0),
    ]:
        assert (await call(gateway, "GET", f"?{query}"))["total"] == count, query
    assert all(one.datasets for one in gateway.world.asked)


async def test_results_have_the_documented_shape_and_every_row_once(gateway: Running) -> None:
    made = await finished(gateway, dataset_id=dataset(gateway, 120))
    answer = await gateway.client.get(f"/admin/benchmarks/{made['benchmark_id']}/results")
    assert answer.headers["content-type"] == "application/json"
    got = answer.json()
    assert set(got) == {
        *("benchmark_id", "model_name", "dataset_name", "status", "total_time_seconds", "throughput", "results")
    }
    assert (got["benchmark_id"], got["status"]) == (made["benchmark_id"], "completed")
    assert got["total_time_seconds"] == pytest.approx(100, abs=3)
    assert [row["custom_id"] for row in got["results"]] == [f"row-{number}" for number in range(1, 121)]
    answered = [row for row in got["results"] if row["error"] is None]
    assert answered[0]["response"]["status_code"] == 200
    assert answered[0]["response"]["body"]["choices"][0]["message"]["content"].endswith("2+2?")
    failed = [row for row in got["results"] if row["error"] is not None]
    assert failed[0]["response"] is None
    assert failed[0]["error"] == {"code": "infrastructure_error", "message": "timed out after 30 s"}


async def test_pages_of_results_say_more_and_have_whole_texts(gateway: Running) -> None:
    made = await finished(gateway, dataset_id=dataset(gateway, 120, prompt="ä" * 3000))
    path = f"/{made['benchmark_id']}/results"
    got = await call(gateway, "GET", f"{path}?page_size=110")
    assert (len(got["results"]), got["total"]) == (110, 120)
    rest = await call(gateway, "GET", f"{path}?page_token={got['next_page_token']}&page_size=110")
    assert (len(rest["results"]), rest["next_page_token"]) == (10, "")
    rows = got["results"] + rest["results"]
    assert len({row["custom_id"] for row in rows}) == 120
    assert all("ä" * 3000 in row["response"]["body"]["choices"][0]["message"]["content"] for row in rows[:1])
    assert (rows[0]["metadata"], rows[0]["task"], rows[0]["item"]) == ({"name": "Ada"}, "rows", 0)
    whole = await call(gateway, "GET", path)
    assert [row["custom_id"] for row in whole["results"]] == [row["custom_id"] for row in rows]


async def test_filters_of_results_reach_the_service_in_both_forms(gateway: Running) -> None:
    made = await finished(gateway)
    query = (
        "query=dog&status=errors&metadata_field=name&metadata_value=ada&length_low=1&length_high=9&score_low=0"
        "&score_high=0.5&verdict=golden&custom_id=row-1"
    )
    listing = results_service_pb2.ListItemsRequest
    for more in ("", "&page_size=5"):
        await call(gateway, "GET", f"/{made['benchmark_id']}/results?{query}{more}")
        asked = gateway.world.asked[-1]
        chosen = asked if more else asked.items
        assert (chosen.query, chosen.filter) == ("dog", listing.FILTER_ERRORS)
        conditions = chosen.conditions
        assert (conditions.metadata_field, conditions.metadata_value, conditions.custom_id) == ("name", "ada", "row-1")
        assert (conditions.length_low, conditions.length_high) == (1, 9)
        assert (conditions.score_low, conditions.score_high, conditions.HasField("score_low")) == (0, 0.5, True)
        assert list(conditions.verdicts) == [results_service_pb2.Annotation.VERDICT_GOLDEN]
    await call(gateway, "GET", f"/{made['benchmark_id']}/results?page_size=5")
    assert not gateway.world.asked[-1].HasField("conditions")


async def test_one_run_is_shown_with_its_metrics(gateway: Running) -> None:
    made = await finished(gateway)
    shown = await call(gateway, "GET", f"/{made['benchmark_id']}")
    assert shown["score"]["mean"] is not None
    assert set(shown["metrics"]) == {"exact_match"}
    assert (await call(gateway, "GET", f"/{made['job_id']}"))["benchmark_id"] == made["benchmark_id"]
    job = (await gateway.client.get(f"{BASE}/results/{made['benchmark_id']}")).json()
    assert (job["job_id"], job["dataset"]["dataset_id"]) == (made["job_id"], made["dataset_id"])
    suite = gateway.world.add(spec("qwen2.5:7b", "glue"), "local")
    for path in ("", "/results", "/estimate"):
        wrong = await call(gateway, "GET", f"/{jobs.benchmark_id(suite.job_id)}{path}", 404)
        assert wrong["detail"] == f"Job {suite.job_id} runs glue, not a dataset. Read it as a job."
    unknown = await call(gateway, "GET", f"/bm_{uuid.uuid4().hex}", 404)
    assert unknown["detail"].startswith("Benchmark job ")


async def test_a_run_is_scored_again_in_another_way_without_calls(gateway: Running) -> None:
    made = await finished(
        gateway, scoring={"scorer": "choice", "choices": ["a", "b"]}, webhook_url="https://h.example/"
    )
    for body, scorer, choices in [
        ({}, "choice", ["a", "b"]),
        ({"scorer": "contains"}, "contains", []),
        ({"scoring": {"scorer": "numeric", "tolerance": 0.1}, "priority": "low"}, "numeric", []),
    ]:
        again = await call(gateway, "POST", f"/{made['benchmark_id']}/rescore", body=body)
        assert (again["scoring"]["scorer"], again["scoring"]["choices"]) == (scorer, choices)
        assert again["source_benchmark"] == made["benchmark_id"]
        asked = job_of(gateway, again).spec
        assert (asked.reuse.job_id, list(asked.reuse.rerun), asked.webhook_url) == (made["job_id"], [], "")
        # Only admins may ask for more than is usual of such a job.
        usual = job_pb2.PRIORITY_NORMAL
        assert asked.priority == (job_pb2.PRIORITY_LOW if scorer == "numeric" else usual)
    further = [{"scorer": "contains"}, {"scorer": "numeric", "tolerance": 0.1}]
    more = await call(gateway, "POST", f"/{made['benchmark_id']}/rescore", body={"further_scorers": further})
    assert [(one["scorer"], one["tolerance"]) for one in more["further_scorers"]] == [("contains", 0), ("numeric", 0.1)]
    assert (more["scoring"]["scorer"], made["further_scorers"]) == ("choice", [])
    less = await call(gateway, "POST", f"/{more['benchmark_id']}/rescore", 409, {"further_scorers": []})
    assert "not finished" in less["detail"]
    plain = await gateway.client.post(f"{BASE}/rescore/{made['benchmark_id']}")
    assert (plain.status_code, plain.json()["source_job"]) == (200, made["job_id"])
    assert job_of(gateway, plain.json()).spec.priority == usual


async def test_a_run_is_cancelled_and_retried(gateway: Running) -> None:
    made = await started(gateway)
    path = f"/{made['benchmark_id']}"
    assert (await call(gateway, "POST", f"{path}/cancel"))["status"] == "cancelled"
    assert (await call(gateway, "POST", f"{path}/cancel", 409))["detail"]
    retried = await call(gateway, "POST", f"{path}/retry")
    assert (retried["status"], retried["attempt"]) == ("pending", 2)
    assert (await call(gateway, "POST", f"{path}/retry", 409))["detail"]


async def test_a_pilot_is_a_small_run_that_an_estimate_is_made_of(gateway: Running) -> None:
    body = {"model_id": "mistral:7b", "dataset_id": dataset(gateway)}
    made = await call(gateway, "POST", "/estimate", body=body | {"pilot": 20, "limit": 40})
    assert (made["items"], made["benchmark"]["limit"]) == (40, 20)
    assert made["benchmark"]["labels"] == {"pilot": "40"}
    early = await call(gateway, "GET", f"/{made['pilot']}/estimate", 409)
    assert early["detail"].endswith("an estimate takes 5.")
    gateway.world.start(made["benchmark"]["job_id"])
    gateway.world.finish(made["benchmark"]["job_id"])
    got = await call(gateway, "GET", f"/{made['pilot']}/estimate?items=40&concurrency=3")
    assert (got["items"], got["pilot_items"], got["cost_usd"]) == (40, 20, None)
    assert got["duration_seconds"] == {"value": 10, "low": 8, "high": 13}
    assert gateway.world.asked[-1].concurrency == 3
    usual = await call(gateway, "POST", "/estimate", body=body)
    assert (usual["items"], usual["benchmark"]["limit"]) == (None, 30)
    assert usual["benchmark"]["labels"] == {"pilot": "0"}
    several = await call(
        gateway, "POST", "/estimate", body={"dataset_id": body["dataset_id"], "model_ids": ["phi4-mini"]}
    )
    assert [one["benchmark"]["model_id"] for one in several["pilots"]] == ["phi4-mini"]


async def test_a_benchmarks_id_is_a_jobs_wherever_one_goes(gateway: Running) -> None:
    made, other = await finished(gateway), await finished(gateway)
    name, beside = made["benchmark_id"], other["benchmark_id"]
    for path in (f"results/{name}", f"results/{name}/items?baseline={beside}", f"results/{name}/logs"):
        assert (await gateway.client.get(f"{BASE}/{path}")).status_code == 200, path
    marked = {"mark": "superseded", "reason": "x", "superseded_by": beside}
    assert (await gateway.client.post(f"{BASE}/results/{name}/mark", json=marked)).status_code == 200
    assert gateway.world.results[made["job_id"]].superseded_by == other["job_id"]
    await gateway.client.post(f"{BASE}/compare", json={"model_ids": [name, beside]})
    compared = gateway.world.asked[-1]
    assert (list(compared.subjects), compared.suite) == ([made["job_id"], other["job_id"]], "")


async def test_boards_over_a_dataset_are_asked_by_its_id(gateway: Running) -> None:
    dataset_id = dataset(gateway)
    for path in ("leaderboard", "trends", "history", "results", "overview"):
        answer = await gateway.client.get(f"{BASE}/{path}", params={"suite": dataset_id})
        assert answer.status_code == 200, answer.text
    item_set = results_service_pb2.ItemSet(item_set="a" * 8, items=5, scoring="exact match")
    gateway.world.item_sets = [item_set]
    gateway.world.boards[dataset_id] = [metric_pb2.LeaderboardEntry(rank=1, model="m", job_id=str(uuid.uuid4()))]
    board = (await gateway.client.get(f"{BASE}/leaderboard?suite={dataset_id}&metric=f1")).json()
    assert board["item_sets"][0]["scoring"] == "exact match"
