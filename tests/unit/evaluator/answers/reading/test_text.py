"""Texts of free answers."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.reading.text import TextKind

STRICT = AnswerReader(["Question"], Layer.STRICT)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: anvil kettle violin", "anvil kettle violin"),
        ("**Answer:** `] ) }`", "] ) }"),
        ("Answer: (B)", "(B)"),
        ('Answer: "the Society".', "the Society"),
        ("Answer:\n\nGorän", "Gorän"),
        ("Answer: one\nOr rather:\nAnswer: two", "two"),
        ("Answer: $\\boxed{(B)}$.", "(B)"),
        ("Answer: \\(\\boxed{\\text{(B)}}\\)", "(B)"),
        ("Answer: <text>", ""),
        ("Answer:", ""),
        ("the Society", "the Society"),
    ],
)
def test_rest_of_the_line_after_the_marker_is_the_answer(text: str, answer: str) -> None:
    assert STRICT(text, TextKind()).answer == answer


STEPS = '{"answer": "$(3 * 68) + (2 * 80)"}\n\nTo get the number:\n\n1. Donuts: $204\n\nTotal cost: $364\n\n'


def test_a_caption_further_down_is_part_of_the_reply_and_no_next_question() -> None:
    assert AnswerReader()(STEPS + '{"answer": "364"}', NumberKind()).answer == "364"
    assert AnswerReader()("Answer: 7\n\nProblem: How many?\nAnswer: 8", NumberKind()).answer == "7"


@pytest.mark.parametrize(
    "sentence",
    [
        "The final answer is `[666]` because the function sorts.",
        "The final answer is the list that the function returns.",
        "The final answer to the question is explained above.",
    ],
)
def test_a_sentence_about_the_final_answer_is_not_the_answer(sentence: str) -> None:
    text = f'```json\n{{"reasoning": "It sorts.", "answer": "[666]"}}\n```\n\n{sentence}'
    assert AnswerReader()(text, TextKind()).answer == "[666]"
    assert AnswerReader()("Final answer [666]", TextKind()).answer == "[666]"


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("It was painted by Frida Kahlo in 1939.", "Frida Kahlo"),
        ("The opera was composed by Clara Schumann and published in May.", "Clara Schumann"),
        ("That was Marie Curie, a physicist from Warsaw.", "Marie Curie"),
        ("The answer is Marie Curie, who won it twice.", "Marie Curie"),
        ("I believe it's Marie Curie.", "Marie Curie"),
        ("I think the winner is Marie Curie.", "Marie Curie"),
        ("Its capital is Tallinn. It lies on the Baltic Sea.", "Tallinn"),
        ("Tallinn is the capital of Estonia.", "Tallinn"),
        ("Many people say Riga, but the capital is Tallinn.", "Tallinn"),
        ("Fe, from the Latin ferrum.", "Fe"),
        ("Tallinn (about 450,000 inhabitants)", "Tallinn"),
        ("Answer: Tallinn (formerly known as Reval)", "Tallinn"),
        ("The pact was signed in Bergen.", "Bergen"),
        ("The strongest of them was the mountain king Dovre.", "Dovre"),
        ("The smallest bone in the body is the stapes (stirrup), which lies in the ear.", "stapes"),
        ("krone (NOK)", "krone"),
        ("The element with the symbol **K** is potassium.\n\n- Number: 19\n- Melts at: 63 °C", "potassium"),
        ("🏅 **Norway** won most of the medals that winter, with Germany far behind it.", "Norway"),
        ("Based on the text, the fair was moved to Friday.", "Friday"),
        ("RPM stands for revolutions per minute, which is a measure of speed.", "revolutions per minute"),
        ("The stage in which a tadpole grows legs is called metamorphosis.", "metamorphosis"),
        ('The letters are taken in turn. Joining them gives "tln".', "tln"),
    ],
)
def test_a_name_is_read_without_what_is_told_of_it(sentence: str, name: str) -> None:
    assert AnswerReader()(sentence, TextKind()).answer == name


@pytest.mark.parametrize(
    "sentence",
    [
        "Marie Curie won the prize twice.",
        "The capital is Tallinn, or maybe Riga. I'm not sure.",
        "The first letter is f. The last letter is e.",
        '{"name": "Fe", "number": 26}',
        "The pact was signed in Bergen in 1905.",
        "- **Name:** Skagerrak\n- **Depth:** 700 m\n- **Joins:** two seas",
        "The word comes with two spellings.",
    ],
)
def test_a_sentence_that_may_answer_several_questions_is_no_name(sentence: str) -> None:
    assert AnswerReader()(sentence, TextKind()).answer == ""
