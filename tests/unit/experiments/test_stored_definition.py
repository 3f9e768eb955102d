"""The definition of a stored experiment makes the same experiment again."""

from __future__ import annotations

from typing import Any

import pytest

from services.chat_requests.strict_json import dump
from services.experiments import files, grid, reading, stored_definition
from services.experiments.definition import Definition
from services.experiments.stored_definition import LostScenariosError
from services.results.experiments import preparing
from services.words.enums import PRIORITIES
from tests.unit.experiments.definitions import small
from tests.unit.results.uploads import upload
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

TIPS: dict[str, Any] = {"prompts": ["v1", "v2-mentor"], "scenarios": {"set": "tips", "count": 3}}
RUBRIC = {"version": "brief-v1", "criteria": [{"name": "short", "lowest": 1, "highest": 5}]}
ODD = [
    {"id": 7, "who": "Zoë\n- no", "n": 1.0, "big": 10**17, "tree": {"b": [1, {"a": None}], "a": "yes"}, "e": "1e5"},
    {"who": "👩 \u2028", "n": 0, "big": False, "tree": [], "e": " x \n"},
]


def stored(definition: Definition, **spec: Any) -> tuple[pb.Experiment, list[dataset_pb2.DatasetRow]]:
    """The experiment and its rows, as the services keep them."""
    kept = preparing.source_of(definition)
    made = pb.Experiment(
        name=definition.name,
        definition=kept.definition,
        scenarios=len(definition.scenarios),
        repeats=definition.repeats,
        rubric=definition.rubric,
    )
    for model in definition.models:
        made.jobs.add(spec=job_pb2.JobSpec(endpoint=model.provider, model=model.model, **spec))
    lines = "".join(f"{dump(line)}\n" for line in grid.rows(definition))
    return made, upload(lines.encode(), format=dataset_pb2.Dataset.FORMAT_LINES).rows


@pytest.mark.parametrize(
    "changes",
    [
        {},
        TIPS,
        TIPS | {"n_tips": 7, "diversity": True, "repeats": 3, "seed": 2**60, "temperature": 0.25, "num_predict": 9},
        {"scenarios": ODD, "repeats": 2, "seed": 1},
        {"scenarios": [{"who": "Ada", "reference": "hi", "z": 1}, {"id": "b", "who": "Bo", "reference": "ho", "z": 2}]},
        {"scenarios": [{"reference": ["1", "2"], "who": "Ada"}]},
        {"scenarios": [{"reference": "1", "who": "Ada"}, {"who": "Bo", "reference": 2}, {"who": "Cy"}], "repeats": 2},
        {"scenarios": [{"who": "Ada", "reference": None, "z": 1}, {"who": "Bo", "reference": " "}]},
        {"rubric": RUBRIC},
        {"prompts": [{"id": "a", "template": "Hi {{who}}  \n\n  yes: no\n"}, {"id": "b", "template": "{{who}}"}]},
        {"models": ["ollama/a/b:1b", "other/qwen2.5:0.5b"]},
    ],
)
def test_the_definition_makes_the_same_experiment_and_the_same_file_again(changes: dict[str, Any]) -> None:
    definition = reading.read(small(**changes))
    made, rows = stored(definition)
    value = stored_definition.value(made, rows[: stored_definition.rows_needed(made)])
    for format in stored_definition.FORMATS:
        text = stored_definition.written(value, format)
        again = reading.read(files.definition(text.encode(), is_json=format == "json"))
        assert again.models == definition.models
        assert preparing.source_of(again) == preparing.source_of(definition)
        assert stored_definition.written(stored_definition.value(*stored(again)), format) == text


def test_the_jobs_give_models_of_any_size_the_budget_and_the_priority() -> None:
    definition = reading.read(small(models=["ollama/qwen2.5:72b", "ollama/b"], max_model_b=0, **TIPS))
    made, _ = stored(definition, budget_usd=0.1, priority=PRIORITIES["high"])
    made.jobs[1].spec.budget_usd = 0.2
    value = stored_definition.value(made, [])
    assert (value["max_model_b"], value["budget_usd"], value["priority"]) == (0, 0.3, "high")
    assert (value["rubric"], value["prompts"]) == ("tip-v1", ["v1", "v2-mentor"])
    made.jobs[1].spec.budget_usd = 0
    assert "budget_usd" not in stored_definition.value(made, [])
    del made.jobs[:]
    assert "models" not in stored_definition.value(made, [])


def test_own_scenarios_are_those_of_the_rows_or_none() -> None:
    made, rows = stored(reading.read(small()))
    assert stored_definition.rows_needed(made) == 2
    rows[0].metadata = rows[0].metadata.replace("Ada", "Eve")
    for wrong in (rows, rows[:1], []):
        with pytest.raises(LostScenariosError, match="scenarios of experiment greetings are not stored any more"):
            stored_definition.value(made, wrong)


def test_a_template_that_would_be_refused_today_is_still_given() -> None:
    made, rows = stored(reading.read(small(prompts=[{"id": "a", "template": "Hi {{who}}"}])))
    made.definition = made.definition.replace("Hi {{who}}", "Hi")
    assert stored_definition.value(made, rows)["prompts"] == [{"id": "a", "template": "Hi"}]
