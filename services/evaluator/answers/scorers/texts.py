"""Scorers that compare texts: exact_match, contains, token_f1 and rouge_l. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.answers import rouge, words
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.scorers.scorer import Read, Scorer, as_text, mean, stated
from services.evaluator.tasks.metrics import EXACT_MATCH


def exact_match(read: Read | None, layer: Layer) -> Scorer:
    """Equal but for case, white space, marks around words, and articles (`words.plain`). Without `read`, what the
    response states as its answer by the layers up to `layer` is compared."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = words.plain(answer)
        return {"correct": float(any(given == words.plain(right) for right in answers))}

    by = layer if read is None else None
    return Scorer(
        "exact_match", "exact_match-2", (EXACT_MATCH,), ("correct",), as_text, read or stated(layer), judge, by
    )


def contains(read: Read) -> Scorer:
    """The right answer stands somewhere in the response, also within a word where it has three characters or more; case
    and runs of white space do not count."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = words.spaced(answer)
        return {"correct": float(any(words.stands_in(words.spaced(right), given) for right in answers))}

    return Scorer("contains", "contains-2", (mean("contains", "correct"),), ("correct",), as_text, read, judge)


def token_f1(read: Read) -> Scorer:
    """F1 of words, as SQuAD's evaluation has it."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = words.squad(answer).split()
        return {"token_f1": max(words.token_f1(given, words.squad(right).split()) for right in answers)}

    return Scorer("token_f1", "token_f1-1", (mean("token_f1", "token_f1"),), ("token_f1",), as_text, read, judge)


def rouge_l(read: Read) -> Scorer:
    """F-measure of ROUGE-L, as the package rouge-score has it without stemming."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = rouge.tokens(answer)
        return {"rouge_l": max(rouge.rouge_l(given, rouge.tokens(right)) for right in answers)}

    return Scorer("rouge_l", "rouge_l-1", (mean("rouge_l", "rouge_l"),), ("rouge_l",), _with_words, read, judge)


def _with_words(value: Any) -> str:
    text = as_text(value)
    if not rouge.tokens(text):
        raise ValueError("has no letter a to z and no digit, which is all that ROUGE-L counts; use token_f1")
    return text
