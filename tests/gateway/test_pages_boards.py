"""What the leaderboard's page has beside its figures: files, remedies, rows for Compare, baselines of its suite."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import pytest

from tests.gateway import fake_data
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import metric_pb2, suite_pb2


async def page(gateway: Running, address: str) -> str:
    answer = await gateway.client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


async def rest(gateway: Running, address: str) -> Any:
    answer = await gateway.client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.json()


def row_of(text: str, job_id: str) -> str:
    return next(part for part in text.split("<tr")[1:] if f'href="/jobs/{job_id}"' in part).partition("</tr>")[0]


def fill(gateway: Running) -> list[metric_pb2.LeaderboardEntry]:
    entries = fake_data.leaderboard({})
    for entry in entries[:11]:
        entry.rank_low, entry.rank_high = max(1, entry.rank - 1), min(11, entry.rank + 2)
    entries[0].cost_usd = 0.4142
    gateway.world.boards["glue"] = entries
    return entries


async def test_the_csv_file_has_the_rows_and_values_of_rest(gateway: Running) -> None:
    fill(gateway)
    text = await page(gateway, "/leaderboard?suite=glue&metric=score")
    addresses = re.findall(r'href="((?:/api/v1/benchmarking)?/leaderboard[^"]*)"', text)
    csv_address = next(one for one in addresses if "export" in one)
    known = await rest(gateway, next(one for one in addresses if one.startswith("/api")))
    rows = list(csv.DictReader(io.StringIO((await gateway.client.get(csv_address)).text)))
    assert [row["job_id"] for row in rows] == [one["job_id"] for one in (*known["leaderboard"], *known["not_ranked"])]
    for row, one in zip(rows, known["leaderboard"], strict=False):
        assert row["rank"] == ("" if one["rank"] is None else str(one["rank"]))
        assert float(row["score"]) == one["score"]
        assert [float(row["ci95_low"]), float(row["ci95_high"])] == one["ci95"]
        assert row["cost_usd"] == ("" if one["cost_usd"] is None else str(one["cost_usd"]))
        if one["rank_range"]:
            assert [int(row["rank_low"]), int(row["rank_high"])] == one["rank_range"]
    assert [row["reason"] for row in rows[-2:]] == [one["reason"] for one in known["not_ranked"]]
    hidden = await gateway.client.get(f"{csv_address.partition('&show')[0]}&show=baselines")
    assert len(list(csv.DictReader(io.StringIO(hidden.text)))) == len(rows) - 2
    assert (await gateway.client.get("/leaderboard/export?suite=zzz")).status_code == 400


async def test_a_run_has_its_cost_and_the_column_is_there_only_with_one(gateway: Running) -> None:
    entries = fill(gateway)
    text = await page(gateway, "/leaderboard?suite=glue")
    assert row_of(text, entries[0].job_id).rstrip().endswith('<td class="num">$0.41</td>')
    assert row_of(text, entries[1].job_id).rstrip().endswith('<td class="num">–</td>')
    entries[0].ClearField("cost_usd")
    assert ">Cost<" not in await page(gateway, "/leaderboard?suite=glue")


async def test_a_range_of_ranks_explains_itself_and_a_line_ends_the_top_group(gateway: Running) -> None:
    entries = fill(gateway)
    text = await page(gateway, "/leaderboard?suite=glue")
    third = row_of(text, entries[2].job_id)
    assert 'tabindex="0"' in third
    assert 'data-says="may be 2nd to 5th"' in third
    assert f'aria-label="{entries[2].model} may be 2nd to 5th"' in third
    ends = [one.model for one in entries[:11] if "last-of-top" in row_of(text, one.job_id).partition(">")[0]]
    assert ends == [entries[1].model], "the second may be first, the third may not"
    assert "The line marks the end of the top group" in text


async def test_a_cell_not_shown_to_beat_the_majority_has_a_look_of_its_own(gateway: Running) -> None:
    entries = fill(gateway)
    text = await page(gateway, "/leaderboard?suite=glue")
    weakest = row_of(text, next(one.job_id for one in entries if one.model == "gemma3:4b"))
    looks = re.findall(r'<td class="heat (h\d)"\s+title="(\S+) [^"]*?(; not shown[^"]*)?"', weakest)
    assert {task: (look, bool(said)) for look, task, said in looks}["MRPC"] == ("h0", True)
    assert {(look == "h0", bool(said)) for look, _, said in looks} == {(True, True), (False, False)}
    floor = row_of(text, next(one.job_id for one in entries if one.baseline))
    assert "h0" not in floor


async def test_rows_are_chosen_for_compare_by_a_plain_form(gateway: Running) -> None:
    entries = fill(gateway)
    text = await page(gateway, "/leaderboard?suite=glue")
    assert '<form id="compare-rows" action="/compare"' in text
    boxes = re.findall(r'<input type="checkbox" name="jobs" value="([^"]+)" form="compare-rows"', text)
    assert boxes == [one.job_id for one in entries if not one.not_ranked_reason]


async def test_each_run_without_a_rank_has_a_remedy_of_one_click(gateway: Running) -> None:
    entries = fill(gateway)
    marked = entries[-2]
    marked.mark, marked.not_ranked_reason = "invalidated", "the run was invalidated: wrong prompt"
    text = await page(gateway, "/leaderboard?suite=glue")
    assert f'action="/jobs/{marked.job_id}/again"' in row_of(text, marked.job_id)
    assert f'action="/jobs/{entries[-1].job_id}/retry"' in row_of(text, entries[-1].job_id)


async def test_running_again_makes_the_same_job_without_stored_answers_and_once(gateway: Running) -> None:
    world = gateway.world
    asked = spec("m:1b", limit=5)
    asked.reuse.any_job = True
    job = world.finish(world.start(world.add(asked, "local").job_id).job_id)
    made = len(world.specs)
    for _ in range(2):
        answer = await gateway.client.post(f"/jobs/{job.job_id}/again", data={"request_id": "one"})
        assert answer.status_code in (200, 303), answer.text
    (again,) = world.specs[made:]
    assert (again.model, again.suite.limit, again.HasField("reuse")) == ("m:1b", 5, False)


@pytest.mark.parametrize("suite", ["glue", "demo"])
async def test_an_empty_board_starts_the_baselines_of_its_suite(gateway: Running, suite: str) -> None:
    text = await page(gateway, f"/leaderboard?suite={suite}")
    form = text.partition('action="/baselines"')[2].partition("</form>")[0]
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert sent["suite"] == suite
    await gateway.client.post("/baselines", data=sent)
    specs = gateway.world.specs
    assert {one.suite.suite for one in specs} == {suite}
    assert {(one.endpoint, one.mode) for one in specs} == {("baselines", suite_pb2.MODE_GENERATE)}
