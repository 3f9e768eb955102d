"""The form that runs models over a dataset: the models to choose from, over all endpoints; what was sent, what is wrong
with it, and the job specs it comes to.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from starlette.datastructures import FormData, QueryParams

from services.errors import TouchstoneError
from services.gateway.fields import checks
from services.gateway.fields.job import PILOT_LABEL, sampling
from services.gateway.pages.forms.scoring_form import ScoringForm
from services.gateway.reads.catalogue import Catalogue
from services.words.job_options import NUMBERS, fill
from services.words.sampling import BY_REST_NAME, PARAMETERS
from touchstone.v1 import dataset_pb2, endpoint_pb2, job_pb2, suite_pb2

_STATE = endpoint_pb2.Endpoint


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, and the reason if it cannot be chosen."""

    model: endpoint_pb2.Model
    refused: str


@dataclass(frozen=True, slots=True)
class Group:
    """An endpoint's models; `why` says why it does not answer."""

    endpoint: endpoint_pb2.Endpoint
    choices: list[Choice]
    why: str


async def groups(catalogue: Catalogue) -> list[Group]:
    """Every endpoint that lists models or could: not those without a key or an evaluator. Raises while the scheduler is
    silent."""
    known = [
        e for e in await catalogue.endpoints() if e.state not in (_STATE.STATE_NOT_CONFIGURED, _STATE.STATE_ABSENT)
    ]
    return list(await asyncio.gather(*(_group(catalogue, endpoint) for endpoint in known)))


async def _group(catalogue: Catalogue, endpoint: endpoint_pb2.Endpoint) -> Group:
    try:
        models = await catalogue.models(endpoint.endpoint)
    except TouchstoneError as error:
        return Group(endpoint, [], error.message)
    why = endpoint.detail if endpoint.state != _STATE.STATE_REACHABLE else ""
    return Group(endpoint, [Choice(model, _refusal(endpoint, model)) for model in models], why)


def _refusal(endpoint: endpoint_pb2.Endpoint, model: endpoint_pb2.Model) -> str:
    if endpoint.max_model_b and model.parameters_b > endpoint.max_model_b:
        return f"more than {endpoint.max_model_b:g} B"
    return ""


PILOT_ROWS = 30
MOST_MODELS = 20


@dataclass(slots=True)
class RunForm:
    """As sent, with a sentence for each field that is wrong. `models` are (endpoint, model); `pilot` asks for an
    estimate first."""

    models: list[tuple[str, str]] = field(default_factory=list)
    limit: str = ""
    scoring: ScoringForm = field(default_factory=ScoringForm)
    budget: str = ""
    texts: dict[str, str] = field(default_factory=lambda: {p.rest: "" for p in PARAMETERS.values()})
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
            # An endpoint's name has no bar; a model's may have one.
            models=list(dict.fromkeys((endpoint, model) for endpoint, _, model in chosen)),
            limit=one("limit"),
            scoring=ScoringForm.read(sent),
            budget=one("budget"),
            texts={p.rest: one(p.rest) for p in PARAMETERS.values()},
            pilot=bool(one("pilot")),
            request_id=one("request_id") or uuid.uuid4().hex,
        )

    def specs(self, dataset: dataset_pb2.Dataset, kinds: Mapping[str, str]) -> Iterator[job_pb2.JobSpec]:
        """One for each model, in order; empty if something is wrong. `kinds` are those of the endpoints, by name."""
        limit, budget = self._limit_and_budget()
        parameters, problems = checks.read(self.texts, PARAMETERS.values())
        self.errors |= problems | self._not_taken(parameters, kinds)
        scoring, further = self.scoring.scoring(), self.scoring.further()
        if not self.models:
            self.errors["model"] = "Choose at least one model."
        elif len(self.models) > MOST_MODELS:
            self.errors["model"] = f"At most {MOST_MODELS} models at once."
        if self.errors or self.scoring.errors:
            return
        asked = 0 if limit >= dataset.rows else limit
        for endpoint, model in self.models:
            spec = job_pb2.JobSpec(
                endpoint=endpoint,
                model=model,
                sampling=sampling(parameters, None),
                mode=suite_pb2.MODE_GENERATE,
                dataset=job_pb2.DatasetWork(dataset_id=dataset.dataset_id, scoring=scoring, further=further),
                reading=self.scoring.layers(),
            )
            options = {
                "project_id": dataset.project_id,
                "limit": min(PILOT_ROWS, asked or PILOT_ROWS) if self.pilot else asked,
                "labels": {PILOT_LABEL: str(asked)} if self.pilot else {},
                "budget_usd": budget,
            }
            fill(spec, options)
            yield spec

    def _not_taken(self, parameters: Collection[str], kinds: Mapping[str, str]) -> dict[str, str]:
        """A sentence for each parameter that the endpoint of a chosen model does not take."""
        return {
            name: f"{endpoint} does not take {BY_REST_NAME[name].label}."
            for name in parameters
            for endpoint, _ in self.models
            if endpoint in kinds and kinds[endpoint] not in BY_REST_NAME[name].kinds
        }

    def _limit_and_budget(self) -> tuple[int, float]:
        """0 for what is empty or wrong."""
        values, problems = checks.read(
            {"limit": self.limit, "budget": self.budget},
            [replace(NUMBERS["limit"], label="Rows"), replace(NUMBERS["budget_usd"], rest="budget")],
        )
        self.errors |= problems
        return values.get("limit", 0), values.get("budget", 0.0)
