"""The rule by which a suite's tasks count."""

from __future__ import annotations

import pytest

from services.words import suites
from services.words.suites import ITEMS, TASKS
from tests.unit.results.builders import job
from tests.unit.results.scores.planned import planned
from touchstone.v1.suite_pb2 import Weighting


@pytest.mark.parametrize(("suite", "rule"), [("mmlu", ITEMS), ("mmlu_pro", ITEMS), ("glue", TASKS)])
def test_a_plan_from_before_rules_were_said_gets_the_rule_of_its_suite(suite: str, rule: Weighting) -> None:
    old = job("j", planned("a"), planned("b"), suite=suite)
    assert suites.of_plans(suites.complete(old).plan) == rule
    assert not old.plan[0].weighting


def test_kinds_of_one_problem_of_bbh_count_once_in_older_plans_too() -> None:
    tasks = ("logical_deduction_three_objects", "logical_deduction_five_objects", "navigate")
    made = suites.complete(job("j", *map(planned, tasks), suite="bbh"))
    assert [plan.score_group for plan in made.plan] == ["logical_deduction", "logical_deduction", ""]
