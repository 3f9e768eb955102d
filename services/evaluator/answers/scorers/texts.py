"""Scorers that compare texts: exact_match, contains, token_f1 and rouge_l. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from rouge_score import tokenize

from services.evaluator.answers import words
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.scorers.scorer import Read, Scorer, as_text, mean, stated
from services.evaluator.items.metrics import EXACT_MATCH

_MOST_WORDS = 50_000
"""The limit for each text: comparing two texts of this length takes a tenth of a second."""


def exact_match(read: Read | None, layer: Layer) -> Scorer:
    """Equal except for case, white space, marks around words, and articles (`words.plain`). Without `read`, it compares
    the answer that the response states by the layers up to `layer`."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = words.plain(answer)
        return {"correct": float(any(given == words.plain(right) for right in answers))}

    by = layer if read is None else None
    return Scorer(
        "exact_match", "exact_match-5", (EXACT_MATCH,), ("correct",), as_text, read or stated(layer), judge, by
    )


def contains(read: Read) -> Scorer:
    """The right answer is somewhere in the response, also within a word if it has three characters or more; case and
    runs of white space do not count."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = words.spaced(answer)
        return {"correct": float(any(words.stands_in(words.spaced(right), given) for right in answers))}

    return Scorer("contains", "contains-2", (mean("contains", "correct"),), ("correct",), as_text, read, judge)


def token_f1(read: Read) -> Scorer:
    """F1 of words, as in SQuAD's evaluation."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = words.squad(answer).split()
        return {"token_f1": max(words.token_f1(given, words.squad(right).split()) for right in answers)}

    return Scorer("token_f1", "token_f1-1", (mean("token_f1", "token_f1"),), ("token_f1",), as_text, read, judge)


def rouge_l(read: Read) -> Scorer:
    """F-measure of ROUGE-L, as the package rouge-score computes it without stemming."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = rouge_tokens(answer)
        return {"rouge_l": max(rouge_l_f(given, rouge_tokens(right)) for right in answers)}

    return Scorer("rouge_l", "rouge_l-1", (mean("rouge_l", "rouge_l"),), ("rouge_l",), _with_words, read, judge)


def _with_words(value: Any) -> str:
    text = as_text(value)
    if not rouge_tokens(text):
        raise ValueError("has no letters a to z and no digits, and ROUGE-L counts nothing else; use token_f1")
    return text


def rouge_tokens(text: str) -> list[str]:
    """The words of rouge-score 0.1.2 without stemming: runs of a–z and 0–9 in lower case, so that other scripts have
    none. Very long texts are cut to the first 50,000."""
    return list(islice(tokenize.tokenize(text, None), _MOST_WORDS))


def rouge_l_f(given: Sequence[str], expected: Sequence[str]) -> float:
    """The F-measure of ROUGE-L (Lin 2004), 0 to 1, as rouge-score gives it: by the longest common subsequence of
    words."""
    if not given or not expected:
        return 0.0
    return 2 * _longest_common(given, expected) / (len(given) + len(expected))


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    A column of the usual table as the bits of one number (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"):
    the table itself, as in the package, takes minutes for two long texts, and anyone may upload these.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(first)) - 1
    column = every
    for word in second:
        matched = column & places.get(word, 0)
        column = ((column + matched) | (column - matched)) & every
    return len(first) - column.bit_count()
