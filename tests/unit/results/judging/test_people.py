"""A judge against people: agreement, bias, and the estimate from both that a biased judge does not move."""

from __future__ import annotations

import json
import random
from datetime import datetime

import numpy as np
import pytest

from services.results.intake import writes
from services.results.judging import people, ratings
from services.results.statistics import agreement, prediction_powered
from services.results.statistics.metric_values import Floats
from services.results.storage.database import Connection
from services.words import rubrics
from tests.unit.results.builders import answer, batch, job, plan, run
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_UNPARSED

RUBRIC = rubrics.of_value(TIPS)
NOW = datetime(2026, 11, 28, 12)
ITEMS = 40
_VERDICTS = (pb.Annotation.VERDICT_GOLDEN, pb.Annotation.VERDICT_FIX, pb.Annotation.VERDICT_WRONG)


def _scores(number: int) -> dict[str, int]:
    chance = random.Random(number)
    return {name: chance.randint(1, 5) for name in ("relevance", "actionability", "tone")}


def _above(number: int) -> dict[str, int]:
    return {name: min(5, score + 1) for name, score in _scores(number).items()}


@pytest.fixture
def judged(connection: Connection) -> Connection:
    """The judge gives one point more than people would, and fails on every tenth answer. Its rows lie in no order."""
    run(connection, job("a", plan("t", ITEMS)), right=ITEMS)
    rows = []
    for place, item in enumerate(random.Random(1).sample(range(ITEMS), ITEMS)):
        fails = item % 10 == 0
        row = answer(place, custom_id=f"t/{item}/0", outcome=OUTCOME_UNPARSED if fails else OUTCOME_ANSWERED)
        row.prediction = "" if fails else json.dumps(_above(item))
        rows.append(row)
    writes.store_items(connection, [batch("judge", "rows", rows)])
    return connection


def _rate(connection: Connection, items: list[int], rater: str = "ann", more: int = 0, judge: str = "") -> None:
    given = [
        pb.Rating(
            task="t", item=item, scores=json.dumps({name: min(5, one + more) for name, one in _scores(item).items()})
        )
        for item in items
    ]
    request = pb.RateAnswersRequest(job_id="a", rubric=RUBRIC, ratings=given, judge=judge)
    ratings.rate(connection, request, rater, NOW)


def _shares(metric: str, given: dict[int, dict[str, int]]) -> Floats:
    return np.array([rubrics.shares(RUBRIC, given[item])[metric] if item in given else np.nan for item in range(ITEMS)])


def test_nothing_is_said_where_nobody_rated(judged: Connection) -> None:
    assert people.agreements(judged, "a", "judge", RUBRIC) == []


def test_people_alone_and_both_together_are_those_of_the_statistics(judged: Connection) -> None:
    order = [item for _, item, _ in ratings.in_order(judged, "a")]
    _rate(judged, order[:15])
    found = people.agreements(judged, "a", "judge", RUBRIC)
    assert [one.metric for one in found] == ["composite", "relevance", "actionability", "tone"]
    for one in found:
        by_people = _shares(one.metric, {item: _scores(item) for item in order[:15]})
        by_judge = _shares(one.metric, {item: _above(item) for item in range(ITEMS) if item % 10})
        expected = prediction_powered.combined(by_people, by_judge)
        assert one.answers == sum(item % 10 > 0 for item in order[:15])
        assert (one.combined.value, one.combined.low, one.combined.n) == pytest.approx(
            (expected.mean, expected.low, ITEMS)
        )
        assert (one.people.value, one.people.high, one.people.n) == pytest.approx(
            (expected.alone, expected.alone_high, 15)
        )
        assert one.ratings_to_halve == prediction_powered.labels_to_halve(expected)
        bias = agreement.bias(by_judge, by_people)
        assert bias is not None
        assert one.bias.value == pytest.approx(bias.value)
        assert one.bias.value > 0
        assert one.HasField("accuracy") == one.HasField("kappa") == (one.metric != "composite")
        assert not one.HasField("alpha")


def test_ratings_out_of_order_count_for_agreement_alone(judged: Connection) -> None:
    order = [item for _, item, _ in ratings.in_order(judged, "a")]
    _rate(judged, order[5:20])
    (composite, *_) = people.agreements(judged, "a", "judge", RUBRIC)
    assert composite.answers == sum(item % 10 > 0 for item in order[5:20])
    assert not composite.HasField("combined")
    _rate(judged, order[:4])
    (composite, *_) = people.agreements(judged, "a", "judge", RUBRIC)
    # Four are too few for an interval that holds.
    assert not composite.HasField("people")
    _rate(judged, order[:5])
    (composite, *_) = people.agreements(judged, "a", "judge", RUBRIC)
    assert composite.people.n == 20


