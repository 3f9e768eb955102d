"""Decisions through REST: what reaches the scheduler, what is refused, and what was found."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from services.gateway.api.decisions.start import BODY
from tests.dataset_store import row
from tests.gateway import fake_decisions
from tests.gateway.conformance import conforms
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_refusals import HOSTILE
from touchstone.v1 import dataset_pb2, job_pb2

PATH = "/api/v1/benchmarking/decisions"
ONE, TWO = ({"provider": "ollama", "model": model} for model in ("llama3.2:3b", "qwen2.5:7b"))
ASKED: dict[str, Any] = {"baseline": ONE, "candidate": TWO, "suite": "demo"}


async def post(gateway: Running, body: Any, status: int = 200) -> Any:
    answer = await gateway.client.post(PATH, json=body)
    assert answer.status_code == status, answer.text
    await conforms(answer)
    return answer.json()


async def get(gateway: Running, path: str = "", status: int = 200, **query: Any) -> Any:
    answer = await gateway.client.get(f"{PATH}{path}", params=query)
    assert answer.status_code == status, answer.text
    await conforms(answer)
    return answer.json()


async def test_a_schedule_starts_decisions(gateway: Running) -> None:
    schedules = PATH.replace("decisions", "schedules")
    asked = ASKED | {"margin": 0.02, "order_seed": 7, "budget_usd": None, "further_candidates": [ONE]}
    body = {"cron": "0 3 * * 1", "label": "nightly", "decision": asked}
    answer = await gateway.client.post(schedules, json=body)
    assert answer.status_code == 200, answer.text
    await conforms(answer)
    made = answer.json()
    (stored,) = gateway.world.schedules.values()
    assert [one.model for one in (stored.spec, *stored.candidates)] == [ONE["model"], TWO["model"], ONE["model"]]
    assert (stored.spec.deciding.margin, stored.candidates[0].deciding.candidate) == (0.02, True)
    assert [one["model"] for one in made["decision"]["candidates"]] == [TWO["model"], ONE["model"]]
    assert (made["decision"]["margin"], made["decision"]["error"], made["decision"]["order_seed"]) == (0.02, 0.05, 7)
    for wrong, field in (
        (body | {"job": {"project_id": 1, "config": ONE}}, "job"),
        ({"cron": "0 3 * * 1"}, "job"),
        (body | {"decision": ASKED | {"dataset_id": "ds_1"}}, "decision.suite"),
        (body | {"decision": ASKED | {"candidate": TWO | {"dataset_id": "ds_1"}}}, "decision.candidate.dataset_id"),
    ):
        answer = await gateway.client.post(schedules, json=wrong)
        await conforms(answer)
        assert (answer.status_code, [one["field"] for one in answer.json()["errors"]]) == (422, [field])
    found = fake_decisions.add(gateway.world)
    fake_decisions.add(gateway.world)
    gateway.world.jobs[found.decision_id].spec.schedule_id = made["schedule_id"]
    (listed,) = (await get(gateway, schedule_id=made["schedule_id"]))["decisions"]
    assert (listed["decision_id"], listed["schedule_id"]) == (found.decision_id, made["schedule_id"])
    assert len((await get(gateway))["decisions"]) == 2


async def test_a_decision_asks_both_models_the_same(gateway: Running) -> None:
    both = {"tasks": ["sentiment"], "limit": 50, "seed": 3, "priority": "low", "labels": {"why": "upgrade"}}
    more = {"error": 0.1, "margin": 0.02, "order_seed": 7, "budget_usd": None, "request_id": "r1"}
    other = TWO | {"params": {"temperature": 0.5}}
    sent = ASKED | both | more | {"candidate": other, "reuse": {"any_job": True}}
    made = await post(gateway, sent)
    baseline, candidate = (gateway.world.jobs[made[f"{side}_job_id"]].spec for side in ("baseline", "candidate"))
    assert made["decision_id"] == made["baseline_job_id"]
    assert baseline.suite == candidate.suite == job_pb2.SuiteWork(suite="demo", tasks=["sentiment"], limit=50, seed=3)
    assert (baseline.model, candidate.model) == (ONE["model"], TWO["model"])
    assert (baseline.sampling.HasField("temperature"), candidate.sampling.temperature) == (False, 0.5)
    for one, against in ((baseline, "candidate"), (candidate, "baseline")):
        deciding = job_pb2.Deciding(
            against_job_id=made[f"{against}_job_id"], candidate=one is candidate, error=0.1, margin=0.02, seed=7
        )
        assert one.deciding == deciding
        assert one.priority == job_pb2.PRIORITY_LOW
        assert (one.labels["why"], one.reuse.any_job) == ("upgrade", True)
    assert await post(gateway, sent) == made, "repeated with its id, it starts nothing"
    await post(gateway, sent | {"limit": 51}, 409)
    assert len(gateway.world.jobs) == 2


async def test_a_dataset_is_asked_as_its_runs_are(gateway: Running) -> None:
    held = "ds_" + "5b" * 16
    gateway.world.datasets[held] = dataset_pb2.Dataset(dataset_id=held, name="rows.jsonl", owner="local", rows=1)
    gateway.world.rows[held] = [row(1, reference="4")]
    sent = {"baseline": ONE, "candidate": TWO, "dataset_id": held, "scorer": "contains"}
    made = await post(gateway, sent)
    for side in ("baseline", "candidate"):
        asked = gateway.world.jobs[made[f"{side}_job_id"]].spec
        assert asked.dataset.dataset_id == held
        assert asked.dataset.scoring.scorer == "contains"
        assert asked.priority == job_pb2.PRIORITY_NORMAL
    await post(gateway, sent | {"dataset_id": "ds_" + "0" * 32}, 404)


async def test_the_two_may_have_other_prompts(gateway: Running) -> None:
    held = ["ds_" + digits * 16 for digits in ("5b", "6c")]
    for one in held:
        gateway.world.datasets[one] = dataset_pb2.Dataset(dataset_id=one, name="rows.jsonl", owner="local", rows=1)
        gateway.world.rows[one] = [row(1, reference="4")]
    made = await post(gateway, {"baseline": ONE, "candidate": ONE | {"dataset_id": held[1]}, "dataset_id": held[0]})
    asked = [gateway.world.jobs[made[f"{side}_job_id"]].spec for side in ("baseline", "candidate")]
    assert [spec.dataset.dataset_id for spec in asked] == held
    made = await post(gateway, {"baseline": ONE | {"shots": 0}, "candidate": ONE, "suite": "glue", "shots": 2})
    asked = [gateway.world.jobs[made[f"{side}_job_id"]].spec for side in ("baseline", "candidate")]
    assert [spec.suite.shots for spec in asked] == [0, 2]


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"suite": None}, 422, "Give suite or dataset_id"),
        ({"dataset_id": "ds_" + "0" * 32}, 422, "Give suite or dataset_id"),
        ({"suite": "nope"}, 400, "Invalid benchmark suite"),
        ({"tasks": ["cola"]}, 422, "demo has no task 'cola'"),
        ({"scorer": "exact"}, 422, "scorer is for datasets. Leave it out."),
        ({"suite": None, "dataset_id": "ds_" + "0" * 32, "shots": 5}, 422, "shots is for suites. Leave it out."),
        ({"candidate": TWO | {"dataset_id": "ds_" + "0" * 32}}, 422, "candidate.dataset_id is for datasets."),
        ({"suite": None, "dataset_id": "ds_" + "0" * 32, "baseline": ONE | {"shots": 1}}, 422, "baseline.shots is for"),
        ({"error": 0}, 422, "error must be"),
        ({"error": 0.6}, 422, "error must be"),
        ({"margin": 1}, 422, "margin must be"),
        ({"margin": -0.1}, 422, "margin must be"),
        ({"repeats": 2}, 422, "repeats is not known"),
        ({"judges": []}, 422, "judges is not known"),
        ({"provider_batch": True}, 422, "provider_batch is not known"),
        ({"candidate": {"model": "m"}}, 422, "candidate.provider is required"),
        ({"candidate": TWO | {"provider": "nowhere"}}, 400, "Unknown provider 'nowhere'"),
        ({"candidate": TWO | {"params": {}, "ollama_params": {}}}, 422, "Give candidate.params or candidate.ollama"),
        ({"baseline": ONE | {"params": {"temperature": 9}}}, 422, "baseline.params.temperature must be"),
        ({"order_seed": 2**63}, 422, "order_seed must be"),
    ],
)
async def test_what_cannot_be_decided_is_refused_with_what_is_wrong(
    gateway: Running, changes: dict[str, Any], status: int, said: str
) -> None:
    assert said in (await post(gateway, ASKED | changes, status))["detail"]
    assert not gateway.world.jobs


async def test_hostile_values_are_refused_or_harmless(gateway: Running) -> None:
    known = {(name,) for name in BODY.schema["properties"]} | {("baseline", "model"), ("candidate", "provider")}
    for place in sorted(known):
        values: tuple[Any, ...] = (*HOSTILE, [], {}, ["\x00"], 1e300, True)
        for value in values:
            body: dict[str, Any] = {**ASKED, "baseline": {**ONE}, "candidate": {**TWO}}
            part = body if len(place) == 1 else body[place[0]]
            part[place[-1]] = value
            answer = await gateway.client.post(PATH, json=body)
            assert answer.status_code in (200, 400, 404, 422, 429), (place, value, answer.text)
        gateway.world.jobs.clear()


@pytest.mark.parametrize("name", ["nothing", str(uuid.UUID(int=0)), "../../decisions", "%00", "x" * 201])
async def test_an_unknown_decision_is_not_found(gateway: Running, name: str) -> None:
    answer = await gateway.client.get(f"{PATH}/{name}")
    assert answer.status_code == 404
    if "/" not in name:
        job = gateway.world.add(spec(), "local")
        assert "not found" in (await get(gateway, f"/{job.job_id}", 404))["detail"], "a job that decides nothing"


async def test_a_full_queue_starts_neither(gateway: Running) -> None:
    for _ in range(9):
        gateway.world.add(spec(), "local")
    assert (await post(gateway, ASKED, 429))["detail"] == "Queue is full. Please try again later."
    assert len(gateway.world.jobs) == 9


SHARES = {"llama3.2:3b": 0.5, "gemma3:4b": 0.62, "qwen2.5:7b": 0.85}


async def test_several_models_race_for_the_best(gateway: Running) -> None:
    third = {"provider": "ollama", "model": "phi4-mini", "shots": 1}
    made = await post(gateway, ASKED | {"suite": "glue", "further_candidates": [third]})
    jobs = [made["baseline_job_id"], made["candidate_job_id"], *made["further_job_ids"]]
    assert [list(gateway.world.jobs[one].spec.deciding.race_job_ids) for one in jobs] == [jobs] * 3
    assert gateway.world.jobs[jobs[2]].spec.suite.shots == 1
    gateway.world.unstored |= {*jobs}
    told = await get(gateway, f"/{jobs[2]}")
    assert (told["decision_id"], told["candidate"], told["live"]) == (jobs[0], None, True)
    assert [(one["job_id"], one["state"]) for one in told["racers"]] == [(one, "racing") for one in jobs]
    refused = await post(gateway, ASKED | {"further_candidates": [third | {"dataset_id": "ds_" + "0" * 32}]}, 422)
    assert "further_candidates[0].dataset_id is for datasets." in refused["detail"]
    many = await post(gateway, ASKED | {"further_candidates": [TWO] * 19}, 422)
    assert "further_candidates must hold" in many["detail"]


async def test_a_race_is_told_model_by_model(gateway: Running) -> None:
    known = fake_decisions.add_race(gateway.world, SHARES)
    told = await get(gateway, f"/{known.decision_id}")
    assert told["verdict"] == "best"
    assert told["words"] == "qwen2.5:7b is the best of 3 models."
    first, _, best = told["racers"]
    assert (first["model"], first["state"], best["state"]) == ("llama3.2:3b", "beaten", "best")
    assert (first["against_job_id"], best["against_job_id"]) == (best["job_id"], None)
    assert first["interval"][0] <= first["difference"] <= first["interval"][1] < 0
    assert first["path"][-1]["worse"] >= told["threshold"]
    (listed,) = (await get(gateway))["decisions"]
    assert [one["state"] for one in listed["racers"]] == ["beaten", "beaten", "best"]
    assert "path" not in listed["racers"][0]


async def test_what_was_found_is_told_with_its_evidence(gateway: Running) -> None:
    known = fake_decisions.add(gateway.world, margin=0.05)
    told = await get(gateway, f"/{known.decision_id}")
    assert (told["verdict"], told["live"], told["decided_at"]) == ("better", False, known.decided_at)
    assert told["words"] == "qwen2.5:7b is better than llama3.2:3b."
    assert told["interval"][0] <= told["difference"] <= told["interval"][1]
    assert (told["items_total"], told["error"], told["margin"], told["order_seed"]) == (600, 0.05, 0.05, 1)
    assert told["saved"]["items"] == 2 * (600 - known.decided_at)
    assert told["path"][-1]["pairs"] == known.pairs
    assert told["path"][-1]["better"] >= told["threshold"] > told["path"][-2]["better"]
    assert isinstance(told["path"][0]["equivalent"], float)
    for point in told["path"]:
        low, high = point["interval"]
        assert -1 <= low <= point["difference"] <= high <= 1
    assert await get(gateway, f"/{told['candidate']['job_id']}") == told, "either job leads to it"


async def test_without_a_margin_there_is_no_evidence_of_equivalence(gateway: Running) -> None:
    known = fake_decisions.add(gateway.world, (0.6, 0.61), upto=40)
    told = await get(gateway, f"/{known.decision_id}")
    assert (told["verdict"], told["decided_at"], told["live"], told["saved"]) == (None, None, True, None)
    assert told["words"] == "It is not decided whether qwen2.5:7b is better than llama3.2:3b."
    assert {point["equivalent"] for point in told["path"]} == {None}


async def test_decisions_are_listed_page_by_page(gateway: Running) -> None:
    for seed in range(3):
        fake_decisions.add(gateway.world, seed=seed)
    first = await get(gateway, limit=2)
    second = await get(gateway, limit=2, page_token=first["next_page_token"])
    ids = [one["decision_id"] for one in (*first["decisions"], *second["decisions"])]
    assert set(ids) == set(gateway.world.decisions)
    assert len(ids) == 3
    assert second["next_page_token"] == ""
    assert "path" not in first["decisions"][0]
    await get(gateway, status=422, limit=51)
    await get(gateway, status=400, page_token="nonsense")


async def test_a_decision_is_read_before_the_results_service_knows_it(gateway: Running) -> None:
    made = await post(gateway, ASKED)
    gateway.world.unstored |= {made["baseline_job_id"], made["candidate_job_id"]}
    for job_id in gateway.world.unstored:
        told = await get(gateway, f"/{job_id}")
        assert (told["decision_id"], told["live"], told["items_total"]) == (made["decision_id"], True, 0)
        assert told["path"] == []


async def test_two_settings_of_one_model_are_told_apart_in_words(gateway: Running) -> None:
    known = fake_decisions.add(gateway.world, models=("phi4-mini", "phi4-mini"))
    assert (await get(gateway, f"/{known.decision_id}"))["words"].startswith("phi4-mini@ollama (2) is better than")
