"""How a dataset's answers are scored, as boards and comparisons say it."""

from __future__ import annotations

import pytest

from services.words import scorers
from touchstone.v1 import job_pb2
from touchstone.v1.scoring_pb2 import Scoring


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Scoring(), "exact match"),
        (Scoring(scorer="contains"), "presence of the reference"),
        (Scoring(scorer="numeric", tolerance=0.01), "number within 0.01"),
        (Scoring(scorer="numeric", tolerance=0.05, tolerance_is_relative=True), "number within 5 % of the reference"),
        (Scoring(scorer="choice", choices=["yes", "no"]), "choice of yes, no"),
        (Scoring(scorer="json", fields=list("abcdefgh")), "equal JSON fields a, b, c, d, e, f and 2 more"),
        (Scoring(scorer="token_f1", reference_field="gold"), "token F1; reference in “gold”"),
        (Scoring(answer_pattern="A: (.*)"), "exact match; answer taken by “A: (.*)”"),
        (
            Scoring(answer_pattern="A", answer_match="ANSWER_MATCH_FIRST"),
            "exact match; answer taken by the first match of “A”",
        ),
        (Scoring(scorer="exact_match", tolerance=1, choices=["x"]), "exact match"),
        (Scoring(scorer="made of later days"), "made of later days"),
    ],
)
def test_scoring_is_said_in_one_line(asked: Scoring, words: str) -> None:
    assert scorers.words(job_pb2.JobSpec(dataset=job_pb2.DatasetWork(scoring=asked))) == words


def test_suites_say_nothing() -> None:
    assert scorers.words(job_pb2.JobSpec(suite=job_pb2.SuiteWork(suite="glue"))) == ""


def test_options_that_a_scorer_does_not_read_make_no_difference() -> None:
    def of(**fields: object) -> Scoring:
        return scorers.of_job(job_pb2.JobSpec(dataset=job_pb2.DatasetWork(**fields)))  # type: ignore[arg-type]

    assert of(scoring=Scoring(tolerance=0.5, fields=["a"])) == of(scorer="exact_match") == of()
    assert of(scorer="contains", scoring=Scoring(scorer="numeric", tolerance=1)) == of(
        scoring=Scoring(scorer="contains")
    )
    assert of(scoring=Scoring(scorer="numeric", tolerance=1)) != of(scoring=Scoring(scorer="numeric"))
