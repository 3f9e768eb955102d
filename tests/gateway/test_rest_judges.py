"""Judging through REST: what reaches the scheduler, and what judges found."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from services.words import rubrics
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, results_service_pb2

BASE = "/api/v1/benchmarking"
JUDGE: dict[str, Any] = {"config": {"provider": "ollama", "model": "mistral:latest"}, "rubric": TIPS}


def _finished(gateway: Running) -> job_pb2.Job:
    world = gateway.world
    job = world.start(world.add(spec(suite="demo"), "local").job_id, ago_s=100)
    return world.finish(job.job_id)


async def test_a_completed_job_is_judged_in_a_new_one(gateway: Running) -> None:
    judged = _finished(gateway)
    sent = JUDGE | {"repeats": 3, "priority": "low", "request_id": "r1"}
    answer = await gateway.client.post(f"{BASE}/judge/{judged.job_id}", json=sent)
    assert answer.status_code == 200, answer.text
    made = gateway.world.jobs[answer.json()["job_id"]].spec
    assert (made.endpoint, made.model, made.priority) == ("ollama", "mistral:latest", job_pb2.PRIORITY_LOW)
    assert made.judging == job_pb2.Judging(job_id=judged.job_id, repeats=3, attempt=1)
    assert made.dataset.scoring.rubric == rubrics.written(rubrics.of_value(TIPS))
    assert json.loads(made.sampling.extra_json)["response_format"]["json_schema"]["strict"] is True
    again = await gateway.client.post(f"{BASE}/judge/{judged.job_id}", json=sent)
    assert again.json()["job_id"] == answer.json()["job_id"]


async def test_a_job_that_has_not_completed_is_not_judged(gateway: Running) -> None:
    job = gateway.world.add(spec(suite="demo"), "local")
    answer = await gateway.client.post(f"{BASE}/judge/{job.job_id}", json=JUDGE)
    assert answer.status_code == 409
    assert "has not completed" in answer.json()["detail"]


def _with(**changes: Any) -> dict[str, Any]:
    changed = deepcopy(JUDGE)
    for path, value in changes.items():
        part: Any = changed
        *names, last = path.split("__")
        for name in names:
            part = part[int(name)] if name.isdigit() else part[name]
        part[last] = value
    return changed


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_with(rubric={}), "rubric.version is required"),
        (_with(rubric__criteria=[]), "rubric.criteria must hold 1 to 12 entries"),
        (_with(rubric__criteria__0__lowest=9), "gives relevance a scale from 9 to 5"),
        (_with(rubric__criteria__0__name="Relevance"), "rubric.criteria[0].name"),
        (_with(rubric__criteria__1__name="relevance"), "two criteria relevance"),
        (_with(rubric__criteria__0__scale=1), "rubric.criteria[0].scale is not known"),
        (_with(rubric="tip-v1"), "rubric must be an object"),
        (_with(repeats=11), "repeats must be between 1 and 10"),
        (_with(config__params={"temperature": 0}, config__ollama_params={}), "not both"),
    ],
)
async def test_what_a_judge_cannot_judge_by_is_refused_with_what_is_wrong(
    gateway: Running, body: dict[str, Any], said: str
) -> None:
    judged = _finished(gateway)
    of_run = {"project_id": 1, "config": JUDGE["config"], "judges": [body]}
    for path, sent in ((f"judge/{judged.job_id}", body), ("run", of_run)):
        answer = await gateway.client.post(f"{BASE}/{path}", json=sent)
        assert answer.status_code == 422, answer.text
        assert said in answer.json()["detail"]


async def test_a_run_names_its_judges(gateway: Running) -> None:
    body = {"project_id": 1, "config": JUDGE["config"], "suite": "demo"}
    second = {**JUDGE, "rubric": CORRECT, "budget_usd": None}
    answer = await gateway.client.post(f"{BASE}/run", json=body | {"judges": [JUDGE, second]})
    assert answer.status_code == 200, answer.text
    first, other = gateway.world.jobs[answer.json()["job_id"]].spec.judges
    assert (first.endpoint, first.model, first.repeats) == ("ollama", "mistral:latest", 0)
    assert json.loads(other.rubric)["version"] == "qa-v1"
    answer = await gateway.client.post(f"{BASE}/run", json=body | {"judges": [JUDGE] * 4})
    assert answer.status_code == 422


async def test_judges_are_listed_with_means_on_their_scales(gateway: Running) -> None:
    judged = _finished(gateway)
    run = results_service_pb2.JudgeRun(job=judged, rubric=rubrics.of_value(TIPS))
    run.result.items, run.result.items_planned = 100, 100
    run.result.outcomes.CopyFrom(metric_pb2.OutcomeCounts(answered=90, unparsed=8, refused=1, infrastructure_error=1))
    run.result.metrics.add(metric="composite", mean=0.6, ci95_low=0.5, ci95_high=0.7, n=90)
    run.result.metrics.add(metric="relevance", mean=0.5, ci95_low=0.25, ci95_high=0.75, n=90, beside=True)
    run.verdicts.answers = 5
    run.verdicts.accuracy.MergeFrom(results_service_pb2.Interval(value=0.8, low=0.3, high=0.9, n=5))
    agreed = run.agreement.add(metric="relevance", answers=12, ratings_to_halve=40)
    agreed.bias.CopyFrom(results_service_pb2.Interval(value=0.1, low=0.05, high=0.15, n=12))
    run.judgements.add(number=1, outcome=item_result_pb2.OUTCOME_ANSWERED, scores='{"relevance":3}', response="<b>")
    run.judgements.add(number=2, outcome=item_result_pb2.OUTCOME_UNPARSED)
    people = results_service_pb2.PeopleAgreement(rubric=run.rubric, raters=2, answers=12, shared=5)
    alpha = results_service_pb2.Interval(value=0.5, low=-0.1, high=0.9, n=5)
    people.criteria.add(criterion="relevance", alpha=alpha)
    people.criteria.add(criterion="tone")
    gateway.world.judges[judged.job_id] = results_service_pb2.ListJudgesResponse(judges=[run], people=[people])
    told = (await gateway.client.get(f"{BASE}/results/{judged.job_id}/judges")).json()
    (among,), (found,) = told["people"], told["judges"]
    assert [among[name] for name in ("raters", "answers", "shared")] == [2, 12, 5]
    assert among["alpha"] == {"relevance": {"value": 0.5, "ci95": [-0.1, 0.9], "n": 5}, "tone": None}
    assert among["rubric"] == found["rubric"]
    assert (found["asked"], found["judged"], found["failed"]) == (100, 90, 9)
    assert found["rubric"] == json.loads(rubrics.written(run.rubric))
    assert list(found["criteria"]) == ["composite", "relevance"]
    assert found["criteria"]["composite"]["mean_on_scale"] == 0.6
    assert found["criteria"]["relevance"]["metric"]["mean"] == 0.5
    assert found["criteria"]["relevance"]["mean_on_scale"] == 3
    assert found["criteria"]["relevance"]["ci95_on_scale"] == [2, 4]
    assert "judgements" not in found
    (of_relevance,) = found["agreement"].values()
    assert (of_relevance["answers"], of_relevance["ratings_to_halve"]) == (12, 40)
    assert of_relevance["bias"] == {"value": 0.1, "ci95": [0.05, 0.15], "n": 12}
    assert of_relevance["combined"] is None
    assert found["verdicts"] == {"answers": 5, "accuracy": {"value": 0.8, "ci95": [0.3, 0.9], "n": 5}, "kappa": None}
    item: dict[str, str | int] = {"task": "demo", "item": 3}
    (found,) = (await gateway.client.get(f"{BASE}/results/{judged.job_id}/judges", params=item)).json()["judges"]
    assert found["judgements"] == [
        {"number": 1, "outcome": "answered", "scores": {"relevance": 3}, "response": "<b>", "other_first": False},
        {"number": 2, "outcome": "unparsed", "scores": None, "response": "", "other_first": False},
    ]
    answer = await gateway.client.get(f"{BASE}/results/{judged.job_id}/judges", params={"task": "demo"})
    assert answer.status_code == 422


async def test_a_choice_that_counts_nothing_is_shown_as_the_document_says(gateway: Running) -> None:
    judged = _finished(gateway)
    run = results_service_pb2.JudgeRun(job=judged, rubric=rubrics.of_value(CORRECT))
    gateway.world.judges[judged.job_id] = results_service_pb2.ListJudgesResponse(judges=[run])
    # The client checks every answer by the document.
    (found,) = (await gateway.client.get(f"{BASE}/results/{judged.job_id}/judges")).json()["judges"]
    assert [choice["value"] for choice in found["rubric"]["criteria"][0]["choices"]] == [1, 0.5, 0]


async def test_a_job_that_judged_is_scored_again_and_starts_no_judge(gateway: Running) -> None:
    world = gateway.world
    judged = _finished(gateway)
    made = (await gateway.client.post(f"{BASE}/judge/{judged.job_id}", json=JUDGE)).json()["job_id"]
    world.finish(world.start(made, ago_s=100).job_id)
    answer = await gateway.client.post(f"{BASE}/rescore/{made}")
    assert answer.status_code == 200, answer.text
    again = world.jobs[answer.json()["job_id"]].spec
    assert not again.HasField("judging")
    assert again.dataset == world.jobs[made].spec.dataset
    body = {"project_id": 1, "config": JUDGE["config"], "suite": "demo", "judges": [JUDGE]}
    run = (await gateway.client.post(f"{BASE}/run", json=body)).json()["job_id"]
    world.finish(world.start(run, ago_s=100).job_id)
    answer = await gateway.client.post(f"{BASE}/rescore/{run}")
    assert answer.status_code == 200, answer.text
    assert not world.jobs[answer.json()["job_id"]].spec.judges


async def test_a_judge_compares_two_jobs(gateway: Running) -> None:
    judged, other = _finished(gateway), _finished(gateway)
    body = {"config": JUDGE["config"], "against": other.job_id, "rubric": None}
    answer = await gateway.client.post(f"{BASE}/judge/{judged.job_id}", json=body)
    assert answer.status_code == 200, answer.text
    made = gateway.world.jobs[answer.json()["job_id"]].spec
    assert (made.judging.job_id, made.judging.against_job_id) == (judged.job_id, other.job_id)
    assert made.dataset.scoring.rubric == rubrics.written(rubrics.comparing(None))
    for sent, status, said in (
        ({"against": judged.job_id}, 400, "cannot be compared with themselves"),
        ({"against": f"{other.job_id[:-4]}0000"}, 404, "not found"),
        ({"against": None}, 422, "rubric is required without against"),
    ):
        answer = await gateway.client.post(f"{BASE}/judge/{judged.job_id}", json=body | sent)
        assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text


async def test_what_a_judge_of_two_jobs_prefers_is_listed(gateway: Running) -> None:
    judged = _finished(gateway)
    against = _finished(gateway).job_id
    run = results_service_pb2.JudgeRun(job=judged, rubric=rubrics.comparing(None))
    run.job.spec.judging.MergeFrom(job_pb2.Judging(job_id=judged.job_id, against_job_id=against, equal_pairs=7))
    run.pairs.pairs = 40
    one = run.pairs.preferences.add(metric="better", better=20, equal=15, worse=5)
    one.preferred.CopyFrom(results_service_pb2.Interval(value=0.6875, low=0.55, high=0.8, n=40))
    one.first_preferred.CopyFrom(results_service_pb2.Interval(value=0.7, low=0.5, high=0.9, n=38))
    run.pairs.people.pairs = 9
    run.pairs.people.accuracy.CopyFrom(results_service_pb2.Interval(value=1, low=0.7, high=1, n=9))
    gateway.world.judges[judged.job_id] = results_service_pb2.ListJudgesResponse(judges=[run])
    (found,) = (await gateway.client.get(f"{BASE}/results/{judged.job_id}/judges")).json()["judges"]
    assert found["pairs"] == {
        "against": against,
        "pairs": 40,
        "equal_pairs": 7,
        "preferences": {
            "better": {
                "preferred": {"value": 0.6875, "ci95": [0.55, 0.8], "n": 40},
                "better": 20,
                "equal": 15,
                "worse": 5,
                "same_in_both_orders": None,
                "first_preferred": {"value": 0.7, "ci95": [0.5, 0.9], "n": 38},
            }
        },
        "people": {"pairs": 9, "accuracy": {"value": 1, "ci95": [0.7, 1], "n": 9}, "kappa": None},
    }
