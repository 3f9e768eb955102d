"""What is refused, with which status: the same by the fakes and by the services. Sentences about values are equal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.contract.backends import Backend
from tests.contract.things import FLOOR, LINES, NOBODY, SILENT, Things, Twin

NO_DATASET = "ds_" + "0" * 32
NO_RUN = "bm_" + "0" * 32
ITEM = "items/sentiment/0"
KNOWN_HERE = re.compile(r"(?<=Supported: )[\w, ]+|(?<=Endpoints here: )[\w, -]+|(?<=Its metrics: )[\w, ]+")
Case = tuple[str, str, Any]

UNKNOWN: list[Case] = [
    ("GET", f"/results/{NOBODY}", None),
    ("GET", f"/results/{NOBODY}/events", None),
    ("GET", f"/results/{NOBODY}/items", None),
    ("GET", f"/results/{NOBODY}/{ITEM}", None),
    ("GET", f"/results/{NOBODY}/logs", None),
    ("GET", f"/results/{NOBODY}/export", None),
    ("PUT", f"/results/{NOBODY}/{ITEM}/annotation", {"verdict": "golden"}),
    ("POST", f"/results/{NOBODY}/mark", {"mark": "valid"}),
    ("POST", f"/cancel/{NOBODY}", None),
    ("DELETE", f"/jobs/{NOBODY}", None),
    ("POST", f"/retry/{NOBODY}", None),
    ("POST", f"/rescore/{NOBODY}", None),
    ("POST", f"/rerun/{NOBODY}", {"outcomes": ["refused"]}),
    ("GET", "/results/{done}/items?task=nothing", None),
    ("GET", "/results/{done}/export?kind=items&task=nothing", None),
    ("GET", "/results/{done}/items/nothing/0", None),
    ("GET", "/results/{done}/items/sentiment/99999", None),
    ("GET", f"/results/{{done}}/{ITEM}?repeat=3", None),
    ("GET", f"/results/{{done}}/items?baseline={NOBODY}", None),
    ("PUT", f"/results/{{live}}/{ITEM}/annotation", {"verdict": "golden"}),
    ("GET", f"/side-by-side?job_ids={{done}},{NOBODY}", None),
    ("POST", "/compare", {"model_ids": ["{done}", NOBODY]}),
    ("POST", "/compare", {"model_ids": ["{done}", "{live}"]}),
    ("POST", "/compare", {"model_ids": ["nobody:1", "nobody:2"], "benchmark_suite": "demo"}),
    ("PUT", "/configurations/nobody", {"name": "a"}),
    ("DELETE", f"/schedules/{NOBODY}", None),
    ("GET", f"/watches/{NOBODY}", None),
    ("POST", "/watches", {"reference": NOBODY}),
    ("DELETE", f"/webhooks/{NOBODY}", None),
    ("POST", f"/webhooks/dead/{NOBODY}/redeliver", None),
    ("GET", "/api/bench/runs/nobody", None),
    ("GET", f"/api/bench/runs/{{experiment}}?job_id={NOBODY}", None),
    ("GET", "/api/bench/leaderboard/nobody", None),
    ("GET", f"/admin/datasets/{NO_DATASET}", None),
    ("GET", f"/admin/datasets/{NO_DATASET}/rows", None),
    ("DELETE", f"/admin/datasets/{NO_DATASET}", None),
    ("GET", f"/admin/benchmarks/{NO_RUN}", None),
    ("GET", f"/admin/benchmarks/{NO_RUN}/results", None),
    ("GET", f"/admin/benchmarks/{NO_RUN}/estimate", None),
    *(("POST", f"/admin/benchmarks/{NO_RUN}/{act}", None) for act in ("rescore", "cancel", "retry")),
    ("GET", "/admin/benchmarks/{done}", None),
    ("POST", "/admin/benchmarks/run", {"model_id": "echo@baselines", "dataset_id": NO_DATASET}),
    ("POST", "/admin/benchmarks/run", {"model_id": "nobody", "dataset_id": "{unused}"}),
    ("POST", "/admin/benchmarks/estimate", {"model_id": "echo@baselines", "dataset_id": NO_DATASET}),
]


def tips(**more: Any) -> dict[str, Any]:
    """An experiment."""
    return {"name": "new", "provider": "baselines", "models": "echo", "prompts": "v1", "n_scenarios": 2} | more


IMPOSSIBLE: list[Case] = [
    ("POST", "/api/bench/run", tips(name="{experiment}", n_scenarios=3)),
    ("POST", "/cancel/{done}", None),
    ("DELETE", "/jobs/{live}", None),
    ("POST", "/retry/{done}", None),
    ("POST", "/retry/{live}", None),
    ("POST", "/rescore/{live}", None),
    ("POST", "/rerun/{live}", {"outcomes": ["refused"]}),
    ("POST", "/results/{live}/mark", {"mark": "invalidated", "reason": "wrong"}),
    ("POST", "/admin/benchmarks/{run}/cancel", None),
    ("POST", "/admin/benchmarks/{run}/retry", None),
]


def body_of(case: Case, things: Things) -> tuple[str, str, dict[str, Any]]:
    method, path, body = things.put_into(case)
    return method, path, {} if body is None else {"json": body}


def same_sentence(refused: dict[str, Any], case: Case, status: int, things: Things, twin: Twin) -> None:
    """Raises AssertionError unless the fakes refuse the case in the same words. Lists of known suites, endpoints and
    metrics may differ."""
    assert refused["detail"]
    if twin:
        fake, others = twin
        method, path, options = body_of(case, others)
        told = fake.call(method, path, status, **options)["detail"]
        assert KNOWN_HERE.sub("", others.taken_from(told)) == KNOWN_HERE.sub("", things.taken_from(refused["detail"]))


@pytest.mark.parametrize("case", UNKNOWN, ids=lambda case: f"{case[0]} {case[1]}")
def test_what_is_not_there_is_404(backend: Backend, things: Things, twin: Twin, case: Case) -> None:
    method, path, options = body_of(case, things)
    refused = backend.call(method, path, 404, **options)
    assert set(refused) == {"detail"}
    same_sentence(refused, case, 404, things, twin)


@pytest.mark.parametrize("case", IMPOSSIBLE, ids=lambda case: f"{case[0]} {case[1]}")
def test_what_the_state_forbids_is_409(backend: Backend, things: Things, twin: Twin, case: Case) -> None:
    method, path, options = body_of(case, things)
    same_sentence(backend.call(method, path, 409, **options), case, 409, things, twin)


def job(config: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"project_id": 1, "suite": "demo", "limit": 5, "config": FLOOR | (config or {})} | more


def schedule(change: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"cron": "0 3 * * 1", "job": {"project_id": 1, "suite": "demo", "config": FLOOR} | (change or {})} | more


def over(**more: Any) -> dict[str, Any]:
    return {"model_id": "echo@baselines", "dataset_id": "{unused}"} | more


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    *(("/run", job(limit=value), 422, "limit") for value in (0, -1, 2**31, 1.5, "x", True)),
    *(("/run", job(shots=value), 422, "shots") for value in (-1, 101)),
    ("/run", job(shots=33), 400, "shots"),
    *(("/run", job(repeats=value), 422, "repeats") for value in (-1, 65)),
    ("/run", job(seed=2**63), 422, "seed"),
    *(("/run", job({"params": {"temperature": value}}), 422, "temperature") for value in (-1, 3)),
    ("/run", job({"params": {"top_p": 2}}), 422, "top_p"),
    ("/run", job({"params": {"top_k": 101}}), 422, "top_k"),
    ("/run", job({"params": {"repeat_penalty": 3}}), 422, "repeat_penalty"),
    *(("/run", job({"params": {"num_predict": value}}), 422, "num_predict") for value in (0, 1_000_001)),
    ("/run", job({"params": {"num_ctx": 0}}), 422, "num_ctx"),
    ("/run", job({"params": {"num_predict": 5, "max_tokens": 5}}), 422, "max_tokens"),
    ("/run", job({"model": "m" * 301}), 422, "model"),
    ("/run", job({"custom_config": {"x": "y" * 45_000}}), 400, "custom_config"),
    ("/run", job({"custom_config": {"logprobs": 5}}), 422, "logprobs"),
    *(("/run", job(budget_usd=value), 422, "budget_usd") for value in (0, 1e10)),
    ("/run", job(budget_usd=5), 400, "budget_usd"),
    ("/run", job(SILENT | {"params": {"max_tokens": 5}}, budget_usd=5), 400, "budget_usd"),
    ("/run", job(SILENT, reuse={"any_job": True}), 400, "reuse.any_job"),
    ("/run", job(labels={str(number): "x" for number in range(17)}), 422, "labels"),
    ("/run", job(labels={"x": "a\u2028b"}), 400, "x"),
    ("/run", job(mode="loglikelihood", reading="strict"), 400, "reading"),
    ("/run", job(SILENT | {"params": {"temperature": 1}}, mode="loglikelihood"), 400, "temperature"),
    ("/run", job(tasks=["nothing"]), 422, "nothing"),
    ("/run", job(request_id="a b"), 400, "request_id"),
    ("/run", job(webhook_url="http://10.0.0.1/"), 400, "webhook_url"),
    *(
        ("/schedules", schedule(cron=cron), 400, "cron")
        for cron in ("x", "* * * * * *", "61 * * * *", "0 0 31 2 *", "*/0 * * * *", "@daily")
    ),
    ("/schedules", schedule(time_zone="Mars/Base"), 400, "zone"),
    ("/schedules", schedule(label="x" * 81), 422, "label"),
    ("/schedules", schedule(label="a\tb"), 400, "label"),
    ("/schedules", schedule(request_id="a b"), 400, "request_id"),
    ("/schedules", schedule({"shots": 33}), 400, "shots"),
    ("/schedules", schedule({"limit": 0}), 422, "job.limit"),
    *(
        ("/webhooks", {"url": url}, 400, "url")
        for url in ("http://10.0.0.1/", "http://a:b@example.com/", "http://example.com/#x", "http://example.com:0/")
    ),
    ("/webhooks", {"url": "ftp://example.com/"}, 422, "url"),
    ("/webhooks", {"url": "https://hooks.example/", "project_id": -1}, 422, "project_id"),
    ("/admin/benchmarks/run", over(limit=0), 422, "limit"),
    ("/admin/benchmarks/run", over(scoring={"answer_match": "first"}), 400, "answer_match"),
    ("/admin/benchmarks/run", over(scoring={"tolerance": -1}), 422, "scoring.tolerance"),
    ("/admin/benchmarks/run", over(scorer="regex", reading="strict"), 400, "reading"),
    ("/admin/benchmarks/run", over(provider_batch=True), 400, "provider_batch"),
    ("/admin/benchmarks/run", over(budget_usd=1), 400, "budget_usd"),
    *(("/admin/benchmarks/estimate", over(pilot=value), 422, "pilot") for value in (4, 1001)),
    ("/api/bench/run", tips(models=[{"provider": "nowhere", "model": "m"}]), 422, "models[0]"),
    ("/api/bench/run", tips(prompts="v1,v9"), 422, "prompts[1]"),
    ("/api/bench/run", tips(budget_usd=5), 422, "budget_usd"),
    ("/api/bench/run", tips(models="m:7b"), 422, "max_model_b"),
    ("/compare", {"model_ids": ["{done}", "{other}"], "margin": 0}, 422, "margin"),
    ("/compare", {"model_ids": ["{done}", "{other}"], "alpha": 0.6}, 422, "alpha"),
]


@pytest.mark.parametrize(("path", "body", "status", "named"), WRONG)
def test_a_wrong_value_is_refused_by_its_name(
    backend: Backend, things: Things, twin: Twin, path: str, body: dict[str, Any], status: int, named: str
) -> None:
    refused = backend.call("POST", path, status, json=things.put_into(body))
    assert named in refused["detail"]
    if status == 422:
        assert any(named in error["field"] or named in error["message"] for error in refused["errors"])
    if twin:
        fake, others = twin
        assert fake.call("POST", path, status, json=others.put_into(body))["detail"] == refused["detail"]


@pytest.mark.parametrize(
    ("data", "query"),
    [
        (b"", {}),
        (b'{"prompt": "a"}\nx\n', {}),
        (b"[1]\n", {}),
        (b'{"a": 1}\n', {}),
        (b'{"prompt": 1}\n', {}),
        (b'{"prompt": "a", "custom_id": "x"}\n' * 2, {}),
        (b'{"prompt": "a", "temperature": 3}\n', {}),
        (b'{"prompt": "a", "max_tokens": 0}\n', {}),
        (b'{"prompt": "a"}\n', {"format": "batch"}),
        (b'{"prompt": "a"}\n', {"template": "{{b}}"}),
        (b'{"prompt": "a"}\n', {"request_id": "a b"}),
        (b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n', {}),
    ],
)
def test_a_file_that_cannot_be_a_dataset_is_refused(
    backend: Backend, twin: Twin, data: bytes, query: dict[str, str]
) -> None:
    sent = {"content": data, "params": query, "headers": {"Content-Type": "application/jsonl"}}
    refused = backend.call("POST", "/admin/datasets/upload", 400, **sent)
    if twin:
        assert twin[0].call("POST", "/admin/datasets/upload", 400, **sent)["detail"] == refused["detail"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/results?suite=nothing", 400),
        ("/history?suite=nothing", 400),
        ("/overview?suite=nothing", 400),
        ("/trends?suite=nothing", 400),
        ("/leaderboard?suite=nothing", 400),
        ("/export?suite=nothing", 400),
        ("/leaderboard?suite=demo&metric=nothing", 400),
        ("/overview?suite=demo&metric=nothing", 400),
        ("/trends?suite=demo&metric=nothing", 400),
        ("/leaderboard?suite=demo&item_set=nothing", 400),
        ("/models?provider=nowhere", 400),
        ("/results?nothing=1", 400),
        ("/results?limit=0", 422),
        ("/results?limit=1001", 422),
        ("/history?days=3651", 422),
        ("/results/{done}/items?filter=different", 422),
        ("/side-by-side?job_ids={done}", 422),
        ("/side-by-side?job_ids={done},{other}&filter=only_right", 422),
        ("/side-by-side?job_ids={done},{run}", 400),
        ("/api/bench/runs/{experiment}?prompt=v9", 400),
        ("/api/bench/leaderboard/{experiment}?judge=nowhere/m", 400),
    ],
)
def test_a_wrong_question_is_refused(backend: Backend, things: Things, twin: Twin, path: str, status: int) -> None:
    refused = backend.call("GET", things.put_into(path), status)
    same_sentence(refused, ("GET", path, None), status, things, twin)


def test_a_mark_names_another_finished_run(backend: Backend, things: Things, twin: Twin) -> None:
    for by in ("{done}", "{live}", NOBODY):
        case = ("POST", "/results/{done}/mark", {"mark": "superseded", "reason": "newer", "superseded_by": by})
        method, path, options = body_of(case, things)
        refused = backend.call(method, path, 400, **options)
        assert {"{done}": "run that replaces it", NOBODY: "not found"}.get(by, "not finished") in refused["detail"]
        same_sentence(refused, case, 400, things, twin)
    assert backend.call("GET", f"/results/{things.done}")["mark"] is None, "a refused mark changes nothing"
    mark = {"mark": "superseded", "reason": "newer", "superseded_by": things.other}
    marked = backend.call("POST", f"/results/{things.done}/mark", json=mark)
    assert marked | mark == marked
    unmarked = backend.call("POST", f"/results/{things.done}/mark", json={"mark": "valid"})
    assert (unmarked["mark"], unmarked["superseded_by"]) == ("valid", None)


def test_a_dataset_stays_while_a_run_uses_it(backend: Backend, things: Things) -> None:
    made = backend.call("POST", "/admin/datasets/upload", files={"file": ("used.jsonl", LINES)})
    body = {"model_id": f"{SILENT['model']}@{SILENT['provider']}", "dataset_id": made["dataset_id"]}
    started = backend.call("POST", "/admin/benchmarks/run", json=body)
    backend.call("DELETE", f"/admin/datasets/{made['dataset_id']}", 409)
    assert backend.call("POST", f"/admin/benchmarks/{started['benchmark_id']}/cancel")["status"] == "cancelled"
    backend.finish(started["job_id"])
    assert backend.call("DELETE", f"/admin/datasets/{made['dataset_id']}")["finished_runs"] == 1
