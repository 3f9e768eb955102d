"""People rate answers on a page: a queue of their own, no model's name, refusals in place, and agreement."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from services.errors import NoRoomError
from services.gateway.access import tokens
from services.gateway.pages.jobs import rating
from services.words import rubrics
from tests.e2e.every_page import odd_rubric, rated
from tests.gateway import fake_stored
from tests.gateway.fake_data import HOSTILE
from tests.gateway.gateway_server import Running
from tests.gateway.test_access import with_tokens
from tests.gateway.test_pages import page
from tests.gateway.test_pages_datasets import dataset_of, run_over
from tests.gateway.test_pages_judges import agreed, asked_of_judges, completed, judged
from tests.nats_server import NatsServer
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import job_pb2, results_service_pb2

BASE = "/api/v1/benchmarking/results"
DIGEST = rubrics.digest(rating.shipped())
GOOD = {"score.relevance": "4", "score.actionability": "5", "score.tone": "3"}
HTMX = {"HX-Request": "true"}


def desk(job: job_pb2.Job, digest: str = DIGEST, **more: str) -> str:
    """The page's address."""
    return rating.View(job.job_id, digest, **more).address()


def opened(text: str) -> str:
    """The answer that the form is about."""
    found = re.search(r'name="answer" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text[text.index("<main") :]).split())


async def sent(gateway: Running, address: str, form: Mapping[str, str], status: int = 303) -> tuple[str, str]:
    """What the form's answer says, and where it leads."""
    answer = await gateway.client.post(address, data=dict(form), follow_redirects=False)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text), answer.headers.get("location", "")


async def over(gateway: Running, *rows: dict[str, str]) -> job_pb2.Job:
    """A completed job over these rows of a dataset."""
    dataset = await dataset_of(gateway, "\n".join(map(json.dumps, rows)).encode())
    return gateway.world.finish(run_over(gateway, dataset).job_id)


async def stored(gateway: Running, job: job_pb2.Job) -> list[dict[str, Any]]:
    return list((await gateway.client.get(f"{BASE}/{job.job_id}/ratings")).json()["ratings"])


async def test_a_rating_is_stored_and_the_next_answer_of_the_queue_follows(gateway: Running) -> None:
    job = completed(gateway.world)
    address = desk(job)
    text = await page(gateway, address)
    asked = {"rubric": json.loads(rubrics.written(rating.shipped())), "limit": 3}
    found = (await gateway.client.post(f"{BASE}/{job.job_id}/unrated", json=asked)).json()
    queue, left = found["answers"], found["unrated"]
    keys = [f"{one['task']}:{one['item']}" for one in queue]
    assert opened(text) == keys[0]
    assert queue[0]["answer"] in text
    assert f"0 rated, {left:,} left" in words(text)
    _, where = await sent(gateway, address, GOOD | {"answer": keys[0], "note": "Clear.\r\nShort."})
    assert where == address
    text = await page(gateway, where)
    assert opened(text) == keys[1]
    assert f"1 rated, {left - 1:,} left" in words(text)
    (one,) = await stored(gateway, job)
    assert (one["scores"], one["note"]) == ({"relevance": 4, "actionability": 5, "tone": 3}, "Clear.\nShort.")
    part = await gateway.client.post(address, data=GOOD | {"answer": keys[1]}, headers=HTMX)
    assert part.text.startswith('<div id="desk"')
    assert opened(part.text) == keys[2]
    assert part.headers["hx-push-url"] == address
    await sent(gateway, address, GOOD | {"answer": keys[1]})
    assert len(await stored(gateway, job)) == 2, "sent twice, it is stored once"


async def test_the_page_is_blind(gateway: Running) -> None:
    job = completed(gateway.world)
    run = judged(gateway.world, job)
    agreed(run)
    run.job.spec.model = "a-judge"
    for address in (desk(job), desk(job, answer=f"{job.plan[0].task}:1")):
        text = await page(gateway, address)
        assert job.spec.model not in text
        assert run.job.spec.model not in text
        assert "<title>Rate answers by tip-v1 · Touchstone</title>" in text
        assert "latency" not in text


async def test_the_rubric_stands_at_the_answer(gateway: Running) -> None:
    said = words(await page(gateway, desk(completed(gateway.world))))
    for criterion in rating.shipped().criteria:
        assert criterion.description in said
        for example in criterion.examples:
            assert example.answer in said
            assert example.why in said
    assert rating.shipped().instructions in said
    assert "relevance 1 to 5, weight 40 %" in said


