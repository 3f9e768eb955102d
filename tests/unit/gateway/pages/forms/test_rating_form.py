"""The form of a rating: what it takes, and the keys of its scores."""

from __future__ import annotations

import json

import pytest
from starlette.datastructures import FormData

from services.gateway.pages.forms.rating_form import RatingForm
from services.words import rubrics
from tests.unit.words.test_rubrics import CORRECT
from touchstone.v1.results_service_pb2 import Rating
from touchstone.v1.rubric_pb2 import Rubric


def scale(lowest: int, highest: int) -> Rubric:
    return rubrics.of_value({"version": "s", "criteria": [{"name": "s", "lowest": lowest, "highest": highest}]})


@pytest.mark.parametrize(
    ("lowest", "highest", "keys"),
    [(1, 5, "12345"), (0, 9, "0123456789"), (-2, 2, "12345"), (1, 10, "1234567890"), (8, 10, "123"), (0, 10, "")],
)
def test_a_digit_is_the_score_or_its_number_in_the_list(lowest: int, highest: int, keys: str) -> None:
    (question,) = RatingForm().questions(scale(lowest, highest))
    assert "".join(option.key for option in question.options) == keys
    assert question.numbered is not all(option.key == option.value for option in question.options)


def test_choices_beyond_the_tenth_have_no_key() -> None:
    choices = [{"name": f"c{n}", "value": n / 12} for n in range(12)]
    rubric = rubrics.of_value({"version": "s", "criteria": [{"name": "s", "choices": choices}]})
    (question,) = RatingForm({"s": "c3"}).questions(rubric)
    assert [option.key for option in question.options] == [*"1234567890", "", ""]
    assert [option.value for option in question.options if option.chosen] == ["c3"]


@pytest.mark.parametrize(("text", "score"), [("40", 40), (" 7 ", 7), ("−3", -3), ("-3", -3), ("+5", 5)])
def test_numbers_are_taken_as_they_are_written(text: str, score: int) -> None:
    form = RatingForm.read(FormData({"score.s": text, "note": " a\r\nb "}), scale(-50, 50))
    assert json.loads(form.scores(scale(-50, 50))) == {"s": score}
    assert form.note == "a\nb"
    assert not form.errors


@pytest.mark.parametrize("text", ["", "  ", "x", "51", "1.5", "1e1", "0x1", "٣", "1" * 300, "\0", "true", "null"])
def test_anything_else_is_refused(text: str) -> None:
    form = RatingForm.read(FormData({"score.s": text}), scale(-50, 50))
    form.scores(scale(-50, 50))
    assert "a whole number from -50 to 50." in form.errors["s"]


def test_choices_are_taken_by_their_name_alone() -> None:
    rubric = rubrics.of_value(CORRECT)
    for text in ("Right", "1", "right ", '["right"]'):
        form = RatingForm({"correct": text})
        form.scores(rubric)
        assert "one of: right, partly, wrong." in form.errors["correct"]
    assert json.loads(RatingForm({"correct": "partly"}).scores(rubric)) == {"correct": "partly"}


def test_a_note_is_refused_and_not_cut() -> None:
    for note in ("x" * 2_001, "a\0b"):
        form = RatingForm.read(FormData({"score.s": "1", "note": note}), scale(1, 5))
        form.scores(scale(1, 5))
        assert list(form.errors) == ["note"]
        assert form.note == note


def test_what_was_stored_is_filled_in() -> None:
    form = RatingForm.of(Rating(scores='{"s": 4}', note="n"))
    assert (form.given, form.note) == ({"s": "4"}, "n")
    assert RatingForm.of(None) == RatingForm()
