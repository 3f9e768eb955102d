"""When two definitions of one name mean the same experiment, and what is said otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.experiments import reading
from services.results.experiments.preparing import differing, source_of
from tests.unit.experiments.definitions import small
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1.dataset_pb2 import ExperimentSource


def source(**changes: Any) -> ExperimentSource:
    return source_of(reading.read(small(**changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"models": ["ollama/llama3.2:1b"]},
        {"priority": "high"},
        {"max_model_b": 0},
        {"repeats": 1, "n_tips": 5, "diversity": False, "rubric": "tip-v1"},
    ],
)
def test_other_models_and_defaults_that_are_written_out_change_nothing(changes: dict[str, Any]) -> None:
    assert differing(source(), source(**changes)) == ""
    assert source(**changes) == source()
    assert source(num_predict=50, budget_usd=2) == source(num_predict=50)


def test_an_experiment_of_a_version_that_kept_no_places_of_references_continues() -> None:
    rows = [{"reference": "hi", "who": "Ada"}, {"who": "Bo", "reference": "ho"}]
    now, before = source(scenarios=rows), source(scenarios=rows)
    made = json.loads(now.definition)
    assert made["scenarios"].pop("references") == [[0], [1]]
    before.definition = json.dumps(made)
    assert differing(before, now) == ""
    assert "scenarios" in differing(before, source(scenarios=[*reversed(rows)]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"prompts": [{"id": "plain", "template": "Greet {{who}}."}]}, "prompts"),
        ({"prompts": ["v1"], "scenarios": {"set": "tips", "count": 2}}, "prompts, scenarios"),
        ({"scenarios": [{"who": "Ada"}]}, "scenarios"),
        ({"repeats": 2}, "repeats (1 there, 2 here)"),
        ({"temperature": 0.7, "n_tips": 3}, "n_tips (5 there, 3 here), temperature (none there, 0.7 here)"),
        ({"diversity": True}, "diversity (false there, true here)"),
        ({"rubric": TIPS | {"version": "tip-v2"}}, "rubric"),
    ],
)
def test_what_differs_is_named(changes: dict[str, Any], told: str) -> None:
    assert differing(source(), source(**changes)) == (
        f"Experiment greetings exists and differs in: {told}. Choose another name. Only models and judges can "
        "be added to an experiment."
    )