async def test_wrong_scores_are_refused_in_place_and_nothing_is_lost(gateway: Running) -> None:
    job = completed(gateway.world)
    address, task = desk(job), job.plan[0].task
    long = "x" * 2_001
    for wrong, said in (
        ({"score.tone": ""}, "Give a score: a whole number from 1 to 5."),
        ({"score.tone": "6"}, "The score must be a whole number from 1 to 5."),
        ({"score.tone": "4.5"}, "The score must be a whole number from 1 to 5."),
        ({"score.tone": HOSTILE}, "The score must be a whole number from 1 to 5."),
        ({"note": long}, "The note has 2,001 characters; at most 2,000 are allowed."),
    ):
        text, _ = await sent(gateway, address, GOOD | {"answer": f"{task}:7", "note": "Kept."} | wrong, 422)
        assert said in text
        assert opened(text) == f"{task}:7"
        assert 'name="score.relevance" value="4" data-key="4" checked' in text
        assert (long if "note" in wrong else "Kept.") in text
        assert "Nothing is stored yet." in text
    raw = await gateway.client.post(address, data={"answer": f"{task}:7", "note": HOSTILE}, headers=HTMX)
    assert raw.status_code == 422
    assert raw.text.count("Give a score:") == 3
    assert "<script" not in raw.text
    assert await stored(gateway, job) == []
    await sent(gateway, address, GOOD | {"answer": "nothing"}, 400)


