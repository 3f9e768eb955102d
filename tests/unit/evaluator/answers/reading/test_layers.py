"""Layers by which an answer is read."""

from __future__ import annotations

from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.reader import AnswerReader

FOUR = {"A": "oxygen", "B": "carbon dioxide", "C": "iron", "D": "gold"}


def test_an_unread_answer_says_which_layer_would_read_it() -> None:
    for most, text, layer in (
        (Layer.STRICT, "\\boxed{B}", Layer.MARKED),
        (Layer.STRICT, "The correct option is B.", Layer.LENIENT),
        (Layer.MARKED, "The correct option is B.", Layer.LENIENT),
        (Layer.STRICT, "Hard to say.", None),
        (Layer.STRICT, "Answer: B", None),
    ):
        found = AnswerReader(most=most)(text, LetterKind(4, FOUR))
        assert (found.answer, found.would_read) == ("B" if text == "Answer: B" else "", layer), text
