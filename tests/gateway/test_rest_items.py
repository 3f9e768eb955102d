"""Items, exports and logs of a job."""

from __future__ import annotations

import uuid

import pytest

from tests.gateway import fake_data
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import BASE, finished, get
from touchstone.v1 import results_service_pb2, scheduler_service_pb2

_LISTING = results_service_pb2.ListItemsRequest


async def test_items_come_in_pages_with_counts(gateway: Running) -> None:
    job = finished(gateway, "demo")
    got = await get(gateway, f"/results/{job.job_id}/items?limit=250")
    assert (len(got["items"]), got["total"], got["counts"]["all"]) == (250, 400, 400)
    assert "baselines" not in got
    rest = await get(gateway, f"/results/{job.job_id}/items?limit=250&page_token={got['next_page_token']}")
    assert (len(rest["items"]), rest["next_page_token"]) == (150, "")
    places = [(item["task"], item["item"]) for item in got["items"] + rest["items"]]
    assert len(set(places)) == 400


async def test_an_item_tells_its_outcome_its_texts_and_its_figures(gateway: Running) -> None:
    job = finished(gateway, "demo")
    got = await get(gateway, f"/results/{job.job_id}/items/sentiment/3")
    assert (got["outcome"], got["correct"], got["response"]) == ("unparsed", False, fake_data.HOSTILE)
    assert (got["task"], got["item"], got["repeat"], got["statistics"]) == ("sentiment", 3, 0, {"correct": 0.0})
    assert (got["parameters"], got["cost_usd"], got["error"]) == (None, None, None)


async def test_tokens_that_a_provider_does_not_tell_are_null(gateway: Running) -> None:
    job = finished(gateway, "demo")
    every = (await get(gateway, f"/results/{job.job_id}/items?limit=250"))["items"]
    tokens = {(item["outcome"] == "infrastructure_error", item["output_tokens"] is None) for item in every}
    assert tokens == {(True, True), (False, False)}
    (first, *_) = [item for item in every if item["outcome"] == "infrastructure_error"]
    assert (first["input_tokens"], first["reasoning_tokens"]) == (None, None)


async def test_every_filter_reaches_the_results_service(gateway: Running) -> None:
    for name, value in [
        ("all", _LISTING.FILTER_UNSPECIFIED),
        ("failures", _LISTING.FILTER_FAILURES),
        ("unparsed", _LISTING.FILTER_UNPARSED),
        ("errors", _LISTING.FILTER_ERRORS),
        ("correct", _LISTING.FILTER_CORRECT),
        ("truncated", _LISTING.FILTER_TRUNCATED),
        ("refused", _LISTING.FILTER_REFUSED),
        ("different", _LISTING.FILTER_DIFFERENT),
        ("regressed", _LISTING.FILTER_REGRESSED),
        ("improved", _LISTING.FILTER_IMPROVED),
    ]:
        job, other = finished(gateway, "demo"), finished(gateway, "demo")
        query = f"filter={name}&task=sentiment&query=dog&baseline={other.job_id}"
        await get(gateway, f"/results/{job.job_id}/items?{query}")
        asked = gateway.world.asked[-1]
        assert (asked.filter, asked.task, asked.query, asked.baseline_job_id) == (
            value,
            "sentiment",
            "dog",
            other.job_id,
        )


async def test_a_baselines_items_stand_beside_in_the_same_order(gateway: Running) -> None:
    job, other = finished(gateway, "demo"), finished(gateway, "demo", limit=2)
    got = await get(gateway, f"/results/{job.job_id}/items?limit=3&baseline={other.job_id}")
    assert [item["item"] for item in got["items"]] == [0, 1, 2]
    assert [item and item["item"] for item in got["baselines"]] == [0, 1, None]


async def test_filters_against_a_baseline_need_one(gateway: Running) -> None:
    for name in ["different", "regressed", "improved"]:
        job = finished(gateway, "demo")
        answer = await get(gateway, f"/results/{job.job_id}/items?filter={name}", 422)
        assert answer["detail"] == f"filter={name} needs baseline, the id of another job."


