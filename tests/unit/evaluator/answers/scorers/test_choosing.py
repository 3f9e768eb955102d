"""A scorer is chosen by its name and options."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import canonical, check_scoring, scorer
from services.words.scorers import SCORERS
from tests.unit.evaluator.answers.scorers.scored import ORACLE, perfect
from touchstone.v1.scoring_pb2 import Scoring
from touchstone.v1.suite_pb2 import MetricSpec


@pytest.mark.parametrize("name", ORACLE)
def test_every_scorer_has_a_version_of_its_own_and_statistics_that_its_metrics_read(name: str) -> None:
    chosen = scorer(Scoring(scorer=name))
    assert chosen.name == name
    grown = {"contains": 2, "choice": 5, "exact_match": 5, "numeric": 6, "tool_calls": 2, "json_schema": 2}
    assert chosen.version == f"{name}-{grown.get(name, 1)}"
    read = {spec.statistic or "correct" for spec in chosen.metrics}
    assert read == set(chosen.statistics)
    assert all(spec.rule == MetricSpec.RULE_MEAN or spec.metric == "accuracy" for spec in chosen.metrics)
    assert [spec.beside for spec in chosen.metrics] == [False, True, True][: len(chosen.metrics)]
    right = chosen.right(ORACLE[name])
    found = chosen.read(perfect(chosen, right))
    assert dict.fromkeys(chosen.statistics, 1.0).items() <= chosen.judge(found.answer, [right]).items()
    assert dict.fromkeys(chosen.statistics, 0.0).items() <= chosen.missed([right]).items()


def test_every_scorer_but_that_of_judges_has_an_answer_that_is_right() -> None:
    assert {*ORACLE, "judgement"} == set(SCORERS)


def test_an_unknown_scorer_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequestError, match=r"bleu is not a valid scorer\. Use one of: exact_match, contains"):
        check_scoring(Scoring(scorer="bleu"))


def test_the_usual_scorer_is_exact_match() -> None:
    assert scorer(Scoring()).name == "exact_match"


def test_scorings_that_score_alike_read_alike() -> None:
    assert canonical(Scoring()) == canonical(Scoring(scorer="exact_match", tolerance=0.1, choices=["A", "B"]))
    different = [
        Scoring(),
        Scoring(scorer="numeric"),
        Scoring(scorer="numeric", tolerance=0.1),
        Scoring(scorer="numeric", tolerance=0.1, tolerance_is_relative=True),
        Scoring(scorer="choice"),
        Scoring(scorer="choice", choices=["yes", "no"]),
        Scoring(scorer="json", fields=["a"]),
        Scoring(reference_field="gold"),
        Scoring(answer_pattern="a"),
    ]
    assert len({canonical(scoring) for scoring in different}) == len(different)
