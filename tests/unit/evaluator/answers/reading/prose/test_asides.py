"""Answers that a reply names without giving them: of another case, of others, of second rank."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.prose.asides import without_asides
from services.evaluator.answers.reading.reader import AnswerReader

METALS = {"A": "lead", "B": "mercury", "C": "tin", "D": "zinc"}
MOODS = ("calm", "angry", "anxious")


def read(text: str) -> str:
    return AnswerReader()(text, LetterKind(4, METALS)).answer


@pytest.mark.parametrize(
    "text",
    [
        "The mood is calm. If he had shouted, it would be angry.",
        "The mood is calm; without the smile it would be angry.",
        "It's calm. At a later point it would be angry.",
        "It would be angry if he raised his voice, but he doesn't. It is calm.",
        "The mood is calm. Had he left, it would have been angry.",
        "Some readers might say angry, but the mood is calm.",
        "The mood is calm, although many people assume it is angry.",
        "While one might think it's angry, the mood is calm.",
        "It's tempting to answer angry; the mood, however, is calm.",
        "The mood is calm. Anxious comes second.",
        "Main mood: calm\nRunner-up: anxious",
        "Calm – anxious is a close second.",
        "The mood is calm. By the way, his brother is angry.",
    ],
)
def test_another_case_or_other_people_give_no_answer(text: str) -> None:
    assert AnswerReader()(text, LabelKind(MOODS)).answer == "calm"


@pytest.mark.parametrize(
    "text",
    [
        "Mercury is liquid. In an ice box that would be lead, tin or zinc.",
        "I'd say mercury, though some students would pick tin.",
        "B. C would be right if the question asked for cans.",
        "Some people think of tin, but it melts at 232 °C; mercury is liquid already. So B.",
    ],
)
def test_an_option_of_another_case_is_not_chosen(text: str) -> None:
    assert read(text) == "B"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("There are 9 seats. If the sofa were longer, there would be 11.", "9"),
        ("The fee is $30. Without the coupon it would be $45.", "30"),
        ("It takes 4 hours, though some people would say 5.", "4"),
        ("If each van holds 9 people, 4 vans would be needed.", "4"),
        ("Many would guess 12. Two of them are counted twice, so it is 10.", "10"),
        ("We lack the information for an answer. If there were 6 shelves, it would be 48 books.", ""),
    ],
)
def test_a_number_of_another_case_is_no_answer(text: str, number: str) -> None:
    assert AnswerReader()(text, NumberKind()).answer == number


@pytest.mark.parametrize("text", ["Many people say tin.", "One might think that it is tin.", "The runner-up is tin."])
def test_what_others_think_alone_is_no_answer(text: str) -> None:
    assert read(text) == ""


@pytest.mark.parametrize("text", ["I would say tin.", "That would be tin.", "My answer would be tin.", "It is tin."])
def test_an_answer_that_is_said_politely_stays(text: str) -> None:
    assert without_asides(text) == text
    assert read(text) == "C"


def test_a_text_that_is_cut_within_an_aside_stays_whole() -> None:
    assert without_asides("The gas is neon. Many people say") == "The gas is neon. Many people say"
    assert without_asides("Zinc. Many people say tin.") == "Zinc."
