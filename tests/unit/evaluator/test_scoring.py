"""What counts as an answer, and what does not."""

from __future__ import annotations

import time

import pytest

from services.evaluator.answers import scoring
from services.evaluator.answers.scoring import LabelExtractor, NumberExtractor, strip_reasoning

ACCEPTABILITY = ("unacceptable", "acceptable")
ENTAILMENT = ("entailment", "not_entailment")
CHOICES = ("choice1", "choice2")
INFERENCE = ("entailment", "neutral", "contradiction")
SENTIMENT = ("negative", "positive")


@pytest.mark.parametrize(
    ("labels", "text", "label"),
    [
        (SENTIMENT, "Answer: positive", "positive"),
        (SENTIMENT, "answer: NEGATIVE.", "negative"),
        (SENTIMENT, "Answer:\u00a0positive", "positive"),
        (SENTIMENT, "**Answer:** **Positive**", "positive"),
        (SENTIMENT, "**Answer**: positive", "positive"),
        (SENTIMENT, "Answer: “positive”", "positive"),
        (SENTIMENT, "Answer: <positive>", "positive"),
        (SENTIMENT, "Answer: $\\boxed{\\text{positive}}$", "positive"),
        (SENTIMENT, "Answer:\n\nnegative", "negative"),
        (SENTIMENT, "The final answer is: negative", "negative"),
        (SENTIMENT, "Final answer: positive\x00", "positive"),
        (SENTIMENT, "It praises the cast and nothing is negative here.\n\nAnswer: positive", "positive"),
        (SENTIMENT, "Answer: positive\nOn reflection, no.\nAnswer: negative", "negative"),
        (SENTIMENT, "Answer: positive, since the cast is praised", "positive"),
        (ACCEPTABILITY, "Answer: unacceptable", "unacceptable"),
        (ACCEPTABILITY, "Answer: acceptable", "acceptable"),
        (ACCEPTABILITY, "An unacceptable order? No. Answer: acceptable", "acceptable"),
        (ENTAILMENT, "Answer: not_entailment", "not_entailment"),
        (ENTAILMENT, "Answer: Not Entailment", "not_entailment"),
        (ENTAILMENT, "Answer: `not-entailment`", "not_entailment"),
        (ENTAILMENT, "Answer: notentailment", "not_entailment"),
        (ENTAILMENT, "Answer: not\\_entailment", "not_entailment"),
        (ENTAILMENT, "Answer: \\(\\text{entailment}\\)", "entailment"),
        (CHOICES, "Answer: Choice 2", "choice2"),
        (ENTAILMENT, "Answer: entailment", "entailment"),
        (INFERENCE, "Answer：contradiction", "contradiction"),
    ],
)
def test_label_after_the_marker_is_the_answer(labels: tuple[str, ...], text: str, label: str) -> None:
    found = LabelExtractor(labels)(text)
    assert (found.answer, found.how) == (label, "last match of “answer: …”")


@pytest.mark.parametrize(
    ("labels", "text", "label"),
    [
        (SENTIMENT, "positive", "positive"),
        (SENTIMENT, "\n\n**Negative.**\n", "negative"),
        (ACCEPTABILITY, "Unacceptable", "unacceptable"),
        (ENTAILMENT, "not entailment.", "not_entailment"),
        (ENTAILMENT, "“entailment”", "entailment"),
        (SENTIMENT, "<think>Is it positive? No.</think>negative", "negative"),
        (SENTIMENT, "positive\n\nReview: the plot is thin\nA label follows", "positive"),
        (SENTIMENT, "positive<|im_end|>\n<|im_start|>user", "positive"),
    ],
)
def test_response_that_is_only_a_label_is_the_answer(labels: tuple[str, ...], text: str, label: str) -> None:
    found = LabelExtractor(labels, ["Review"])(text)
    assert (found.answer, found.how) == (label, scoring.WHOLE_RESPONSE)


@pytest.mark.parametrize(
    ("labels", "text", "how"),
    [
        (SENTIMENT, "", scoring.NO_MARKER),
        (SENTIMENT, "I cannot tell.", scoring.NO_MARKER),
        (SENTIMENT, "The review is positive.", scoring.NO_MARKER),
        (SENTIMENT, "The review is not positive but negative.", scoring.NO_MARKER),
        (SENTIMENT, "positive negative", scoring.NO_MARKER),
        (SENTIMENT, "Options:\n- positive\n- negative", scoring.NO_MARKER),
        (SENTIMENT, "Answer: positive or negative", scoring.AMBIGUOUS),
        (SENTIMENT, "Answer: positive/negative", scoring.AMBIGUOUS),
        (SENTIMENT, "Answer: <label>\nwhere <label> is one of: negative, positive.", scoring.NO_LABEL),
        (SENTIMENT, "The answer is not positive.", scoring.NO_LABEL),
        (SENTIMENT, "Answer: positivity", scoring.NO_LABEL),
        (SENTIMENT, "Answer: mixed", scoring.NO_LABEL),
        (SENTIMENT, "Answer: posıtive", scoring.NO_LABEL),
        (SENTIMENT, "Answer: poſitive", scoring.NO_LABEL),
        (SENTIMENT, "poſitive", scoring.NO_MARKER),
        (ACCEPTABILITY, "Answer: not acceptable", scoring.NO_LABEL),
        (ENTAILMENT, "Answer: entailment, not_entailment", scoring.AMBIGUOUS),
        (ENTAILMENT, "Answer: no entailment", scoring.NO_LABEL),
        (INFERENCE, "Answer: entailments", scoring.NO_LABEL),
        (SENTIMENT, "<think>Answer: positive", scoring.NO_MARKER),
    ],
)
def test_anything_else_is_no_answer(labels: tuple[str, ...], text: str, how: str) -> None:
    found = LabelExtractor(labels, ["Review"])(text)
    assert (found.answer, found.how) == ("", how)


