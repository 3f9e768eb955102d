"""Rows of uploaded datasets as items: which, with what, scored how."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from services.evaluator.items.task import Response
from tests.dataset_store import MemoryStore, row
from tests.unit.evaluator.datasets.tasks import NOTHING, all_items, opened, task_of
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
