"""The scorer `choice`: one of some answers, read as suites read letters and labels. Pure."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.answers import words
from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.asked import options_in
from services.evaluator.answers.reading.kinds import Kind
from services.evaluator.answers.reading.label import LabelKind, plain_label
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, as_text
from services.evaluator.items.metrics import ACCURACY

_LETTERS = string.ascii_uppercase
_USUAL = tuple(_LETTERS[:10])
_LOOKED_AT = 2000


def choice(read: Read | None, layer: Layer, offered: Sequence[str]) -> Scorer:
    """The choice that the response names by the layers up to `layer`, or that `read` finds. Choices are single letters
    from A on, or texts. Raises ValueError for choices that cannot be distinguished."""
    choices = tuple(dict.fromkeys(text.strip() for text in offered)) or _USUAL
    known = {words.plain(text): text for text in choices}
    labels = set(map(plain_label, choices))
    if not (all(known) and all(labels)) or min(len(known), len(labels)) < len(offered or _USUAL):
        raise ValueError("choices must differ in more than case, spaces and punctuation")
    usual, kind = AnswerReader(most=layer), _kind(choices)
    are_letters = "".join(choices) == _LETTERS[: len(choices)]

    def found(reply: Reply) -> Extraction:
        if read is None:
            # Replies name options by their texts, too, which stand in the prompt.
            options = options_in(reply.prompt) if are_letters else {}
            known_by_text = 0 < len(options) <= len(choices)
            return usual(reply.text, LetterKind(len(options), options) if known_by_text else kind)
        answer = read(reply)
        named = known.get(words.plain(answer.answer), "")
        return Extraction(named, answer.how) if named or not answer.answer else Extraction("", layers.NO_LABEL)

    def right(value: Any) -> str:
        named = known.get(words.plain(as_text(value)))
        if named is None:
            shown = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
            raise ValueError(f"is not one of the choices {shown}")
        return named

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        return {"correct": float(answer in answers)}

    by = layer if read is None else None
    return Scorer("choice", "choice-5", (ACCURACY,), ("correct",), right, found, judge, by)


def _kind(choices: Sequence[str]) -> Kind:
    if "".join(choices) == _LETTERS[: len(choices)]:
        return LetterKind(len(choices))
    return LabelKind(choices, looked_at=_LOOKED_AT)
