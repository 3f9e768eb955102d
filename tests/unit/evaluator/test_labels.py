"""What counts as an answer, and what does not."""

from __future__ import annotations

import time

import pytest

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.cleaning import strip_reasoning
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader

ACCEPTABILITY = ("unacceptable", "acceptable")
ENTAILMENT = ("entailment", "not_entailment")
CHOICES = ("choice1", "choice2")
INFERENCE = ("entailment", "neutral", "contradiction")
SENTIMENT = ("negative", "positive")


def strict(*captions: str) -> AnswerReader:
    return AnswerReader(captions, Layer.STRICT)


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
        (ACCEPTABILITY, "Answer: not acceptable", "unacceptable"),
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
    found = strict()(text, LabelKind(labels))
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
    found = strict("Review")(text, LabelKind(labels))
    assert (found.answer, found.how) == (label, layers.WHOLE_RESPONSE)


@pytest.mark.parametrize(
    ("labels", "text", "how"),
    [
        (SENTIMENT, "", layers.NO_MARKER),
        (SENTIMENT, "I cannot tell.", layers.NO_MARKER),
        (SENTIMENT, "The review is positive.", layers.NO_MARKER),
        (SENTIMENT, "The review is not positive but negative.", layers.NO_MARKER),
        (SENTIMENT, "positive negative", layers.NO_MARKER),
        (SENTIMENT, "Options:\n- positive\n- negative", layers.NO_MARKER),
        (SENTIMENT, "Answer: positive or negative", layers.AMBIGUOUS),
        (SENTIMENT, "Answer: positive/negative", layers.AMBIGUOUS),
        (SENTIMENT, "Answer: <label>\nwhere <label> is one of: negative, positive.", layers.NO_LABEL),
        (SENTIMENT, "The answer is not positive.", layers.NO_LABEL),
        (SENTIMENT, "Answer: positivity", layers.NO_LABEL),
        (SENTIMENT, "Answer: mixed", layers.NO_LABEL),
        (SENTIMENT, "Answer: posıtive", layers.NO_LABEL),
        (SENTIMENT, "Answer: poſitive", layers.NO_LABEL),
        (SENTIMENT, "poſitive", layers.NO_MARKER),
        (ENTAILMENT, "Answer: entailment, not_entailment", layers.AMBIGUOUS),
        (ENTAILMENT, "Answer: no entailment", layers.NO_LABEL),
        (INFERENCE, "Answer: entailments", layers.NO_LABEL),
        (SENTIMENT, "<think>Answer: positive", layers.NO_MARKER),
    ],
)
def test_anything_else_is_no_answer(labels: tuple[str, ...], text: str, how: str) -> None:
    found = strict("Review")(text, LabelKind(labels))
    assert (found.answer, found.how) == ("", how)


def test_answer_to_an_invented_next_question_does_not_count() -> None:
    read, kind = strict("Review"), LabelKind(SENTIMENT)
    text = "Answer: positive\n\nReview: a dull evening\nAnswer: negative\n\nReview: fine\nAnswer: positive"
    assert read(text, kind).answer == "positive"
    assert read("Answer: negative\n\nUser: and this?\nAnswer: positive", kind).answer == "negative"


def test_stated_form_goes_before_an_answer_in_a_sentence() -> None:
    read, kind = strict("Hypothesis"), LabelKind(ENTAILMENT)
    text = "The answer is entailment if it follows.\n\nHypothesis: Ali is tall.\nIt does not.\nAnswer: not_entailment"
    assert read(text, kind).answer == "not_entailment"


def test_answer_after_the_prompt_repeated_counts() -> None:
    read, kind = strict("Review"), LabelKind(SENTIMENT)
    assert read("Review: a dull evening\nIt is dull.\nAnswer: negative", kind).answer == "negative"


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
        ("Answer: four", "4"),
        ("1.7999999999999998", "1.8"),
        ("Answer: 3\n\nSentence 1: a\nAnswer: 5", "3"),
    ],
)
def test_number_on_the_scale_is_the_answer(text: str, number: str) -> None:
    assert strict("Sentence 1")(text, NumberKind((0, 5))).answer == number


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("Answer: 5.1", layers.OUT_OF_RANGE),
        ("Answer: -1", layers.OUT_OF_RANGE),
        ("Answer: 87", layers.OUT_OF_RANGE),
        ("Answer: 4/10", layers.AMBIGUOUS),
        ("Answer: 3-4", layers.AMBIGUOUS),
        ("Answer: 3 or 4", layers.AMBIGUOUS),
        ("Answer: 3, 4", layers.AMBIGUOUS),
        ("Answer: 4%", layers.NO_LABEL),
        ("Answer: 1.2.3", layers.NO_LABEL),
        ("Answer: ..5", layers.NO_LABEL),
        ("Answer: 3 or .5", layers.AMBIGUOUS),
        ("Answer: -.5", layers.OUT_OF_RANGE),
        ("..5", layers.NO_MARKER),
        ("I would say 4", layers.NO_MARKER),
        ("1 2", layers.NO_MARKER),
        ("", layers.NO_MARKER),
    ],
)
def test_other_numbers_are_no_answer(text: str, how: str) -> None:
    found = strict()(text, NumberKind((0, 5)))
    assert (found.answer, found.how) == ("", how)


def test_number_at_the_cut_may_lack_digits_and_does_not_count() -> None:
    assert strict()("Answer: 4", NumberKind((0, 5), cut=True)).answer == ""
    assert strict()("Answer: 4 ", NumberKind((0, 5))).answer == "4"
    assert strict()("Answer: 4.5\nThe two sentences", NumberKind((0, 5), cut=True)).answer == "4.5"


LONG = 1 << 17


@pytest.mark.parametrize(
    "unit",
    [
        "a", "\0", " ", "\n", "*", "answer", "answer:", "answer: ", "answer " + " " * 20, "answer is ",
        "answer: positive or ", "answer:\n*\n*\n*", "<think>", "</think>", "<think></think>", "<|im_end|>", "\nReview:",
        "not_", "positive", "1", "answer: 1", "1.", "-", "\\boxed{", "[", "<|channel|>final<|message|>", "positive/",
        "\ud800", "ſ",
    ],
)  # fmt: skip
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    text = unit * (LONG // len(unit))
    started = time.process_time()
    AnswerReader(["Review"])(text, LabelKind(SENTIMENT))
    AnswerReader(["Sentence 1", "Sentence 2"])(text, LabelKind(ENTAILMENT))
    AnswerReader(["Sentence 1"])(text, NumberKind((0, 5)))
    assert time.process_time() - started < 1.0