async def test_what_the_service_refuses_is_said_and_nothing_is_lost(
    gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise NoRoomError("The disk is full.", 60)

    job = completed(gateway.world)
    monkeypatch.setattr(fake_stored, "rate", full)
    text, _ = await sent(gateway, desk(job), GOOD | {"answer": f"{job.plan[0].task}:7", "note": "Kept."}, 422)
    assert "The disk is full." in text
    assert "Kept." in text
    assert 'name="score.relevance" value="4" data-key="4" checked' in text


async def test_a_rating_can_be_changed_and_taken_back(gateway: Running) -> None:
    job = completed(gateway.world)
    first, second, third = rated(gateway.world, job.job_id, rating.shipped(), 3)
    text = await page(gateway, desk(job))
    at = re.search(r'rel="prev" href="([^"]+)"', text)
    assert at is not None, "the one rated last is one step back"
    text = await page(gateway, html.unescape(at[1]))
    assert opened(text) in (first, second, third)
    text = await page(gateway, desk(job, answer=second))
    assert opened(text) == second
    assert "checked" in text
    assert "Change it" in text
    assert "Take this rating back" in text
    await sent(gateway, desk(job, answer=second), GOOD | {"answer": second})
    newest = [one for one in await stored(gateway, job) if f"{one['task']}:{one['item']}" == second]
    assert [one["scores"]["relevance"] for one in newest] == [4]
    assert len(await stored(gateway, job)) == 3
    _, where = await sent(gateway, desk(job, answer=second), {"answer": second, "act": "clear"})
    assert len(await stored(gateway, job)) == 2
    text = await page(gateway, where)
    assert opened(text) == second
    assert "checked" not in text
    assert "Take this rating back" not in text


async def test_what_was_skipped_comes_again_at_the_end(gateway: Running) -> None:
    job = await over(gateway, *({"prompt": f"p{n}"} for n in range(4)))
    text = await page(gateway, desk(job))
    skipped = opened(text)
    skip = re.search(r'data-skip rel="next" href="([^"]+)"', text)
    assert skip is not None
    address = html.unescape(skip[1])
    text = await page(gateway, address)
    for _ in range(3):
        assert opened(text) != skipped
        _, where = await sent(gateway, address, GOOD | {"answer": opened(text)})
        assert where == address, "what was skipped stays skipped"
        text = await page(gateway, where)
    assert opened(text) == skipped
    assert "data-skip" not in text, "there is nothing else"
    await sent(gateway, address, GOOD | {"answer": skipped})
    said = words(await page(gateway, address))
    assert "You have rated all 4 answers by tip-v1" in said


async def test_each_person_has_a_queue(tmp_path: Path) -> None:
    nats = NatsServer().start(tmp_path)
    try:
        async with with_tokens(nats) as (gateway, nats_bus):
            job = completed(gateway.world)
            job.owner = "ann"
            cookies = {}
            for user, role in (("ann", "user"), ("bob", "admin")):
                text = await tokens.create(nats_bus, user, role, "laptop")
                answer = await gateway.client.post("/login", data={"token": text}, headers={"Origin": gateway.url})
                cookies[user] = {"Cookie": f"touchstone={answer.cookies['touchstone']}"}
                gateway.client.cookies.clear()
            read = await gateway.client.get(desk(job), headers=cookies["ann"])
            csrf = re.search(r'name="csrf" value="([^"]+)"', read.text)
            assert csrf is not None
            form = GOOD | {"answer": opened(read.text)}
            headers = cookies["ann"] | {"Origin": gateway.url}
            refused = await gateway.client.post(desk(job), data=form, headers=headers)
            assert refused.status_code == 403
            done = await gateway.client.post(desk(job), data=form | {"csrf": csrf[1]}, headers=headers)
            assert done.status_code == 303
            for user, count in (("ann", 1), ("bob", 0)):
                read = await gateway.client.get(desk(job), headers=cookies[user])
                assert f"as {user} {count} rated" in words(read.text)
                assert (opened(read.text) == form["answer"]) is (user == "bob")
                assert ("Rated by you" in read.text) is (user == "ann")
    finally:
        nats.stop()


async def test_a_rubric_is_chosen_or_written(gateway: Running) -> None:
    job = completed(gateway.world)
    judged(gateway.world, job)
    address = f"/jobs/{job.job_id}/rate"
    assert f'href="{address}"' in await page(gateway, f"/jobs/{job.job_id}")
    text = await page(gateway, address)
    by_judge = rubrics.digest(rubrics.of_value(TIPS))
    for digest, source in ((by_judge, "judge mistral:7b"), (DIGEST, "ships with Touchstone")):
        assert f"{address}?rubric={digest}" in text
        assert source in text
        assert "Your scores" in await page(gateway, f"{address}?rubric={digest}")
    for wrong, said in (("{", "The rubric is not JSON."), ('{"version": "</textarea><script>"}', "needs a version")):
        refused, _ = await sent(gateway, address, {"rubric": wrong}, 422)
        assert said in refused
        assert wrong in refused
    own = deepcopy(CORRECT) | {"version": "mine-v1"}
    _, where = await sent(gateway, address, {"rubric": json.dumps(own, indent=1).replace("\n", "\r\n")})
    assert where == f"{address}?rubric={rubrics.digest(rubrics.of_value(own))}"
    text = await page(gateway, where)
    assert "by mine-v1" in words(text)
    assert "No rubric nothing is known" in await page(gateway, f"{address}?rubric=nothing", 404)
    gateway.world.judges[job.job_id].people.add(rubric=rubrics.of_value(own))
    assert "people rate by it" in await page(gateway, address)


async def test_a_rubric_of_a_judge_outside_is_not_called_peoples(gateway: Running) -> None:
    job, rubric = completed(gateway.world), rubrics.of_value(CORRECT)
    outside = results_service_pb2.OutsideJudge(judge="acme/j", rater="bot", rubric=rubric)
    gateway.world.judges[job.job_id] = results_service_pb2.ListJudgesResponse(outside=[outside])
    said = words(await page(gateway, f"/jobs/{job.job_id}/rate"))
    assert "qa-v1 " in said
    assert "outside judge acme/j" in said
    assert "people rate by it" not in said
    gateway.world.judges[job.job_id].people.add(rubric=rubric)
    assert "outside judge acme/j, people rate by it" in words(await page(gateway, f"/jobs/{job.job_id}/rate"))


async def test_judges_are_not_asked_for_each_answer(gateway: Running) -> None:
    job = completed(gateway.world)
    await page(gateway, desk(job))
    rated(gateway.world, job.job_id, rubrics.of_value(CORRECT), 1)
    await page(gateway, desk(job, rubrics.digest(rubrics.of_value(CORRECT))))
    assert asked_of_judges(gateway) == []


async def test_scales_and_choices_have_keys(gateway: Running) -> None:
    job, rubric = completed(gateway.world), odd_rubric()
    rated(gateway.world, job.job_id, rubric, 1, "other")
    text = await page(gateway, desk(job, rubrics.digest(rubric)))
    whole = re.findall(r'name="score.whole" value="(.*?)" data-key="(\d)"', text)
    assert whole == [("no", "1"), (HOSTILE[:70], "2"), ("y", "3")]
    assert re.findall(r'name="score.change" value="(-?\d)" data-key="(\d)"', text) == [
        (str(score), str(key)) for key, score in enumerate(range(-2, 3), 1)
    ]
    assert '<input name="score.share" value="" inputmode="numeric"' in text
    form = {"answer": opened(text), "score.whole": HOSTILE[:70], "score.share": " 40 ", "score.change": "-1"}
    await sent(gateway, desk(job, rubrics.digest(rubric)), form)
    (mine,) = [one for one in await stored(gateway, job) if one["rater"] == "local"]
    assert mine["scores"] == {"whole": HOSTILE[:70], "share": 40, "change": -1}
    raw = (await gateway.client.get(desk(job, rubrics.digest(rubric), answer=opened(text)))).text
    assert "checked" in raw
    part = raw[raw.index('id="desk"') : raw.index('id="agreement"')]
    assert "<script" not in part
    assert "<img" not in part
    assert "<hx-partial" not in part


async def test_all_of_a_long_answer_is_in_the_page(gateway: Running) -> None:
    """So that showing the rest loses no score."""
    long = "word " * 1_000 + HOSTILE
    job = await over(gateway, {"prompt": long})
    raw = (await gateway.client.get(desk(job))).text
    assert raw.count("Show all") >= 1
    assert HOSTILE in html.unescape(raw[raw.index("Show all") :])
    part = raw[raw.index('id="desk"') :]
    assert "<script" not in part
    assert "<img" not in part


async def test_agreement_is_shown_on_demand(gateway: Running) -> None:
    job = completed(gateway.world)
    view = rating.View(job.job_id, DIGEST)
    address = view.address("rate/agreement")
    assert html.escape(address) in (await gateway.client.get(desk(job))).text
    assert "Nobody has rated by this rubric yet." in await page(gateway, address)
    found = results_service_pb2.ListJudgesResponse()
    gateway.world.judges[job.job_id] = found
    run = judged(gateway.world, job, json.loads(rubrics.written(rating.shipped())))
    people = gateway.world.judges[job.job_id].people.add(rubric=rating.shipped(), raters=1, answers=9)
    assert "needs two people who rated the same answers" in await page(gateway, address)
    people.raters, people.shared = 2, 7
    people.criteria.add(criterion="tone", alpha=results_service_pb2.Interval(value=0.5, low=-0.125, high=0.9, n=7))
    people.criteria.add(criterion="relevance")
    agreed(run)
    judged(gateway.world, job, CORRECT)
    said = words(await page(gateway, address))
    assert "2 people, 9 answers rated, 7 by two or more" in said
    assert "tone, alpha 0.50 −0.12 to 0.90" in said
    assert "relevance, alpha –" in said
    assert "its composite is 10.5 points above people's" in said
    assert said.count("Judge mistral:7b") == 1, "only judges by this rubric"
    assert job.spec.model not in said
    part = await gateway.client.get(address, headers=HTMX)
    assert part.text.startswith('<section id="agreement"')


async def test_only_answers_of_completed_jobs_can_be_rated(gateway: Running) -> None:
    world = gateway.world
    live = world.start(world.add(completed(world).spec, "local").job_id)
    assert "Rate answers" not in await page(gateway, f"/jobs/{live.job_id}")
    assert "has not completed" in await page(gateway, desk(live), 409)
    judge = judged(world, completed(world)).job
    world.jobs[judge.job_id] = judge
    assert "judges answers itself" in await page(gateway, desk(judge), 409)


@pytest.mark.parametrize("key", ["", "t", "t:", "t:-1", "t:1.", "t:1.x", "t:1.2.3", "t:²", ":1", "t:1234567890"])
def test_other_texts_name_no_answer(key: str) -> None:
    assert rating.place_of(key) is None


@pytest.mark.parametrize("key", ["t:1", "t:1.2", "a:b:3", HOSTILE + ":1"])
def test_an_answer_is_named_by_its_place(key: str) -> None:
    place = rating.place_of(key)
    assert place is not None
    assert rating.key_of(place) == key


def test_a_prompt_of_one_message_has_no_role() -> None:
    assert rating._asked("user: Is it so?") == "Is it so?"
    assert rating._asked("user:\nIs it so?") == "Is it so?"
    assert rating._asked("Is it so?") == "Is it so?"
    several = "user: Hi.\nassistant: Hi.\nuser: Is it so?"
    assert rating._asked(several) == several
