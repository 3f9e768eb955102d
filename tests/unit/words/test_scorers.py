"""How a dataset's answers are scored, as boards and comparisons say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.chat_requests.faults import RefusedError
from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import scorer
from services.gateway.fields.scoring import SCORING
from services.results.datasets.reading.scoring import References
from services.scheduler.admission.validation import validate
from services.words import scorers
from tests.unit.scheduler.admission.test_validation import LIMITS, NOW, fleet
from touchstone.v1 import dataset_pb2, job_pb2
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
        (Scoring(scorer="json_schema", schema='{"type":"null"}'), "JSON schema bcde375e"),
        (Scoring(scorer="token_f1", reference_field="gold"), "token F1; reference in “gold”"),
        (Scoring(scorer="contains", group_field="passage"), "presence of the reference; rows in groups by “passage”"),
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


def test_every_field_of_the_message_is_declared() -> None:
    assert [*scorers.OPTIONS] == [field.name for field in Scoring.DESCRIPTOR.fields]
    assert {name for option in scorers.OPTIONS.values() for name in option.scorers} < {*scorers.SCORERS}


@pytest.mark.parametrize("name", scorers.SCORERS)
def test_only_options_that_the_scorer_takes_are_kept(name: str) -> None:
    everything: dict[str, Any] = {
        "scorer": name,
        "reference_field": "gold",
        "group_field": "passage",
        "tolerance": 0.5,
        "tolerance_is_relative": True,
        "fields": ["a"],
        "choices": ["a", "b"],
        "answer_pattern": "(.)",
        "answer_match": "first",
        "schema": "{}",
    }
    kept = {field.name for field, _ in scorers.plain(scorers.scoring_of(everything)).ListFields()}
    assert kept == {option for option in everything if scorers.takes(name, option)}


def test_options_that_are_not_given_are_left_out_of_the_message() -> None:
    assert scorers.scoring_of(dict.fromkeys(scorers.OPTIONS)) == Scoring()
    with pytest.raises(KeyError):
        scorers.scoring_of({"answer_match": "second"})


def test_groups_of_rows_are_those_of_the_first_scorer() -> None:
    first = Scoring(scorer="contains", group_field="passage")
    further = Scoring(scorer="rouge_l")
    assert scorers.further_problem(first, [further]) == ("", "")
    assert scorers.further_problem(first, [Scoring(scorer="rouge_l", group_field="passage")]) == ("", "")
    wrong = scorers.further_problem(first, [Scoring(scorer="rouge_l", group_field="other")])
    assert wrong == ("further[0].group_field", "Groups of rows are those of the first scorer. Leave group_field out.")
    assert scorers.further_problem(first, [Scoring(scorer="contains")])[0] == "further[0]", "the same scores"


def scheduler(scoring: Scoring) -> str:
    spec = job_pb2.JobSpec(endpoint="stub", model="m", dataset=job_pb2.DatasetWork(dataset_id="ds", scoring=scoring))
    try:
        validate(spec, fleet(), LIMITS, NOW, dataset=dataset_pb2.Dataset(dataset_id="ds", rows=1))
    except InvalidRequestError as error:
        return error.field.rpartition(".")[2]
    return ""


def results(scoring: Scoring) -> str:
    try:
        References(scoring)
    except RefusedError as error:
        return error.field.rpartition(".")[2]
    return ""


def evaluator(scoring: Scoring) -> str:
    try:
        scorer(scoring)
    except InvalidRequestError as error:
        return error.field.rpartition(".")[2]
    return ""


def rest(scoring: Scoring) -> str:
    given = {field.name: value for field, value in scoring.ListFields()}
    given |= {name: list(given[name]) for name in ("fields", "choices") if name in given}
    return "".join(path.partition("[")[0] for path, _ in SCORING.judge(given, ""))


def texts(count: int, characters: int) -> list[str]:
    return [f"{number:03}".ljust(characters, "x") for number in range(count)]


@pytest.mark.parametrize("interface", [scheduler, results, evaluator, rest])
@pytest.mark.parametrize(
    ("scoring", "wrong"),
    [
        (Scoring(scorer="numeric", tolerance=1e12), ""),
        (Scoring(scorer="numeric", tolerance=1.1e12), "tolerance"),
        (Scoring(scorer="choice", choices=texts(200, 20)), ""),
        (Scoring(scorer="choice", choices=texts(201, 20)), "choices"),
        (Scoring(scorer="choice", choices=texts(2, 80)), ""),
        (Scoring(scorer="choice", choices=texts(2, 81)), "choices"),
        (Scoring(scorer="choice", choices=["a"]), "choices"),
        (Scoring(scorer="json", fields=texts(200, 20)), ""),
        (Scoring(scorer="json", fields=texts(201, 20)), "fields"),
        (Scoring(scorer="json", fields=texts(1, 200)), ""),
        (Scoring(scorer="json", fields=texts(1, 201)), "fields"),
        (Scoring(reference_field="x" * 200), ""),
        (Scoring(reference_field="x" * 201), "reference_field"),
        (Scoring(group_field="x" * 200), ""),
        (Scoring(group_field="x" * 201), "group_field"),
        (Scoring(scorer="no name"), "scorer"),
    ],
)
def test_every_interface_takes_the_same_options(
    interface: Callable[[Scoring], str], scoring: Scoring, wrong: str
) -> None:
    # A list of many wrong entries has a sentence for each.
    assert interface(scoring)[: len(wrong) or None] == wrong
