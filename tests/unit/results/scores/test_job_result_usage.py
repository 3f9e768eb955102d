"""What a job's answers took: time, tokens, money, and what came from the store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.results.boards.leaderboard import leaderboard
from services.results.estimates.estimate import estimate_run
from services.results.export.exports import export
from services.results.intake import writes
from services.results.items import reads
from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.unit.results.builders import ANSWERED, ERROR, answer, batch, job, known, plan, run
from touchstone.v1 import item_result_pb2, metric_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import ExportRequest


def measured(
    connection: Connection, *results: item_result_pb2.ItemResult, baseline: bool = False
) -> metric_pb2.JobResult:
    planned = plan("t", len(results))
    known(connection, planned)
    writes.store_items(connection, [batch("j", "t", results)])
    return job_result.compute(connection, job("j", planned, baseline=baseline), seal=True).result


def test_reused_answers_are_counted_and_cost_nothing_and_take_no_time(connection: Connection) -> None:
    result = measured(
        connection,
        answer(0, cost_usd=0.25, ttft_ms=4.0),
        answer(1, cost_usd=0.5, ttft_ms=8.0),
        answer(500, cost_usd=9.0, reused=True, ttft_ms=900.0),
    )
    assert result.items_reused == 1
    assert result.cost_usd == pytest.approx(0.75)
    assert (result.latency_p50_ms, result.ttft_p50_ms) == (10.5, 6.0)
    assert result.latency_p95_ms <= 11
    assert result.ttft_p95_ms <= 8


def test_a_cost_is_told_only_when_every_paid_answer_has_one(connection: Connection) -> None:
    unpriced = measured(connection, answer(0, cost_usd=0.25), answer(1))
    assert not unpriced.HasField("cost_usd")


def test_answers_that_failed_or_were_reused_need_no_price(connection: Connection) -> None:
    result = measured(connection, answer(0, cost_usd=0.25), answer(1, reused=True), answer(2, outcome=ERROR))
    assert result.cost_usd == 0.25


def test_a_job_whose_every_answer_was_reused_cost_nothing(connection: Connection) -> None:
    result = measured(connection, answer(0, reused=True))
    assert result.HasField("cost_usd")
    assert (result.cost_usd, result.latency_p50_ms, result.ttft_p50_ms) == (0, 0, 0)


def test_a_job_without_answers_has_no_cost(connection: Connection) -> None:
    assert not measured(connection, answer(0, outcome=ERROR)).HasField("cost_usd")


def test_versions_that_answered_are_listed_once_in_order_and_at_most_eight(connection: Connection) -> None:
    served = ["gpt-4o-2024-11-20", "gpt-4o-2024-08-06", "gpt-4o-2024-11-20", ""]
    result = measured(connection, *(answer(i, served_model=name) for i, name in enumerate(served)))
    assert list(result.served_models) == ["gpt-4o-2024-08-06", "gpt-4o-2024-11-20"]
    assert result.not_ranked_reason == "", "a change is shown, and the run ranks"
    many = [answer(10 + i, served_model=f"m{i}") for i in range(12)]
    writes.store_items(connection, [batch("j", "t", many)])
    again = job_result.compute(connection, job("j", plan("t", 16)), seal=True).result
    assert len(again.served_models) == 8


def test_a_baselines_fits_are_no_versions(connection: Connection) -> None:
    result = measured(
        connection, *(answer(i, served_model=f"majority, fitted on {i} rows") for i in range(2)), baseline=True
    )
    assert list(result.served_models) == []


def test_tokens_of_reasoning_are_added_up(connection: Connection) -> None:
    assert measured(connection, *(answer(i, reasoning_tokens=7) for i in range(3))).reasoning_tokens == 21


def untold(item: int, outcome: int = ANSWERED) -> item_result_pb2.ItemResult:
    """An answer whose provider does not count."""
    result = answer(item, outcome=outcome)
    result.input_tokens = result.output_tokens = 0
    result.input_untold = result.output_untold = True
    return result


def test_sums_of_tokens_leave_out_what_is_not_told_and_say_of_how_many(connection: Connection) -> None:
    result = measured(connection, answer(0), answer(1), untold(2), untold(3, outcome=ERROR))
    assert (result.input_tokens, result.output_tokens) == (40, 6)
    assert (result.input_untold, result.output_untold) == (1, 1), "an error is no answer"
    assert not result.HasField("cost_usd")
    stored = connection.execute("SELECT input_tokens, output_tokens FROM items ORDER BY item").fetchall()
    assert stored == [(20, 3), (20, 3), (None, None), (None, None)]


def test_an_answer_without_tokens_is_read_as_it_was_stored(connection: Connection) -> None:
    one = untold(0)
    one.output_untold, one.output_tokens = False, 0
    measured(connection, one)
    request = results_service_pb2.GetItemRequest(job_id="j", task="t", item=0)
    found = reads.get_item(connection, request).result
    assert (found.input_untold, found.output_untold, found.output_tokens) == (True, False, 0)


def test_exports_have_null_for_tokens_that_are_not_told(connection: Connection) -> None:
    planned = job("j", plan("t", 2))
    writes.store_items(connection, [batch("j", "t", [untold(0), untold(1)])])
    run(connection, planned, right=0)
    found: dict[int, dict[str, Any]] = {}
    for kind in (ExportRequest.KIND_JOBS, ExportRequest.KIND_ITEMS, ExportRequest.KIND_BATCH_OUTPUT):
        request = ExportRequest(kind=kind, format=ExportRequest.FORMAT_JSONL)
        if kind != ExportRequest.KIND_JOBS:
            request.items.job_id = "j"
        found[kind] = json.loads(b"".join(piece.data for piece in export(connection, request)).splitlines()[0])
    of_job, of_item, line = found.values()
    assert (of_job["input_tokens"], of_job["output_tokens"]) == (None, None)
    assert (of_job["input_untold"], of_job["output_untold"]) == (2, 2)
    assert (of_item["input_tokens"], of_item["output_tokens"]) == (None, None)
    assert line["response"]["body"]["usage"] is None


def test_a_run_with_reused_answers_has_no_speed_on_the_leaderboard(connection: Connection) -> None:
    planned = job("j", plan("t", 2))
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1, reused=True)])])
    run(connection, planned, right=0)
    (entry,) = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue")).entries
    assert entry.tokens_per_second == 0


@pytest.mark.parametrize(("of_second", "known_cost"), [(0.5, 0.75), (None, None)])
def test_the_leaderboard_has_what_a_run_cost_where_it_is_known(
    connection: Connection, of_second: float | None, known_cost: float | None
) -> None:
    planned = job("j", plan("t", 2))
    writes.store_items(connection, [batch("j", "t", [answer(0, cost_usd=0.25), answer(1, cost_usd=of_second)])])
    run(connection, planned, right=0)
    (entry,) = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue")).entries
    assert (entry.cost_usd if entry.HasField("cost_usd") else None) == known_cost


ABSURD = (float("nan"), float("inf"), float("-inf"), -100.0, 1e308, 1e5)


@pytest.mark.parametrize("cost", ABSURD)
def test_a_cost_that_cannot_be_is_stored_as_not_known(connection: Connection, cost: float) -> None:
    result = measured(connection, answer(0, cost_usd=0.25), answer(1, cost_usd=cost))
    assert not result.HasField("cost_usd")
    assert connection.execute("SELECT cost_usd FROM items ORDER BY item").fetchall() == [(0.25,), (None,)]


@pytest.mark.parametrize("cost", ABSURD)
def test_rows_that_an_earlier_version_stored_are_read_as_not_known(connection: Connection, cost: float) -> None:
    measured(connection, *(answer(place, cost_usd=0.25) for place in range(40)))
    connection.execute("UPDATE items SET cost_usd = $cost WHERE item = 1", {"cost": cost})
    planned = plan("t", 40)
    result = job_result.compute(connection, job("j", planned), seal=True).result
    assert not result.HasField("cost_usd")
    listed = reads.list_items(connection, results_service_pb2.ListItemsRequest(job_id="j"))
    costs = [item.result.cost_usd if item.result.HasField("cost_usd") else None for item in listed.items]
    assert costs[:3] == [0.25, None, 0.25]
    assert len(costs) == 40
    for kind in (ExportRequest.KIND_ITEMS, ExportRequest.KIND_BATCH_OUTPUT):
        request = ExportRequest(kind=kind, format=ExportRequest.FORMAT_JSONL)
        request.items.job_id = "j"
        lines = b"".join(piece.data for piece in export(connection, request)).splitlines()
        assert len([json.loads(line, parse_constant=pytest.fail) for line in lines]) == 40
    asked = results_service_pb2.EstimateRunRequest(job_id="j", items=1000)
    assert not estimate_run(connection, asked).HasField("cost_usd")
