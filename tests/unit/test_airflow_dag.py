"""deploy/airflow without Airflow: the DAG takes every field of a definition, with its limits."""

from __future__ import annotations

import ast
from pathlib import Path

from services.experiments import reading, scenarios
from services.gateway.api.experiments.run import BODY
from services.words import rubrics
from services.words.sampling import PARAMETERS

DAG = Path(__file__).parents[2] / "deploy/airflow/dags/touchstone_bench.py"
SAME = {"name", "keep_alive", *(alias for one in PARAMETERS.values() for alias in one.aliases)}
"""Other words for fields, and the one that has a single value."""


def params() -> dict[str, ast.Call]:
    """The calls that declare them."""
    for node in ast.parse(DAG.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PARAMS":
            assert isinstance(node.value, ast.Dict)
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {ast.literal_eval(key): call for key, call in pairs if key and isinstance(call, ast.Call)}
    raise AssertionError("no _PARAMS")


def test_the_dag_takes_every_field_of_a_definition_and_judges() -> None:
    assert set(params()) == {*reading.NAMES, *reading.ALIASES, "judges"} - SAME


def test_limits_and_defaults_are_those_of_rest() -> None:
    declared = params()
    rest = BODY.schema["properties"]
    for name, call in declared.items():
        numbers = [ast.literal_eval(one) for one in call.args if not isinstance(one, ast.List)]
        if ast.unparse(call.func) == "_number" and len(numbers) > 2:
            assert numbers[1:3] == [rest[name]["minimum"], rest[name]["maximum"]], name
        elif numbers and isinstance(numbers[0], int | float):
            assert numbers[0] == rest[name].get("default", {"repeats": 1}.get(name)), name
        for word in call.keywords:
            if word.arg in ("minimum", "maximum"):
                assert ast.literal_eval(word.value) == rest[name][word.arg], name
    assert rest["n_scenarios"]["maximum"] == len(scenarios.tips())
    (most,) = [word.value for word in declared["judges"].keywords if word.arg == "maxItems"]
    assert ast.literal_eval(most) == rubrics.MOST_JUDGES
