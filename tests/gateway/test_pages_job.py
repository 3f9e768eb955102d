"""The job page: which items it lists, what it opens, the runs around it, its log, and its mark."""

from __future__ import annotations

import html
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from services.errors import ConflictError
from services.gateway.pages.items.listing import Classes
from tests.gateway import fake_data, fake_stored
from tests.gateway.fake_world import World, spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from touchstone.v1 import endpoint_pb2, job_pb2, results_service_pb2, scheduler_service_pb2


def finished(gateway: Running, day: int = 1) -> job_pb2.Job:
    job = gateway.world.finish(gateway.world.start(gateway.world.add(spec(suite="demo"), "local").job_id).job_id)
    job.created_at.FromDatetime(datetime(2026, 3, day, tzinfo=UTC))
    return job


def listed(gateway: Running) -> Iterator[results_service_pb2.ListItemsRequest]:
    return (one for one in gateway.world.asked if isinstance(one, results_service_pb2.ListItemsRequest))


async def test_the_baseline_is_the_configurations_previous_run_or_a_chosen_one(gateway: Running) -> None:
    runs = [finished(gateway, day) for day in (1, 2, 3)]
    text = await page(gateway, f"/jobs/{runs[1].job_id}?items=regressed")
    assert f'href="/jobs/{runs[0].job_id}">Previous' in text
    assert f'href="/jobs/{runs[2].job_id}">Next' in text
    asked = list(listed(gateway))[-1]
    assert (asked.baseline_job_id, asked.filter) == (runs[0].job_id, asked.FILTER_REGRESSED)
    assert "the configuration's previous run" in text
    for words in ("Different from baseline", "Improved", "Regressed"):
        assert words in text
    await page(gateway, f"/jobs/{runs[1].job_id}?items=improved&baseline={runs[2].job_id}")
    assert list(listed(gateway))[-1].baseline_job_id == runs[2].job_id
    first = await page(gateway, f"/jobs/{runs[0].job_id}?items=different")
    assert "Different from baseline" not in first, "there is nothing to differ from"


async def test_items_that_the_archive_does_not_give_back_are_said_to_be_there(
    gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [finished(gateway, day) for day in (1, 2)]
    real, away = fake_stored.list_items, runs[0].job_id

    def list_items(world: World, request: results_service_pb2.ListItemsRequest) -> object:
        if away in (request.job_id, request.baseline_job_id):
            raise ConflictError(f"The items of job {away} are in the archive, but a file is damaged.")
        return real(world, request)

    monkeypatch.setattr(fake_stored, "list_items", list_items)
    text = await page(gateway, f"/jobs/{runs[0].job_id}")
    assert f"The items of job {away} are in the archive, but a file is damaged." in text
    assert "No items are stored" not in text
    for address in (f"/jobs/{runs[1].job_id}", f"/jobs/{runs[1].job_id}?items=regressed"):
        text = await page(gateway, address)
        assert "is damaged" not in text
        assert "Different from baseline" not in text, "the run before cannot be read"
    assert "is damaged" in await page(gateway, f"/jobs/{runs[1].job_id}?baseline={away}")


async def test_task_search_order_and_opened_item_are_in_the_address(gateway: Running) -> None:
    job = finished(gateway)
    task = job.plan[0].task
    text = await page(gateway, f"/jobs/{job.job_id}?task={task}&items=failures&sort=slowest&open={task}:1")
    asked = list(listed(gateway))[-1]
    assert (asked.task, asked.order) == (task, asked.ORDER_SLOWEST)
    assert f">task {task} " in text, "the chosen task is named"
    assert f'href="/jobs/{job.job_id}?items=failures&sort=slowest#items" title="Show all tasks"' in text
    assert 'class="num time" aria-sort="descending">Time' in text
    opened = text[text.index('class="opened') :]
    assert opened.index('class="prompt" open') < opened.index("Response, ") < opened.index("How it was read")
    assert "data-live" not in text[text.index('<section id="items"') :].split(">")[0]
    for odd in ("x", "x:y", f"{task}:999999", ":", f"{task}:1.z", "%00:1"):
        await page(gateway, f"/jobs/{job.job_id}?open={odd}")


async def test_a_cell_of_the_classes_opens_its_items(gateway: Running) -> None:
    job = finished(gateway)
    task = job.plan[0].task
    text = await page(gateway, f"/jobs/{job.job_id}?task={task}")
    assert f"Classes of {task}" in text
    await page(gateway, f"/jobs/{job.job_id}?task={task}&reference=1&extracted=")
    conditions = list(listed(gateway))[-1].conditions
    assert (conditions.reference, conditions.HasField("prediction"), conditions.prediction) == ("1", True, "")


def test_classes_are_a_table_with_what_was_not_read_last() -> None:
    counts = [("b", "a", 2), ("a", "a", 5), ("a", "", 1), ("b", None, 3)]
    table = Classes.of([results_service_pb2.ClassCount(reference=r, prediction=p, items=n) for r, p, n in counts])
    assert table is not None
    assert table.heads == ["a", "b", ""]
    assert table.lines == [("a", [5, 0, 1], 0), ("b", [2, 0, 0], 3)]
    assert Classes.of([]) is None


async def test_the_log_shows_what_the_services_wrote(gateway: Running) -> None:
    job = finished(gateway)
    line = scheduler_service_pb2.LogLine(level="warning", source="evaluator one", text="<b>slow</b> answer")
    gateway.world.logs[job.job_id] = [line]
    answer = await gateway.client.get(f"/jobs/{job.job_id}/log", headers={"Accept": "text/html"})
    assert "&lt;b&gt;slow&lt;/b&gt; answer" in answer.text
    assert "slow" not in await page(gateway, f"/jobs/{job.job_id}/log?level=error")
    assert f'href="/jobs/{job.job_id}/log"' in await page(gateway, f"/jobs/{job.job_id}")


async def test_a_run_is_marked_with_a_reason(gateway: Running) -> None:
    job = finished(gateway)
    address = f"/jobs/{job.job_id}/mark"
    refused = await gateway.client.post(address, data={"mark": "invalidated"})
    assert refused.status_code == 400
    assert "Write the reason, then mark the run." in html.unescape(refused.text)
    await gateway.client.post(address, data={"mark": "invalidated", "reason": "wrong prompt"})
    assert gateway.world.results[job.job_id].mark == "invalidated"
    await gateway.client.post(address, data={"mark": "valid"})
    assert not gateway.world.results[job.job_id].mark


@pytest.mark.parametrize("address", ["/run?endpoint=gemini", "/jobs", "job"])
async def test_a_refused_key_is_said_with_its_remedy_on_every_page(
    gateway: Running, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = gateway.world.add(spec(), "local")
    said = "ollama refused the key. Set A_KEY where the evaluator runs and restart it."
    endpoints = fake_data.endpoints()
    endpoint = next(one for one in endpoints if one.endpoint == "ollama")
    endpoint.state, endpoint.detail = endpoint_pb2.Endpoint.STATE_DOWN, said
    monkeypatch.setattr(fake_data, "endpoints", lambda: endpoints)
    text = await page(gateway, f"/jobs/{job.job_id}" if address == "job" else address)
    assert text.count(said) >= (2 if address != "/jobs" else 1)
