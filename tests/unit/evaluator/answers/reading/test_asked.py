"""What a prompt says about its answer."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from services.evaluator.answers.reading.asked import NOTHING, number_asked, options_in
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader


@pytest.mark.parametrize(
    ("question", "dimension", "factor"),
    [
        ("How long is the trip in minutes?", "time", Fraction(60)),
        ("How many cents is this?", "money", Fraction(1, 100)),
        ("What is 5 °C in degrees Fahrenheit?", "temperature", Fraction(5, 9)),
        ("What percentage of the 200 pupils passed?\n\nEnd your reply with one line:\nAnswer: <number>", "share", None),
        ("Give the probability as a decimal.", "share", Fraction(1)),
    ],
)
def test_a_question_names_the_unit_of_its_number(question: str, dimension: str, factor: Fraction | None) -> None:
    unit = number_asked(question).unit
    assert unit is not None
    assert unit.dimension == dimension
    assert factor is None or unit.factor == factor


@pytest.mark.parametrize(
    "question",
    [
        "How many miles per hour is that?",
        "How tall is Mount Everest?",
        "Is it in minutes or in hours?",
        "in",
        "",
        "A" * 99_999,
    ],
)
def test_a_question_may_name_no_unit(question: str) -> None:
    assert number_asked(question).unit is None
    assert replace(number_asked("How tall is Mount Everest?"), text="") == NOTHING


@pytest.mark.parametrize(
    ("question", "response", "answer"),
    [
        ("How hot is it in degrees Celsius?", "It is about 98.6°F, or 37°C.", "37"),
        ("How hot is it in degrees Fahrenheit?", "100 °C, which corresponds to 212 °F", "212"),
        ("What is the price in cents?", "144 buttons; $36 / 144 = $0.25 per button.", ""),
        ("What is the dose in grams?", "The usual maximum is 4,000 mg in 24 hours.", ""),
        ("How many cows are there?", "The farmer has 7 cows and 23 chickens.", "7"),
        ("How many ships sailed?", "The fleet sailed in 1588 under the Duke.", ""),
        ("In which year did the fleet sail?", "The fleet sailed in 1588 under the Duke.", "1588"),
        ("How long did it take, in minutes?", "It took 3 hours 25 minutes.", ""),
        ("How many chromosomes are there?", "A cell contains 23 pairs of chromosomes.", ""),
        ("How many bags does he need for 45 pears?", "45 ÷ 6 = 7.5, and since half a bag is none you need 8 bags.", ""),
        ("How long is the fence and what area has it?", "The fence is 20 m long.\nThe area is 24 m².", ""),
        ("What was the profit in 2019?", "There is no table here, which I would need for 2019.", ""),
        (
            "A tank is three quarters full. When is it empty?",
            "Time = 180 / 8 = 22.5\nIt then is no three quarters.",
            "",
        ),
        (
            "How many are there?",
            "The smallest is 105 and the largest is 994.\n889/7 = 127\n\nThere are 127 of them.",
            "127",
        ),
        ("How long is it in minutes?", "It takes between 9 and 12 minutes.", ""),
    ],
)
def test_a_number_is_read_in_the_unit_that_the_question_asks_for(question: str, response: str, answer: str) -> None:
    assert AnswerReader()(response, NumberKind(asked=number_asked(question))).answer == answer


def test_options_are_the_last_ones_that_a_prompt_lists() -> None:
    shown = "Q: Which is a metal?\n(A) oxygen\n(B) iron\nAnswer: B\n\nQ: Which is a gas?\nA. gold\nB. neon\nC. tin\n"
    assert options_in(shown) == {"A": "gold", "B": "neon", "C": "tin"}
    assert options_in("B. not from A on\nC. neither") == {}
    assert options_in("A. only one") == {}
    assert options_in("") == {}
