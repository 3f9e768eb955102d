"""What a run would take, learned from a pilot's items."""

from __future__ import annotations

import numpy as np
import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.results.datasets import index
from services.results.estimates.estimate import estimate_run
from services.results.estimates.totals import looks_normal
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import ERROR, START
from tests.unit.results.dataset_runs import DATASET, EXACT, row, stored
from tests.unit.results.estimates.pilots import CHANCE, lognormal
from tests.unit.results.finished import finished, said, task
from touchstone.v1 import dataset_pb2, item_result_pb2
from touchstone.v1 import results_service_pb2 as pb


def used(number: int, read: int = 20, written: int = 3, cost_usd: float | None = None) -> item_result_pb2.ItemResult:
    result = row(number, 1.0, prompt="user:\n" + "x" * read)
    result.input_tokens, result.output_tokens, result.latency_ms = read, written, 1000.0
    if cost_usd is not None:
        result.cost_usd = cost_usd
    return result


def list_dataset(connection: Connection, rows: int, characters: int) -> None:
    dataset = dataset_pb2.Dataset(dataset_id=DATASET, rows=rows, prompt_characters=characters)
    index.add(connection, dataset_pb2.DatasetManifest(dataset=dataset), START.replace(tzinfo=None))


def estimated(connection: Connection, per_minute: int = 0, **fields: int) -> pb.EstimateRunResponse:
    return estimate_run(connection, pb.EstimateRunRequest(job_id="a", **fields), per_minute)


def ends(found: pb.Estimate) -> tuple[float, float, float]:
    return round(found.low, 6), round(found.value, 6), round(found.high, 6)


def test_items_alike_add_up_exactly(connection: Connection) -> None:
    stored(connection, "a", [used(number, cost_usd=0.25) for number in range(6)], EXACT)
    found = estimated(connection, items=100, concurrency=10)
    assert (found.items, found.pilot_items) == (100, 6)
    assert ends(found.input_tokens) == (2000, 2000, 2000)
    assert ends(found.output_tokens) == (300, 300, 300)
    assert ends(found.cost_usd) == (25, 25, 25)
    assert 10 < found.duration_s.value < 11


def test_input_tokens_follow_the_characters_where_the_datasets_are_known(connection: Connection) -> None:
    """Of tokens that are characters nothing is left to chance, though rows differ a hundredfold."""
    stored(connection, "a", [used(number, read=10 * (number + 1)) for number in range(10)], EXACT)
    list_dataset(connection, rows=1000, characters=90_000)
    found = estimated(connection)
    assert found.items == 1000
    assert ends(found.input_tokens) == (90_000, 90_000, 90_000)
    some = estimated(connection, items=500).input_tokens
    assert some.low < some.value == 27_500 < some.high


def test_characters_are_those_of_the_messages_alone(connection: Connection) -> None:
    several = [used(number) for number in range(6)]
    for number, one in enumerate(several):
        one.input_tokens = 10 + 2 * number
        one.messages = '[{"role": "system", "content": "12345"}, {"role": "user", "content": "' + "é" * number + '"}]'
    stored(connection, "a", several, EXACT)
    list_dataset(connection, rows=100, characters=1000)
    assert ends(estimated(connection).input_tokens) == (2000, 2000, 2000)


def test_a_price_is_told_only_where_all_are_known(connection: Connection) -> None:
    stored(connection, "a", [used(0), *(used(number, cost_usd=0.25) for number in range(1, 6))], EXACT)
    assert not estimated(connection, items=100).HasField("cost_usd")


def test_tokens_that_a_provider_does_not_count_are_not_told(connection: Connection) -> None:
    stored(connection, "a", [used(number, written=0) for number in range(6)], EXACT)
    found = estimated(connection, items=100)
    assert (found.HasField("output_tokens"), found.HasField("input_tokens")) == (False, True)


def test_errors_are_no_items_to_learn_from(connection: Connection) -> None:
    stored(connection, "a", [*(used(number) for number in range(4)), row(4, outcome=ERROR)], EXACT, planned=9)
    with pytest.raises(ConflictError, match=r"Job a has 4 answered items; an estimate needs at least 5"):
        estimated(connection)


def test_tasks_count_by_their_size_in_the_whole_suite(connection: Connection) -> None:
    short = [said(number, "yes") for number in range(5)]
    long = [said(number, "yes") for number in range(5)]
    for one in long:
        one.output_tokens = 103
    finished(connection, "a", task("t", short, published_items=900), task("u", long, published_items=100))
    found = estimated(connection)
    assert (found.items, found.pilot_items) == (1000, 10)
    assert ends(found.output_tokens) == (13_000, 13_000, 13_000)


def test_several_answers_an_item_are_paid_for_each(connection: Connection) -> None:
    answers = [said(number, "yes", repeat=repeat) for number in range(5) for repeat in range(3)]
    finished(connection, "a", task("t", answers, repeats=3, published_items=10))
    found = estimated(connection)
    assert (found.items, found.pilot_items, found.output_tokens.value) == (10, 5, 90)


def test_calls_at_once_are_those_of_the_first_run_unless_asked_for(connection: Connection) -> None:
    rows = [used(number) for number in range(6)]
    finished(connection, "a", task("t", rows, published_items=4000), concurrency=40)
    assert 100 <= estimated(connection).duration_s.value < 101
    assert 1000 <= estimated(connection, concurrency=4).duration_s.value < 1001
    assert estimated(connection, per_minute=1000).duration_s.value == 240


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"items": -1}, "items"), ({"items": 10**8}, "items"), ({"concurrency": -1}, "concurrency")],
)
def test_what_cannot_be_estimated_is_refused_by_field(
    connection: Connection, fields: dict[str, int], field: str
) -> None:
    stored(connection, "a", [used(number) for number in range(6)], EXACT)
    with pytest.raises(InvalidRequestError) as raised:
        estimate_run(connection, pb.EstimateRunRequest(job_id="a", **fields))
    assert raised.value.field == field


def test_a_hidden_job_tells_nothing(connection: Connection) -> None:
    stored(connection, "a", [used(number) for number in range(6)], EXACT, owner="ann")
    with pytest.raises(NotFoundError):
        estimate_run(connection, pb.EstimateRunRequest(job_id="a"), visible=Visibility("bob"))


def test_shapes_are_told_apart() -> None:
    """By logarithms: nearly all lognormal samples, few exponential and no two-humped ones."""
    alike = [looks_normal(np.log(lognormal(100))) for _ in range(300)]
    exponential = [looks_normal(np.log(CHANCE.exponential(100, 100) + 1)) for _ in range(300)]
    humps = [
        looks_normal(np.log(np.where(CHANCE.random(100) < 0.3, 900.0, 30.0) + CHANCE.random(100))) for _ in "12345"
    ]
    assert np.mean(alike) > 0.9
    assert np.mean(exponential) < 0.3
    assert not any(humps)
