"""Experiments through REST: starting them, their runs and their leaderboard."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from services.experiments import files, reading
from services.gateway.access import tokens
from services.gateway.http.middleware import MOST_DEFINITION_BYTES
from tests.gateway.gateway_server import Running
from tests.gateway.test_access import with_tokens
from tests.nats_server import NatsServer
from touchstone.v1 import item_result_pb2, results_service_pb2, scheduler_service_pb2

BASE = "/api/bench"
DOCUMENT = {
    "models": "qwen2.5:0.5b,qwen2.5:1.5b,gemma3:1b,llama3.2:3b",
    "prompts": "v1,v2-mentor,v3-few-shot",
    "experiment": "tip-bench-2026-04-27",
    "n_tips": 5,
    "n_scenarios": 12,
    "temperature": 0.7,
    "max_model_b": 4.0,
    "diversity": True,
}
"""The options of the document's collect.py."""


def asked(gateway: Running) -> scheduler_service_pb2.RunExperimentRequest:
    """The newest request."""
    (*_, last) = [one for one in gateway.world.asked if isinstance(one, scheduler_service_pb2.RunExperimentRequest)]
    return last


async def start(gateway: Running, **changes: Any) -> dict[str, Any]:
    answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT | changes)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_the_documents_options_start_a_job_for_each_model(gateway: Running) -> None:
    made = await start(gateway, request_id="once")
    assert (made["experiment"], made["cells"], made["calls"]) == ("tip-bench-2026-04-27", 144, 144)
    assert [(job["provider"], job["model"], job["status"]) for job in made["jobs"]] == [
        ("ollama", name, "pending") for name in str(DOCUMENT["models"]).split(",")
    ]
    request = asked(gateway)
    assert request.request_id == "once"
    assert reading.read(json.loads(request.definition), default_provider="ollama") == reading.read(
        DOCUMENT, default_provider="ollama"
    )
    again = await start(gateway)
    assert (again["dataset_id"], again["jobs"]) == (made["dataset_id"], made["jobs"])
    (listed,) = (await gateway.client.get(f"{BASE}/experiments")).json()["experiments"]
    assert (listed["name"], listed["prompts"], listed["scenarios"]) == (
        "tip-bench-2026-04-27",
        ["v1", "v2-mentor", "v3-few-shot"],
        12,
    )
    assert listed["rubric"]["version"] == "tip-v1"
    assert [job["model"] for job in listed["jobs"]] == [job["model"] for job in made["jobs"]]


