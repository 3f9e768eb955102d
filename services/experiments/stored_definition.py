"""The definition of a stored experiment, as `touchstone bench collect`, REST and the form take it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from services.experiments import scenarios
from services.experiments.definition import ODD, Definition, Model
from services.experiments.grid import OF_ROWS
from services.experiments.prompts import Prompt
from services.experiments.reading import RUBRIC, shipped_rubric
from services.experiments.scenarios import REFERENCE, Scenario
from services.words.enums import PRIORITIES
from services.words.sampling import BY_REST_NAME
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

FORMATS = ("yaml", "json")
_OTHER_PRIORITIES = (job_pb2.PRIORITY_LOW, job_pb2.PRIORITY_HIGH)


class LostScenariosError(LookupError):
    """The experiment's own scenarios are not stored any more. The message says so."""


def rows_needed(experiment: pb.Experiment) -> int:
    """How many of the first rows of its dataset hold its scenarios; none where these are of a set that ships."""
    return 0 if "set" in _held(experiment)["scenarios"] else experiment.scenarios * experiment.repeats


def value(experiment: pb.Experiment, rows: Iterable[dataset_pb2.DatasetRow]) -> dict[str, Any]:
    """The definition as a JSON object, from the first `rows_needed` rows. The models are those of the jobs. It allows
    models of any size, because the limit of the first run is not stored, and those of the jobs have passed it. Judges
    are not a part of definitions.

    Raises LostScenariosError where the rows are not those of the scenarios any more.
    """
    held = _held(experiment)
    specs = [job.spec for job in experiment.jobs]
    budgets = [spec.budget_usd for spec in specs]
    first = specs[0] if specs else job_pb2.JobSpec()
    definition = Definition(
        name=experiment.name,
        models=tuple(Model(spec.endpoint, spec.model) for spec in specs),
        prompts=tuple(Prompt.stored(one["id"], one["template"]) for one in held["prompts"]),
        scenarios=_scenarios(experiment, held["scenarios"], rows),
        rubric=experiment.rubric,
        repeats=experiment.repeats,
        n_tips=held["n_tips"],
        diversity=held["diversity"],
        sampling={name: held[name] for name in BY_REST_NAME if name in held},
        max_model_b=0,
        # The jobs share one.
        budget_usd=float(f"{sum(budgets):.10g}") if budgets and all(budgets) else None,
        priority=PRIORITIES.of(first.priority) if first.priority in _OTHER_PRIORITIES else "",
    )
    made = definition.value()
    if experiment.rubric == shipped_rubric():
        made["rubric"] = RUBRIC
    if not specs:
        del made["models"]
    return made


def written(definition: dict[str, Any], format: str) -> str:
    """The definition as a file, always the same for the same one. `format` is one of FORMATS. YAML raises
    ModuleNotFoundError without PyYAML."""
    if format == "json":
        return json.dumps(definition, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # The client can do without it.
    from services.chat_requests import yaml_document

    return yaml_document.written(definition)


def _held(experiment: pb.Experiment) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(experiment.definition)
    return held


def _scenarios(
    experiment: pb.Experiment, held: dict[str, Any], rows: Iterable[dataset_pb2.DatasetRow]
) -> tuple[Scenario, ...]:
    if "set" in held:
        return scenarios.tips()[: held["count"]]
    known = list(islice(rows, 0, experiment.scenarios * experiment.repeats, max(1, experiment.repeats)))
    for found in _read(known, held.get(ODD)):
        if scenarios.digest(found) == held["sha256"]:
            return found
    raise LostScenariosError(f"The scenarios of experiment {experiment.name} are not stored any more.")


def _read(rows: list[dataset_pb2.DatasetRow], odd: list[Any] | None) -> Iterator[tuple[Scenario, ...]]:
    """The scenarios. Rows do not tell the place of a reference among the fields: where `odd` does not tell it either,
    each place is tried."""
    held = [json.loads(row.metadata) for row in rows]
    fields = [{name: one[name] for name in one if name not in OF_ROWS} for one in held]
    ids = [str(one["scenario"]) for one in held]
    references = [json.loads(row.reference) if row.reference else None for row in rows]
    most = 0 if odd or not any(row.reference for row in rows) else max(map(len, fields), default=0)
    for place in range(most, -1, -1):
        told = odd or [[place] if row.reference else None for row in rows]
        yield tuple(
            Scenario(scenario_id, _with_reference(one, reference, where))
            for scenario_id, one, reference, where in zip(ids, fields, references, told, strict=False)
        )


def _with_reference(fields: dict[str, Any], reference: Any, where: list[Any] | None) -> dict[str, Any]:
    """`where` is the place and, where the row has no reference for it, the value."""
    if where is None:
        return fields
    named = list(fields.items())
    named.insert(where[0], (REFERENCE, where[1] if len(where) > 1 else reference))
    return dict(named)
