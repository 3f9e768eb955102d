"""How answers are scored, as an object and as single fields."""

from __future__ import annotations

from services.gateway.fields.query import values_of
from services.gateway.fields.scoring import OPTIONS, SCORING, scoring_body, scoring_of
from touchstone.v1 import scoring_pb2


def test_lists_are_json_in_single_fields_and_lists_in_the_object() -> None:
    whole = {"scorer": "choice", "choices": ["yes", "no"], "answer_match": "first"}
    single = values_of({"scorer": "choice", "choices": '["yes", "no"]', "answer_match": "first"}, OPTIONS)

    assert scoring_of(whole) == scoring_of(single)
    assert scoring_of(whole).answer_match == scoring_pb2.ANSWER_MATCH_FIRST


def test_what_is_read_is_written_again() -> None:
    stored = scoring_pb2.Scoring(
        scorer="json", fields=["a.b"], tolerance=0.5, answer_pattern="(.)", answer_match=scoring_pb2.ANSWER_MATCH_FIRST
    )

    assert scoring_of(scoring_body(stored)) == stored
    assert scoring_body(scoring_pb2.Scoring())["answer_match"] == "last"


def test_a_pattern_that_cannot_be_compiled_is_refused_in_its_place() -> None:
    assert [path for path, _ in SCORING.judge({"answer_pattern": "("}, "scoring")] == ["scoring.answer_pattern"]
