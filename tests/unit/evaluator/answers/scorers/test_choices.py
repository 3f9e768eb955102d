"""Scorers of choices."""

from __future__ import annotations

import pytest
from sklearn.metrics import accuracy_score

from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import check_scoring, scorer
from services.evaluator.answers.scorers.scorer import Reply
from tests.unit.evaluator.answers.scorers.scored import correct
from touchstone.v1.scoring_pb2 import Scoring


def test_letters_are_read_as_suites_read_them() -> None:
    assert correct("choice", "It could be A. Answer: (B) because", "B") == 1
    assert correct("choice", "b", "B") == 1
    assert correct("choice", "J", "j") == 1
    assert correct("choice", "Answer: A or B", "A") == 0
    assert correct("choice", "The K", "A", choices=["A", "B"]) == 0


def test_choices_may_be_texts() -> None:
    options = ["entailment", "not entailment", "unknown"]
    assert correct("choice", "Answer: Not_Entailment.", "not entailment", choices=options) == 1
    assert correct("choice", "Answer: not entailment", "entailment", choices=options) == 0
    assert correct("choice", "unknown", "Unknown", choices=options) == 1
    with pytest.raises(ValueError, match="is not one of the choices entailment, not entailment, unknown"):
        scorer(Scoring(scorer="choice", choices=options)).right("maybe")


@pytest.mark.parametrize(
    "choices", [["one"], ["yes", "Yes"], ["a", "?"], ["x" * 81, "y"], [str(n) for n in range(201)]]
)
def test_choices_that_cannot_be_told_apart_are_refused(choices: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="choices"):
        check_scoring(Scoring(scorer="choice", choices=choices))


def test_accuracy_of_choices_is_scikit_learns() -> None:
    rights = ["A", "B", "C", "D", "A", "B"]
    responses = ["Answer: A", "C", "Answer: C.", "none", "Answer: B", "b) B Answer: B"]
    chosen = scorer(Scoring(scorer="choice"))
    predicted = [chosen.read(Reply(response)).answer for response in responses]
    ours = [correct("choice", response, right) for response, right in zip(responses, rights, strict=True)]
    assert sum(ours) / len(ours) == pytest.approx(accuracy_score(rights, predicted), abs=1e-9)
    assert accuracy_score(rights, predicted) == pytest.approx(0.5)


def test_an_option_may_be_named_by_its_text_in_the_prompt() -> None:
    prompt = "Which gas do plants take in?\nA. oxygen\nB. carbon dioxide\nC. helium\n"
    chosen = scorer(Scoring(scorer="choice"))
    assert chosen.read(Reply("Plants take in carbon dioxide.", prompt=prompt)).answer == "B"
    assert chosen.read(Reply("Plants take in carbon dioxide.")).answer == ""
    few = scorer(Scoring(scorer="choice", choices=["A", "B"]))
    assert few.read(Reply("Answer: B", prompt=prompt)).answer == "B"
