"""A judge that compares two jobs' answers: what counts of its preferences, its bias for a position, and people's."""

from __future__ import annotations

import json
import random
from datetime import datetime

import pytest

from services.results.intake import writes
from services.results.items import annotate
from services.results.judging.pairs import judged_pairs
from services.results.storage.database import Connection
from services.rpc.caller import Identity
from services.words import judging_rows, rubrics
from tests.unit.results.builders import answer, batch, job, plan, run
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1 import job_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_UNPARSED

BETTER = rubrics.comparing(None)
NOW = datetime(2026, 11, 28, 12)
JUDGING = job_pb2.Judging(job_id="a", against_job_id="b", repeats=1)
WORTH = {"first": 1.0, "tie": 0.5, "second": 0.0}
Said = dict[tuple[int, int], str | dict[str, str] | None]
"""What the judge prefers, by item and number of the judgement; None where it failed."""


def _store(connection: Connection, said: Said, judgements: int = 2) -> None:
    rows = []
    for place, ((item, number), preferred) in enumerate(random.Random(1).sample(list(said.items()), len(said))):
        name = judging_rows.name(f"t/{item}/0", number)
        metadata = json.dumps(judging_rows.metadata("t", item, 0, number, judgements, other_first=number % 2 == 0))
        outcome = OUTCOME_UNPARSED if preferred is None else OUTCOME_ANSWERED
        row = answer(place, outcome=outcome, custom_id=name, group=judging_rows.group(name, metadata))
        scores = {"better": preferred} if isinstance(preferred, str) else preferred
        row.prediction = "" if preferred is None else json.dumps(scores)
        rows.append(row)
    writes.store_items(connection, [batch("judge", "rows", rows)])


def _found(connection: Connection, said: Said) -> pb.JudgedPairs:
    _store(connection, said)
    return judged_pairs(connection, "judge", JUDGING, BETTER)


def test_nothing_is_said_before_a_pair_is_judged_in_both_orders(connection: Connection) -> None:
    assert _found(connection, {(0, 1): "first", (1, 2): "second"}) == pb.JudgedPairs()


def test_both_orders_count_half(connection: Connection) -> None:
    """Of ten items: in four the judged answer is preferred in both orders, in three the first one always, in two the
    other answer in one order only, and one order of the last could not be read."""
    said: Said = {}
    for item in range(4):
        said[item, 1], said[item, 2] = "first", "second"
    for item in range(4, 7):
        said[item, 1] = said[item, 2] = "first"
    for item in range(7, 9):
        said[item, 1], said[item, 2] = "tie", "first"
    said[9, 1], said[9, 2] = "first", None
    found = _found(connection, said)
    (one,) = found.preferences
    assert (found.pairs, one.metric) == (9, "better")
    assert (one.better, one.equal, one.worse) == (4, 3, 2)
    assert one.preferred.value == pytest.approx((4 + 3 * 0.5 + 2 * 0.25) / 9)
    assert one.preferred.n == 9
    assert one.same_in_both_orders.value == pytest.approx(4 / 9)
    assert 0 < one.preferred.low < one.preferred.value < one.preferred.high < 1
    # Of 16 preferences, those for the first answer: 4 of the first items, 6 of the next, 2 of the last.
    assert one.first_preferred.value == pytest.approx(12 / 16)


def test_a_judge_that_only_sees_positions_prefers_neither_job(connection: Connection) -> None:
    (one,) = _found(connection, {(item, number): "first" for item in range(50) for number in (1, 2)}).preferences
    assert (one.preferred.value, one.equal) == (0.5, 50)
    assert (one.same_in_both_orders.value, one.first_preferred.value) == (0, 1)
    assert one.first_preferred.low > 0.9


def test_a_judge_that_always_prefers_one_job_has_an_interval(connection: Connection) -> None:
    said: Said = {(item, number): "first" if number == 1 else "second" for item in range(20) for number in (1, 2)}
    (one,) = _found(connection, said).preferences
    assert (one.preferred.value, one.preferred.high) == (1, 1)
    assert 0.75 < one.preferred.low < 0.9


