"""A run over tool calls with further scorers whose processes are killed: every door tells what its stored items say."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import grpc
import httpx
import pytest

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import API, CALL_TIMEOUT_S, Stack, running, touchstone, until
from tests.stub_thread import stub_thread
from touchstone.v1 import comparison_pb2, results_service_pb2

pytestmark = pytest.mark.stack

ROWS = 240
CITIES = ("Lyon", "Rome", "Oslo")
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
SCHEMA = {"type": "object", "required": ["calls"]}
FURTHER = [
    {"scorer": "contains", "reference_field": "city"},
    {"scorer": "json_schema", "schema": json.dumps(SCHEMA)},
]
Items = Sequence[dict[str, Any]]


def number_of(prompt: str) -> int:
    return int(prompt.rsplit(" ", 1)[1])


def expected(number: int) -> dict[str, Any]:
    return {"city": CITIES[number % 3], "days": number}


class Calling(OpenAIServer):
    """Calls the tool with a mistake in some rows, and without one in the others."""

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        made = super().answer(body, text)
        number = number_of(body["messages"][-1]["content"])
        right = expected(number)
        wrong = {3: {"city": "Bern"}, 5: {"unit": "C"}, 7: {"days": str(number)}}
        given = right | {
            name: value for k, change in wrong.items() if number % k == 1 for name, value in change.items()
        }
        choice = made["choices"][0]
        if number % 11 == 4:
            spoken = f"It is warm in {right['city']}." if number % 2 else '{"calls": []}'
            choice |= {"message": {"role": "assistant", "content": spoken}, "finish_reason": "stop"}
        else:
            choice["message"]["tool_calls"][0]["function"]["arguments"] = json.dumps(given)
        return made


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with stub_thread() as stubs:
        stub = stubs.start(Calling(Behaviour(models=("steady", "shaken"), latency_s=0.1)))
        endpoints = [{"name": "local", "kind": "openai", "base_url": stub.url, "concurrency": 4}]
        with running(Stack(tmp_path_factory.mktemp("tools"), endpoints), request) as started:
            started.know_models("local")
            yield started


def upload(http: httpx.Client) -> str:
    rows = [
        {
            "messages": [{"role": "user", "content": f"How will it be in number {number}"}],
            "tools": TOOLS,
            "reference": [{"name": "weather", "arguments": expected(number)}],
            "metadata": {"city": CITIES[number % 3]},
        }
        for number in range(ROWS)
    ]
    lines = "\n".join(map(json.dumps, rows)).encode()
    data = {"name": "weather", "scorer": "tool_calls"}
    answer = http.post("/admin/datasets/upload", data=data, files={"file": ("weather.jsonl", lines)})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["dataset_id"])


def start(http: httpx.Client, dataset_id: str, model: str) -> str:
    body = {"dataset_id": dataset_id, "model_id": model, "further_scorers": FURTHER}
    answer = http.post("/admin/benchmarks/run", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["job_id"])


def has_done(stack: Stack, job_id: str, items: int) -> bool:
    try:
        return stack.job(job_id).progress.items_done >= items
    except grpc.RpcError:  # The scheduler is not back yet.
        return False


def computed(items: Items) -> tuple[dict[str, float], dict[str, tuple[int, int]]]:
    """Metrics, and right answers by field with their number, from what the items store of the answers alone."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    fields: defaultdict[str, list[bool]] = defaultdict(list)
    for item in items:
        number = number_of(item["prompt"])
        right, calls = expected(number), item.get("tool_calls") or []
        given = json.loads(calls[0]["function"]["arguments"]) if calls else {}
        fits = {
            name: name in given and (type(given[name]), given[name]) == (type(value), value)
            for name, value in right.items()
        }
        shares["calls_exact"].append(bool(calls) and given == right and all(fits.values()))
        shares["call_names"].append(bool(calls))
        shares["call_arguments"].append(sum(fits.values()) / len(right | given))
        shares["contains.contains"].append(right["city"].lower() in item["response"].lower())
        try:
            parsed = json.loads(item["response"])
        except ValueError:
            parsed = None
        shares["json_schema.schema_valid"].append(isinstance(parsed, dict) and "calls" in parsed)
        fields["weather"].append(bool(calls))
        for name, fit in fits.items():
            fields[f"weather.{name}"].append(fit)
    return (
        {name: sum(values) / len(values) for name, values in shares.items()},
        {name: (sum(values), len(values)) for name, values in fields.items()},
    )


def test_kills_in_turn_leave_every_door_at_what_the_items_say(stack: Stack) -> None:
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=CALL_TIMEOUT_S) as http:
        dataset_id = upload(http)
        steady, shaken = start(http, dataset_id, "steady"), start(http, dataset_id, "shaken")
        for done, service in zip((20, 80, 140), ("evaluator", "results", "scheduler"), strict=True):
            until(partial(has_done, stack, shaken, done))
            stack.kill(service)
        until(partial(has_done, stack, shaken, ROWS))
        result = stack.completed(shaken)
        stack.completed(steady)
        exported = {
            form: http.get(f"{stack.url}{API}/results/{shaken}/export", params={"kind": "items", "format": form}).text
            for form in ("jsonl", "csv")
        }
        metrics = http.get(
            f"{stack.url}{API}/results/{shaken}/export", params={"kind": "metrics", "format": "json"}
        ).json()
        page = http.get(f"/jobs/{shaken}").text

    items = [json.loads(line) for line in exported["jsonl"].splitlines()]
    assert sorted(number_of(item["prompt"]) for item in items) == list(range(ROWS))
    means, fields = computed(items)
    assert 0.2 < means["calls_exact"] < 0.6

    rows = list(csv.DictReader(io.StringIO(exported["csv"], newline="")))
    of_rows = [row | {"tool_calls": json.loads(row["tool_calls"] or "[]")} for row in rows]
    assert computed(of_rows) == (means, fields)
    for item in items:
        stored = item["statistics"]
        alone, of_fields = computed([item])
        assert item["correct"] == alone["calls_exact"], item
        assert stored["contains.correct"] == alone["contains.contains"]
        assert {name: stored[f"field:{name}"] for name in of_fields} == {n: k for n, (k, _) in of_fields.items()}

    task = result["performance_data"][dataset_id]["rows"]
    assert {name: task[name]["mean"] for name in means} == pytest.approx(means)
    assert {one["field"]: (one["right"], one["answers"]) for one in result["fields"]} == fields
    assert result["score"]["mean"] == pytest.approx(means["calls_exact"])
    assert {row["metric"]: row["mean"] for row in metrics if row["task"]} == pytest.approx(means)

    request = results_service_pb2.GetJobResultRequest(job_id=shaken)
    message = stack.results.GetJobResult(request, timeout=CALL_TIMEOUT_S).result
    assert {one.metric: one.mean for one in message.tasks[0].metrics} == pytest.approx(means)
    assert {one.field: (one.right, one.answers) for one in message.fields} == fields

    command = touchstone(stack, "results", shaken, "--format", "json")
    assert json.loads(command.stdout)["result"]["suite_score"]["mean"] == pytest.approx(means["calls_exact"])
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    for mean in means.values():
        assert f"{mean * 100:.1f}" in text

    # Equal answers, so that only what the kills have done could make a difference.
    subjects = comparison_pb2.CompareRequest(subjects=[shaken, steady])
    compared = stack.results.Compare(subjects, timeout=CALL_TIMEOUT_S)
    assert {round(run.scores[0].mean, 12) for run in compared.runs} == {round(means["calls_exact"], 12)}
    assert {one.difference for one in compared.differences} == {0}
    assert compared.items == ROWS
