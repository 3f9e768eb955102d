"""Rows of uploaded datasets as items: which, with what, scored how."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services import further
from services.bus import DamagedError
from services.errors import InvalidRequestError
from services.evaluator.data.reader import DataError
from services.evaluator.datasets import rows
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.datasets.selection import item_set, sample
from services.evaluator.datasets.store import DatasetGoneError, Shelf
from services.evaluator.datasets.task import NOT_SCORED, DatasetTask
from services.evaluator.tasks.base import Item, Response
from services.evaluator.units import result
from tests.dataset_store import DATASET_ID, MemoryStore, row
from touchstone.v1 import item_result_pb2 as items_pb
from touchstone.v1.dataset_pb2 import DatasetManifest, DatasetRow, ShardRows
from touchstone.v1.job_pb2 import DatasetWork, Sampling
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, Scoring

NOTHING = Sampling()


def opened(memory: MemoryStore, scoring: Scoring | None = None, limit: int = 0, seed: int = 0) -> DatasetTask:
    return DatasetTask(memory.manifests[DATASET_ID], scoring or Scoring(), limit, seed, Shelf(memory))


def task_of(rows_: Sequence[DatasetRow], scoring: Scoring | None = None, **options: Any) -> DatasetTask:
    memory = MemoryStore()
    memory.add(rows_, scoring=options.pop("own", None), shard_rows=options.pop("shard_rows", 1000))
    return opened(memory, scoring, **options)


async def all_items(task: DatasetTask, sampling: Sampling = NOTHING) -> list[Item]:
    return await task.items(range(len(task.chosen)), sampling)


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


# -- which rows ------------------------------------------------------------------------------------------------------


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


def test_samples_are_nested_and_fixed_by_their_seed() -> None:
    hundred, two_hundred = sample("rows", 5000, 100, 3), sample("rows", 5000, 200, 3)
    assert set(hundred) < set(two_hundred)
    assert list(hundred) == sorted(hundred)
    assert sample("rows", 5000, 100, 4) != hundred
    assert sample("rows", 100, 0, 3) == sample("rows", 100, 100, 3) == sample("rows", 100, 500, 3) == range(100)


def test_item_sets_differ_by_rows_and_by_scoring() -> None:
    sets = {
        item_set("d", 100, range(100), "s"),
        item_set("e", 100, range(100), "s"),
        item_set("d", 100, range(100), "t"),
        item_set("d", 100, [1, 5], "s"),
        item_set("d", 100, [1, 6], "s"),
    }
    assert len(sets) == 5
    assert item_set("d", 100, list(range(100)), "s") == item_set("d", 100, range(100), "s")


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


# -- what a row asks for ---------------------------------------------------------------------------------------------


def test_a_row_asks_before_the_job_field_by_field() -> None:
    job = Sampling(temperature=0.2, max_tokens=50)
    further.write(job, {"min_p": 0.1, "verbosity": "low"})
    merged = rows.asked_with(row(1, temperature=0.0, seed=7, extra={"min_p": {"a": 1}, "user": "u"}), job)
    assert merged is not None
    assert (merged.temperature, merged.max_tokens, merged.seed) == (0.0, 50, 7)
    assert merged.extra_json == '{"min_p":{"a":1},"verbosity":"low","user":"u"}'
    assert not merged.HasField("top_p")
    assert job == Sampling(temperature=0.2, max_tokens=50, extra_json='{"min_p":0.1,"verbosity":"low"}')


def test_rows_and_jobs_of_earlier_versions_are_asked_together() -> None:
    old, new = Sampling(), Sampling(extra_json='{"b":{"z":1.0,"a":2}}')
    old.extra.update({"a": 1, "b": 2})
    of_row = row(1)
    of_row.sampling.extra.update({"b": {"c": 3}})
    both = rows.asked_with(of_row, old)
    assert both is not None
    assert not both.extra_json, "their answers are found by what they were asked with"
    assert further.fields(both) == {"a": 1, "b": {"c": 3}}
    mixed = rows.asked_with(of_row, new)
    assert mixed is not None
    assert mixed.extra_json == '{"b":{"c":3}}'
    assert list(rows.asked_names(of_row)) == ["b"]
    mixed = rows.asked_with(row(1, extra={"c": 1.0}), old)
    assert mixed is not None
    assert (mixed.extra_json, mixed.HasField("extra")) == ('{"a":1,"b":2,"c":1.0}', False)


def test_a_row_without_parameters_leaves_the_jobs_as_they_are() -> None:
    assert rows.asked_with(row(1), Sampling(temperature=0.2)) is None


async def test_the_developers_role_is_asked_as_the_systems() -> None:
    (item,) = await all_items(task_of([row(1, [("developer", "Be brief."), ("user", "1?"), ("tool", "2")])]))
    assert [message.role for message in item.messages] == ["system", "user", "tool"]


# -- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "answers"),
    [(None, ()), ("a", ("a",)), (["a", "b", "a"], ("a", "b")), ([], ()), ("", ()), ([None, "b"], ("b",)), (3, ("3",))],
)
async def test_references_are_one_or_several_or_none(reference: Any, answers: tuple[str, ...]) -> None:
    (item,) = await all_items(task_of([row(1, reference=reference)]))
    assert item.answers == answers
    assert item.reference == next(iter(answers), "")


async def test_references_may_stand_in_metadata_by_a_dotted_path() -> None:
    made = [row(1, metadata={"a": {"gold": "x"}, "reference": "r"}), row(2), row(3, reference="own")]
    found = await all_items(task_of(made, Scoring(reference_field="a.gold")))
    assert [item.answers for item in found] == [("x",), (), ()]
    # Where the dataset was uploaded with another field, its rows' references are those.
    uploaded = Scoring(reference_field="a.gold")
    assert [i.answers for i in await all_items(task_of(made, uploaded, own=uploaded))] == [(), (), ("own",)]
    assert [i.answers for i in await all_items(task_of(made, Scoring(), own=uploaded))] == [("r",), (), ()]
    assert [i.answers for i in await all_items(task_of(made, Scoring(reference_field="reference")))] == [
        (),
        (),
        ("own",),
    ]


async def test_a_reference_that_the_scorer_cannot_use_is_told_with_its_row() -> None:
    task = task_of([row(1, reference=5), row(2, reference="five")], Scoring(scorer="numeric"))
    with pytest.raises(
        DataError, match=r'^Row 2 of questions.jsonl \(row-2\) has a reference that is no number: "five"'
    ):
        await all_items(task)


# -- scores ----------------------------------------------------------------------------------------------------------


async def test_rows_without_a_reference_have_no_statistics() -> None:
    task = task_of([row(1), row(2, reference="yes")], Scoring(scorer="choice", choices=["yes", "no"]))
    unscored, scored = await all_items(task)
    read = task.score(unscored, Response("Well, who knows?"))
    assert (read.outcome, dict(read.statistics)) == (items_pb.OUTCOME_ANSWERED, {})
    assert (read.prediction, read.extraction) == ("Well, who knows?", NOT_SCORED)
    assert dict(task.score(scored, Response("yes")).statistics) == {"correct": 1.0}
    for response, outcome in (
        (Response(""), items_pb.OUTCOME_UNPARSED),
        (Response("<think>hm"), items_pb.OUTCOME_UNPARSED),
        (Response("", finish_reason="length"), items_pb.OUTCOME_OUTPUT_TRUNCATED),
        (Response("no", refused=True), items_pb.OUTCOME_REFUSED),
        (Response("", input_truncated=True), items_pb.OUTCOME_INPUT_TRUNCATED),
    ):
        ended = task.score(unscored, response)
        assert (ended.outcome, dict(ended.statistics)) == (outcome, {})
        wrong = task.score(scored, response)
        assert (wrong.outcome, dict(wrong.statistics)) == (outcome, {"correct": 0.0})
    assert task.score(scored, Response("maybe")).outcome == items_pb.OUTCOME_UNPARSED


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


# -- results ---------------------------------------------------------------------------------------------------------


async def test_results_carry_the_rows_id_metadata_and_messages() -> None:
    conversation = [("system", "Be brief."), ("user", "1\n\nuser:\n2?")]
    task = task_of([row(1, conversation, metadata={"a": "ü"}), row(2)])
    several, single = [
        result.answered(task, item, place, 0, Response("x"), 1) for place, item in enumerate(await all_items(task))
    ]
    assert several.custom_id == "row-1"
    assert json.loads(several.metadata) == {"a": "ü"}
    assert json.loads(several.messages) == [{"role": role, "content": text} for role, text in conversation]
    assert (single.custom_id, single.metadata, single.messages) == ("row-2", "", "")
    (item, _) = await all_items(task)
    failed = result.failed(task, item, 0, 0, "no", 1)
    assert (failed.custom_id, failed.messages) == (several.custom_id, several.messages)
    stored = items_pb.ItemResult(position=0)
    result.with_prompt(stored, item)
    assert (stored.custom_id, stored.metadata, stored.messages) == ("row-1", several.metadata, several.messages)


async def test_messages_that_are_too_long_are_left_out_and_never_cut() -> None:
    task = task_of([row(1, [("user", "x" * 200_000), ("user", "y")])])
    (item,) = await all_items(task)
    stored = result.answered(task, item, 0, 0, Response("x"), 1)
    assert stored.messages == ""
    assert len(stored.prompt) == result.PROMPT_BYTES


def test_metadata_is_cut_by_whole_fields() -> None:
    whole = {"id": 1, "text": "ü" * 20_000, "more": "x" * 20_000, "tail": [1, 2]}
    kept = rows.kept_metadata(json.dumps(whole, ensure_ascii=False))
    assert len(kept.encode()) <= rows.METADATA_BYTES
    assert list(json.loads(kept)) == ["id", "more", "tail"]
    assert json.loads(rows.kept_metadata(json.dumps({"a": "x" * 40_000}))) == {}


# -- reading ---------------------------------------------------------------------------------------------------------


async def test_a_shard_is_read_once_however_many_need_it_at_a_time() -> None:
    memory = MemoryStore()
    memory.add([row(n) for n in range(40)], shard_rows=10)
    task = opened(memory)
    await asyncio.gather(*(task.items(range(start, start + 5), NOTHING) for start in range(0, 40, 5)))
    assert len(memory.read) == 4


async def test_units_touch_only_the_shards_that_their_rows_are_in() -> None:
    memory = MemoryStore()
    manifest = memory.add([row(n) for n in range(40)], shard_rows=10)
    task = opened(memory)
    await task.items(range(8, 12), NOTHING)
    assert memory.read == [shard.digest for shard in manifest.shards[:2]]


async def test_kept_shards_stay_within_their_bytes() -> None:
    memory = MemoryStore()
    manifest = memory.add([row(n, "x" * 1000) for n in range(100)], shard_rows=10)
    shelf = Shelf(memory, most_bytes=3 * max(shard.bytes for shard in manifest.shards))
    for shard in [*manifest.shards, *manifest.shards[-3:]]:
        await shelf.rows(shard)
    assert len(memory.read) == 10
    await shelf.rows(manifest.shards[0])
    assert len(memory.read) == 11


async def test_a_silent_store_is_waited_for() -> None:
    memory = MemoryStore()
    memory.add([row(1)])
    memory.silent = 3
    assert (await Shelf(memory, pause_s=0.01).manifest(DATASET_ID, "")).dataset.rows == 1


async def test_a_damaged_shard_is_told_and_not_waited_for() -> None:
    class Damaged(MemoryStore):
        async def get_shard(self, digest: str) -> ShardRows:
            raise DamagedError("The dataset cannot be read whole.")

    memory = Damaged()
    shard = memory.add([row(1)]).shards[0]
    with pytest.raises(DataError, match="read whole"):
        async with asyncio.timeout(60):
            await Shelf(memory, pause_s=0.01).rows(shard)


async def test_a_deleted_dataset_is_told_by_name() -> None:
    memory = MemoryStore()
    datasets = OpenDatasets(memory)
    work = DatasetWork(dataset_id=DATASET_ID, name="questions.jsonl")
    sentence = (
        "Dataset questions.jsonl was deleted, so its rows cannot be run. Upload the file again and start a new job."
    )
    for ask in (datasets.open, datasets.task):
        with pytest.raises(DatasetGoneError) as gone:
            await ask(work)
        assert gone.value.message == sentence
    manifest = memory.add([row(1)])
    task = await datasets.open(work)
    del memory.manifests[DATASET_ID]
    memory.shards.clear()
    with pytest.raises(DatasetGoneError, match="it was deleted"):
        await task.items([0], NOTHING)
    assert manifest.dataset.rows == 1


async def test_a_dataset_that_is_marked_is_gone_once_its_manifest_is() -> None:
    memory = MemoryStore()
    manifest = memory.add([row(1)])
    shelf = Shelf(memory, pause_s=0.01)

    async def marked_for(seconds: float) -> asyncio.Task[DatasetManifest]:
        manifest.deleting = True
        waiting = asyncio.create_task(shelf.manifest(DATASET_ID, ""))
        await asyncio.sleep(seconds)
        assert not waiting.done()
        return waiting

    # As long as a deletion takes that NATS or a crash interrupts.
    refused = await marked_for(0.3)
    manifest.deleting = False
    assert (await refused).dataset.rows == 1
    deleted = await marked_for(0.03)
    del memory.manifests[DATASET_ID]
    with pytest.raises(DatasetGoneError):
        await deleted


async def test_a_scoring_that_cannot_be_used_is_refused_before_anything_is_read() -> None:
    memory = MemoryStore()
    work = DatasetWork(dataset_id=DATASET_ID, scoring=Scoring(answer_pattern="("))
    with pytest.raises(InvalidRequestError, match="answer pattern"):
        await OpenDatasets(memory).open(work)


async def test_a_job_may_be_scored_otherwise_than_its_dataset() -> None:
    memory = MemoryStore()
    memory.add([row(1, reference="a b")], scoring=Scoring(scorer="token_f1"))
    datasets = OpenDatasets(memory)
    own = await datasets.task(DatasetWork(dataset_id=DATASET_ID))
    named = await datasets.task(DatasetWork(dataset_id=DATASET_ID, scorer="rouge_l"))
    whole = await datasets.task(DatasetWork(dataset_id=DATASET_ID, scoring=Scoring(scorer="contains")))
    assert [task.scorer_version for task in (own, named, whole)] == ["token_f1-1", "rouge_l-1", "contains-2"]
    assert len({task.item_set for task in (own, named, whole)}) == 3
    assert await datasets.task(DatasetWork(dataset_id=DATASET_ID)) is own
