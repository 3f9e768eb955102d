"""Answers to uploaded rows on pages: filters, the opened row, judging it, and runs side by side."""

from __future__ import annotations

import pytest

from tests.gateway.gateway_server import Running
from tests.gateway.test_pages_datasets import dataset_of, page, run_over
from touchstone.v1 import dataset_pb2, job_pb2, results_service_pb2

_LISTING = results_service_pb2.ListSideBySideRequest
_VERDICT = results_service_pb2.Annotation
ROWS = b"".join(
    b'{"custom_id": "case-%d", "prompt": "p%d", "reference": "A", "metadata": {"ward": "<i>w%d</i>"}}\n' % (n, n, n)
    for n in range(30)
)


async def answered(gateway: Running, dataset: dataset_pb2.Dataset | None = None) -> job_pb2.Job:
    job = run_over(gateway, dataset or await dataset_of(gateway, ROWS))
    gateway.world.finish(job.job_id)
    return job


async def test_rows_are_listed_by_their_own_id_with_downloads(gateway: Running) -> None:
    job = await answered(gateway)
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert ">case-3</a>" in text
    for query in ("kind=batch&amp;format=jsonl", "kind=batch&amp;format=csv", "kind=golden&amp;format=jsonl"):
        assert query in text
    assert '<option value="ward">' in text, "metadata fields are offered"


async def test_conditions_reach_the_service_and_stay_in_every_link(gateway: Running) -> None:
    job = await answered(gateway)
    query = "metadata_field=ward&metadata_value=w1&length_low=1&length_high=x&score_low=0.5&verdict=none"
    text = await page(gateway, f"/jobs/{job.job_id}?{query}")
    (asked,) = [one for one in gateway.world.asked if isinstance(one, results_service_pb2.ListItemsRequest)]
    given = asked.conditions
    assert (given.metadata_field, given.metadata_value, given.length_low, given.score_low) == ("ward", "w1", 1, 0.5)
    assert not given.HasField("length_high"), "what is no number asks for nothing"
    assert list(given.verdicts) == [_VERDICT.VERDICT_UNSPECIFIED]
    assert "items=failures&amp;metadata_field=ward&amp;metadata_value=w1" in text


async def test_an_opened_row_shows_its_metadata_as_text_and_the_judging(gateway: Running) -> None:
    job = await answered(gateway)
    text = await page(gateway, f"/jobs/{job.job_id}/items/rows/4", part=True)
    assert "&lt;i&gt;w4&lt;/i&gt;" in text
    assert "<i>w4" not in text
    assert f'action="/jobs/{job.job_id}/items/rows/4/annotation"' in text


async def test_judging_works_without_script_and_with_it(gateway: Running) -> None:
    job = await answered(gateway)
    address = f"/jobs/{job.job_id}/items/rows/4"
    sent = {"verdict": "golden", "corrected_answer": "kept out", "note": "good"}
    answer = await gateway.client.post(f"{address}/annotation", data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    held = gateway.world.annotations[job.job_id, "rows", 4]
    assert (held.verdict, held.corrected_answer, held.note) == (_VERDICT.VERDICT_GOLDEN, "", "good")
    sent = {"verdict": "fix", "corrected_answer": "one\r\ntwo"}
    answer = await gateway.client.post(f"{address}/annotation", data=sent, headers={"HX-Request": "true"})
    assert '<hx-partial hx-target="#judged-rows-4-0"' in answer.text
    assert gateway.world.annotations[job.job_id, "rows", 4].corrected_answer == "one\ntwo"


@pytest.mark.parametrize("sent", [{"verdict": "fix", "corrected_answer": " "}, {"verdict": "splendid"}, {}])
async def test_a_verdict_that_says_nothing_is_refused(gateway: Running, sent: dict[str, str]) -> None:
    job = await answered(gateway)
    answer = await gateway.client.post(f"/jobs/{job.job_id}/items/rows/4/annotation", data=sent)
    assert answer.status_code == 400
    assert gateway.world.annotations == {}


async def test_ticked_runs_come_to_one_address_side_by_side(gateway: Running) -> None:
    one = await answered(gateway)
    two = await answered(gateway, gateway.world.datasets[one.spec.dataset.dataset_id])
    ids = f"{one.job_id},{two.job_id}"
    answer = await gateway.client.get(f"/side-by-side?jobs={one.job_id}&jobs={two.job_id}")
    assert answer.headers["location"] == f"/side-by-side?jobs={ids}"
    text = await page(gateway, f"/side-by-side?jobs={ids}")
    assert f'<a href="/datasets/{one.spec.dataset.dataset_id}">rows.jsonl</a>' in text
    assert text.count("<article") == 25
    assert "<ins>more </ins>" in text
    following = f"/side-by-side?jobs={ids}&filter=only_right&only=B&diff=0&after=25"
    text = await page(gateway, following, part=True)
    assert text.count("<article") == 5
    asked = gateway.world.asked[-1]
    assert (asked.filter, asked.only_job_id, asked.with_diffs) == (_LISTING.FILTER_ONLY_RIGHT, two.job_id, False)


async def test_another_number_of_runs_is_refused_with_what_to_do(gateway: Running) -> None:
    job = await answered(gateway)
    text = await page(gateway, f"/side-by-side?jobs={job.job_id}", 400)
    assert "Rows are read side by side for 2 to 4 runs; 1 chosen." in text
    await page(gateway, "/side-by-side?jobs=nonsense", 404)
