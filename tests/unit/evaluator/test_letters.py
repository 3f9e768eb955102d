"""Which letters count as the answer to a question with options."""

from __future__ import annotations

import time

import pytest

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.reader import AnswerReader

OPTIONS = {
    "A": "The first pharyngeal arch",
    "B": "A lesion of the nerve",
    "C": "Carpal tunnel",
    "D": "None of the above",
}
STRICT = AnswerReader(["Question"], Layer.STRICT)


def strictly(text: str) -> Extraction:
    return STRICT(text, LetterKind(4, OPTIONS))


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: B", "B"),
        ("answer: b.", "B"),
        ("**Answer:** (C)", "C"),
        ("Answer: **D**", "D"),
        ("Answer: <A>", "A"),
        ("Answer: $\\boxed{B}$", "B"),
        ("Answer: Option C", "C"),
        ("Answer: B. A lesion of the nerve", "B"),
        ("Answer: B) A lesion of the nerve", "B"),
        ("Answer: B - A lesion of the nerve", "B"),
        ("Answer: C because a carpal tunnel is narrow and D is wrong", "C"),
        ("Answer: A because the arch comes first", "A"),
        ("Answer: A, the first arch", "A"),
        ("Answer: A The first pharyngeal arch.", "A"),
        ("Answer: \\(B\\)", "B"),
        ("Answer: \\[\\boxed{(B)}\\]", "B"),
        ("Answer: \\textbf{(B)}", "B"),
        ("Answer: A\nA is right since it comes first.", "A"),
        ("A and B are tempting.\n\nAnswer: D", "D"),
        ("Answer: A\nNo, wait.\nAnswer: C", "C"),
        ("<think>Answer: A</think>Answer: C", "C"),
        ("Answer: B\n\nQuestion: and the next one?\nAnswer: D", "B"),
    ],
)
def test_letter_after_the_marker_is_the_answer(text: str, letter: str) -> None:
    found = strictly(text)
    assert (found.answer, found.how) == (letter, layers.BY_MARKER)


@pytest.mark.parametrize(
    ("text", "letter", "how"),
    [
        ("The correct answer is D.", "D", layers.BY_SENTENCE_MARKER),
        ("Answer: carpal tunnel.", "C", layers.BY_MARKER),
        ("Answer: A lesion of the nerve", "B", layers.BY_MARKER),
        ("Answer: **None of  the above**", "D", layers.BY_MARKER),
        ("B", "B", layers.WHOLE_RESPONSE),
        ("(B)", "B", layers.WHOLE_RESPONSE),
        ("**C.**", "C", layers.WHOLE_RESPONSE),
        ("C. Carpal tunnel", "C", layers.WHOLE_RESPONSE),
        ("Carpal tunnel", "C", layers.WHOLE_RESPONSE),
    ],
)
def test_option_given_in_other_ways_is_the_answer(text: str, letter: str, how: str) -> None:
    found = strictly(text)
    assert (found.answer, found.how) == (letter, how)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", layers.NO_MARKER),
        ("I would say B.", layers.NO_MARKER),
        ("A is tempting, D is right", layers.NO_MARKER),
        ("B. Carpal tunnel", layers.NO_MARKER),
        ("b is the second letter", layers.NO_MARKER),
        ("Answer: B or C", layers.AMBIGUOUS),
        ("Answer: (B) and (C)", layers.AMBIGUOUS),
        ("Answer: B, D", layers.AMBIGUOUS),
        ("Answer: A/B", layers.AMBIGUOUS),
        ("Answer: E", layers.NO_LABEL),
        ("Answer: a nerve", layers.NO_LABEL),
        ("Answer: Both", layers.NO_LABEL),
        ("Answer: <letter>\nwhere <letter> is one of: A, B, C, D.", layers.NO_LABEL),
        ("The answer is not B.", layers.NO_LABEL),
        ("<think>Answer: B", layers.NO_MARKER),
    ],
)
def test_anything_else_is_no_answer(text: str, how: str) -> None:
    found = strictly(text)
    assert (found.answer, found.how) == ("", how)


def test_answer_to_an_invented_next_question_does_not_stand_in_for_several() -> None:
    text = "Answer: B or C\n\nQuestion: and the next one?\nAnswer: D"
    assert AnswerReader(["Question"])(text, LetterKind(4, OPTIONS)).how == layers.AMBIGUOUS


def test_option_with_the_text_of_another_is_told_by_letter_only() -> None:
    twice = {"A": "Both", "B": "Both"}
    assert STRICT("Answer: Both", LetterKind(2, twice)).answer == ""
    assert STRICT("Answer: B. Both", LetterKind(2, twice)).answer == "B"


@pytest.mark.parametrize(
    ("text", "letter"), [("Answer: J", "J"), ("Answer: I", "I"), ("Answer: I think so", ""), ("Answer: I, J", "")]
)
def test_ten_options_have_a_letter_that_is_a_word(text: str, letter: str) -> None:
    assert STRICT(text, LetterKind(10)).answer == letter


@pytest.mark.parametrize(
    "unit", ["a", "A", " ", "\n", "answer: A ", "answer: ", "answer: A or ", "A,", "(", "answer: option ", "B. ", "*"]
)
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    text = unit * ((1 << 17) // len(unit))
    started = time.process_time()
    strictly(text)
    assert time.process_time() - started < 1.0
