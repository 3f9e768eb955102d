"""What a run would take, learned from a pilot's items."""

from __future__ import annotations

import numpy as np
import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.results.database import Connection
from services.results.datasets import index
from services.results.estimate import estimate_run
from services.results.pilot.durations import Pace, duration
from services.results.pilot.sample import by_ratio, weighted
from services.results.pilot.totals import Interval, looks_normal, total
from services.results.statistics import Floats
from services.results.visibility import Visibility
from tests.unit.results.builders import ERROR, START
from tests.unit.results.dataset_runs import DATASET, EXACT, row, stored
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


# -- of a job ----------------------------------------------------------------------------------------------------------


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
    with pytest.raises(ConflictError, match=r"Job a has 4 items with an answer\. Estimate from 5 or more"):
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


# -- the statistics ----------------------------------------------------------------------------------------------------

CHANCE = np.random.default_rng(11)


def lognormal(count: int, sigma: float = 1.0) -> Floats:
    return np.asarray(np.round(np.exp(CHANCE.normal(5, sigma, count))) + 1, dtype=float)


def test_items_that_were_seen_are_no_doubt() -> None:
    sample = lognormal(40)
    assert total(sample, 40) == Interval(sample.sum(), sample.sum(), sample.sum())
    near, far = total(sample, 42), total(sample, 5000)
    assert (near.high - near.low) / near.value < (far.high - far.low) / far.value / 3
    anew = total(sample, 40, anew=True)
    assert anew.low < anew.value < anew.high


@pytest.mark.parametrize("size", [2, 5, 11, 12, 30, 200])
@pytest.mark.parametrize("items", [1, 3, 100, 100_000])
def test_an_interval_holds_its_value_and_nothing_below_0(size: int, items: int) -> None:
    for sample in (lognormal(size, 3.0), CHANCE.poisson(0.5, size).astype(float), np.zeros(size)):
        found = total(sample, items)
        assert 0 <= found.low <= found.value <= found.high < np.inf
        lasting = duration(sample, np.ones(size), items, Pace(8, 60))
        assert 0 <= lasting.low <= lasting.value <= lasting.high < np.inf


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


def test_differences_between_tasks_are_no_chance() -> None:
    tasks = np.array(["t"] * 20 + ["u"] * 20, dtype=object)
    values = np.concatenate([CHANCE.normal(10, 1, 20), CHANCE.normal(1000, 1, 20)])
    sizes = {"t": 300, "u": 100}
    sample = weighted(values, tasks, sizes)
    assert sample.mean() == pytest.approx(0.75 * values[:20].mean() + 0.25 * values[20:].mean())
    assert sample.std() < 2
    one_each = weighted(np.array([10.0, 1000.0]), np.array(["t", "u"], dtype=object), sizes)
    assert one_each.mean() == pytest.approx(257.5)


def test_a_ratio_is_taken_where_it_explains_something() -> None:
    sizes = lognormal(50)
    noise = CHANCE.normal(0, 1, 50)
    sample = by_ratio(sizes / 4 + noise, sizes, 200.0)
    assert sample.mean() == pytest.approx(200 * (sizes / 4 + noise).mean() / sizes.mean())
    assert sample.std() < 3
    level = 100 + noise
    assert by_ratio(level, sizes, 200.0) is level


def test_a_limit_a_minute_counts_where_it_takes_longer() -> None:
    seconds, calls = np.full(20, 2.0), np.full(20, 1.5)
    assert duration(seconds, calls, 1000, Pace(10, 100)) == Interval(900, 900, 900)
    assert duration(seconds, calls, 1000, Pace(10, 100_000)).value == pytest.approx(200, abs=2)


def test_all_calls_at_once_take_as_long_as_the_longest() -> None:
    seconds = lognormal(100)
    found = duration(seconds, np.ones(100), 10, Pace(64))
    drawn = [lognormal(10).max() for _ in range(2000)]
    assert found.value == pytest.approx(float(np.median(drawn)), rel=0.25)
