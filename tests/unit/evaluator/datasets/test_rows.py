"""What a row asks, and its references."""

from __future__ import annotations

from typing import Any

import pytest

from services import further_fields
from services.evaluator.data.reader import DataError
from services.evaluator.datasets import rows
from services.evaluator.datasets.task import NOT_SCORED
from services.evaluator.items.task import Response
from services.evaluator.listing.identity import Identity
from tests.dataset_store import row, with_call, with_image
from tests.pictures import GIF, PNG
from tests.unit.evaluator.datasets.tasks import all_items, task_of
from touchstone.v1 import item_result_pb2 as items_pb
from touchstone.v1.endpoint_pb2 import Capabilities
from touchstone.v1.job_pb2 import JobSpec, Sampling
from touchstone.v1.scoring_pb2 import Scoring


def test_a_row_asks_before_the_job_field_by_field() -> None:
    job = Sampling(temperature=0.2, max_tokens=50)
    further_fields.write(job, {"min_p": 0.1, "verbosity": "low"})
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
    assert further_fields.fields(both) == {"a": 1, "b": {"c": 3}}
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


async def test_rows_with_equal_values_of_a_field_are_a_group() -> None:
    values = [{"a": {"p": 7}}, {"a": {"p": "7"}}, {"a": {"p": 7.0}, "b": 1}, {"a": {}}, {"a": {"p": None}}, {"a": "p"}]
    made = [row(n, metadata=value) for n, value in enumerate(values)] + [row(6), row(7, metadata={"a.p": "x"})]
    grouped, alone = task_of(made, Scoring(group_field="a.p")), task_of(made)
    found = await all_items(grouped)
    assert [item.group for item in found] == ["7", "7", "7", "", "", "", "", "x"]
    assert {item.group for item in await all_items(alone)} == {""}
    # The questions stay the same, while scores have other intervals.
    assert [item.hash for item in found] == [item.hash for item in await all_items(alone)]
    assert grouped.item_set != alone.item_set


async def test_a_reference_that_the_scorer_cannot_use_is_told_with_its_row() -> None:
    task = task_of([row(1, reference=5), row(2, reference="five")], Scoring(scorer="numeric"))
    with pytest.raises(
        DataError, match=r'^Row 2 of questions.jsonl \(row-2\) has a reference that is not a number: "five"'
    ):
        await all_items(task)


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


async def test_every_part_of_a_row_is_part_of_its_hashes_and_plain_rows_keep_theirs() -> None:
    made = [row(1, "What is this?"), with_image(1, PNG), with_image(1, GIF), with_call(1), with_call(1, "{}")]
    items = await all_items(task_of(made))
    assert len({item.hash for item in items}) == len({item.prompt_hash for item in items}) == len(made)
    identity = Identity(JobSpec(endpoint="e", model="m"), "", "openai", Capabilities())
    assert len({identity(item, 0) for item in items}) == len(made)
    # As versions before images and tools hashed it.
    assert (items[0].hash, items[0].prompt_hash) == ("b8ce28d27ab35c0c", "9566859a1fb0d3fd")
    assert items[0].messages[0].more is None


async def test_how_closely_to_look_is_part_of_what_is_asked() -> None:
    closer = with_image(1, PNG)
    closer.messages[0].parts[1].image.detail = "high"
    one, other = await all_items(task_of([with_image(1, PNG), closer]))
    assert one.prompt_hash != other.prompt_hash
