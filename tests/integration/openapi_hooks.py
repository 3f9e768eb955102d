"""Loaded by schemathesis: half of the generated requests name what is there, so that they reach beyond the checks."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

FINISHED = os.environ["TOUCHSTONE_TEST_JOB"]
"""A completed job."""
DATASET = os.environ["TOUCHSTONE_TEST_DATASET"]
BENCHMARKS = os.environ["TOUCHSTONE_TEST_BENCHMARKS"]
"""Two completed runs over the dataset, joined by a comma."""
EVALUATOR = "evaluator-1"
"""As the launcher names it. The fuzzer learns the name from answers."""
HOST = "hooks.invalid"
"""Resolves nowhere, by RFC 2606."""


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> schemathesis.Case[Any]:
    query: Any = case.query or {}
    path: Any = case.path_parameters or {}
    body: Any = case.body
    # Drained, the only evaluator would rightly take no calls, and they would be answered 503.
    if case.operation.label.endswith("/evaluators/{evaluator}/drain") and path.get("evaluator") == EVALUATOR:
        path["evaluator"] = f"{EVALUATOR}-gone"
    if isinstance(query.get("wait"), int) and query["wait"] > 1:
        query["wait"] = 1  # waiting a minute for each is no test
    if case.operation.label.startswith("GET ") and "job_id" in path and _even(str(path["job_id"])):
        path["job_id"] = FINISHED
    if "benchmark_id" in path and _even(str(path["benchmark_id"])):
        path["benchmark_id"] = BENCHMARKS.partition(",")[0]
    # Not of a deletion: the others would find nothing any more.
    if "dataset_id" in path and not case.operation.label.startswith("DELETE ") and _even(str(path["dataset_id"])):
        path["dataset_id"] = DATASET
    if query.get("job_ids") and _even(str(query)):
        query["job_ids"] = BENCHMARKS
    if isinstance(body, dict):
        job: Any = body["job"] if isinstance(body.get("job"), dict) else body
        if isinstance(job.get("config"), dict) and _even(repr(job)):
            _make_runnable(job)
        if case.operation.label == "POST /admin/datasets/hub" and isinstance(body.get("dataset"), str):
            body["dataset"] = "demo"  # the Hub cannot be reached here
        if "dataset_id" in body and _even(repr(body)):
            _make_run(body)
        for field in ("url", "webhook_url"):
            if isinstance(body.get(field), str) and body[field].startswith("http"):
                body[field] = f"https://{HOST}/"
    return case


def _make_runnable(job: dict[str, Any]) -> None:
    job["config"] = {"provider": "baselines", "model": "majority"}
    job |= {"suite": "demo", "tasks": ["sst2"], "limit": 1, "mode": "generate", "shots": 0, "repeats": 1}
    for field in ("reuse", "webhook_url"):
        job.pop(field, None)


def _make_run(body: dict[str, Any]) -> None:
    body |= {"dataset_id": DATASET, "limit": 1}
    if isinstance(body.get("model_id"), str):
        body["model_id"] = "majority@baselines"
    if isinstance(body.get("model_ids"), list):
        body["model_ids"] = ["majority@baselines", "echo@baselines"]
    for field in ("provider", "webhook_url", "budget_usd", "provider_batch"):
        body.pop(field, None)


def _even(text: str) -> bool:
    return sum(text.encode(errors="replace")) % 2 == 0