async def test_a_definition_with_all_forms_judges_and_a_provider_by_its_kind(gateway: Running) -> None:
    judge = {"config": {"provider": "vllm-a", "model": "llama3.3:70b", "params": {"temperature": 0}}, "repeats": 2}
    body = {
        "name": "own",
        "provider": "ollama",
        "models": ["llama3.2:3b", {"provider": "vllm-a", "model": "small"}],
        "prompts": ["v1", {"id": "brief", "template": "{{tasks}} {{n_tips}}"}],
        "scenarios": {"set": "tips", "count": 2},
        "repeats": 2,
        "budget_usd": 2,
        "num_predict": 400,
        "judges": [judge],
        "check_only": True,
    }
    answer = await gateway.client.post(f"{BASE}/run", json=body)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert (made["dataset_id"], made["jobs"], made["cells"], made["calls"]) == (None, [], 8, 16)
    assert gateway.world.datasets == {}
    request = asked(gateway)
    (asked_judge,) = request.judges
    assert (asked_judge.endpoint, asked_judge.model, asked_judge.repeats, asked_judge.rubric) == (
        *("vllm-a", "llama3.3:70b", 2, ""),
    )
    assert asked_judge.sampling.temperature == 0
    assert made["deleted_judges"] == []
    gateway.world.deleted_judges.append(scheduler_service_pb2.DeletedJudge(judge=0, job_ids=["a"]))
    told = (await gateway.client.post(f"{BASE}/run", json=body)).json()["deleted_judges"]
    assert told == [{"judge": 0, "job_ids": ["a"]}]
    assert request.check_only
    assert {"judges", "check_only"} & {*json.loads(request.definition)} == set()


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"models": 5, "n_tips": 0, "tips": 3}, ["models", "n_tips", "tips"]),
        ({"models": "olama/a,b", "prompts": ["v1", "v9"], "experiment": None}, ["name", "prompts[1]"]),
        ({"models": "qwen2.5:7b,llama3.2:3b,llama3.3:70b"}, ["models[0]", "models[2]"]),
        ({"provider": "nobody"}, ["provider"]),
        ({"judges": [{"config": {"provider": "nobody", "model": "m"}}]}, ["judges[0].config.provider"]),
        ({"judges": [{"config": {"provider": "ollama", "model": "m"}, "rubric": {}}]}, ["judges[0].rubric"]),
        ({"n_scenarios": 211}, ["n_scenarios"]),
        ({"temperature": 9}, ["temperature"]),
        ({"rubric": {"version": "own"}}, ["rubric.criteria"]),
        ({"keep_alive": 5}, ["keep_alive"]),
    ],
)
async def test_each_wrong_field_is_named(gateway: Running, changes: dict[str, Any], fields: list[str]) -> None:
    answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT | changes)
    assert answer.status_code == 422, answer.text
    assert [one["field"] for one in answer.json()["errors"]] == fields
    assert gateway.world.datasets == {}


async def test_other_prompts_under_a_name_are_refused(gateway: Running) -> None:
    await start(gateway)
    answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT | {"prompts": "v1"})
    assert answer.status_code == 409
    assert "Choose another name." in answer.json()["detail"]


