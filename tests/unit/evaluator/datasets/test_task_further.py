"""Several scorers on one run: the first ranks, the others are reported."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from services.errors import InvalidRequestError, TouchstoneError
from services.evaluator import item_result
from services.evaluator.answers.scorers.choosing import canonical, scorer
from services.evaluator.answers.scorers.scorer import Scorer
from services.evaluator.data.reader import DataError
from services.evaluator.datasets.rows import item_set
from services.evaluator.items.metrics import beside
from services.evaluator.items.task import Response
from services.evaluator.plugins.contract import PluginError
from services.words.scorers import SCORERS, further_problem
from tests.dataset_store import row
from tests.unit.evaluator.datasets.tasks import all_items, task_of
from tests.unit.evaluator.planning.planned import planned
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_INFRASTRUCTURE_ERROR, OUTCOME_UNPARSED
from touchstone.v1.scoring_pb2 import Scoring
from touchstone.v1.suite_pb2 import MetricSpec

FIRST = Scoring(scorer="numeric")
CLOSE = Scoring(scorer="numeric", tolerance=0.1, tolerance_is_relative=True)
FURTHER = [Scoring(scorer="contains"), CLOSE, Scoring(scorer="numeric", tolerance=50)]


async def test_the_first_ranks_and_the_others_are_reported_under_their_names() -> None:
    task = task_of([row(1, reference=100), row(2)], FIRST, further=FURTHER)
    (alone, free) = await all_items(task_of([row(1, reference=100), row(2)], FIRST))
    scored, unscored = await all_items(task)
    text = "It is between 100 and 110. Answer: 105"
    found, one = task.score(scored, Response(text)), task_of([row(1)], FIRST).score(alone, Response(text))
    more = {"contains.correct": 1.0, "numeric.correct": 1.0, "numeric_2.correct": 1.0}
    assert found.statistics == {**one.statistics, **more}
    assert (found.outcome, found.prediction, found.extraction) == (OUTCOME_ANSWERED, "105", one.extraction)
    assert list(task.metrics) == [
        MetricSpec(metric="within_tolerance", rule=MetricSpec.RULE_MEAN, statistic="correct"),
        *(
            beside(MetricSpec(metric=name, rule=MetricSpec.RULE_MEAN, statistic=f"{name.partition('.')[0]}.correct"))
            for name in ("contains.contains", "numeric.within_tolerance", "numeric_2.within_tolerance")
        ),
    ]
    assert task.scorer_version == "numeric-6, contains-2, numeric-6, numeric-6"
    # What the first scorer cannot read, another may.
    unread = task.score(scored, Response("one hundred and something 100 or 200 or 300, take your pick"))
    assert unread.outcome == OUTCOME_UNPARSED
    assert (unread.statistics["correct"], unread.statistics["contains.correct"]) == (0, 1)
    refused = task.score(scored, Response("", refused=True))
    assert refused.statistics == {"correct": 0, **dict.fromkeys(more, 0)}
    assert unscored == free
    assert task.score(unscored, Response("100")).statistics == {}


async def test_accuracy_of_a_further_scorer_is_a_mean_and_fields_are_the_first_scorers() -> None:
    rows = [row(1, reference="A")]
    task = task_of(
        rows, Scoring(), further=[Scoring(scorer="choice"), Scoring(scorer="json_schema", schema='{"type": "object"}')]
    )
    (item,) = await all_items(task)
    assert [(metric.metric, metric.statistic, metric.beside) for metric in task.metrics] == [
        ("exact_match", "correct", False),
        ("choice.accuracy", "choice.correct", True),
        ("json_schema.schema_valid", "json_schema.correct", True),
    ]
    statistics = task.score(item, Response("Answer: A")).statistics
    assert statistics == {"correct": 1, "choice.correct": 1, "json_schema.correct": 0}


def test_only_other_scorers_make_another_item_set() -> None:
    rows = [row(1, reference="1")]
    alone = task_of(rows, FIRST)
    assert alone.item_set == item_set(alone.info.data.revision, 1, [0], canonical(FIRST))
    sets = [task_of(rows, FIRST, further=further).item_set for further in ([], FURTHER, FURTHER[:1], FURTHER[::-1])]
    assert sets[0] == alone.item_set
    assert len({*sets}) == len(sets)


async def test_a_further_scorer_has_references_of_its_own() -> None:
    rows = [row(1, reference="4", metadata={"words": "four"})]
    task = task_of(rows, FIRST, further=[Scoring(scorer="contains", reference_field="words")])
    (item,) = await all_items(task)
    assert task.score(item, Response("Four. Answer: 4")).statistics["contains.correct"] == 1


@pytest.mark.parametrize(
    ("further", "why"),
    [
        (Scoring(scorer="numeric"), 'a reference that is not a number: "abc". Leave numeric out'),
        (Scoring(scorer="contains", reference_field="x"), "contains: it has no reference. Leave contains out"),
    ],
)
async def test_a_row_that_a_further_scorer_cannot_score_is_told_before_the_first_call(
    further: Scoring, why: str
) -> None:
    rows = [row(1), row(2, reference="1", metadata={"x": "1"}), row(3, reference="abc")]
    with pytest.raises(DataError) as refused:
        await planned(rows, further=[further])
    assert refused.value.message.startswith("Row 3 of questions.jsonl (row-3) cannot be scored by the further scorer ")
    assert why in refused.value.message


async def test_without_references_for_the_first_scorer_further_ones_are_refused() -> None:
    schema = Scoring(scorer="json_schema", schema='{"type": "object"}')
    with pytest.raises(InvalidRequestError, match="put one first that can score the rows"):
        await planned([row(1)], further=[schema])
    with pytest.raises(DataError, match="by the further scorer contains: it has no reference"):
        await planned([row(1)], scoring=schema, further=[Scoring(scorer="contains")])


def plugged(name: str, package: str = "example 1.0", rule: MetricSpec.Rule = MetricSpec.RULE_MEAN) -> Scorer:
    """As the evaluator knows a scorer of a package."""
    metric = MetricSpec(metric="same", rule=rule, statistic="correct")
    known = scorer(Scoring(scorer="contains"))
    return replace(known, name=name, version=f"{name}-1", metrics=(metric,), plugin=package, executor=EXECUTOR)


EXECUTOR = ThreadPoolExecutor(1)
OWN = {one.name: one for one in (plugged("same"), plugged("twice"), plugged("other", "more 2.0"))}


async def test_a_plugins_scorer_may_be_a_further_one() -> None:
    task = task_of([row(1, reference="1")], FIRST, further=[Scoring(scorer="same")], plugged=OWN)
    assert (task.plugin, task.executor, task.scorer_version) == ("example 1.0", EXECUTOR, "numeric-6, same-1")
    (item,) = await all_items(task)
    assert task.score(item, Response("Answer: 1")).statistics == {"correct": 1, "same.correct": 1}
    both = task_of([row(1)], Scoring(scorer="twice"), further=[Scoring(scorer="same")], plugged=OWN)
    assert both.plugin == "example 1.0"


@pytest.mark.parametrize(
    ("first", "further", "why"),
    [
        ("same", "other", "The scorers same and other belong to different plug-ins."),
        ("numeric", "every", "every can only be the first scorer of a run: its metric same is not a mean."),
        ("numeric", "none", "none is not a valid scorer."),
    ],
)
def test_further_scorers_of_plugins_that_cannot_be_used_are_refused(first: str, further: str, why: str) -> None:
    known = OWN | {"every": plugged("every", rule=MetricSpec.RULE_ALL)}
    with pytest.raises(InvalidRequestError) as refused:
        task_of([row(1)], Scoring(scorer=first), further=[Scoring(scorer=further)], plugged=known)
    assert refused.value.message.startswith(why)


def broken(name: str) -> Scorer:
    def right(value: Any) -> str:
        raise PluginError("The plug-in example 1.0 failed.") if value == "odd" else ValueError("is not even")

    return replace(plugged(name), right=right)


@pytest.mark.parametrize(
    ("reference", "kind", "why"),
    [
        ("odd", PluginError, ": The plug-in example 1.0 failed."),
        ("1", DataError, 'has a reference that is not even: "1"'),
    ],
)
async def test_the_row_is_named_whatever_a_plugins_scorer_raises(
    reference: str, kind: type[TouchstoneError], why: str
) -> None:
    bad = Scoring(scorer="bad")
    for first, further in ((bad, []), (Scoring(), [bad])):
        with pytest.raises(kind) as failed:
            await planned([row(1, reference=reference)], scoring=first, further=further, plugged={"bad": broken("bad")})
        assert failed.value.message.startswith("Row 1 of questions.jsonl (row-1)")
        assert why in failed.value.message


REFERENCES: dict[str, Any] = {
    "number": 4,
    "letter": "A",
    "text": "Paris",
    "several": ["A", "4"],
    "null among several": [None, "A"],
    "object": {"city": "Lyon"},
    "object as text": '{"a": 1}',
    "schema": {"type": "object"},
    "calls": [{"name": "f", "arguments": {"a": 1}}],
    "no call": [],
    "calls with allowed values": [{"f": {"a": [1]}}],
    "list in a list": [[1]],
    "bad pattern": "(",
    "none": None,
}
SCORED_BY_SEVERAL = [4, "A", "Paris", ["A", "4"], [None, "A"], '{"a": 1}', "("]
ANSWERS = ("4", "A", "Answer: Paris", '{"city": "Lyon"}', "", "( [", "x" * 5000)
_OF_ROWS = [name for name in SCORERS if name != "judgement"]
PAIRS = [(Scoring(scorer=first), Scoring(scorer=other)) for first, other in permutations(_OF_ROWS, 2)]


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)
async def test_each_pair_of_scorers_is_refused_before_the_first_call_or_scores_every_answer(reference: Any) -> None:
    rows = [row(1, reference=reference)]
    scored = 0
    for first, other in PAIRS:
        assert further_problem(first, [other]) == ("", "")
        why = ""
        try:
            await planned(rows, scoring=first, further=[other])
        except (DataError, InvalidRequestError) as error:
            why = error.message
        if why:
            # What is wrong, and what to do.
            assert re.search(r"\. (Leave|Choose) .*\.$", why), why
            continue
        task = task_of(rows, first, further=[other])
        (item,) = await all_items(task)
        (alone,) = await all_items(task_of(rows, first))
        wanted = {metric.statistic for metric in task.metrics if metric.statistic}
        for answer in ANSWERS:
            for response in (Response(answer), Response(answer, finish_reason="length"), Response("", refused=True)):
                found = task.score(item, response)
                assert wanted <= found.statistics.keys(), (first.scorer, other.scorer, answer)
                assert all(0 <= value <= 1 for name, value in found.statistics.items() if "." in name)
                assert found.outcome == task_of(rows, first).score(alone, response).outcome
        result = item_result.failed(task, item, position=0, repeat=0, message="Down.", calls=3)
        assert (result.outcome, dict(result.statistics)) == (OUTCOME_INFRASTRUCTURE_ERROR, {})
        scored += 1
    assert scored or reference not in SCORED_BY_SEVERAL


def test_a_judgement_can_only_be_the_first_scorer() -> None:
    path, sentence = further_problem(Scoring(), [Scoring(scorer="judgement", rubric="{}")])
    assert path == "further[0]"
    assert "can only be the first scorer" in sentence


def test_a_scorer_is_given_once() -> None:
    for name in _OF_ROWS:
        path, sentence = further_problem(Scoring(scorer=name), [Scoring(scorer=name)])
        assert (path, sentence[-22:]) == ("further[0]", "Give each scorer once.")
