"""Words of an answer, as SQuAD counts them."""

from __future__ import annotations

import collections
import re
import string

import pytest
from hypothesis import given

from services.evaluator.answers import words
from tests.unit.evaluator.answers.scorers.scored import TEXTS


def squad_f1(prediction: str, truth: str) -> float:
    """As the evaluation script of SQuAD 2.0 computes it, written down from its description."""

    def tokens(text: str) -> list[str]:
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", text, flags=re.UNICODE).split()

    given_, expected = tokens(prediction), tokens(truth)
    if not given_ or not expected:
        return float(given_ == expected)
    common = sum((collections.Counter(given_) & collections.Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(given_), common / len(expected)
    return 2 * precision * recall / (precision + recall)


@given(TEXTS, TEXTS)
def test_token_f1_is_squads(response: str, right: str) -> None:
    ours = words.token_f1(words.squad(response).split(), words.squad(right).split())
    assert ours == pytest.approx(squad_f1(response, right), abs=1e-9)
