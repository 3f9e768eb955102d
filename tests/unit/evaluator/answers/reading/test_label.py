"""What counts as an answer, and what does not."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader
from tests.growth import is_about_linear
from tests.parts import NIGHTLY
from tests.unit.evaluator.answers.reading.strictly import strict

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
    ("labels", "text", "label"),
    [
        (("agree", "object"), "The speaker agrees, as the second line shows.", "agree"),
        (("repeat", "not repeat"), "The two have different aims, which makes them not repeats.", "not repeat"),
        (("left", "right"), "Their own word is left.\n\n**Verdict:** left\n\nYou may ask for a second look.", "left"),
        (("cat", "dog"), "cat\n\nText: It barks all day.\nLabel: dog", "cat"),
        (("cat", "dog"), "Label: cat\nInput: It barks.\nLabel: dog", "cat"),
        (("early", "late"), "The late one is better since it is finished. The early one is a sketch.", "late"),
        (("1", "2"), "Answer 1 is better. It gives a figure, whereas answer 2 is vague.", "1"),
        (
            ("buyer", "seller"),
            "The clause helps the seller. It ends the buyer's right to return goods.",
            "seller",
        ),
        (("prime", "square"), "We test small primes:\n- 2: yes\n\n16 is a square number.", "square"),
        (("even", "odd"), "Six is even, as it is 2 × 3. It lies between two odd numbers.", "even"),
        (("online", "offline"), "The shop is on-line only, so it belongs to the on-line team.", "online"),
        (("low", "high"), "| Field | Value |\n|---|---|\n| Page | 3 |\n| Risk | low |\n| Owner | Kim |", "low"),
        (
            ("sales", "support"),
            "It's about an offer, so the **Sales** team will help.\n\n> Ticket 4: an offer.",
            "sales",
        ),
        (("past", "present"), "The verb is in the **past tense**. Present form: she goes.", "past"),
        (("gas", "solid"), "Solid state. It keeps its shape; a gas would fill the room.", "solid"),
        (("calm", "tense"), "The first half is calm, whereas the second half is tense.", ""),
        (("calm", "tense"), "It is a bit of both. The start is calm. It can't be assigned to one.", ""),
        (("yes", "no"), "Yes, since he signed.\n\nNo, since he was twelve.\n\nThe law allows both.", ""),
    ],
)
def test_a_label_is_read_as_a_person_reads_it(labels: tuple[str, ...], text: str, label: str) -> None:
    assert AnswerReader()(text, LabelKind(labels)).answer == label


TONGUES = ("Danish", "Polish", "Irish")


@pytest.mark.parametrize(
    "text",
    [
        "The word is Polish; it means 'cheers' in Danish.",
        "The ending -ski points to Polish. Danish doesn't have it.",
        "This is clearly Polish; nothing Danish or Irish about it.",
        "It means 'cheers' in Irish, but the word itself is Polish.",
        "Polish seems most likely, with perhaps a Danish spelling.",
        "In fact, Polish. It's not Irish, as the letters show.",
        '{"language": "Polish", "scores": {"Polish": 0.9, "Danish": 0.1}}',
        '{"language": "Polish", "note": "The ending is Pol',
    ],
)
def test_a_label_is_claimed_beside_others(text: str) -> None:
    assert AnswerReader()(text, LabelKind(TONGUES)).answer == "Polish"


@pytest.mark.parametrize(
    "text",
    [
        "Polish means that it ends in -ski. Irish means that it may not. Danish means that it cannot.",
        "The author writes in Polish for his readers. Those who speak Danish are few.",
        "The first word is Polish. The second is",
    ],
)
def test_a_label_that_is_only_talked_about_is_not_read(text: str) -> None:
    assert AnswerReader()(text, LabelKind(TONGUES)).answer == ""


def test_a_label_that_denies_is_read_in_a_sentence() -> None:
    verdicts = LabelKind(["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"])
    said = "There's not enough info to say: the text never names the year."
    assert AnswerReader()(said, verdicts).answer == "NOT ENOUGH INFO"


LONG = 1 << (17 if NIGHTLY else 16)


@pytest.mark.parametrize(
    "unit",
    [
        "a", "\0", " ", "\n", "*", "answer", "answer:", "answer: ", "answer " + " " * 20, "answer is ",
        "answer: positive or ", "answer:\n*\n*\n*", "<think>", "</think>", "<think></think>", "<|im_end|>", "\nReview:",
        "not_", "positive", "1", "answer: 1", "1.", "-", "\\boxed{", "[", "<|channel|>final<|message|>", "positive/",
        "\ud800", "ſ", "It is positive. ", "so positive and since it, ",
    ],
)  # fmt: skip
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    def read(size: int) -> None:
        text = unit * (size // len(unit))
        AnswerReader(["Review"])(text, LabelKind(SENTIMENT))
        AnswerReader(["Sentence 1", "Sentence 2"])(text, LabelKind(ENTAILMENT))
        AnswerReader(["Sentence 1"])(text, NumberKind((0, 5)))

    assert is_about_linear(read, LONG)
