"""What an item's result carries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import pytest

from services.evaluator import item_result
from services.evaluator.answers.scorers.scorer import Scorer, as_text, mean, whole
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets import rows
from services.evaluator.datasets.store import Shelf
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.items.task import Message, Response
from services.evaluator.plugins.contract import PluginError
from tests.dataset_store import DATASET_ID, MemoryStore, row, with_call, with_image
from tests.pictures import PNG
from tests.unit.evaluator.datasets.tasks import all_items, task_of
from tests.unit.evaluator.stored.answered import ITEMS, TASK
from touchstone.v1 import item_result_pb2
from touchstone.v1.content_pb2 import TokenLogprob, ToolCall
from touchstone.v1.scoring_pb2 import Scoring

SENTIMENT = Catalogue(None).task("demo", "sentiment")
ITEM = next(iter(SENTIMENT.items([0])))


async def test_results_carry_the_rows_id_metadata_and_messages() -> None:
    conversation = [("system", "Be brief."), ("user", "1\n\nuser:\n2?")]
    task = task_of([row(1, conversation, metadata={"a": "ü"}), row(2)])
    several, single = [
        item_result.answered(task, item, place, 0, Response("x"), 1) for place, item in enumerate(await all_items(task))
    ]
    assert several.custom_id == "row-1"
    assert json.loads(several.metadata) == {"a": "ü"}
    assert json.loads(several.messages) == [{"role": role, "content": text} for role, text in conversation]
    assert (single.custom_id, single.metadata, single.messages) == ("row-2", "", "")
    (item, _) = await all_items(task)
    failed = item_result.failed(task, item, 0, 0, "no", 1)
    assert (failed.custom_id, failed.messages) == (several.custom_id, several.messages)
    stored = item_result_pb2.ItemResult(position=0)
    item_result.with_prompt(stored, item)
    assert (stored.custom_id, stored.metadata, stored.messages) == ("row-1", several.metadata, several.messages)


async def test_messages_that_are_too_long_are_left_out_and_never_cut() -> None:
    task = task_of([row(1, [("user", "x" * 200_000), ("user", "y")])])
    (item,) = await all_items(task)
    stored = item_result.answered(task, item, 0, 0, Response("x"), 1)
    assert stored.messages == ""
    assert len(stored.prompt) == item_result.PROMPT_BYTES


async def test_what_a_plug_in_cannot_score_is_said_with_the_row() -> None:
    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        raise PluginError("The plug-in odd 1.0 failed.")

    memory = MemoryStore()
    memory.add([row(7, reference="x")])
    scorer = Scorer("odd", "1", (mean("m", "correct"),), ("correct",), as_text, whole, judge)
    task = DatasetTask(memory.manifests[DATASET_ID], Scoring(scorer="odd"), 0, 0, Shelf(memory), None, {"odd": scorer})
    (item,) = await all_items(task)
    with pytest.raises(PluginError) as error:
        item_result.answered(task, item, 0, 0, Response("x"), 1)
    assert error.value.message == f"Row 1 of {task.name} (row-7): The plug-in odd 1.0 failed."


def test_a_providers_note_is_cut_for_storage() -> None:
    noted = item_result.answered(SENTIMENT, ITEM, 0, 0, Response("Answer: positive", note="\ud800" * 2_000_000), 1)
    assert noted.error == "?" * 8192


def test_metadata_is_cut_by_whole_fields() -> None:
    whole = {"id": 1, "text": "ü" * 20_000, "more": "x" * 20_000, "tail": [1, 2]}
    kept = rows.kept_metadata(json.dumps(whole, ensure_ascii=False))
    assert len(kept.encode()) <= rows.METADATA_BYTES
    assert list(json.loads(kept)) == ["id", "more", "tail"]
    assert json.loads(rows.kept_metadata(json.dumps({"a": "x" * 40_000}))) == {}


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -100.0, 1e308, 1e5])
def test_numbers_that_cannot_be_are_not_known_and_cost_no_answer(cost: float) -> None:
    response = Response("yes", input_tokens=2**40, output_tokens=2**31, reasoning_tokens=2**31, cost_usd=cost)
    found = item_result.answered(TASK, ITEMS[0], 0, 0, response, 1)
    assert found.response == "yes"
    assert (found.input_tokens, found.output_tokens, found.reasoning_tokens) == (0, 0, 0)
    assert found.input_untold
    assert found.output_untold
    assert not found.HasField("cost_usd")


@pytest.mark.parametrize(
    ("read", "written", "input_untold", "output_untold"),
    [
        (None, None, True, True),
        (5, None, False, True),
        (5, 0, False, False),
        (None, 2, True, False),
        (0, 0, True, True),
    ],
)
def test_tokens_that_a_provider_does_not_tell_are_marked_and_stay_so(
    read: int | None, written: int | None, input_untold: bool, output_untold: bool
) -> None:
    first = item_result.answered(TASK, ITEMS[0], 0, 0, Response("yes", input_tokens=read, output_tokens=written), 1)
    for one in (first, item_result.reused(TASK, ITEMS[0], 0, 0, first)):
        assert (one.input_untold, one.output_untold) == (input_untold, output_untold)
        assert (one.input_tokens, one.output_tokens) == (read or 0, written or 0)


def test_a_call_that_failed_tells_no_tokens() -> None:
    failed = item_result.failed(TASK, ITEMS[0], 0, 0, "HTTP 500", 3)
    assert (failed.input_untold, failed.output_untold) == (True, True)


NATS_BYTES = 1024 * 1024


@pytest.mark.stack
def test_the_largest_result_fits_into_a_nats_message_and_says_what_was_cut() -> None:
    item = replace(ITEM, messages=(Message("user", "ü" * 2**21),))
    response = Response("ö" * 2**22, reasoning="ä" * 2**21, finish_reason="length")
    made = item_result.answered(SENTIMENT, item, 0, 0, response, 1)
    assert made.ByteSize() < NATS_BYTES * 0.6
    assert "The response of 8388608 bytes was cut to 262144 for storage." in made.error
    assert "prompt" in made.error
    assert made.response == "ö" * (item_result.RESPONSE_BYTES // 2)


def test_scoring_sees_the_whole_response() -> None:
    response = Response("x " * 2**18 + SENTIMENT.answer(ITEM.reference), finish_reason="stop")
    made = item_result.answered(SENTIMENT, ITEM, 0, 0, response, 1)
    assert made.outcome == item_result_pb2.OUTCOME_ANSWERED
    assert made.prediction == ITEM.reference


def test_a_lone_surrogate_does_not_break_the_result() -> None:
    assert item_result.answered(SENTIMENT, ITEM, 0, 0, Response("\ud800 yes"), 1).response == "? yes"


async def test_results_name_pictures_and_keep_conversations_with_calls() -> None:
    task = task_of([with_image(1, PNG), with_call(2, '{"b": 1.0, "a": 2}')])
    picture, called = [
        item_result.answered(task, item, place, 0, Response("x"), 1) for place, item in enumerate(await all_items(task))
    ]
    assert picture.prompt == f"user:\nWhat is this?\n[image/png, {len(PNG)} bytes]"
    (message,) = json.loads(picture.messages)
    assert message["content"][1] == {
        "type": "image",
        "media_type": "image/png",
        "bytes": len(PNG),
        "sha256": sha256(PNG).hexdigest(),
    }
    assert called.prompt == 'user:\nHow is it?\n\nassistant:\nweather({"b": 1.0, "a": 2})\n\ntool:\nRain'
    assert json.loads(called.messages)[1]["tool_calls"][0]["function"]["arguments"] == '{"b": 1.0, "a": 2}'


async def test_calls_without_a_reference_are_the_prediction_and_scorers_read_the_text() -> None:
    task = task_of([row(1), row(2, reference="yes")])
    calls = (ToolCall(id="c", name="f", arguments="{}"), ToolCall(name="g", arguments="[1"))
    free, scored = await all_items(task)
    found = item_result.answered(task, free, 0, 0, Response("", tool_calls=calls), 1)
    assert (found.outcome, found.prediction) == (item_result_pb2.OUTCOME_ANSWERED, "f({})\ng([1)")
    assert tuple(found.tool_calls) == calls
    for arguments in ('{"b": 1.0, "a": {"d": "\\u00fc", "c": 2}}', '{"a":{"c":2,"d":"ü"},"b":1}'):
        ordered = (ToolCall(name="f", arguments=arguments),)
        same = item_result.answered(task, free, 0, 0, Response("", tool_calls=ordered), 1)
        assert same.prediction == 'f({"a": {"c": 2, "d": "ü"}, "b": 1})'
        assert tuple(same.tool_calls) == ordered
    found = item_result.answered(task, scored, 1, 0, Response("", tool_calls=calls), 1)
    assert found.outcome == item_result_pb2.OUTCOME_UNPARSED


async def test_what_is_taken_from_the_store_has_its_calls_and_log_probabilities() -> None:
    task = task_of([row(1)])
    (item,) = await all_items(task)
    response = Response("x", tool_calls=(ToolCall(name="f", arguments="{}"),), logprobs=(TokenLogprob(token="x"),))
    stored = item_result.answered(task, item, 0, 0, response, 1)
    again = item_result.reused(task, item, 0, 0, stored)
    assert (again.tool_calls, again.logprobs) == (stored.tool_calls, stored.logprobs)
    assert item_result.is_whole(stored)


async def test_long_calls_and_log_probabilities_are_cut_and_a_result_fits_a_message() -> None:
    long = "ü" * 400_000
    task = task_of([row(1, long, reference="y" * 60_000, metadata={"a": "x" * 30_000})])
    (item,) = await all_items(task)
    calls = tuple(ToolCall(id="i" * 900, name="f", arguments=long) for _ in range(300))
    tokens = tuple(TokenLogprob(token=long[:50], logprob=-1) for _ in range(10_000))
    response = Response(long, reasoning=long, parameters=long, tool_calls=calls, logprobs=tokens)
    found = item_result.answered(task, item, 0, 0, response, 1)
    assert found.ByteSize() < 1_000_000
    assert len(found.tool_calls) == 1
    assert 0 < len(found.logprobs) < 10_000
    assert "The tool calls of " in found.error
    assert "log-probabilities" in found.error
    assert not item_result.is_whole(found)
    found.response = ""
    assert not item_result.is_whole(found), "calls that were cut cannot be scored again"
