"""The Overview page: its figures are those of REST, and its filters are in every address."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import pytest

from tests.gateway import fake_data
from tests.gateway.fake_world import World, busy_world, spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2, results_service_pb2

CHOICES = "suite=glue&metric=score&days=7"


async def page(gateway: Running, address: str, status: int = 200, part: bool = False) -> str:
    headers = {"Accept": "text/html"} | ({"HX-Request": "true"} if part else {})
    answer = await gateway.client.get(address, headers=headers)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


async def rest(gateway: Running, address: str) -> Any:
    answer = await gateway.client.get(f"/api/v1/benchmarking{address}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def table(text: str, panel: str) -> list[list[str]]:
    """The texts of the rows of a panel's first table body."""
    whole = text.partition(f'id="{panel}"')[2].partition("</section>")[0]
    body = whole.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [[words(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)] for row in rows]


def words(markup: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", markup).split())


def cards(text: str) -> list[str]:
    found = text.partition('id="overview-cards"')[2].partition("</section>")[0]
    return [words(part) for part in found.split('<div class="cell">')[1:]]


def points(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.1f}"


def fill(gateway: Running) -> World:
    filled = busy_world()
    for name in ("jobs", "results", "boards"):
        setattr(gateway.world, name, getattr(filled, name))
    return gateway.world


def asked(world: World, kind: type[Any]) -> list[Any]:
    return [one for one in world.asked if isinstance(one, kind)]


async def test_cards_say_what_they_count_and_equal_rest(gateway: Running) -> None:
    fill(gateway)
    average, runs, models, latest = cards(await page(gateway, f"/overview?{CHOICES}"))
    known = await rest(gateway, f"/overview?{CHOICES}")
    assert average.startswith(
        f"Average suite score {points(known['mean'])} over {known['runs_with_metric']} runs of GLUE, by log-likelihood"
    ), "scores of two modes have no common average"
    assert runs.startswith(f"Total benchmark runs {known['completed_jobs']} completed of {known['total_jobs']} jobs")
    incomplete = known["completed_jobs"] - known["complete_jobs"]
    assert f"{incomplete} of them incomplete" in runs
    assert f"{known['failed_jobs']} failed; {known['cancelled_jobs']} cancelled" in runs
    live = known["total_jobs"] - known["completed_jobs"] - known["failed_jobs"] - known["cancelled_jobs"]
    assert f"{live} running or waiting" in runs
    assert models.startswith(f"Models evaluated {known['models']} ")
    assert f"{known['latest']['model_name']} on glue" in latest


async def test_each_job_is_one_row_with_the_scores_of_rest(gateway: Running) -> None:
    world = fill(gateway)
    for result in world.results.values():
        if result.sealed:
            result.averages.add(weighting="WEIGHTING_TASKS").metric.CopyFrom(fake_data.suite_score(0.7))
    rows = {row[0]: row for row in table(await page(gateway, f"/overview?{CHOICES}"), "overview-jobs")}
    known = (await rest(gateway, "/history?suite=glue&days=7&limit=12"))["history"]
    assert len(rows) == len(known) == 12
    for one in known:
        shown = rows[one["job_id"][-8:]]
        if one["status"] in ("completed", "running", "pending"):
            assert one["status"] in shown[3] or "incomplete" in shown[3]
        if one["score"] is not None and not one["not_ranked_reason"]:
            metrics = one["metrics"]
            assert shown[4:7] == [points(metrics.get("accuracy")), points(metrics.get("f1")), points(one["score"])]


async def test_the_chart_and_its_table_have_every_run_of_rest(gateway: Running) -> None:
    """Those with unread answers, too, which rank but have bounds."""
    world = fill(gateway)
    for job in world.jobs.values():
        if job.state == job_pb2.Job.STATE_COMPLETED and not job.baseline and not job.incomplete:
            score = world.results[job.job_id].suite_score
            score.bound_low, score.bound_high = score.mean - 0.02, score.mean + 0.02
    text = await page(gateway, f"/overview?{CHOICES}")
    known = await rest(gateway, f"/trends?{CHOICES}&mode=loglikelihood&limit=64")
    newest = sorted(known["trends"], key=lambda trend: trend["points"][-1]["completed_at"], reverse=True)
    estimates = [trend for trend in newest if not trend["baseline"]][:8]
    shown = table(text, "overview-trend")
    assert [(row[0], row[2], row[3], row[4], row[5]) for row in shown] == [
        (
            trend["model"],
            points(point["mean"]),
            "–".join(points(end) for end in point["ci95"]),
            f"{point['n']:,}",
            point["job_id"][-8:],
        )
        for trend in estimates
        for point in trend["points"]
    ]
    assert len(estimates) == 8
    drawn = re.findall(r'<svg class="trend (?:wide|narrow)".*?</svg>', text, re.DOTALL)
    assert [len(re.findall('data-run="', one)) for one in drawn] == [len(shown)] * 2
    colours = re.findall(r'<g class="line (m\d)"><', drawn[0])
    assert len(colours) == 8


async def test_every_filter_reaches_every_question(gateway: Running) -> None:
    world = fill(gateway)
    world.asked.clear()
    text = await page(gateway, f"/overview?{CHOICES}")
    (listed,) = asked(world, results_service_pb2.ResultsServiceListJobsRequest)
    assert (listed.suite, listed.with_scores) == ("glue", True)
    age = world.jobs[next(iter(world.jobs))].created_at.seconds - listed.created_after.seconds
    assert 5 * 86_400 < age < 8 * 86_400
    for address in (f"/overview/export?{CHOICES}&format=csv", f"/overview?{CHOICES}&part=live"):
        assert address in text
    assert [
        row for row in table(await page(gateway, "/overview?suite=demo"), "overview-jobs") if "glue" in row[2]
    ] == []
    assert cards(await page(gateway, "/overview?suite=demo"))[1].startswith("Total benchmark runs 0")


@pytest.mark.parametrize("days", ["0", "91", "-1", "x", "1e2"])
async def test_days_out_of_range_are_said_and_the_usual_ones_shown(gateway: Running, days: str) -> None:
    text = await page(gateway, f"/overview?days={days}")
    assert "Days back must be between 1 and 90. Shown: 30 days." in text
    answer = await gateway.client.get(f"/overview/export?days={days}&format=csv")
    assert (answer.status_code, "Days back must be between 1 and 90." in answer.text) == (400, True)


async def test_an_unknown_suite_or_metric_is_said_with_the_known_ones(gateway: Running) -> None:
    fill(gateway)
    assert "Invalid benchmark suite. Supported: glue, demo" in await page(gateway, "/overview?suite=zzz", 400)
    text = await page(gateway, "/overview?suite=demo&metric=nonsense", 400)
    assert "Suite demo has no metric 'nonsense'. Its metrics: score" in text


async def test_without_a_run_the_page_says_what_fills_it(gateway: Running) -> None:
    text = await page(gateway, "/overview")
    assert "No job in the last 30 days. A job runs one model on one suite or dataset." in text
    assert 'class="button primary" href="/run"' in text
    assert "Nothing runs or waits." in text


async def test_the_start_page_is_the_overview_once_a_job_was_started(gateway: Running) -> None:
    async def leads_to() -> str:
        return str((await gateway.client.get("/", follow_redirects=False)).headers["location"])

    assert await leads_to() == "/run"
    gateway.world.add(spec(), "local")
    assert await leads_to() == "/overview"


async def test_the_files_hold_what_the_page_shows(gateway: Running) -> None:
    fill(gateway)
    text = await page(gateway, f"/overview?{CHOICES}")
    shown = table(text, "overview-jobs")
    answer = await gateway.client.get(f"/overview/export?{CHOICES}&format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["job_id"][-8:] for row in rows] == [row[0] for row in shown]
    for row, cells in zip(rows, shown, strict=True):
        if row["score"]:
            assert points(float(row["score"])) == cells[6]
        else:
            assert cells[6] == "–" or "–" in cells[6], "a range between bounds"
    whole = (await gateway.client.get(f"/overview/export?{CHOICES}&format=json")).json()
    known = await rest(gateway, f"/overview?{CHOICES}")
    assert {name: whole[name] for name in ("mean", "runs_with_metric", "completed_jobs", "models")} == {
        name: known[name] for name in ("mean", "runs_with_metric", "completed_jobs", "models")
    }
    assert [row["job_id"] for row in whole["jobs"]] == [row["job_id"] for row in rows]
    assert sum(len(trend["points"]) for trend in whole["trends"]) == len(table(text, "overview-trend"))


async def test_the_panels_come_again_by_themselves_and_the_chart_only_with_new_runs(gateway: Running) -> None:
    world = fill(gateway)
    text = await page(gateway, f"/overview?{CHOICES}")
    found = re.search(r'hx-get="(/overview\?[^"]*part=live[^"]*)"', text)
    assert found
    parts = re.compile(r'<hx-partial hx-target="#([\w-]+)"')
    panels = ["overview-cards", "overview-queue", "overview-jobs"]
    assert parts.findall(await page(gateway, found[1], part=True)) == panels
    done = world.finish(world.start(world.add(spec("new:1b", limit=5), "local").job_id).job_id)
    after = await page(gateway, found[1], part=True)
    assert parts.findall(after) == [*panels, "overview-trend", "overview-poll"]
    assert done.job_id[-8:] in after


async def test_a_job_is_listed_from_the_moment_it_is_accepted(gateway: Running) -> None:
    world = fill(gateway)
    job = world.add(spec("fresh:1b"), "local")
    world.stale[job.job_id] = job_pb2.Job(job_id=job.job_id, state=job_pb2.Job.STATE_PENDING, spec=job.spec)
    first = table(await page(gateway, "/overview?suite=glue"), "overview-jobs")[0]
    assert first[0] == job.job_id[-8:]


async def test_hostile_names_do_nothing(gateway: Running) -> None:
    world = gateway.world
    world.finish(world.start(world.add(spec(fake_data.HOSTILE, limit=5), "local").job_id).job_id)
    answer = await gateway.client.get("/overview?suite=glue&metric=score")
    assert "<img src=x" not in answer.text
    assert "<script>window" not in answer.text
    assert answer.text.count("&lt;img src=x") > 3