def test_several_raters_agree_among_themselves_and_their_usual_score_counts(judged: Connection) -> None:
    order = [item for _, item, _ in ratings.in_order(judged, "a")]
    for rater, more in (("ann", 0), ("bob", 0), ("cid", 1)):
        _rate(judged, order[:20], rater, more)
    alone = {one.metric: one.accuracy.value for one in people.agreements(judged, "a", "judge", RUBRIC)}
    by_most = {item: _scores(item) for item in order[:20]}
    for one in people.agreements(judged, "a", "judge", RUBRIC)[1:]:
        by_judge = _shares(one.metric, {item: _above(item) for item in range(ITEMS) if item % 10})
        expected = agreement.accuracy(by_judge, _shares(one.metric, by_most))
        assert expected is not None
        assert alone[one.metric] == expected.value
        assert 0 < one.alpha.value < 1
        assert one.alpha.n == 20


def test_people_agree_with_each_other_also_without_a_judge(judged: Connection) -> None:
    assert people.among_people(judged, "a") == []
    order = [item for _, item, _ in ratings.in_order(judged, "a")]
    _rate(judged, order[:20])
    (found,) = people.among_people(judged, "a")
    assert (found.rubric, found.raters, found.answers, found.shared) == (RUBRIC, 1, 20, 0)
    assert not any(one.HasField("alpha") for one in found.criteria)
    _rate(judged, order[:12], "bob", 1)
    (found,) = people.among_people(judged, "a")
    assert (found.raters, found.answers, found.shared) == (2, 20, 12)
    by_judge = {one.metric: one.alpha for one in people.agreements(judged, "a", "judge", RUBRIC)}
    assert {one.criterion: one.alpha for one in found.criteria} == {
        name: by_judge[name] for name in ("relevance", "actionability", "tone")
    }
    assert all(one.alpha.n == 12 for one in found.criteria)


def test_verdicts_agree_with_scores_on_their_side_of_half_the_scale(judged: Connection) -> None:
    assert people.verdicts(judged, "a", "judge", RUBRIC) is None
    scores = {item: rubrics.shares(RUBRIC, _above(item))["composite"] for item in range(ITEMS) if item % 10}
    said = {item: _VERDICTS[item % 3] for item in range(20)}
    for number, (item, verdict) in enumerate(said.items(), start=1):
        judged.execute(
            "INSERT INTO annotations VALUES ($number, 'a', $task, $item, 0, $verdict, '', '', 'ann', $now)",
            {"number": number, "task": "t", "item": item, "verdict": verdict, "now": NOW},
        )
    found = people.verdicts(judged, "a", "judge", RUBRIC)
    assert found is not None
    both = [item for item in said if item in scores]
    agree = [(scores[item] >= 0.5) == (said[item] == pb.Annotation.VERDICT_GOLDEN) for item in both]
    assert found.answers == len(both) == 18
    assert 0 < sum(agree) < len(agree)
    assert found.accuracy.value == pytest.approx(sum(agree) / len(agree))
    assert found.HasField("kappa")


def test_a_judge_outside_is_compared_with_people_and_is_none_of_them(judged: Connection) -> None:
    _rate(judged, list(range(20)))
    before = people.among_people(judged, "a"), people.agreements(judged, "a", "judge", RUBRIC)
    assert people.outside(judged, "a") == []
    _rate(judged, list(range(30)), rater="bot", more=1, judge="acme/j")
    _rate(judged, [0], rater="ann", judge="acme/j")
    assert (people.among_people(judged, "a"), people.agreements(judged, "a", "judge", RUBRIC)) == before
    other, found = people.outside(judged, "a")
    assert (other.judge, other.rater, other.judged) == ("acme/j", "ann", 1)
    assert (found.judge, found.rater, found.judged, found.answers) == ("acme/j", "bot", 30, ITEMS)
    given = _shares("composite", {item: _above(item) for item in range(30)})
    assert [one.criterion for one in found.means] == rubrics.names(RUBRIC)
    assert found.means[0].score.value == pytest.approx(np.nanmean(given))
    assert found.means[0].score.low < found.means[0].score.value < found.means[0].score.high
    said = _shares("composite", {item: _scores(item) for item in range(20)})
    expected = agreement.bias(given, said)
    assert expected is not None
    assert found.agreement[0].answers == 20
    assert found.agreement[0].bias.value == pytest.approx(expected.value)
