"""Item results come back as they went in."""

from __future__ import annotations

import pytest

from services.results.intake import writes
from services.results.items import reads
from services.results.storage.database import Connection
from services.results.storage.item_rows import metadata_fields, parsed_json
from services.words.chat import LEAST_LOGPROB
from tests.unit.results.builders import answer, batch
from tests.unit.results.intake.written import store, stored
from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone.v1.content_pb2 import TokenLogprob, ToolCall


def test_an_item_result_comes_back_as_it_went_in(connection: Connection) -> None:
    sent = item_result_pb2.ItemResult(
        item=7,
        repeat=2,
        item_hash="ih",
        prompt_hash="ph",
        prompt="a 'quoted' prompt; DROP TABLE items; \x00 ☃",
        response="r",
        reasoning="why",
        outcome=item_result_pb2.OUTCOME_ANSWERED,
        prediction="4.5",
        reference="4",
        statistics={"value": 4.5, "target": 4.0, "distance": 0.5},
        group="g",
        custom_id="c",
        extraction="last number",
        latency_ms=12.5,
        input_tokens=3,
        output_tokens=4,
        finish_reason="stop",
        calls=2,
        error="none",
        scorer_version="s1",
        served_model="m-1",
        position=5,
        continuations=[
            item_result_pb2.Continuation(text=" A", loglikelihood=-0.1234567890123, tokens=2, greedy=True),
            item_result_pb2.Continuation(text="", loglikelihood=float("-inf"), tokens=0),
        ],
        ttft_ms=3.25,
        reused=True,
        parameters='{"temperature":0}',
        identity="0123456789abcdef" * 2,
        cost_usd=0.0,
        reasoning_tokens=11,
        tool_calls=[
            ToolCall(id="call_1", name="weather", arguments='{"b": 1.0, "a": "☃ <script>"}'),
            ToolCall(name="weather", arguments="{no JSON"),
        ],
        logprobs=[
            TokenLogprob(
                token="r", logprob=-0.5, top=[{"token": "r", "logprob": -0.5}, {"token": "\n", "logprob": -9}]
            ),
            TokenLogprob(token="", logprob=0),
        ],
    )
    writes.store_items(connection, [batch("j", "t", [sent], attempt=3)])
    found = reads.get_item(connection, results_service_pb2.GetItemRequest(job_id="j", task="t", item=7, repeat=2))
    assert found.result == sent
    assert (found.job_id, found.task, found.attempt, found.evaluator) == ("j", "t", 3, "e1")


def test_a_plain_answer_has_nothing_in_the_columns_of_calls_and_log_probabilities(connection: Connection) -> None:
    store(connection, answer(0))
    assert connection.execute("SELECT tool_calls, logprobs FROM items").fetchall() == [(None, None)]


def test_log_probabilities_that_are_no_numbers_are_the_lowest(connection: Connection) -> None:
    wild = answer(0)
    wild.logprobs.add(token="a", logprob=float("-inf"), top=[{"token": "b", "logprob": float("nan")}])
    store(connection, wild)
    (found,) = stored(connection, 0).result.logprobs
    assert (found.logprob, found.top[0].logprob) == (LEAST_LOGPROB, LEAST_LOGPROB)


def test_continuations_of_items_in_one_batch_stay_apart(connection: Connection) -> None:
    results = [answer(i) for i in range(3)]
    results[0].continuations.add(text="a", loglikelihood=-1)
    results[2].continuations.add(text="b", loglikelihood=-2)
    results[2].continuations.add(text="c", loglikelihood=-3)
    store(connection, *results)
    assert [[c.text for c in stored(connection, i).result.continuations] for i in range(3)] == [["a"], [], ["b", "c"]]


def test_numbers_that_no_file_may_have_are_null() -> None:
    assert parsed_json('{"a": NaN, "b": -Infinity, "c": 1e999, "d": 0.5, "e": 2}') == {
        "a": None,
        "b": None,
        "c": None,
        "d": 0.5,
        "e": 2,
    }


@pytest.mark.parametrize("text", ["", "{", "[1]", '"a"', "null", "1" * 5000, "[" * 100_000])
def test_what_has_no_fields_has_none(text: str) -> None:
    assert metadata_fields(text) == {}


def test_what_is_nested_beyond_the_stack_is_an_error_that_says_so() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed_json("[" * 100_000)
