"""The definition of an experiment: models × prompts × scenarios, each combination asked `repeats` times."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from services import numbers
from services.experiments import scenarios
from services.experiments.prompts import SHIPPED, Prompt
from services.experiments.scenarios import REFERENCE, TIPS, Scenario
from services.words import refusals, rubrics
from services.words.sampling import BY_REST_NAME
from services.words.suites import ECHO, MAJORITY
from touchstone.v1 import job_pb2
from touchstone.v1.rubric_pb2 import Rubric

MAX_MODEL_B = 4.0
"""Billions of parameters that fit a small machine, which a definition may change."""
KEEP_ALIVE = 0
"""Ollama unloads a model after each answer, so that two models are never in memory together."""
N_TIPS = 5
ODD = "references"
"""Among the scenarios of a stored definition: `odd_references`."""
_OF_A_RUN = ("models", "max_model_b", "max_judge_b", "budget_usd", "priority")
"""What may differ between runs of one experiment."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model at an endpoint of this installation."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A checked definition. `services.experiments.reading` makes it."""

    name: str
    models: tuple[Model, ...]
    prompts: tuple[Prompt, ...]
    scenarios: tuple[Scenario, ...]
    rubric: Rubric
    repeats: int = 1
    n_tips: int = N_TIPS
    diversity: bool = False
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Parameters by their names in REST, each once."""
    max_model_b: float = MAX_MODEL_B
    """Billions of parameters; 0 means any."""
    max_judge_b: float | None = None
    """The same for judges. None means that of models."""
    budget_usd: float | None = None
    priority: str = ""
    """A word of `services.words.enums.PRIORITIES`; empty for the default."""

    @property
    def rows(self) -> int:
        """What each model is asked."""
        return len(self.prompts) * len(self.scenarios) * self.repeats

    @property
    def cells(self) -> int:
        """Combinations of model, prompt and scenario."""
        return len(self.models) * len(self.prompts) * len(self.scenarios)

    @property
    def most_judge_b(self) -> float:
        """The largest judge in billions of parameters; 0 means any."""
        return self.max_model_b if self.max_judge_b is None else self.max_judge_b

    def parameters(self) -> job_pb2.Sampling:
        """The sampling parameters of the jobs."""
        return job_pb2.Sampling(**{BY_REST_NAME[name].name: value for name, value in self.sampling.items()})

    def value(self) -> dict[str, Any]:
        """As a JSON object with everything that is not the default. `reading.read` makes an equal definition of it."""
        return self._value(self._scenarios())

    def record(self) -> dict[str, Any]:
        """As `value`, with the number and the SHA-256 of the scenarios in place of the rows themselves, which are the
        metadata of the dataset. Models, prompts and the rubric are there in full, with the hash of each prompt."""
        short = self._value(
            {"count": len(self.scenarios), "sha256": scenarios.digest(self.scenarios)}
            | ({"set": TIPS} if self._from_set() else {})
        )
        short["prompts"] = [{"id": one.prompt_id, "sha256": one.digest, "template": one.text} for one in self.prompts]
        short["rubric"] = json.loads(rubrics.written(self.rubric))
        return short

    def source(self) -> dict[str, Any]:
        """The part of `record` that all jobs of an experiment have in common, also those of models added later. With
        the ids of the scenarios, if they are not those that their places give."""
        made = {name: value for name, value in self.record().items() if name not in _OF_A_RUN}
        ids = [one.scenario_id for one in self.scenarios]
        if ids != [scenarios.default_id(place) for place in range(len(ids))]:
            made["scenarios"] = {**made["scenarios"], "ids": ids}
        if odd := scenarios.odd_references(self.scenarios):
            made["scenarios"] = {**made["scenarios"], ODD: odd}
        return made

    def written(self) -> str:
        """`value` as JSON, the same for equal definitions. Names keep their order: a template may insert an object of a
        scenario as it is."""
        return json.dumps(self.value(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @property
    def digest(self) -> str:
        """SHA-256 of `record`, in hexadecimal digits: also of what ships with Touchstone, not only of its names."""
        text = json.dumps(self.record(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return sha256(text.encode()).hexdigest()

    def _value(self, rows: Any) -> dict[str, Any]:
        rubric = json.loads(rubrics.written(self.rubric))
        made: dict[str, Any] = {
            "name": self.name,
            "models": [{"provider": one.provider, "model": one.model} for one in self.models],
            "prompts": [
                one.prompt_id if one.prompt_id in SHIPPED else {"id": one.prompt_id, "template": one.text}
                for one in self.prompts
            ],
            "scenarios": rows,
            "repeats": self.repeats,
            "n_tips": self.n_tips,
            "diversity": self.diversity,
            **{name: self.sampling[name] for name in sorted(self.sampling)},
            "max_model_b": self.max_model_b,
            "keep_alive": KEEP_ALIVE,
            "rubric": rubric,
        }
        if self.max_judge_b is not None:
            made["max_judge_b"] = self.max_judge_b
        if self.budget_usd is not None:
            made["budget_usd"] = self.budget_usd
        if self.priority:
            made["priority"] = self.priority
        return made

    def _scenarios(self) -> Any:
        if self._from_set():
            return {"set": TIPS, "count": len(self.scenarios)}
        return [one.row for one in self.scenarios]

    def _from_set(self) -> bool:
        return self.scenarios == scenarios.tips()[: len(self.scenarios)]


def too_large(definition: Definition, known_b: Mapping[Model, float] | None = None) -> Iterator[tuple[Model, str]]:
    """Models that are larger than `max_model_b`, each with the sentence that refuses it. A size is that of `known_b`,
    in billions of parameters, or else what the name says. An unknown size, 0, passes."""
    words = f"max_model_b is {refusals.bound(definition.max_model_b)}. Choose a smaller model, or set max_model_b"
    for model in definition.models:
        if why := _too_large(model, definition.max_model_b, known_b or {}):
            yield model, f"{why}; {words} to 0 for any."


def judge_too_large(definition: Definition, judge: Model, known_b: Mapping[Model, float]) -> str:
    """The sentence that refuses a judge; empty for one that is small enough. A size is as in `too_large`."""
    most, name = definition.most_judge_b, "max_model_b" if definition.max_judge_b is None else "max_judge_b"
    why = _too_large(judge, most, known_b)
    if not why:
        return ""
    return f"{why}; {name} is {refusals.bound(most)}. Choose a smaller judge, or set max_judge_b to 0 for any."


def without_answers(definition: Definition, baselines: Collection[str]) -> Iterator[tuple[Model, str]]:
    """Models that answer no prompt of this experiment, each with the sentence that refuses it. `baselines` are the
    endpoints that have baselines in place of models."""
    has_references = any(REFERENCE in one.fields for one in definition.scenarios)
    for model in definition.models:
        if model.provider not in baselines or model.model == ECHO or (model.model == MAJORITY and has_references):
            continue
        it = f"{model.model} at {model.provider}"
        if model.model == MAJORITY:
            yield model, f"{it} gives the most frequent reference, and no scenario has one. Leave it out."
        else:
            yield model, f"{it} chooses among labels and cannot answer prompts. Leave it out."


def _too_large(model: Model, most_b: float, known_b: Mapping[Model, float]) -> str:
    """How large it is, in words, if it is too large."""
    size = known_b.get(model) or numbers.parameters_b(model.model)
    is_too_large = most_b and size > most_b
    return f"{model.model} at {model.provider} has {size:g} billion parameters" if is_too_large else ""
