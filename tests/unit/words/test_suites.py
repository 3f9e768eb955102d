"""The order of suites, and the refusal of an unknown one."""

from __future__ import annotations

from services.words.suites import DOCUMENT_SUITES, suite_order, unknown_suite


def test_suites_of_the_document_come_first_and_others_by_name() -> None:
    shuffled = ["zeta", *reversed(DOCUMENT_SUITES), "alpha"]
    assert sorted(shuffled, key=suite_order) == [*DOCUMENT_SUITES, "alpha", "zeta"]


def test_an_unknown_suite_is_answered_with_those_that_run_and_then_with_those_that_ran() -> None:
    error = unknown_suite(["mmlu", "glue"], stored=["glue", "bbh", "superglue"])
    assert (error.message, error.field) == ("Invalid benchmark suite. Supported: glue, mmlu, superglue, bbh", "suite")


def test_without_any_suite_the_answer_says_what_to_do() -> None:
    assert unknown_suite([]).message.endswith("none yet; start an evaluator")
