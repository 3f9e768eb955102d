"""Rows of uploaded datasets as items: which, with what, scored how."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.evaluator.data.reader import DataError
from services.evaluator.item_result import answered, reused
from services.evaluator.items.task import Response, Scored
from services.evaluator.providers.baseline import BaselineProvider
from services.evaluator.providers.protocol.provider import Request
from services.words.suites import MAJORITY
from tests.dataset_store import MemoryStore, row
from tests.unit.evaluator.datasets.tasks import NOTHING, all_items, opened, task_of
from touchstone.v1.content_pb2 import ToolCall
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_OUTPUT_TRUNCATED, OUTCOME_REFUSED
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, Scoring


async def test_what_the_first_answer_would_have_scored_is_kept_where_it_differs() -> None:
    pattern = r"answer is \((.)\)"
    for scoring, text in (
        (Scoring(scorer="choice", answer_pattern=pattern), "The answer is (A). On reflection, the answer is (B)."),
        (Scoring(scorer="regex", answer_pattern=pattern), "The answer is (A). On reflection, the answer is (B)."),
        (Scoring(scorer="choice"), "Answer: A\nSo:\nAnswer: B"),
        (Scoring(scorer="exact_match"), "Answer: A\nSo:\nAnswer: B"),
    ):
        for right, scores in (("B", (1, 0)), ("A", (0, 1))):
            task = task_of([row(1, reference=right)], scoring)
            (item,) = await all_items(task)
            found = task.score(item, Response(text)).statistics
            assert (found["correct"], found["correct_first"]) == scores, scoring
            same = task.score(item, Response(text.replace("A", right).replace("B", right)))
            assert "correct_first" not in same.statistics
    first = task_of([row(1, reference="B")], Scoring(answer_match=ANSWER_MATCH_FIRST, answer_pattern=pattern))
    (item,) = await all_items(first)
    assert first.score(item, Response("The answer is (A). The answer is (B).")).statistics == {"correct": 0}


@settings(max_examples=20, deadline=None)
@given(cuts=st.sets(st.integers(0, 60), max_size=8), limit=st.sampled_from([0, 7, 60]), shard_rows=st.integers(1, 25))
async def test_any_cut_into_units_gives_the_same_items_and_scores(cuts: set[int], limit: int, shard_rows: int) -> None:
    made = [row(n, reference=str(n % 3), temperature=n / 60) if n % 4 else row(n) for n in range(60)]
    task = task_of(made, limit=limit, shard_rows=shard_rows)
    size = len(task.chosen)
    places = sorted({0, size, *(min(cut, size) for cut in cuts)})
    whole = await all_items(task)
    parts = [await task.items(range(start, stop), NOTHING) for start, stop in pairwise(places)]
    assert [item for part in parts for item in part] == whole
    assert [item.index for item in whole] == list(task.chosen)
    assert [item.custom_id for item in whole] == [f"row-{number}" for number in task.chosen]
    assert [task.score(item, Response("1")) for part in parts for item in part] == [
        task.score(item, Response("1")) for item in whole
    ]
    some = sorted(cut for cut in cuts if cut < size)
    assert await task.items(some, NOTHING) == [whole[place] for place in some]


async def test_an_item_hash_is_of_the_whole_row_and_not_of_its_scoring() -> None:
    made = [row(1, reference="x", metadata={"gold": "y"})]
    (plain,) = await all_items(task_of(made))
    (otherwise,) = await all_items(task_of(made, Scoring(scorer="contains", reference_field="gold")))
    assert plain.hash == otherwise.hash
    assert (plain.answers, otherwise.answers) == (("x",), ("y",))
    changed = [
        row(2, "Question 1?", reference="x", metadata={"gold": "y"}),
        row(1, "Other?", reference="x", metadata={"gold": "y"}),
        row(1, [("system", "Question 1?")], reference="x", metadata={"gold": "y"}),
        row(1, reference="z", metadata={"gold": "y"}),
        row(1, reference="x", metadata={"gold": "z"}),
        row(1, reference="x", metadata={"gold": "y"}, temperature=0.5),
        row(1, reference="x", metadata={"gold": "y"}, extra={"min_p": 0.1}),
        row(1, reference="x", metadata={"gold": "y"}, stop=["\n"]),
    ]
    hashes = {item.hash for item in await all_items(task_of(changed))}
    assert len(hashes | {plain.hash}) == len(changed) + 1
    assert len(plain.hash) == len(plain.prompt_hash) == 16


async def test_reasoning_is_no_answer() -> None:
    task = task_of([row(1, reference="Paris")])
    (item,) = await all_items(task)
    assert task.score(item, Response("<think>Paris</think>Rome")).statistics == {"correct": 0.0}
    assert task.score(item, Response("<think>Rome</think>Paris")).statistics == {"correct": 1.0}


async def test_the_most_frequent_reference_is_found_once() -> None:
    memory = MemoryStore()
    memory.add([row(n, reference=["b", "a", "b", "c"][n % 4]) for n in range(40)] + [row(99)], shard_rows=10)
    task = opened(memory)
    assert await task.usual_answer() == await task.usual_answer() == "b"
    assert await task_of([row(1)]).usual_answer() == ""


async def test_an_answer_is_read_with_its_question() -> None:
    prompt = "Which gas?\nA. oxygen\nB. carbon dioxide\n"
    task = task_of([row(1, prompt, "B")], Scoring(scorer="choice"))
    (item,) = await all_items(task)
    assert item.question.startswith("Which gas?")
    assert task.score(item, Response("It is carbon dioxide.")).statistics == {"correct": 1.0, "layer": 3.0}


def called(name: str, arguments: str) -> Response:
    return Response("", finish_reason="tool_calls", tool_calls=(ToolCall(id="c", name=name, arguments=arguments),))


async def test_tool_calls_are_scored_against_the_expected_ones() -> None:
    expected = [{"name": "weather", "arguments": {"city": "Oslo"}}]
    rows = [row(1, reference=expected), row(2, reference=[]), row(3)]
    task = task_of(rows, Scoring(scorer="tool_calls"))
    oslo, none, free = await all_items(task)
    right = called("weather", '{"city": "Oslo"}')
    assert task.score(oslo, right) == Scored(
        OUTCOME_ANSWERED,
        '[{"name":"weather","arguments":{"city":"Oslo"}}]',
        {"correct": 1, "call_names": 1, "call_arguments": 1, "field:weather": 1, "field:weather.city": 1},
        "1 tool call",
    )
    wrong = {"correct": 0, "call_names": 0, "call_arguments": 0, "field:weather": 0, "field:weather.city": 0}
    for response, outcome in (
        (Response("Sunny."), OUTCOME_ANSWERED),
        (Response("Let me", finish_reason="length"), OUTCOME_OUTPUT_TRUNCATED),
        (Response("", refused=True), OUTCOME_REFUSED),
    ):
        found = task.score(oslo, response)
        assert (found.outcome, found.statistics) == (outcome, wrong)
    assert task.score(none, Response("You are welcome.")).statistics["correct"] == 1
    assert task.score(none, right).statistics == {"correct": 0, "call_names": 0, "call_arguments": 0}
    assert task.score(free, right).statistics == {}
    assert task.score(free, right).prediction == 'weather({"city": "Oslo"})'


async def test_stored_tool_calls_score_the_same_again() -> None:
    expected = [{"weather": {"city": ["Oslo"], "unit": ["C", ""]}}]
    task = task_of([row(1, reference=expected)], Scoring(scorer="tool_calls"))
    (item,) = await all_items(task)
    for arguments in ('{"city": "Oslo"}', '{"city": "Rome", "unit": "C"}', "{", ""):
        first = answered(task, item, 0, 0, called("weather", arguments), 1)
        again = reused(task, item, 0, 0, first)
        assert again.statistics == first.statistics
        assert (again.prediction, again.outcome) == (first.prediction, first.outcome)


async def test_the_majority_makes_the_most_frequent_calls() -> None:
    allowed = [{"f": {"a": [1, 2], "b": ["x", ""]}}]
    rows = [row(1, reference=allowed), row(2, reference=allowed), row(3, reference=[])]
    task = task_of(rows, Scoring(scorer="tool_calls"))
    for item, is_right in zip(await all_items(task), (1, 1, 0), strict=True):
        response = await BaselineProvider().generate(Request(MAJORITY, NOTHING, task, item))
        assert response.text == ""
        assert task.score(item, response).statistics["correct"] == is_right


async def test_a_reference_that_is_no_list_of_calls_is_named_with_its_row() -> None:
    task = task_of([row(1, reference=[["x"]])], Scoring(scorer="tool_calls"))
    with pytest.raises(DataError, match=r"Row 1 of .* has a reference that is not a list of calls; write each as"):
        await all_items(task)