async def test_a_definition_may_be_larger_than_other_bodies_but_not_endless(gateway: Running) -> None:
    rows = [{"who": "x" * 50_000} for _ in range(25)]
    own = {"prompts": [{"id": "own", "template": "{{who}}"}], "scenarios": rows, "n_scenarios": None}
    made = await start(gateway, **own, experiment="large")
    assert made["calls"] == 100
    body = json.dumps(DOCUMENT | own | {"scenarios": rows * 3}).encode()
    assert len(body) > MOST_DEFINITION_BYTES
    answer = await gateway.client.post(f"{BASE}/run", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 413


def run(number: int, **fields: Any) -> results_service_pb2.ExperimentRun:
    return results_service_pb2.ExperimentRun(
        job_id=f"{number % 2:08d}-0000-4000-8000-000000000000",
        endpoint="ollama",
        model=f"m{number % 2}",
        prompt=f"v{number % 3}",
        scenario=f"s-{number:04}",
        number=1,
        task="rows",
        item=number,
        **fields,
    )


async def test_runs_are_listed_page_by_page_and_filtered(gateway: Running) -> None:
    await start(gateway)
    name = str(DOCUMENT["experiment"])
    answered: dict[str, Any] = {"outcome": item_result_pb2.OUTCOME_ANSWERED, "answer": '["Go."]', "candidates": ["Go."]}
    first = run(0, **answered, latency_s=0.5, output_tokens=7)
    first.rated.add(criterion="composite", share=0.75)
    gateway.world.experiment_runs[name] = [
        first,
        run(1, **answered, judge_pending=True),
        *(run(number) for number in range(2, 7)),
    ]
    address = f"{BASE}/runs/{name}"
    page = (await gateway.client.get(address, params={"limit": 5})).json()
    assert page["runs"][0] == {
        "job_id": first.job_id,
        "provider": "ollama",
        "model": "m0",
        "prompt": "v0",
        "scenario": "s-0000",
        "number": 1,
        "task": "rows",
        "item": 0,
        "repeat": 0,
        "outcome": "answered",
        "answer": '["Go."]',
        "candidates": ["Go."],
        "judge_pending": False,
        "judged": {},
        "rated": {"composite": 0.75},
        "latency_s": 0.5,
        "input_tokens": 0,
        "output_tokens": 7,
    }
    assert page["runs"][2]["outcome"] is None
    rest = (await gateway.client.get(address, params={"limit": 5, "page_token": page["next_page_token"]})).json()
    assert ([one["item"] for one in rest["runs"]], rest["next_page_token"]) == ([5, 6], "")
    for query, items in (
        ({"judge_pending": "true"}, [1]),
        ({"prompt": "v0"}, [0, 3, 6]),
        ({"job_id": first.job_id, "prompt": "v0"}, [0, 6]),
    ):
        listed = (await gateway.client.get(address, params=query)).json()["runs"]
        assert [one["item"] for one in listed] == items
    assert (await gateway.client.get(f"{BASE}/runs/none")).status_code == 404
    assert (await gateway.client.get(address, params={"judge_pending": "yes"})).status_code == 422


def scored(board: results_service_pb2.GetExperimentResponse) -> None:
    """The first of two rows has scores, and is the better one."""
    interval = results_service_pb2.Interval
    board.source, board.judge = results_service_pb2.GetExperimentRequest.SOURCE_JUDGE, "ollama/judge"
    board.judges.append("ollama/judge")
    first = board.rows.add(
        job_id="00000000-0000-4000-8000-000000000000", endpoint="ollama", model="m0", prompt="v1", rank=1, rank_low=1,
        rank_high=2, rows=12, answered=12, scored=11, judge_failures=1, latency_s=0.5, tokens_per_s=30, cost_usd=0.25,
        composite=interval(value=0.8, low=0.7, high=0.9, n=11), diversity=interval(value=0.5, low=0.4, high=0.6, n=12),
    )  # fmt: skip
    for name in ("relevance", "actionability", "tone"):
        first.criteria.add(criterion=name, score=interval(value=0.75, low=0.5, high=1, n=11))
    second = board.rows.add(job_id=first.job_id, endpoint="ollama", model="m0", prompt="=v2", rows=12, errors=12)
    second.to_first.p_value = 0.5
    second.to_first.difference.CopyFrom(interval(value=-0.1, low=-0.2, high=0.0, n=11))
    board.models.add(
        job_id=first.job_id, endpoint="ollama", model="m0", best_prompt="v1", worst_prompt="v1", best=0.8, worst=0.8
    )
    board.prompts_with_same_first = board.prompts_compared = 1


async def test_a_leaderboard_gives_figures_as_json_and_csv(gateway: Running) -> None:
    await start(gateway)
    name = str(DOCUMENT["experiment"])
    address = f"{BASE}/leaderboard/{name}"
    empty = (await gateway.client.get(address)).json()
    assert (empty["source"], empty["judge"], empty["judges"], len(empty["models"])) == (None, None, [], 4)
    assert [(row["model"], row["prompt"]) for row in empty["leaderboard"]] == [
        (model, prompt) for model in str(DOCUMENT["models"]).split(",") for prompt in ("v1", "v2-mentor", "v3-few-shot")
    ]
    assert {(row["rank"], row["composite"], row["rows"]) for row in empty["leaderboard"]} == {(None, None, 12)}
    experiment = results_service_pb2.Experiment(name=name, rubric=reading.shipped_rubric())
    gateway.world.experiments[name] = results_service_pb2.GetExperimentResponse(experiment=experiment)
    scored(gateway.world.experiments[name])
    board = (await gateway.client.get(address, params={"source": "judge", "judge": "ollama/judge"})).json()
    first, second = board["leaderboard"]
    assert (first["rank"], first["rank_range"], first["judge_failures"]) == (1, [1, 2], 1)
    assert first["composite"] == {"value": 0.8, "ci95": [0.7, 0.9], "n": 11}
    assert list(first["criteria"]) == ["relevance", "actionability", "tone"]
    assert (first["to_first"], first["cost_usd"]) == (None, 0.25)
    assert (second["rank"], second["rank_range"], second["composite"], second["cost_usd"]) == (None,) * 4
    assert second["to_first"]["difference"]["value"] == -0.1
    assert board["models"][0]["mean"] is None
    assert board["models"][0]["best"] == 0.8
    assert (board["source"], board["judges"], board["experiment"]["name"]) == ("judge", ["ollama/judge"], name)
    request = gateway.world.asked[-1]
    assert (request.source, request.judge) == (
        results_service_pb2.GetExperimentRequest.SOURCE_JUDGE,
        "ollama/judge",
    )
    answer = await gateway.client.get(address, params={"format": "csv"})
    assert answer.headers["content-disposition"] == f'attachment; filename="touchstone-{name}.csv"'
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert (lines[0]["rank_high"], lines[0]["composite_low"], lines[0]["criteria.tone"]) == ("2", "0.7", "0.75")
    assert (lines[1]["prompt"], lines[1]["composite"], lines[1]["to_first_low"], lines[1]["p_value"]) == (
        *("'=v2", "", "-0.2", "0.5"),
    )
    assert (await gateway.client.get(f"{BASE}/leaderboard/none")).status_code == 404
    assert (await gateway.client.get(address, params={"source": "x"})).status_code == 422


CALLS = (
    ("POST", "/run", DOCUMENT),
    ("GET", "/experiments", None),
    ("GET", "/runs/tip-bench-2026-04-27", None),
    ("GET", "/leaderboard/tip-bench-2026-04-27", None),
)


async def test_only_admins_may_call(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        user = await tokens.create(nats_bus, "alice", "user", "")
        admin = await tokens.create(nats_bus, "root", "admin", "")
        for token, status in (("", 401), (user, 403), (admin, 200)):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            for method, path, body in CALLS:
                answer = await gateway.client.request(method, BASE + path, json=body, headers=headers)
                assert answer.status_code == status, f"{method} {path}: {answer.text}"
            assert len(gateway.world.datasets) == (status == 200)


OWN = {
    "name": "own",
    "models": ["llama3.2:3b"],
    "prompts": [{"id": "brief", "template": "Hi {{who}}.\n{{n_tips}} tips\n"}],
    "scenarios": [{"who": "Zoë", "n": 1.0}, {"id": "b", "who": "Bo", "n": 2}],
    "repeats": 2,
    "rubric": {"version": "brief-v1", "criteria": [{"name": "short"}]},
}


@pytest.mark.parametrize("body", [DOCUMENT, OWN], ids=["set", "own"])
async def test_a_definition_is_given_again_and_taken_again(gateway: Running, body: dict[str, Any]) -> None:
    name = body.get("name") or body["experiment"]
    first = (await gateway.client.post(f"{BASE}/run", json=body)).json()
    address = f"{BASE}/definition/{name}"
    kept = await gateway.client.get(address)
    assert (kept.status_code, kept.headers["content-type"]) == (200, "application/json")
    assert kept.headers["content-disposition"] == f'attachment; filename="{name}.json"'
    again = (await gateway.client.post(f"{BASE}/run", content=kept.content)).json()
    assert again == first
    assert (await gateway.client.get(address)).content == kept.content
    yaml = await gateway.client.get(address, params={"format": "yaml"})
    assert yaml.headers["content-type"] == "application/yaml"
    assert yaml.headers["content-disposition"] == f'attachment; filename="{name}.yaml"'
    assert files.definition(yaml.content) == kept.json()
    gateway.world.rows[first["dataset_id"]] = []
    gone = await gateway.client.get(address)
    assert gone.status_code == (200 if body is DOCUMENT else 404)
    assert (await gateway.client.get(f"{BASE}/definition/none")).status_code == 404
