"""Answers beside each other, what people say of them, and filters by project."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from services.gateway.reads import jobs
from tests.gateway import fake_items, fake_owned
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import BASE, TIME, finished, get
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

_LISTING = results_service_pb2.ListSideBySideRequest
_VERDICT = results_service_pb2.Annotation


async def annotate(gateway: Running, job_id: str, body: Any, status: int = 200, item: str = "sentiment/3") -> Any:
    answer = await gateway.client.put(f"{BASE}/results/{job_id}/items/{item}/annotation", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_rows_stand_beside_each_other_with_figures_of_each_run(gateway: Running) -> None:
    first, second = finished(gateway, "demo"), finished(gateway, "demo", limit=2)
    ids = f"{first.job_id},{jobs.benchmark_id(second.job_id)}"
    got = await get(gateway, f"/side-by-side?job_ids={ids}&limit=3&diffs=true&task=sentiment&query=breeze")
    assert [run["job"]["job_id"] for run in got["runs"]] == [first.job_id, second.job_id]
    run = got["runs"][0]
    assert 0 < run["ci95"][0] < run["mean_score"] <= run["ci95"][1] <= 1
    assert [len(row["items"]) for row in got["rows"]] == [2, 2, 2]
    assert [part["kind"] for part in got["rows"][0]["diffs"][1]] == ["same"]
    asked = gateway.world.asked[-1]
    assert (asked.task, asked.query, asked.with_diffs, asked.page_size) == ("sentiment", "breeze", True, 3)
    token = got["next_page_token"]
    query = f"job_ids={ids}&limit=3&diffs=true&task=sentiment&query=breeze"
    following = await get(gateway, f"/side-by-side?{query}&page_token={token}")
    assert following["rows"][0]["item"] > got["rows"][-1]["item"]
    await get(gateway, f"/side-by-side?job_ids={ids}")
    assert gateway.world.asked[-1].with_diffs is False


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("all", _LISTING.FILTER_UNSPECIFIED),
        ("agree", _LISTING.FILTER_AGREE),
        ("disagree", _LISTING.FILTER_DISAGREE),
        ("only_right", _LISTING.FILTER_ONLY_RIGHT),
        ("only_wrong", _LISTING.FILTER_ONLY_WRONG),
        ("all_right", _LISTING.FILTER_ALL_RIGHT),
        ("all_wrong", _LISTING.FILTER_ALL_WRONG),
        ("judged", _LISTING.FILTER_JUDGED),
        ("not_judged", _LISTING.FILTER_NOT_JUDGED),
    ],
)
async def test_every_filter_of_rows_reaches_the_service(gateway: Running, word: str, value: Any) -> None:
    one, two = finished(gateway, "demo"), finished(gateway, "demo")
    only = f"&only_job_id={jobs.benchmark_id(two.job_id)}" if word.startswith("only") else ""
    await get(gateway, f"/side-by-side?job_ids={one.job_id},{two.job_id}&filter={word}{only}&verdict=none&score_low=1")
    asked = gateway.world.asked[-1]
    assert (asked.filter, asked.only_job_id) == (value, two.job_id if only else "")
    assert list(asked.conditions.verdicts) == [_VERDICT.VERDICT_UNSPECIFIED]
    assert asked.conditions.score_low == 1


async def test_wrong_jobs_to_stand_beside_are_refused(gateway: Running) -> None:
    one, two = finished(gateway, "demo"), finished(gateway, "demo")
    for query, status, words in [
        ("", 422, "job_ids is required."),
        (f"job_ids={one.job_id}", 422, "job_ids must name 2 to 4 different jobs, joined by commas."),
        (f"job_ids={one.job_id},{jobs.benchmark_id(one.job_id)}", 422, "job_ids must name 2 to 4 different jobs"),
        (f"job_ids={','.join([one.job_id] * 5)}", 422, "job_ids must name 2 to 4 different jobs"),
        (f"job_ids={one.job_id},x", 404, "Benchmark job x not found"),
        (f"job_ids={one.job_id},{uuid.uuid4()}", 404, "Benchmark job "),
        (f"job_ids={one.job_id},{two.job_id}&filter=only_right", 422, "only_job_id is required for filter="),
        (f"job_ids={one.job_id},{two.job_id}&only_job_id={one.job_id}", 422, "only_job_id is required for filter="),
        (
            f"job_ids={one.job_id},{two.job_id}&filter=only_right&only_job_id={uuid.uuid4()}",
            422,
            "only_job_id must be one of job_ids.",
        ),
    ]:
        assert (await get(gateway, f"/side-by-side?{query}", status))["detail"].startswith(words)


async def test_an_answer_is_annotated_and_the_annotation_is_taken_back(gateway: Running) -> None:
    job = finished(gateway, "demo")
    body = {"verdict": "fix", "corrected_answer": "answer: acceptable\n", "note": "so"}
    got = await annotate(gateway, jobs.benchmark_id(job.job_id), body)
    assert got["annotation"]["annotated_at"] is not None
    assert TIME.fullmatch(got["annotation"].pop("annotated_at"))
    assert got["annotation"] == body | {"author": "local"}
    listed = await get(gateway, f"/results/{job.job_id}/items?limit=4&task=sentiment")
    assert [item["annotation"] and item["annotation"]["verdict"] for item in listed["items"]] == [None] * 3 + ["fix"]
    assert (await annotate(gateway, job.job_id, {"verdict": "none"}))["annotation"] is None
    judged = await annotate(gateway, job.job_id, {"verdict": "golden", "note": ""})
    assert (judged["annotation"]["corrected_answer"], judged["annotation"]["note"]) == (None, None)


async def test_wrong_annotations_are_refused(gateway: Running) -> None:
    job = finished(gateway, "demo")
    for body, words in [
        ({}, "verdict is required."),
        ({"verdict": "good"}, "good is not a valid verdict. Use one of: golden, fix, wrong, none."),
        ({"verdict": "fix"}, "corrected_answer is required for fix"),
        ({"verdict": "golden", "corrected_answer": "x"}, "corrected_answer is required for fix"),
        ({"verdict": "wrong", "note": "x" * 2001}, "note has 2,001 characters; at most 2000 are allowed."),
    ]:
        assert (await annotate(gateway, job.job_id, body, 422))["detail"].startswith(words)
    assert (
        "is not an item number"
        in (await annotate(gateway, job.job_id, {"verdict": "wrong"}, 400, "sentiment/x"))["detail"]
    )
    assert (await annotate(gateway, job.job_id, {"verdict": "wrong"}, 404, "sentiment/999"))["detail"]
    assert gateway.world.annotations == {}


async def test_conditions_of_items_reach_the_service(gateway: Running) -> None:
    job = finished(gateway, "demo")
    query = "metadata_field=name&metadata_value=a&length_low=0&score_high=0&verdict=wrong&custom_id=c-1&filter=final"
    await get(gateway, f"/results/{job.job_id}/items?{query}")
    asked = gateway.world.asked[-1]
    conditions = asked.conditions
    assert asked.filter == results_service_pb2.ListItemsRequest.FILTER_FINAL
    assert (conditions.metadata_field, conditions.metadata_value, conditions.custom_id) == ("name", "a", "c-1")
    assert (conditions.HasField("length_low"), conditions.HasField("length_high")) == (True, False)
    assert (conditions.HasField("score_high"), conditions.score_high) == (True, 0)
    assert list(conditions.verdicts) == [_VERDICT.VERDICT_WRONG]
    for wrong in ("length_low=-1", "score_low=x", "verdict=good", "metadata_field=" + "x" * 201):
        assert (await get(gateway, f"/results/{job.job_id}/items?{wrong}", 422))["errors"]


@pytest.mark.parametrize(
    ("kind", "word", "written", "name"),
    [
        ("batch", "", "FORMAT_JSONL", "KIND_BATCH_OUTPUT"),
        ("batch", "csv", "FORMAT_CSV", "KIND_BATCH_OUTPUT"),
        ("golden", "", "FORMAT_JSONL", "KIND_GOLDEN"),
        ("items", "", "FORMAT_CSV", "KIND_ITEMS"),
    ],
)
async def test_batch_output_and_golden_answers_are_exported(
    gateway: Running, kind: str, word: str, written: str, name: str
) -> None:
    job = finished(gateway, "demo")
    silent = [one for one in fake_items.items(gateway.world, job.job_id) if not one.result.response]
    for one in silent[:2]:
        held = _VERDICT(verdict=_VERDICT.VERDICT_GOLDEN)
        gateway.world.annotations[job.job_id, one.task, one.result.item] = held
    query = f"kind={kind}&verdict=golden" + (f"&format={word}" if word else "")
    answer = await gateway.client.get(f"{BASE}/results/{job.job_id}/export?{query}")
    assert answer.status_code == 200
    asked = gateway.world.asked[-1]
    assert results_service_pb2.ExportRequest.Kind.Name(asked.kind) == name
    assert results_service_pb2.ExportRequest.Format.Name(asked.format) == written
    assert list(asked.items.conditions.verdicts) == [_VERDICT.VERDICT_GOLDEN]
    assert answer.headers.get("touchstone-left-out") == ("2" if kind == "golden" else None)
    ending = written.removeprefix("FORMAT_").lower()
    assert answer.headers["content-disposition"].endswith(f'-{kind}.{ending}"')


async def test_what_cannot_be_written_so_is_refused(gateway: Running) -> None:
    job = finished(gateway, "demo")
    for kind, word, words in [
        ("batch", "parquet", "kind=batch is written as jsonl or csv."),
        ("golden", "csv", "kind=golden is written as jsonl."),
    ]:
        refused = await get(gateway, f"/results/{job.job_id}/export?kind={kind}&format={word}", 422)
        assert refused["detail"] == words


async def test_queue_schedules_webhooks_and_configurations_are_filtered_by_project(gateway: Running) -> None:
    await get(gateway, "/queue?project_id=7")
    assert gateway.world.queued[-1].project_id == 7
    spec = job_pb2.JobSpec(endpoint="ollama", model="m", project_id=7)
    for number in (7, 8):
        spec.project_id = number
        request = scheduler_service_pb2.CreateScheduleRequest(cron="0 3 * * 1", spec=spec)
        fake_owned.add_schedule(gateway.world, request, "local")
        hook = scheduler_service_pb2.CreateWebhookRequest(url="https://hooks.example/", project_id=number)
        fake_owned.add_webhook(gateway.world, hook, "local")
    for path, name in (("schedules", "schedules"), ("webhooks", "webhooks")):
        assert len((await get(gateway, f"/{path}"))[name]) == 2
        (one,) = (await get(gateway, f"/{path}?project_id=7"))[name]
        assert (one.get("job") or one)["project_id"] == 7
    await get(gateway, "/configurations?project_id=7")
    assert gateway.world.asked[-1].project_id == 7
