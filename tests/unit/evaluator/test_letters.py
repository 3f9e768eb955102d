"""Which letters count as the answer to a question with options."""

from __future__ import annotations

import time

import pytest

from services.evaluator.answers import letters, scoring
from services.evaluator.answers.letters import LetterExtractor

OPTIONS = {
    "A": "The first pharyngeal arch",
    "B": "A lesion of the nerve",
    "C": "Carpal tunnel",
    "D": "None of the above",
}
TEN = "ABCDEFGHIJ"
EXTRACT = LetterExtractor("ABCD", ["Question"])


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
        ("The correct answer is D.", "D"),
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
    found = EXTRACT(text, OPTIONS)
    assert (found.answer, found.how) == (letter, scoring.BY_MARKER)


@pytest.mark.parametrize(
    ("text", "letter", "how"),
    [
        ("Answer: carpal tunnel.", "C", letters.BY_OPTION),
        ("Answer: A lesion of the nerve", "B", letters.BY_OPTION),
        ("Answer: **None of  the above**", "D", letters.BY_OPTION),
        ("B", "B", scoring.WHOLE_RESPONSE),
        ("(B)", "B", scoring.WHOLE_RESPONSE),
        ("**C.**", "C", scoring.WHOLE_RESPONSE),
        ("C. Carpal tunnel", "C", scoring.WHOLE_RESPONSE),
        ("Carpal tunnel", "C", letters.WHOLE_IS_OPTION),
    ],
)
def test_option_given_in_other_ways_is_the_answer(text: str, letter: str, how: str) -> None:
    found = EXTRACT(text, OPTIONS)
    assert (found.answer, found.how) == (letter, how)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", scoring.NO_MARKER),
        ("I would say B.", scoring.NO_MARKER),
        ("A is tempting, D is right", scoring.NO_MARKER),
        ("B. Carpal tunnel", scoring.NO_MARKER),
        ("b is the second letter", scoring.NO_MARKER),
        ("Answer: B or C", scoring.AMBIGUOUS),
        ("Answer: (B) and (C)", scoring.AMBIGUOUS),
        ("Answer: B, D", scoring.AMBIGUOUS),
        ("Answer: A/B", scoring.AMBIGUOUS),
        ("Answer: E", scoring.NO_LABEL),
        ("Answer: a nerve", scoring.NO_LABEL),
        ("Answer: Both", scoring.NO_LABEL),
        ("Answer: <letter>\nwhere <letter> is one of: A, B, C, D.", scoring.NO_LABEL),
        ("The answer is not B.", scoring.NO_LABEL),
        ("<think>Answer: B", scoring.NO_MARKER),
    ],
)
def test_anything_else_is_no_answer(text: str, how: str) -> None:
    found = EXTRACT(text, OPTIONS)
    assert (found.answer, found.how) == ("", how)


def test_option_with_the_text_of_another_is_told_by_letter_only() -> None:
    twice = {"A": "Both", "B": "Both"}
    extract = LetterExtractor("AB")
    assert extract("Answer: Both", twice).answer == ""
    assert extract("Answer: B. Both", twice).answer == "B"


@pytest.mark.parametrize(
    ("text", "letter"), [("Answer: J", "J"), ("Answer: I", "I"), ("Answer: I think so", ""), ("Answer: I, J", "")]
)
def test_ten_options_have_a_letter_that_is_a_word(text: str, letter: str) -> None:
    assert LetterExtractor(TEN)(text, {}).answer == letter


@pytest.mark.parametrize(
    "unit", ["a", "A", " ", "\n", "answer: A ", "answer: ", "answer: A or ", "A,", "(", "answer: option ", "B. ", "*"]
)
def test_hostile_megabyte_is_read_within_two_seconds(unit: str) -> None:
    text = unit * ((1 << 20) // len(unit))
    started = time.process_time()
    EXTRACT(text, OPTIONS)
    assert time.process_time() - started < 2.0
