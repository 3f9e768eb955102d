"""People's ratings of answers under a rubric: stored whole or not at all, once, and each rater's newest applies."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest

from services.errors import BadLinesError, ConflictError, InvalidRequestError, NotFoundError
from services.results.intake import writes
from services.results.judging import ratings
from services.results.storage.database import Connection
from services.results.storage.item_rows import ERROR
from services.results.visibility import Visibility
from services.words import rubrics
from tests.unit.results.builders import answer, batch, job, plan, run
from tests.unit.results.experiments.made import Made
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric

RUBRIC = rubrics.of_value(TIPS)
NOW = datetime(2026, 11, 28, 12)


def scores(number: int = 3) -> str:
    return json.dumps({"relevance": number, "actionability": 1, "tone": 5})


def rating(item: int, given: str = "", **more: Any) -> pb.Rating:
    return pb.Rating(task="t", item=item, scores=given or scores(), **more)


def rate(connection: Connection, *given: pb.Rating, rater: str = "ann", **more: Any) -> tuple[int, int]:
    request = pb.RateAnswersRequest(**{"job_id": "a", "rubric": RUBRIC, "ratings": given, **more})
    stored = ratings.rate(connection, request, rater, NOW)
    return stored.stored, stored.unchanged


def listed(connection: Connection, **more: Any) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    request = pb.ListRatingsRequest(job_id="a", page_size=3, **more)
    while True:
        page = ratings.list_ratings(connection, request)
        found += [(one.item, one.rater, one.scores) for one in page.ratings]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def unrated(connection: Connection, rater: str = "ann", page_size: int = 2) -> tuple[list[int], int, int]:
    found: list[int] = []
    request = pb.ListUnratedRequest(job_id="a", rubric=RUBRIC, page_size=page_size)
    while True:
        page = ratings.list_unrated(connection, request, rater)
        found += [one.item for one in page.answers]
        if not page.next_page_token:
            return found, page.rated, page.unrated
        request.page_token = page.next_page_token


@pytest.fixture
def judged(connection: Connection) -> Connection:
    """Five answers, and a call that failed."""
    run(connection, job("a", plan("t", 6)), right=4, wrong=1)
    writes.store_items(connection, [batch("a", "t", [answer(5, outcome=ERROR)])])
    return connection


def test_the_answers_of_a_job_that_judges_are_not_rated(connection: Connection) -> None:
    judging = job("a", plan("t", 1))
    judging.spec.judging.job_id = "judged"
    run(connection, judging, right=1, wrong=0)
    with pytest.raises(ConflictError, match=r"Job a judges answers itself\. Rate the answers of job judged\."):
        rate(connection, rating(0))
    with pytest.raises(ConflictError, match="judges answers itself"):
        unrated(connection)


def test_the_row_s_id_of_an_experiment_does_not_tell_raters_the_prompt(connection: Connection) -> None:
    made = Made(connection)
    made.job("e")
    page = ratings.list_unrated(connection, pb.ListUnratedRequest(job_id="e"), "ann")
    assert len(page.answers) == 4
    assert {one.custom_id for one in page.answers} == {""}


def test_ratings_are_stored_once_and_a_later_one_replaces_them(judged: Connection) -> None:
    assert rate(judged, rating(0), rating(1)) == (2, 0)
    assert rate(judged, rating(0), rating(1), rating(2)) == (1, 2)
    assert rate(judged, rating(0), rater="bob") == (1, 0)
    assert rate(judged, rating(0, scores(5), note="better")) == (1, 0)
    plain = json.dumps({"actionability": 1, "relevance": 3, "tone": 5}, separators=(",", ":"))
    assert listed(judged) == [
        (0, "ann", plain.replace("3", "5", 1)),
        (0, "bob", plain),
        (1, "ann", plain),
        (2, "ann", plain),
    ]
    assert listed(judged, rater="bob") == [(0, "bob", plain)]
    assert len(ratings.list_ratings(judged, pb.ListRatingsRequest(job_id="a")).rubrics) == 1


def test_a_rating_can_be_taken_back(judged: Connection) -> None:
    rate(judged, rating(0))
    assert rate(judged, pb.Rating(task="t", item=0)) == (1, 0)
    assert rate(judged, pb.Rating(task="t", item=0)) == (0, 1)
    assert listed(judged) == []


def test_what_a_rater_has_not_rated_is_listed_in_an_order_drawn_once_for_all(judged: Connection) -> None:
    everything, *counts = unrated(judged)
    assert counts == [0, 5]
    assert sorted(everything) == [0, 1, 2, 3, 4]
    rate(judged, rating(everything[1]), rating(everything[3]))
    assert unrated(judged) == ([everything[0], everything[2], everything[4]], 2, 3)
    assert unrated(judged, rater="bob", page_size=500) == (everything, 0, 5)
    other = deepcopy(TIPS)
    other["criteria"][0]["weight"] = 1
    request = pb.ListUnratedRequest(job_id="a", rubric=rubrics.of_value(other))
    assert ratings.list_unrated(judged, request, "ann").unrated == 5


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (rating(1, '{"relevance": 3}'), "has no score for actionability"),
        (rating(1, scores(6)), "gives relevance the score 6; it must be a whole number from 1 to 5"),
        (rating(1, scores().replace("}", ', "style": 1}')), "scores 'style', which is not a criterion of tip-v1"),
        (rating(1, "[]"), "not a JSON object"),
        (rating(1, "{"), "is not JSON"),
        (rating(99), "item 99 of task 't', to which there is no answer"),
        (rating(0), "an earlier one rates"),
        (rating(1, note="n" * 2001), "a note of 2,001 characters"),
    ],
)
def test_one_wrong_rating_refuses_all_and_is_named(judged: Connection, wrong: pb.Rating, said: str) -> None:
    with pytest.raises(BadLinesError, match="so none is") as refused:
        rate(judged, rating(0), wrong, rating(2))
    ((place, reason),) = refused.value.lines
    assert place == 2
    assert said in reason
    assert listed(judged) == []


def test_an_answer_whose_call_failed_is_not_rated(judged: Connection) -> None:
    ((failed,),) = judged.execute("SELECT item FROM items WHERE outcome = 6").fetchall()
    with pytest.raises(BadLinesError):
        rate(judged, rating(failed))


def test_the_rubric_and_the_job_are_checked(judged: Connection) -> None:
    with pytest.raises(InvalidRequestError, match="needs a version"):
        rate(judged, rating(0), rubric=Rubric())
    with pytest.raises(InvalidRequestError, match="at most 1,000"):
        rate(judged, *(rating(number) for number in range(1_001)))
    with pytest.raises(NotFoundError):
        rate(judged, rating(0), job_id="b")
    with pytest.raises(NotFoundError):
        ratings.list_ratings(judged, pb.ListRatingsRequest(job_id="a"), Visibility("zoe"))


def test_a_rubric_is_stored_without_a_rating_and_its_digest_names_it(judged: Connection) -> None:
    own = deepcopy(TIPS) | {"version": "mine-v1"}
    rubric = rubrics.of_value(own)
    asked = pb.ListRatingsRequest(job_id="a", rubric_digest=rubrics.digest(rubric))
    assert list(ratings.list_ratings(judged, asked).rubrics) == []
    for _ in range(2):
        assert rate(judged, rubric=rubric) == (0, 0)
    found = ratings.list_ratings(judged, asked)
    assert ([*found.rubrics], [*found.ratings]) == ([rubric], [])
    assert not ratings.list_ratings(judged, pb.ListRatingsRequest(job_id="a")).rubrics


def test_a_judge_outside_is_another_rater_than_its_user(judged: Connection) -> None:
    assert rate(judged, rating(0), judge="acme/j") == (1, 0)
    assert rate(judged, rating(0, scores(5))) == (1, 0)
    assert rate(judged, rating(0), judge="acme/j") == (0, 1)
    assert rate(judged, rating(0), judge="other") == (1, 0)
    found = ratings.list_ratings(judged, pb.ListRatingsRequest(job_id="a", rater="ann")).ratings
    assert [(one.judge, json.loads(one.scores)["relevance"]) for one in found] == [("", 5), ("acme/j", 3), ("other", 3)]
    assert len(listed(judged)) == 3
    by_judge = ratings.list_unrated(judged, pb.ListUnratedRequest(job_id="a", rubric=RUBRIC, judge="third"), "ann")
    assert (by_judge.rated, by_judge.unrated, by_judge.rubric) == (0, 5, rubrics.parse(rubrics.written(RUBRIC)))
    assert rate(judged, pb.Rating(task="t", item=0), judge="acme/j") == (1, 0)
    assert len(listed(judged)) == 2


def test_a_judges_name_and_a_missing_rubric_are_refused(judged: Connection) -> None:
    with pytest.raises(InvalidRequestError, match="judge must be 1 to 100 letters"):
        rate(judged, rating(0), judge="two words")
    with pytest.raises(InvalidRequestError, match="Job a belongs to no experiment"):
        ratings.rate(judged, pb.RateAnswersRequest(job_id="a"), "ann", NOW)


def test_ratings_of_one_request_are_numbered_in_its_order_and_have_its_time(judged: Connection) -> None:
    rate(judged, rating(3), rating(0, note="é"), rating(2))
    rate(judged, rating(1), rating(0, scores(4)))
    rows = judged.execute("SELECT number, item, note, rated_at FROM ratings ORDER BY number").fetchall()
    assert rows == [(1, 3, "", NOW), (2, 0, "é", NOW), (3, 2, "", NOW), (4, 1, "", NOW), (5, 0, "", NOW)]
