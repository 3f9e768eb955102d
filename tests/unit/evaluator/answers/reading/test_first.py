"""The first of several stated answers."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.first import read_first
from services.evaluator.answers.reading.layers import NEGATED, Extraction


def last_word(text: str) -> Extraction:
    return Extraction(text.split()[-1].rstrip("."), "")


@pytest.mark.parametrize("text", ["yes", "The answer is yes.", "Answers vary; the answer is yes."])
def test_where_one_answer_is_stated_there_is_no_other(text: str) -> None:
    assert read_first(text, last_word) is None


@pytest.mark.parametrize(
    "text",
    ["The answer is yes. Answer: no", "<think>Answer: no. Answer: no.</think>The answer is yes. Answer: no"],
)
def test_the_response_is_read_up_to_where_a_second_answer_begins(text: str) -> None:
    found = read_first(text, last_word)
    assert found is not None
    assert found.answer == "yes"


def test_what_is_no_answer_is_passed_over_and_one_that_was_denied_is_not() -> None:
    text = "Answer: unclear. Answer: yes. Answer: no."
    nothing, denied = Extraction("", "no match"), Extraction("", NEGATED)
    read = {"unclear": nothing, "yes": Extraction("yes", "")}
    assert read_first(text, lambda said: read[last_word(said).answer]) == read["yes"]
    read["unclear"] = denied
    assert read_first(text, lambda said: read[last_word(said).answer]) == denied
