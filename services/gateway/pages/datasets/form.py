"""The form that runs models over a dataset: what was sent, what is wrong with it, and the job specs it comes to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from starlette.datastructures import FormData, QueryParams

from services.gateway.api.benchmarks.estimates import PILOT_LABEL
from services.gateway.pages.datasets.scoring_form import ScoringForm
from services.gateway.parameters import INT32_MAX, PARAMETERS, amount, sampling, whole
from services.numbers import MOST_BUDGET_USD
from touchstone.v1 import dataset_pb2, job_pb2, suite_pb2

PILOT_ROWS = 30
MOST_MODELS = 20
SETTINGS = {"temperature": "Temperature", "num_predict": "Most tokens an answer"}
_NUMBERS = {p.name: p for p in PARAMETERS if p.name in SETTINGS}


@dataclass(slots=True)
class RunForm:
    """As sent, with a sentence for each field that is wrong. `models` are (endpoint, model); `pilot` asks for an
    estimate first."""

    models: list[tuple[str, str]] = field(default_factory=list)
    limit: str = ""
    scoring: ScoringForm = field(default_factory=ScoringForm)
    budget: str = ""
    texts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(SETTINGS, ""))
    pilot: bool = False
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    errors: dict[str, str] = field(default_factory=dict)
    failure: str = ""

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> RunForm:
        def one(name: str) -> str:
            return str(sent.get(name, "")).strip()[:200]

        chosen = (str(value).partition("|") for value in sent.getlist("model"))
        return cls(
            # An endpoint's name has no bar, a model's may have.
            models=list(dict.fromkeys((endpoint, model) for endpoint, _, model in chosen)),
            limit=one("limit"),
            scoring=ScoringForm.read(sent),
            budget=one("budget"),
            texts={name: one(name) for name in SETTINGS},
            pilot=bool(one("pilot")),
            request_id=one("request_id") or uuid.uuid4().hex,
        )

    def specs(self, dataset: dataset_pb2.Dataset) -> Iterator[job_pb2.JobSpec]:
        """One for each model, in order; none where something is wrong."""
        limit = self._limit()
        budget = self._budget()
        parameters: dict[str, int | float] = {}
        for name, parameter in _NUMBERS.items():
            if text := self.texts[name]:
                value = parameter.parse(text)
                problem = "" if value is None else parameter.problem(value, SETTINGS[name])
                if value is None or problem:
                    kind = "whole " if parameter.integer else ""
                    self.errors[name] = problem or f"{SETTINGS[name]} must be a {kind}number."
                else:
                    parameters[name] = value
        scoring = self.scoring.scoring()
        if not self.models:
            self.errors["model"] = "Choose at least one model."
        elif len(self.models) > MOST_MODELS:
            self.errors["model"] = f"At most {MOST_MODELS} models at once."
        if self.errors or self.scoring.errors:
            return
        asked = 0 if limit >= dataset.rows else limit
        for endpoint, model in self.models:
            yield job_pb2.JobSpec(
                endpoint=endpoint,
                model=model,
                sampling=sampling(parameters, None),
                mode=suite_pb2.MODE_GENERATE,
                project_id=dataset.project_id,
                dataset=job_pb2.DatasetWork(
                    dataset_id=dataset.dataset_id,
                    limit=min(PILOT_ROWS, asked or PILOT_ROWS) if self.pilot else asked,
                    scoring=scoring,
                ),
                reading=self.scoring.layers(),
                labels={PILOT_LABEL: str(asked)} if self.pilot else {},
                budget_usd=budget,
            )

    def _limit(self) -> int:
        if not self.limit:
            return 0
        value = whole(self.limit)
        if value is None or not 0 < value <= INT32_MAX:
            self.errors["limit"] = "Rows must be a whole number from 1."
            return 0
        return value

    def _budget(self) -> float:
        if not self.budget:
            return 0
        value = amount(self.budget)
        if value is None or not 0 < value <= MOST_BUDGET_USD:
            self.errors["budget"] = "A budget is a number of US dollars above 0, such as 5.50."
            return 0
        return value