def test_a_single_pair_shows_nothing(connection: Connection) -> None:
    (one,) = _found(connection, {(0, 1): "first", (0, 2): "second"}).preferences
    assert (one.preferred.value, one.preferred.low, one.preferred.high) == (1, 0, 1)


def test_repeated_judgements_of_a_pair_are_one_pair(connection: Connection) -> None:
    chance = random.Random(7)
    said: Said = {(item, number): chance.choice(list(WORTH)) for item in range(30) for number in range(1, 7)}
    _store(connection, said, judgements=6)
    found = judged_pairs(connection, "judge", JUDGING, BETTER)
    means = [
        sum(
            WORTH[str(said[item, number])] if number % 2 else 1 - WORTH[str(said[item, number])]
            for number in range(1, 7)
        )
        / 6
        for item in range(30)
    ]
    (one,) = found.preferences
    assert (found.pairs, one.preferred.n, one.same_in_both_orders.n) == (30, 30, 30)
    assert one.preferred.value == pytest.approx(sum(means) / 30)
    assert one.better == sum(mean > 0.5 + 1e-9 for mean in means)


def test_criteria_have_their_own_preferences_and_weights(connection: Connection) -> None:
    rubric = rubrics.comparing(rubrics.of_value(TIPS))
    chance = random.Random(3)
    names = [criterion.name for criterion in rubric.criteria]
    said: Said = {(i, n): {name: chance.choice(list(WORTH)) for name in names} for i in range(25) for n in (1, 2)}
    _store(connection, said)
    found = judged_pairs(connection, "judge", JUDGING, rubric)
    assert [one.metric for one in found.preferences] == ["composite", *names]
    by_name = {one.metric: one.preferred.value for one in found.preferences}
    weights = {criterion.name: criterion.weight for criterion in rubric.criteria}
    assert by_name["composite"] == pytest.approx(sum(weights[n] * by_name[n] for n in names) / sum(weights.values()))
    assert not found.preferences[0].HasField("same_in_both_orders")
    assert found.preferences[1].HasField("same_in_both_orders")


def test_people_who_compared_the_same_answers_are_compared_with_the_judge(connection: Connection) -> None:
    """The judge prefers the answers of job a to the first six items, and those of b to the others. People prefer the
    other answer to item 0, neither to item 1, those of a up to item 7, find both bad
    on item 10, and contradict each other on item 11."""
    said: Said = {}
    for item in range(12):
        better = ("first", "second") if item < 6 else ("second", "first")
        said[item, 1], said[item, 2] = better
    _store(connection, said)
    for name in ("a", "b"):
        run(connection, job(name, plan("t", 12)), right=12)
    for item, preferred in enumerate(["b", "", *"aaaaaa", *"bb"]):
        _prefer(connection, item, preferred, "ann")
    _say(connection, 10, pb.Preference.CHOICE_ALL_BAD, "", "ann")
    _prefer(connection, 11, "a", "ann")
    _prefer(connection, 11, "b", "bob")
    found = judged_pairs(connection, "judge", JUDGING, BETTER).people
    assert found.pairs == 10
    # They disagree on 0, 1, 6 and 7.
    assert found.accuracy.value == pytest.approx(6 / 10)
    assert found.HasField("kappa")


def _prefer(connection: Connection, item: int, preferred: str, author: str) -> None:
    _say(connection, item, pb.Preference.CHOICE_BETTER if preferred else pb.Preference.CHOICE_TIE, preferred, author)


def _say(connection: Connection, item: int, choice: pb.Preference.Choice, preferred: str, author: str) -> None:
    request = pb.JudgeRowRequest(job_ids=["b", "a"], task="t", item=item, choice=choice, preferred_job_id=preferred)
    annotate.judge_row(connection, request, Identity(author, token_pb2.ROLE_USER), NOW)
