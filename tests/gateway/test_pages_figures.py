"""Figures of pages against those of REST, and what pages say about runs that do not count."""

from __future__ import annotations

import html
import re
import time
from typing import Any

from services.gateway.pages.boards.table import distinctions
from services.gateway.pages.display.formatting import change
from services.gateway.pages.jobs.history import PAGE_SIZE
from tests.gateway import fake_data
from tests.gateway.fake_world import World, busy_world, spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2

_CELL = re.compile(r'<t[dh][^>]*class="(?P<name>[^"]*)"[^>]*>(?P<text>.*?)</t[dh]>', re.DOTALL)


async def page(gateway: Running, address: str) -> str:
    answer = await gateway.client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


async def rest(gateway: Running, address: str) -> Any:
    answer = await gateway.client.get(f"/api/v1/benchmarking{address}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def cells(text: str, job_id: str) -> dict[str, str]:
    """The table row that links to the job: text by its cell's last class, tags taken out."""
    row = next(part for part in text.split("<tr")[1:] if f'href="/jobs/{job_id}"' in part).partition("</tr>")[0]
    return {
        cell["name"].removeprefix("num ").split()[0]: " ".join(re.sub("<[^>]*>", " ", cell["text"]).split())
        for cell in _CELL.finditer(row)
    }


def points(value: float) -> str:
    return f"{value * 100:.1f}".replace("-", "−")


def fill(gateway: Running) -> World:
    filled = busy_world()
    gateway.world.jobs, gateway.world.results, gateway.world.boards = filled.jobs, filled.results, filled.boards
    return gateway.world


def listed(world: World) -> list[results_service_pb2.ResultsServiceListJobsRequest]:
    """The requests for jobs."""
    return [one for one in world.asked if isinstance(one, results_service_pb2.ResultsServiceListJobsRequest)]


def boards_asked(world: World) -> list[results_service_pb2.GetLeaderboardRequest]:
    """The requests for leaderboards."""
    return [one for one in world.asked if isinstance(one, results_service_pb2.GetLeaderboardRequest)]


async def test_history_shows_the_scores_of_rest_from_one_call(gateway: Running) -> None:
    world = fill(gateway)
    world.asked.clear()
    text = await page(gateway, "/jobs")
    assert [request.with_scores for request in listed(world)] == [True]
    rows = (await rest(gateway, "/history?days=30"))["history"]
    scored = [row for row in rows if row["score"] is not None and row["not_ranked_reason"] is None]
    assert len(scored) == len(fake_data.SCORES)
    for row in scored:
        shown = cells(text, row["job_id"])
        low, high = row["ci95"]
        assert shown["interval"] == f"{points(low)}–{points(high)}"
        assert shown["score"].split()[0] == points(row["score"])
        assert shown["accuracy"] == points(row["metrics"]["accuracy"])
    waiting = next(job for job in world.jobs.values() if job.state == job_pb2.Job.STATE_PENDING)
    assert cells(text, waiting.job_id)["score"] == "–"
    part = next(job for job in world.jobs.values() if job.subset)
    items = sum(plan.items for plan in part.plan)
    assert f"subset, {items:,} of {part.published_items:,}" in cells(text, part.job_id)["suite"]


async def test_history_bounds_an_incomplete_run_and_says_why_it_does_not_rank(gateway: Running) -> None:
    world = fill(gateway)
    incomplete = next(job for job in world.jobs.values() if job.incomplete)
    completed = [j for j in world.jobs.values() if j.state == job_pb2.Job.STATE_COMPLETED and not j.incomplete]
    world.results[completed[0].job_id].not_ranked_reason = "the run was invalidated: the prompt named the answer"
    completed[1].spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    completed[1].spec.suite.shots, completed[1].spec.suite.repeats = 5, 3
    text = await page(gateway, "/jobs")
    shown = cells(text, incomplete.job_id)
    assert shown["score"] == "1.9–89.4 bounds"
    assert shown["state"] == "incomplete 18 items have no answer"
    shown = cells(text, completed[0].job_id)
    assert shown["state"] == "not ranked the run was invalidated: the prompt named the answer"
    assert shown["mode"] == "generate"
    assert cells(text, completed[1].job_id)["mode"] == "log-likelihood, 5-shot, 3 answers"


async def test_history_keeps_its_filters_in_every_address(gateway: Running) -> None:
    world = gateway.world
    for _ in range(51):
        world.finish(world.start(world.add(spec("Qwen2.5:7b"), "local").job_id).job_id)
    world.add(spec("mistral:7b"), "local")
    text = await page(gateway, "/jobs?status=completed&suite=glue&query=qwen")
    asked = listed(world)[-1]
    assert (asked.model_query, asked.suite, asked.model) == ("qwen", "glue", "")
    assert "51 jobs that match" in text
    assert 'value="qwen"' in text
    for address in ("/jobs?status=completed&suite=glue&query=qwen&after=", "kind=jobs&format=csv&status=completed"):
        assert address in text
    exported = re.search(r'href="(/api/v1/benchmarking/export[^"]*format=csv[^"]*)"', text)
    assert exported
    assert (await gateway.client.get(exported[1])).status_code == 200
    chosen = world.asked[-1].jobs
    assert (chosen.model_query, chosen.suite, list(chosen.states)) == ("qwen", "glue", [job_pb2.Job.STATE_COMPLETED])
    exact = await page(gateway, "/jobs?model=mistral:7b")
    assert "1 job that match" in exact
    assert 'href="/jobs?" title="Show all models"' in exact


def figures(text: str) -> str:
    return " ".join(
        re.sub("<[^>]*>", " ", text.partition('<dl class="sums"')[2].partition(">")[2].partition("</dl>")[0]).split()
    )


async def test_history_counts_what_its_filters_choose_and_exports_the_same_jobs(gateway: Running) -> None:
    world = gateway.world
    old = world.add(spec("qwen2.5:7b", "demo"), "local", age_s=40 * 86_400)
    world.finish(world.start(old.job_id).job_id)
    other = world.add(spec("qwen2.5:7b", endpoint="vllm-a"), "local")
    for state in (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED):
        job = world.add(spec("qwen2.5:7b"), "local")
        job.spec.project_id = 7
        world.finish(world.start(job.job_id).job_id, state)
    assert figures(await page(gateway, "/jobs?days=30&endpoint=ollama&project=7")) == (
        "Total runs 3 Completed 2 Success rate 66.7 % completed of 3 finished"
    )
    assert figures(await page(gateway, "/jobs?status=failed")).endswith("– needs jobs of every status")
    shown = await page(gateway, "/jobs?days=14&endpoint=vllm-a")
    assert other.job_id in shown
    assert '<option value="14" selected>Last 14 days</option>' in shown
    assert figures(shown) == "Total runs 1 Completed 0 Success rate – no job has finished"
    exported = re.search(r'href="(/api/v1/benchmarking/export[^"]*format=json[^"]*)"', shown)
    assert exported
    assert (await gateway.client.get(exported[1])).status_code == 200
    chosen = world.asked[-1].jobs
    assert chosen.endpoint == "vllm-a"
    assert 0 <= time.time() - 14 * 86_400 - chosen.created_after.seconds < 600
    for wrong in ("days=0", "days=x", "project=-1"):
        assert (await gateway.client.get(f"/jobs?{wrong}")).status_code == 422


async def test_history_walks_the_pages_of_its_days_from_one_beginning(gateway: Running) -> None:
    for _ in range(PAGE_SIZE + 1):
        gateway.world.finish(gateway.world.start(gateway.world.add(spec("a"), "local").job_id).job_id)
    first = await page(gateway, "/jobs?days=7")
    more = re.search(r'hx-get="([^"]*after=[^"]*)"', first)
    assert more
    rest_of_it = await page(gateway, more[1])
    assert rest_of_it.count('<tr id="job-') == 1
    assert len({one.created_after.ToNanoseconds() for one in listed(gateway.world)[-2:]}) == 1
    assert (await gateway.client.get(more[1].replace("days=7", "days=8"))).status_code == 400


async def test_selected_jobs_are_retried_cancelled_and_deleted_where_that_fits(gateway: Running) -> None:
    world = gateway.world
    done, failed, gone, waiting = (world.add(spec(f"m{n}"), "local").job_id for n in range(4))
    for job_id, state in (
        (done, job_pb2.Job.STATE_COMPLETED),
        (failed, job_pb2.Job.STATE_FAILED),
        (gone, job_pb2.Job.STATE_CANCELLED),
    ):
        world.finish(world.start(job_id).job_id, state)
    able = dict(
        re.findall(r'value="([0-9a-f-]{36})" form="compare-rows" data-can="([a-z ]*)"', await page(gateway, "/jobs"))
    )
    assert able == {
        done: "compare delete",
        failed: "retry delete",
        gone: "retry delete",
        waiting: "cancel",
    }
    everything = {"jobs": [done, failed, gone, waiting]}
    answer = await gateway.client.post("/jobs/retry?suite=glue&days=7", data=everything, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?suite=glue&days=7")
    assert {world.jobs[one].state for one in (failed, gone)} == {job_pb2.Job.STATE_PENDING}
    world.finish(world.start(gone).job_id)
    assert (await gateway.client.post("/jobs/cancel", data=everything)).status_code == 303
    assert {world.jobs[one].state for one in (failed, waiting)} == {job_pb2.Job.STATE_CANCELLED}
    for action, sent, status, words in (
        ("cancel", everything, 409, "No selected job can be cancelled: each has finished or belongs to another user."),
        ("retry", {"jobs": [done]}, 409, "No selected job can be retried: each has all its answers"),
        ("retry", {}, 400, "Select between 1 and 100 jobs."),
        ("cancel", {"jobs": ["nonsense"]}, 404, "not found"),
    ):
        answer = await gateway.client.post(f"/jobs/{action}", data=sent)
        assert (answer.status_code, words in answer.text) == (status, True), (action, answer.text)
    live = world.add(spec("m5"), "local").job_id
    assert 'action="/jobs/' + done + '/delete"' in await page(gateway, f"/jobs/{done}")
    assert "delete-sheet" not in await page(gateway, f"/jobs/{live}")
    answer = await gateway.client.post("/jobs/delete", data={"jobs": [failed, gone, live]})
    assert (answer.status_code, sorted(world.jobs)) == (303, sorted([done, waiting, live]))
    assert (await gateway.client.post("/jobs/delete", data={"jobs": [live]})).status_code == 409
    assert (await gateway.client.post(f"/jobs/{live}/delete")).status_code == 409
    answer = await gateway.client.post(f"/jobs/{done}/delete", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"], done in world.jobs) == (303, "/jobs", False)


async def test_the_board_shows_rank_ranges_and_changes_as_rest_has_them(gateway: Running) -> None:
    entries = fake_data.leaderboard({})
    for entry in entries[:11]:
        entry.rank_low, entry.rank_high = max(1, entry.rank - 1), min(11, entry.rank + 2)
    for entry, before in zip(entries, (0.8537, 0.8612, 0.85204), strict=False):
        entry.previous_mean, entry.previous_job_id = before, entry.job_id
    gateway.world.boards["glue"] = entries
    text = await page(gateway, "/leaderboard?suite=glue")
    address = re.search(r'href="/api/v1/benchmarking(/leaderboard[^"]*)"', text)
    assert address
    rows = (await rest(gateway, address[1]))["leaderboard"]
    for row in rows[:11]:
        shown = cells(text, row["job_id"])
        low, high = row["rank_range"]
        assert shown["rank"] == f"{row['rank']} {low}–{high}"
        assert shown["score"].split()[0] == points(row["score"])
        assert shown["change"] == (change(row["trend"]["change"]) if row["trend"] else "–")
    assert [cells(text, row["job_id"])["change"] for row in rows[:4]] == ["+1.1", "−0.5", "0.0", "–"]


async def test_the_board_says_that_ranges_are_still_worked_out(gateway: Running) -> None:
    gateway.world.boards["glue"] = fake_data.leaderboard({})
    assert "still being computed" in await page(gateway, "/leaderboard?suite=glue")


async def test_the_board_ranks_a_run_with_unread_answers_and_shows_both_of_its_scores(gateway: Running) -> None:
    entries = fake_data.leaderboard({})
    first = entries[0]
    first.caution, first.task_count = "answers could not be read: CoLA 12.4%", 9
    first.unread.add(task="cola", title="CoLA", unparsed=0.124, cut=0.002)
    first.score.bound_low, first.score.bound_high, first.score.answered_mean = first.score.mean, 0.9, 0.88
    gateway.world.boards["glue"] = entries
    text = await page(gateway, "/leaderboard?suite=glue")
    shown = cells(text, first.job_id)
    assert shown["rank"].startswith("1")
    assert shown["model"].endswith("up to 12 % unread 88.0 if read")
    assert 'title="Answers could not be read: CoLA 12.4%. They count as wrong."' in text
    assert "allows for unread answers" in text or "still being computed" in text


async def test_the_board_shows_a_run_that_was_taken_out_with_its_mark(gateway: Running) -> None:
    entries = fake_data.leaderboard({})
    entries[-1].mark, entries[-1].not_ranked_reason = "invalidated", "the run was invalidated: a wrong prompt"
    gateway.world.boards["glue"] = entries
    text = await page(gateway, "/leaderboard?suite=glue")
    assert '<span class="tag warn">invalidated</span>' in text
    assert "the run was invalidated: a wrong prompt." in text


async def test_the_board_names_configurations_and_tells_rows_of_one_model_apart(gateway: Running) -> None:
    entries = fake_data.leaderboard({})
    twin = metric_pb2.LeaderboardEntry()
    twin.CopyFrom(entries[0])
    twin.job_id, twin.shots, twin.rank = "0f5b8a52-93cb-4fd5-8a2c-64d1f4a8f3c1", 5, 2
    for entry in entries[1:11]:
        entry.rank += 1
    entries[2].name, entries[2].alias = "strict-prompt", "candidate"
    gateway.world.boards["glue"] = [entries[0], twin, *entries[1:]]
    text = await page(gateway, "/leaderboard?suite=glue")
    assert cells(text, entries[0].job_id)["model"] == "gemini-2.5-flash gemini 0-shot"
    assert cells(text, twin.job_id)["model"] == "gemini-2.5-flash gemini 5-shot"
    assert cells(text, entries[2].job_id)["model"] == "llama3.3:70b vllm-a strict-prompt candidate"
    assert cells(text, entries[3].job_id)["model"] == "qwen2.5:32b vllm-a"


def test_rows_that_differ_in_nothing_readable_show_their_hashes() -> None:
    def entry(job_id: str, configuration: str, **fields: Any) -> metric_pb2.LeaderboardEntry:
        return metric_pb2.LeaderboardEntry(
            job_id=job_id, model="m:1b", endpoint="ollama", configuration=configuration, **fields
        )

    assert distinctions([entry("a", "abcdef01"), entry("b", "12345678")]) == {"a": "abcdef", "b": "123456"}
    assert distinctions([entry("a", "abcdef01")]) == {}
    warm = job_pb2.Receipt(parameters='{"temperature": 0.7, "stop": ["x"]}')
    cold = job_pb2.Receipt(parameters='{"temperature": 0.0, "stop": ["x"]}')
    found = distinctions([entry("a", "1", receipt=warm), entry("b", "2", receipt=cold), entry("c", "3", repeats=3)])
    assert found["a"] == '1 answer, temperature 0.7, stop ["x"]'
    assert found["b"] == '1 answer, temperature 0, stop ["x"]'
    assert found["c"] == "3 answers"


async def test_the_board_of_another_item_set_can_be_chosen_and_is_kept(gateway: Running) -> None:
    world = gateway.world
    world.boards["glue"] = fake_data.leaderboard({})
    item_set = results_service_pb2.ItemSet
    world.item_sets = [
        item_set(item_set="7f3ac1d9", items=2933, published_items=58379, subset=True, configurations=11),
        item_set(item_set="aa00bb11", items=58379, published_items=58379, configurations=2),
    ]
    text = await page(gateway, "/leaderboard?suite=glue&item_set=aa00bb11")
    assert boards_asked(world)[-1].item_set == "aa00bb11"
    assert '<option value="aa00bb11" selected>all 58,379, 2 ranked</option>' in text
    assert '<option value="7f3ac1d9">2,933 of 58,379, 11 ranked</option>' in text
    assert "item_set=aa00bb11" in text.partition("/api/v1/benchmarking/leaderboard?")[2].partition('"')[0]
    text = await page(gateway, "/leaderboard?suite=glue&item_set=gone")
    assert boards_asked(world)[-1].item_set == ""
    assert '<option value="7f3ac1d9" selected>' in text


async def test_a_marked_run_says_so_with_its_reason_and_what_stands_in_its_place(gateway: Running) -> None:
    world = gateway.world
    jobs = [world.finish(world.start(world.add(spec("m:1b", "demo"), "local").job_id).job_id) for _ in range(2)]
    result = world.results[jobs[0].job_id]
    before = await page(gateway, f"/jobs/{jobs[0].job_id}")
    assert "counts in no ranking" not in before
    result.mark, result.mark_reason, result.superseded_by = "superseded", "Run with more room", jobs[1].job_id
    result.not_ranked_reason = f"the run was superseded by job {jobs[1].job_id}: Run with more room"
    text = await page(gateway, f"/jobs/{jobs[0].job_id}")
    assert "This run is superseded: Run with more room" in text
    assert f'In its place stands job <a href="/jobs/{jobs[1].job_id}">' in text
    assert "The score is bounded" not in text
    assert f'<span class="value">{points(result.suite_score.mean)}</span>' in text


async def test_a_job_whose_texts_were_dropped_says_when_and_what_is_kept(gateway: Running) -> None:
    world = gateway.world
    job = world.finish(world.start(world.add(spec("m:1b", "demo"), "local").job_id).job_id)
    world.results[job.job_id].texts_dropped = "2026-11-19T08:00:00Z"
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert "The texts of the answers were dropped on 2026-11-19" in text
    assert "its score are kept" in text
