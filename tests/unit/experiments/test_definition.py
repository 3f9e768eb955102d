"""What is kept of a definition, and which models it takes."""

from __future__ import annotations

from typing import Any

import pytest

from services.experiments import definition, prompts, reading, scenarios
from services.experiments.definition import Model
from services.experiments.fields import DefinitionError
from tests.unit.experiments.definitions import small


def test_the_record_has_everything_but_the_scenarios() -> None:
    fields = small(prompts=["v1"], scenarios={"set": "tips", "count": 3}, temperature=1)
    record = reading.read(fields).record()

    assert record.pop("rubric")["version"] == "tip-v1"
    assert record == {
        "name": "greetings",
        "models": [{"provider": "ollama", "model": "qwen2.5:0.5b"}, {"provider": "ollama", "model": "gemma3:1b"}],
        "prompts": [
            {"id": "v1", "sha256": prompts.shipped("v1").digest, "template": prompts.shipped("v1").text},
        ],
        "scenarios": {"count": 3, "sha256": scenarios.digest(scenarios.tips()[:3]), "set": "tips"},
        "repeats": 1,
        "n_tips": 5,
        "diversity": False,
        "temperature": 1.0,
        "max_model_b": 4.0,
        "keep_alive": 0,
    }


def test_the_digest_differs_with_every_part() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"name": "other"},
        {"models": ["ollama/gemma3:1b"]},
        {"prompts": [{"id": "plain", "template": "Greet {{who}}!"}]},
        {"scenarios": [{"who": "Ada"}]},
        {"repeats": 2},
        {"n_tips": 4},
        {"diversity": True},
        {"seed": 0},
        {"max_model_b": 3},
        {"rubric": {"version": "own", "criteria": [{"name": "a", "lowest": 0, "highest": 1}]}},
        {"budget_usd": 2, "num_predict": 50},
        {"priority": "low"},
    ]
    assert len({reading.read(small(**one)).digest for one in changes}) == len(changes)
    assert reading.read(small(max_model_b=4)).digest == reading.read(small()).digest


def test_parameters_have_their_names_in_the_protos() -> None:
    made = reading.read(small(num_predict=50, num_ctx=4096, temperature=0))

    assert made.sampling == {"num_predict": 50, "num_ctx": 4096, "temperature": 0.0}
    sampling = made.parameters()
    assert (sampling.max_tokens, sampling.context_length, sampling.temperature) == (50, 4096, 0)
    assert sampling.HasField("temperature")
    assert not sampling.HasField("seed")


def test_a_known_size_counts_more_than_a_name() -> None:
    made = reading.read(small(models=["o/a:3b", "o/b", "o/c"]))
    known = {Model("o", "a:3b"): 4.1, Model("o", "b"): 8.0, Model("o", "c"): 0.0}

    assert list(definition.too_large(made)) == []
    assert [model.model for model, _ in definition.too_large(made, known)] == ["a:3b", "b"]
    assert list(definition.too_large(reading.read(small(max_model_b=0)), known)) == []


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, "j:8b at o has 8 billion parameters; max_model_b is 4. Choose a smaller judge, or set max_judge_b to 0"),
        ({"max_model_b": 8}, ""),
        ({"max_model_b": 0}, ""),
        ({"max_judge_b": 8}, ""),
        ({"max_judge_b": 0}, ""),
        ({"max_judge_b": 7.5, "max_model_b": 0}, "max_judge_b is 7.5. Choose a smaller judge"),
        ({"max_judge_b": None}, "max_model_b is 4."),
    ],
)
def test_a_judge_has_the_limit_of_models_or_its_own(limits: dict[str, float], said: str) -> None:
    made = reading.read(small(**limits))
    refused = definition.judge_too_large(made, Model("o", "j:8b"), {})
    assert said in refused
    assert bool(said) == bool(refused)
    assert reading.read(made.value()) == made
    assert made.source() == reading.read(small()).source()
    assert definition.judge_too_large(made, Model("o", "j:8b"), {Model("o", "j:8b"): 1.0}) == ""


@pytest.mark.parametrize(("max_model_b", "taken"), [(0.4, False), (0.5, True), (0, True)])
def test_the_largest_size_is_taken(max_model_b: float, taken: bool) -> None:
    fields = small(models=["o/qwen2.5:0.5b"], max_model_b=max_model_b)
    if taken:
        reading.read(fields)
    else:
        with pytest.raises(DefinitionError, match=r"max_model_b is 0\.4\."):
            reading.read(fields)
