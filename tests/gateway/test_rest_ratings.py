"""Rating answers through REST: what is left to rate, what is refused, and what people said."""

from __future__ import annotations

from typing import Any

from services.words import rubrics
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

BASE = "/api/v1/benchmarking/results"
GOOD = {"relevance": 4, "actionability": 5, "tone": 3}


def _finished(gateway: Running) -> job_pb2.Job:
    world = gateway.world
    job = world.start(world.add(spec(suite="demo"), "local").job_id, ago_s=100)
    return world.finish(job.job_id)


async def _unrated(gateway: Running, job_id: str, **more: Any) -> dict[str, Any]:
    answer = await gateway.client.post(f"{BASE}/{job_id}/unrated", json={"rubric": TIPS, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_ratings_are_stored_and_what_is_left_shrinks(gateway: Running) -> None:
    job_id = _finished(gateway).job_id
    before = await _unrated(gateway, job_id, limit=3)
    first, second, third = before["answers"]
    assert before["rated"] == 0
    assert before["next_page_token"]
    assert first["prompt"]
    place = {name: first[name] for name in ("task", "item", "repeat")}
    sent = {"rubric": TIPS, "ratings": [place | {"scores": GOOD, "note": "clear"}]}
    assert (await gateway.client.post(f"{BASE}/{job_id}/ratings", json=sent)).json() == {"stored": 1, "unchanged": 0}
    assert (await gateway.client.post(f"{BASE}/{job_id}/ratings", json=sent)).json() == {"stored": 0, "unchanged": 1}
    after = await _unrated(gateway, job_id, limit=2)
    assert after["answers"] == [second, third]
    assert (after["rated"], after["unrated"]) == (1, before["unrated"] - 1)
    listed = (await gateway.client.get(f"{BASE}/{job_id}/ratings")).json()
    (rating,) = listed["ratings"]
    assert (rating["scores"], rating["note"], rating["rater"]) == (GOOD, "clear", "local")
    assert [one["version"] for one in listed["rubrics"]] == ["tip-v1"]
    other = {"rubric_digest": "0" * 64}
    assert (await gateway.client.get(f"{BASE}/{job_id}/ratings", params=other)).json()["ratings"] == []
    back = {"rubric": TIPS, "ratings": [place]}
    assert (await gateway.client.post(f"{BASE}/{job_id}/ratings", json=back)).json()["stored"] == 1
    assert (await gateway.client.get(f"{BASE}/{job_id}/ratings")).json()["ratings"] == []


async def test_wrong_ratings_are_named_and_nothing_is_stored(gateway: Running) -> None:
    job_id = _finished(gateway).job_id
    answers = (await _unrated(gateway, job_id, limit=3))["answers"]
    places = [{name: one[name] for name in ("task", "item", "repeat")} for one in answers]
    given = [GOOD, {"relevance": 4}, GOOD | {"tone": 9}]
    sent = {"rubric": TIPS, "ratings": [place | {"scores": one} for place, one in zip(places, given, strict=True)]}
    answer = await gateway.client.post(f"{BASE}/{job_id}/ratings", json=sent)
    assert answer.status_code == 400, answer.text
    told = answer.text
    assert "2 ratings of 3 cannot be stored, so none is." in told
    assert "has no score for actionability" in told
    assert "gives tone the score 9" in told
    assert (await gateway.client.get(f"{BASE}/{job_id}/ratings")).json()["ratings"] == []


async def test_the_form_is_checked(gateway: Running) -> None:
    job_id = _finished(gateway).job_id
    for sent, said in (
        ({"rubric": CORRECT, "ratings": []}, "ratings must hold 1 to 1000 entries"),
        ({"judge": "two words", "ratings": [{"task": "t", "item": 0}]}, "judge must be 1 to 100 letters"),
        ({"rubric": CORRECT, "ratings": [{"task": "t", "item": 0, "scores": 5}]}, "scores must be an object"),
        ({"rubric": CORRECT, "ratings": [{"task": "t", "item": -1}]}, "item must be between 0"),
    ):
        answer = await gateway.client.post(f"{BASE}/{job_id}/ratings", json=sent)
        assert answer.status_code == 422, answer.text
        assert said in answer.json()["detail"]


async def test_a_judge_outside_has_an_own_queue_and_is_shown_apart(gateway: Running) -> None:
    job_id = _finished(gateway).job_id
    answers = (await _unrated(gateway, job_id, judge="acme/j", limit=3))["answers"]
    places = [{name: one[name] for name in ("task", "item", "repeat")} for one in answers]
    sent = {"rubric": TIPS, "judge": "acme/j", "ratings": [place | {"scores": GOOD} for place in places]}
    assert (await gateway.client.post(f"{BASE}/{job_id}/ratings", json=sent)).json() == {"stored": 3, "unchanged": 0}
    assert (await _unrated(gateway, job_id))["rated"] == 0
    left = await _unrated(gateway, job_id, judge="acme/j")
    assert (left["rated"], left["rubric"]["version"]) == (3, "tip-v1")
    listed = (await gateway.client.get(f"{BASE}/{job_id}/ratings")).json()["ratings"]
    assert {(one["rater"], one["judge"]) for one in listed} == {("local", "acme/j")}
    none = await gateway.client.post(f"{BASE}/{job_id}/unrated", json={})
    assert none.status_code in (400, 422), none.text
    assert "belongs to no experiment" in none.text


async def test_what_a_judge_outside_found_is_listed_with_judges(gateway: Running) -> None:
    job_id = _finished(gateway).job_id
    outside = pb.OutsideJudge(judge="acme/j", rater="bot", judged=2, answers=3, rubric=rubrics.of_value(TIPS))
    outside.means.add(criterion="tone", score=pb.Interval(value=0.5, low=0.2, high=0.8, n=2))
    outside.agreement.add(metric="tone", answers=1)
    gateway.world.judges[job_id] = pb.ListJudgesResponse(outside=[outside])
    (found,) = (await gateway.client.get(f"{BASE}/{job_id}/judges")).json()["outside"]
    assert (found["judge"], found["rater"], found["judged"], found["answers"]) == ("acme/j", "bot", 2, 3)
    assert (found["means"]["tone"]["value"], found["rubric"]["version"]) == (0.5, "tip-v1")
    assert (found["agreement"]["tone"]["answers"], found["verdicts"]) == (1, None)
