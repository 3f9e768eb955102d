"""The compare page over the fake services: how one comes to it, what it refuses, and what it weighs."""

from __future__ import annotations

import gzip
import html
import re

from tests.e2e.every_page import dataset_with_runs
from tests.gateway import experiment_boards
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import World, spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import comparison_pb2

HTML = {"Accept": "text/html"}


def finished(world: World, *models: str, suite: str = "glue") -> list[str]:
    """Jobs on a suite, as they are made."""
    found = []
    for model in models:
        wanted = spec(model, suite, limit=5)
        found.append(world.finish(world.start(world.add(wanted, "local").job_id).job_id).job_id)
    return found


async def page(gateway: Running, address: str, status: int = 200) -> str:
    answer = await gateway.client.get(address, headers=HTML)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


async def test_without_runs_it_offers_the_newest_run_of_each_configuration(gateway: Running) -> None:
    assert "Nothing to compare yet" in await page(gateway, "/compare")
    ids = finished(gateway.world, "alpha", "beta")
    text = await page(gateway, "/compare")
    assert all(f'name="jobs" value="{job_id}"' in text for job_id in ids)
    one = await page(gateway, f"/compare?jobs={ids[0]}")
    assert f'<input type="hidden" name="jobs" value="{ids[0]}">' in one
    assert "1 run selected" in one


async def test_runs_of_a_dataset_stand_under_its_name(gateway: Running) -> None:
    held = dataset_with_runs(gateway.world, "triage.jsonl", "Which ward?")
    text = await page(gateway, "/compare")
    assert "<h2>triage.jsonl</h2>" in text
    assert f"<h2>{held}</h2>" not in text


async def test_runs_of_a_dataset_that_is_not_listed_stand_under_its_name(gateway: Running) -> None:
    experiment_boards.add(gateway.world, "tips")
    text = await page(gateway, "/compare")
    assert "<h2>tips</h2>" in text
    assert "<h2>ds_" not in text


async def test_ticked_boxes_lead_to_one_address(gateway: Running) -> None:
    ids = finished(gateway.world, "alpha", "beta")
    answer = await gateway.client.get(f"/compare?jobs={ids[0]}&jobs={ids[1]}", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/compare?jobs={ids[0]},{ids[1]}")


async def test_the_margin_and_the_baseline_are_asked_for(gateway: Running) -> None:
    ids = finished(gateway.world, "alpha", "beta", "gamma")
    text = await page(gateway, f"/compare?jobs={','.join(ids)}&baseline={ids[0]}&margin=0.02")
    asked = [one for one in gateway.world.asked if isinstance(one, comparison_pb2.CompareRequest)][-1]
    assert (list(asked.subjects), asked.baseline, asked.margin) == (ids, ids[0], 0.02)
    assert '<option value="0.02" selected>2 points' in text
    assert "Every pair" in text
    assert "test every pair" in text
    for job_id in ids[1:]:
        assert f'href="/compare?jobs={",".join(ids)}&baseline={job_id}&margin=0.02"' in text
    assert f'href="/compare?jobs={",".join(ids[:2])}&baseline={ids[0]}&margin=0.02"' in text


async def test_runs_that_cannot_be_compared_say_why(gateway: Running) -> None:
    ids = finished(gateway.world, "alpha", "twisted")
    text = re.sub("<[^>]*>", "", await page(gateway, f"/compare?jobs={','.join(ids)}"))
    assert "alpha and twisted cannot be compared on GLUE: the prompts differ." in text


async def test_runs_of_two_suites_are_offered_apart(gateway: Running) -> None:
    world = gateway.world
    ids = [*finished(world, "alpha", "beta"), *finished(world, "gamma", suite="demo")]
    text = await page(gateway, f"/compare?jobs={','.join(ids)}", 400)
    assert "Only runs of one suite can be compared." in text
    assert f'href="/compare?jobs={ids[0]},{ids[1]}">the 2 runs of GLUE</a>' in text
    assert f'href="/compare?jobs={ids[2]}">the run of Demo with another one</a>' in text


async def test_unknown_unfinished_and_too_many_runs_are_said_with_the_list(gateway: Running) -> None:
    ids = finished(gateway.world, *"abcdefghijk")
    waiting = gateway.world.add(spec("late"), "local").job_id
    assert "Select at most 10" in await page(gateway, f"/compare?jobs={','.join(ids)}", 400)
    assert "has no finished run yet" in await page(gateway, f"/compare?jobs={ids[0]},{waiting}", 404)
    nobody = "00000000-0000-4000-8000-000000000000"
    assert f"{nobody} not found" in await page(gateway, f"/compare?jobs={ids[0]},{nobody}", 404)
    assert "not found" in await page(gateway, "/compare?jobs=x", 404)


async def test_a_job_is_compared_with_its_previous_run(gateway: Running) -> None:
    first, other, second = finished(gateway.world, "alpha", "beta", "alpha")
    answer = await gateway.client.get(f"/compare?jobs={second}&against=previous", headers=HTML)
    assert answer.headers["location"] == f"/compare?jobs={second},{first}"
    assert "first completed run" in await page(gateway, f"/compare?jobs={first}&against=previous", 404)
    assert "first completed run" in await page(gateway, f"/compare?jobs={other}&against=previous", 404)
    assert f'href="/compare?jobs={second}&against=previous"' in await page(gateway, f"/jobs/{second}")
    for alone in (first, other):
        assert "against=previous" not in await page(gateway, f"/jobs/{alone}"), "it is offered where there is one"


async def test_rows_side_by_side_say_how_each_run_compares(gateway: Running) -> None:
    ids = finished(gateway.world, "alpha", "beta", "gamma")
    text = await page(gateway, f"/side-by-side/verdict?jobs={ids[0]},{ids[1]}")
    assert text.count('<p class="headline">') == 1
    assert "gamma" not in text
    text = await page(gateway, f"/side-by-side/verdict?jobs={','.join(ids)}")
    sentences = [part.partition("</p>")[0] for part in text.split('<p class="headline">')[1:]]
    assert [one.count("<b>alpha</b>") for one in sentences] == [1, 1]
    assert "Each run is compared with A, alpha." in text
    for name in ("beta", "gamma"):
        assert f"<b>{name}</b>" in text


async def test_boards_and_history_select_completed_runs(gateway: Running) -> None:
    (done,) = finished(gateway.world, "alpha")
    waiting = gateway.world.add(spec("late"), "local").job_id
    text = await page(gateway, "/jobs")
    assert f'name="jobs" value="{done}" form="compare-rows" data-can="compare delete"' in text
    assert re.search(r'aria-label="Select alpha, job \w+ to compare"', text)
    assert f'name="jobs" value="{waiting}" form="compare-rows" data-can="cancel"' in text
    assert '<form id="compare-rows" action="/compare"' in text


async def test_hostile_names_do_nothing(gateway: Running) -> None:
    ids = finished(gateway.world, HOSTILE, f"x{HOSTILE}")
    answer = await gateway.client.get(f"/compare?jobs={','.join(ids)}", headers=HTML)
    assert answer.status_code == 200
    assert HOSTILE not in answer.text
    assert HOSTILE in html.unescape(answer.text)


async def test_fifty_seven_tasks_are_a_small_page(gateway: Running) -> None:
    ids = finished(gateway.world, "alpha", "beta")
    for job_id in ids:
        gateway.world.jobs[job_id].spec.suite.suite = "mmlu"
    answer = await gateway.client.get(f"/compare?jobs={','.join(ids)}", headers=HTML)
    assert answer.text.count('<tr class="shown">') == 57
    assert len(gzip.compress(answer.content)) < 60_000
