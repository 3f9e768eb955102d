"""Replies as models write them, each read by a careful person who had not seen the reader."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from services.evaluator.answers.reading.asked import number_asked
from services.evaluator.answers.reading.kinds import Kind
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.reading.text import TextKind
from services.evaluator.answers.words import plain


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]


CASES = cases("answers_read_by_people.jsonl")
"""The reader was repaired on these."""
USUAL = cases("answers_usual.jsonl")
"""As models usually write. The reader was measured on these, and repaired on none."""
HELD_OUT = cases("answers_held_out.jsonl")
"""A third of these replies is a trap."""


def kind_of(case: dict[str, Any]) -> Kind:
    options = case["options"]
    match case["kind"]:
        case "letter":
            return LetterKind(len(options) or 10, options)
        case "label":
            return LabelKind(options)
        case "number":
            return NumberKind(asked=number_asked(case["question"]))
        case "scale":
            return NumberKind((float(options[0]), float(options[1])))
    return TextKind()


def same(case: dict[str, Any], answer: str) -> bool:
    if case["kind"] in ("number", "scale") and answer and case["read"]:
        return Fraction(answer) == Fraction(case["read"])
    if case["kind"] == "text":
        # As scorers compare texts: "the bishop" is "bishop".
        return plain(answer) == plain(case["read"])
    read: str = case["read"]
    return answer.split() == read.split()


@pytest.mark.parametrize(
    ("replies", "count", "alike", "wrong"),
    [
        pytest.param(CASES, 8840, 0.985, 0.002, marks=pytest.mark.stack),
        (USUAL, 640, 0.985, 0.002),
        (HELD_OUT, 640, 0.81, 0.03),
    ],
)
def test_answers_are_read_as_people_read_them(
    replies: list[dict[str, Any]], count: int, alike: float, wrong: float
) -> None:
    read = AnswerReader()
    ends: Counter[str] = Counter()
    for case in replies:
        found = read(case["response"], kind_of(case))
        if same(case, found.answer):
            ends["alike"] += 1
        else:
            ends["wrong" if found.answer else "missed"] += 1
    assert ends.total() == count
    assert ends["alike"] >= alike * count, ends
    assert ends["wrong"] <= wrong * count, ends


FOUR = {"A": "oxygen", "B": "carbon dioxide", "C": "iron", "D": "gold"}


@pytest.mark.parametrize(
    "text",
    [
        *("\\boxed{B}", "$\\boxed{\\text{B}}$", "<answer>B</answer>", "### Final answer\nB", "b", "(b)", "B.", "Ｂ"),
        *("B) carbon dioxide", "The correct option is B.", "I choose B", "Answer - B", '{"answer": "B"}'),
    ],
)
def test_an_option_is_read_in_the_forms_that_models_write(text: str) -> None:
    assert AnswerReader()(text, LetterKind(4, FOUR)).answer == "B"


@pytest.mark.parametrize(
    "text", ["Answer: B is incorrect", "Answer: A. Actually, no: B", "Answer: (A) or (B)", "(A) or (B)", "Answer: B?"]
)
def test_an_option_that_is_denied_or_one_of_several_is_not_read(text: str) -> None:
    assert AnswerReader()(text, LetterKind(4, FOUR)).answer == ""


def test_no_idea_is_not_no_and_json_may_be_true() -> None:
    read = AnswerReader()
    for text in ("No idea", "Answer: No idea", "No idea.", "I have no idea."):
        assert read(text, LabelKind(["yes", "no"])).answer == "", text
    assert read('{"answer": true}', LabelKind(["True", "False"])).answer == "True"
    assert read('{"answer": false}', LabelKind(["yes", "no"])).answer == "no"


def test_a_reply_that_asks_for_what_is_missing_has_no_answer() -> None:
    text = "The passage is missing. Please send it, and I will see whether it names carbon dioxide."
    assert AnswerReader()(text, LetterKind(4, FOUR)).answer == ""
    assert AnswerReader()("B. Could you share the next question?", LetterKind(4, FOUR)).answer == "B"


def test_a_reply_that_gives_an_answer_for_each_case_has_none() -> None:
    text = "That depends on the light.\n\nBy day, plants take in carbon dioxide (B).\nBy night it is oxygen (A)."
    assert AnswerReader()(text, LetterKind(4, FOUR)).answer == ""
    rated = "It depends on what counts. For the plot I would say 5, for the actors 2."
    assert AnswerReader()(rated, NumberKind((1.0, 5.0))).answer == ""


def test_a_check_after_the_answer_is_not_the_answer() -> None:
    text = "2J + 5 = 37\n\nSo Joe is 16.\n\nLet me verify: 2 × 16 + 5 = 37 ✓."
    assert AnswerReader()(text, NumberKind(asked=number_asked("Mark is 37. How old is Joe?"))).answer == "16"


def test_a_name_is_read_out_of_its_sentence_unless_there_are_two() -> None:
    read = AnswerReader()
    assert read('CSS stands for "Cascading Style Sheets".', TextKind()).answer == "Cascading Style Sheets"
    assert read("答案是：李白", TextKind()).answer == "李白"
    assert read("It was either Ada Lovelace or Grace Hopper.", TextKind()).answer == ""


def test_a_length_in_two_units_is_an_answer_only_where_the_question_names_one() -> None:
    text = "The bridge is 1,280 meters (4,200 feet) long."
    assert AnswerReader()(text, NumberKind(asked=number_asked("How long is the bridge?"))).answer == ""
    assert AnswerReader()(text, NumberKind(asked=number_asked("How long is the bridge in feet?"))).answer == "4200"


def test_brackets_at_the_end_of_a_sentence_keep_no_full_stop() -> None:
    assert AnswerReader()("So the answer is ] ].", TextKind()).answer == "] ]"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: ~~A~~ B", "B"),
        ("The answer is not A, but B.", "B"),
        ("A. Incorrect, it is one.\nB. Correct, as plants take it in.\nC. Incorrect.\nD. Incorrect.", "B"),
        ("That leaves B, carbon dioxide, which plants take in.", "B"),
        ("Initially I'd choose A, but plants take in carbon dioxide, so I choose B.", "B"),
        ("The second option makes more sense.", "B"),
        ("Ответ: B", "B"),
        ("Answer: B\n\nWhat melts at 1538 °C?\nA) ice\nB) tin\nAnswer: C", "B"),
        ("A) oxygen\nB) carbon dioxide\nC) iron\nD) gold", ""),
        ("1. B\n2. C", ""),
        ("It's definitely not B. Many think so, but carbon dioxide is only one of them.", ""),
        ("If oxygen counts, the answer is A; if not, it's B.", ""),
    ],
)
def test_an_option_is_read_as_a_person_reads_it(text: str, answer: str) -> None:
    assert AnswerReader()(text, LetterKind(4, FOUR)).answer == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Die Antwort: 2,5 Liter", "2.5"),
        ("It costs 18 dollars and 50 cents.", "18.5"),
        ("That's three quarters.", "0.75"),
        ("x = 5.\n\nCheck: 3 * 5 - 4 = 11", "5"),
        ("35 + 35 = 70, not 65.", "70"),
        ("32 + 42 = 74. 74 - 41 = 33. There are 33 pieces left after the sisters ate 41.", "33"),
        ("Half of 58 is 29, so he's got 29 golf balls left out of 58.", "29"),
        ("Anna now has twenty-one apples.", "21"),
        ('{"answer": "12"}\nThis correction aligns with the text.', "12"),
        ("The final answer is: $\\boxed{\\left( -1, \\ 2\\right)}$", ""),
        ("1 = 0, so there is no solution.", ""),
        ("x = 3 and y = 4, so they meet at (3, 4).", ""),
        ("x = 4 or x = -4", ""),
        ("About one billion people lived around 1804.", ""),
    ],
)
def test_a_number_is_read_as_a_person_reads_it(text: str, answer: str) -> None:
    assert AnswerReader()(text, NumberKind()).answer == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Each of the 3 brothers inherits 14 acres.", "14"),
        ("The 12 m rope can be cut into 8 pieces.", "8"),
        ("She can make 8 bracelets with 40 beads, using 5 beads for each.", "8"),
        ("If each bus holds 50 people, then 7 buses are required.", "7"),
        ("The bill comes to $50, plus $4 tax, for a total of $54.", "54"),
        ("He needs 7 trips: six full loads of 15 boxes and one of 8.", "7"),
        ("7 geteilt durch 2 ist 3,5.", "3.5"),
        ("There are 12 countries in South America. French Guiana is part of France and so is not counted.", "12"),
        ("Karen gets $60 and Bill gets $40.", ""),
        ("Let me restate the problem. A train travels 60 miles in 1.5 hours.", ""),
        ("She has 12 apples. He gives half to Ben.", ""),
        ("We need to find x in 3x + 5 = 20.", ""),
        ("The rate will lie between 4 and 5 percent.", ""),
        ("The tank holds 80 litres.\n\nThe reserve of 20 litres must be", ""),
    ],
)
def test_a_sentence_asserts_one_of_its_numbers(text: str, answer: str) -> None:
    assert AnswerReader()(text, NumberKind()).answer == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Carbon dioxide makes more sense than oxygen.", "B"),
        ("It takes in carbon dioxide, not oxygen.", "B"),
        ("Plants take in carbon dioxide. Iron and gold are metals.", "B"),
        ("The gas is carbon dioxide. It makes up 0.04 % of the air.", "B"),
        ("A: for animals. B: for plants. C: for tools. D: for rings.", ""),
        ("The answers are A and C.", ""),
    ],
)
def test_a_sentence_asserts_one_of_the_options(text: str, answer: str) -> None:
    assert AnswerReader()(text, LetterKind(4, FOUR)).answer == answer


def test_a_text_in_code_ends_where_its_reason_begins() -> None:
    said = "The final answer is `[666]` because the function returns it."
    assert AnswerReader()(said, TextKind()).answer == "[666]"
    assert AnswerReader()(f'{{"answer": "[666]"}}\n{said}', TextKind()).answer == "[666]"


@pytest.mark.stack
def test_a_more_lenient_layer_reads_more() -> None:
    alike = []
    for layer in Layer:
        read = AnswerReader(most=layer)
        alike.append(sum(same(case, read(case["response"], kind_of(case)).answer) for case in CASES if case["read"]))
    assert alike[0] + 50 < alike[1] < alike[2] - 50, alike