async def test_what_is_no_items_number_is_refused(gateway: Running) -> None:
    for item in ["x", "-1", "1.5", "99999999999", "٣"]:
        job = finished(gateway, "demo")
        assert (
            "is not an item number"
            in (await get(gateway, f"/results/{job.job_id}/items/sentiment/{item}", 400))["detail"]
        )


async def test_an_item_that_is_not_stored_is_404(gateway: Running) -> None:
    job = finished(gateway, "demo")
    for path in ("sentiment/400", "nope/1"):
        assert (await get(gateway, f"/results/{job.job_id}/items/{path}", 404))["detail"]
    assert (await get(gateway, f"/results/{uuid.uuid4()}/items", 404))["detail"]


@pytest.mark.parametrize(
    ("word", "media", "start"),
    [
        ("csv", "text/csv; charset=utf-8; header=present", b"job_id,task,"),
        ("jsonl", "application/jsonl", b'{"job_id": '),
        ("parquet", "application/vnd.apache.parquet", b"PAR1"),
    ],
)
async def test_an_export_is_a_file_to_save(gateway: Running, word: str, media: str, start: bytes) -> None:
    job = finished(gateway, "demo")
    answer = await gateway.client.get(f"{BASE}/results/{job.job_id}/export?kind=items&format={word}&filter=failures")
    assert answer.headers["content-type"] == media
    name = f"touchstone-demo-{job.job_id[-8:]}-items.{word}"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.content.startswith(start)
    asked = gateway.world.asked[-1]
    assert (asked.kind, asked.items.job_id) == (results_service_pb2.ExportRequest.KIND_ITEMS, job.job_id)
    assert asked.items.filter == _LISTING.FILTER_FAILURES


async def test_metrics_of_a_job_take_no_filter_of_items(gateway: Running) -> None:
    job = finished(gateway, "demo")
    assert (await gateway.client.get(f"{BASE}/results/{job.job_id}/export")).status_code == 200
    assert gateway.world.asked[-1].items == _LISTING(job_id=job.job_id)
    refused = await get(gateway, f"/results/{job.job_id}/export?filter=failures&task=sentiment", 422)
    assert refused["detail"].startswith("task selects items. Use it with kind=items. filter selects items.")


async def test_jobs_are_exported_with_the_lists_filters(gateway: Running) -> None:
    answer = await gateway.client.get(
        f"{BASE}/export?kind=metrics&suite=demo&status=completed&model_name=a&project_id=2"
    )
    assert answer.headers["content-disposition"] == 'attachment; filename="touchstone-metrics.csv"'
    asked = gateway.world.asked[-1]
    assert (asked.jobs.suite, asked.jobs.model, asked.jobs.project_id, len(asked.jobs.states)) == ("demo", "a", 2, 1)
    assert not asked.HasField("items")


async def test_an_export_of_what_is_not_there_is_404_before_a_byte(gateway: Running) -> None:
    answer = await gateway.client.get(f"{BASE}/results/{uuid.uuid4()}/export?format=parquet")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")


async def test_logs_are_filtered_and_paged(gateway: Running) -> None:
    job = finished(gateway, "demo")
    lines = [("info", "planned"), ("warning", "slow"), ("error", "refused")]
    gateway.world.logs[job.job_id] = [
        scheduler_service_pb2.LogLine(level=level, source="scheduler", text=text) for level, text in lines
    ]
    got = await get(gateway, f"/results/{job.job_id}/logs?limit=2")
    assert [line["text"] for line in got["lines"]] == ["planned", "slow"]
    rest = await get(gateway, f"/results/{job.job_id}/logs?limit=2&page_token={got['next_page_token']}")
    assert ([line["level"] for line in rest["lines"]], rest["next_page_token"]) == (["error"], "")
    worst = await get(gateway, f"/results/{job.job_id}/logs?level=error")
    assert [line["text"] for line in worst["lines"]] == ["refused"]
    unknown = str(uuid.uuid4())
    assert (await get(gateway, f"/results/{unknown}/logs", 404))["detail"] == f"Benchmark job {unknown} not found"


async def test_an_export_has_no_head(gateway: Running) -> None:
    job = gateway.world.add(spec("qwen2.5:7b", "demo"), "local")
    for path in (f"results/{job.job_id}/events", f"results/{job.job_id}/export", "export"):
        answer = await gateway.client.head(f"{BASE}/{path}")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, OPTIONS")