def test_answer_to_an_invented_next_question_does_not_count() -> None:
    extract = LabelExtractor(SENTIMENT, ["Review"])
    text = "Answer: positive\n\nReview: a dull evening\nAnswer: negative\n\nReview: fine\nAnswer: positive"
    assert extract(text).answer == "positive"
    assert extract("Answer: negative\n\nUser: and this?\nAnswer: positive").answer == "negative"


def test_stated_form_goes_before_an_answer_in_a_sentence() -> None:
    extract = LabelExtractor(ENTAILMENT, ["Hypothesis"])
    text = "The answer is entailment if it follows.\n\nHypothesis: Ali is tall.\nIt does not.\nAnswer: not_entailment"
    assert extract(text).answer == "not_entailment"


def test_answer_after_the_prompt_repeated_counts() -> None:
    extract = LabelExtractor(SENTIMENT, ["Review"])
    assert extract("Review: a dull evening\nIt is dull.\nAnswer: negative").answer == "negative"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("<think>a <think> b</think>c", "c"),
        ("a</think>b", "b"),
        ("a<think>b", "a"),
        ("<Thinking>a</Thinking>b<reasoning>c</reasoning>d", "bd"),
        ("[THINK]a[/THINK]b", "b"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
        ("I think so", "I think so"),
    ],
)
def test_reasoning_is_stripped(text: str, left: str) -> None:
    assert strip_reasoning(text) == left


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Answer: 3.8", "3.8"),
        ("Answer: 4,5", "4.5"),
        ("Answer: 4.5/5", "4.5"),
        ("Answer: 4.5 out of 5", "4.5"),
        ("**Answer:** 5.0", "5"),
        ("Answer: 0", "0"),
        ("Answer: 2 (on a scale from 0 to 5)", "2"),
        ("From 0 to 5 I say 2.\nAnswer: 3\nNo.\nAnswer: 4.", "4"),
        ("3.8", "3.8"),
        ("**4.25**", "4.25"),
        ("3/5.", "3"),
        (".5", "0.5"),
        ("Answer: .5.", "0.5"),
        ("Answer: .5 out of 5", "0.5"),
        ("Answer: 3\n\nSentence 1: a\nAnswer: 5", "3"),
    ],
)
def test_number_on_the_scale_is_the_answer(text: str, number: str) -> None:
    assert NumberExtractor(0, 5, ["Sentence 1"])(text).answer == number


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("Answer: 5.1", scoring.OUT_OF_RANGE),
        ("Answer: -1", scoring.OUT_OF_RANGE),
        ("Answer: 87", scoring.OUT_OF_RANGE),
        ("Answer: 4/10", scoring.AMBIGUOUS),
        ("Answer: 3-4", scoring.AMBIGUOUS),
        ("Answer: 3 or 4", scoring.AMBIGUOUS),
        ("Answer: 3, 4", scoring.AMBIGUOUS),
        ("Answer: 4%", scoring.NO_LABEL),
        ("Answer: 1.2.3", scoring.NO_LABEL),
        ("Answer: ..5", scoring.NO_LABEL),
        ("Answer: 3 or .5", scoring.AMBIGUOUS),
        ("Answer: -.5", scoring.OUT_OF_RANGE),
        ("Answer: four", scoring.NO_LABEL),
        ("..5", scoring.NO_MARKER),
        ("I would say 4", scoring.NO_MARKER),
        ("1 2", scoring.NO_MARKER),
        ("", scoring.NO_MARKER),
    ],
)
def test_other_numbers_are_no_answer(text: str, how: str) -> None:
    found = NumberExtractor(0, 5)(text)
    assert (found.answer, found.how) == ("", how)


def test_number_at_the_cut_may_lack_digits_and_does_not_count() -> None:
    extract = NumberExtractor(0, 5)
    assert extract("Answer: 4", cut=True).answer == ""
    assert extract("Answer: 4 ", cut=False).answer == "4"
    assert extract("Answer: 4.5\nThe two sentences", cut=True).answer == "4.5"


MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    "unit",
    [
        "a", "\0", " ", "\n", "*", "answer", "answer:", "answer: ", "answer " + " " * 20, "answer is ",
        "answer: positive or ", "answer:\n*\n*\n*", "<think>", "</think>", "<think></think>", "<|im_end|>", "\nReview:",
        "not_", "positive", "1", "answer: 1", "1.", "-", "\\boxed{", "[", "<|channel|>final<|message|>", "positive/",
        "\ud800", "ſ",
    ],
)  # fmt: skip
def test_hostile_megabyte_is_read_within_two_seconds(unit: str) -> None:
    text = unit * (MEGABYTE // len(unit))
    started = time.process_time()
    LabelExtractor(SENTIMENT, ["Review"])(text)
    LabelExtractor(ENTAILMENT, ["Sentence 1", "Sentence 2"])(text)
    NumberExtractor(0, 5, ["Sentence 1"])(text)
    assert time.process_time() - started < 2.0
