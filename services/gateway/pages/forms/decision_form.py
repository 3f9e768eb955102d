"""The form that starts a decision: what was sent, what is wrong with it, and the request that it comes to."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.datastructures import FormData, QueryParams

from services.gateway.fields import checks
from services.gateway.fields.job import sampling
from services.gateway.reads import jobs
from services.words import refusals
from services.words.decisions import DEFAULT_ERROR, LEAST_ERROR, MOST_ERROR, MOST_MARGIN, MOST_MODELS
from services.words.enums import MODES, PRIORITIES
from services.words.fields import Number
from services.words.job_options import NUMBERS, fill
from services.words.sampling import BY_REST_NAME, PARAMETERS
from touchstone.v1 import job_pb2, scheduler_service_pb2, suite_pb2

SIDES = ("baseline", "candidate")
TIMES = ("cron", "time_zone", "label")
MARGIN = Number(
    "Differences of the score below this do not matter.",
    "Difference that does not matter",
    0,
    100 * MOST_MARGIN,
    rest="margin",
    unit="points",
)
ERROR = Number(
    "The most probability of a wrong verdict.",
    "Chance of a wrong verdict",
    100 * LEAST_ERROR,
    100 * MOST_ERROR,
    rest="error",
    unit=f"%, {100 * DEFAULT_ERROR:g} if empty",
)
_BOTH = (
    MARGIN,
    ERROR,
    NUMBERS["limit"],
    NUMBERS["shots"],
    NUMBERS["budget_usd"],
    replace(NUMBERS["project_id"], rest="project"),
)


def of_side(side: str) -> list[Number]:
    """The parameters of one model, by their names in the form."""
    return [replace(one, rest=f"{side}-{one.rest}") for one in PARAMETERS.values()]


_NAMES = {one.rest for one in PARAMETERS.values()}
_EXAMPLE = "temperature=0.7, top_p=0.9"
_FIELDS = (*_BOTH, *(one for side in SIDES for one in of_side(side)))


def own_field(model: str) -> str:
    """The name in the form of the parameters of one of the further models."""
    return f"{model}-parameters"


def written(sampling: job_pb2.Sampling) -> dict[str, str]:
    """What the form says of parameters, by their names in REST."""
    known = {one.rest: getattr(sampling, name) for name, one in PARAMETERS.items() if sampling.HasField(name)}
    return {name: f"{value:.12g}" if isinstance(value, float) else str(value) for name, value in known.items()}


def settings(spec: job_pb2.JobSpec) -> dict[str, str]:
    """What the form says of a decision that has this baseline, by names in the form, without models and work."""
    known = {
        "margin": 100 * spec.deciding.margin,
        "error": 100 * spec.deciding.error,
        "limit": spec.suite.limit or spec.dataset.limit,
        "shots": spec.suite.shots,
        "budget_usd": spec.budget_usd,
        "project": spec.project_id,
    }
    texts = {name: f"{value:.12g}" for name, value in known.items() if value}
    return texts | ({"mode": MODES.of(spec.mode)} if spec.mode else {})


def _read_own(text: str) -> tuple[dict[str, Any], str]:
    """The parameters in a text such as temperature=0.7, top_p=0.9, and what is wrong with it."""
    texts: dict[str, str] = {}
    for part in re.split(r"[,;\s]+(?=[a-z_]+\s*=|$)", text.strip()):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not part:
            continue
        if not equals or name not in BY_REST_NAME:
            return {}, f"Write parameters as {_EXAMPLE}. {refusals.not_valid(name, 'parameter', sorted(_NAMES))}"
        texts[BY_REST_NAME[name].rest] = value
    values, problems = checks.read(texts, [BY_REST_NAME[name] for name in texts])
    return values, " ".join(problems.values())


def _own(side: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The checked parameters of one model, by their names in REST."""
    names = {one.rest: f"{side}-{one.rest}" for one in PARAMETERS.values()}
    return {name: values[own] for name, own in names.items() if own in values}


@dataclass(slots=True)
class DecisionForm:
    """As sent, with a sentence for each field that is wrong. `models` has, by side, endpoint and model with a bar
    between them, and `further` those of further models of a race. `own` has the parameters of each of these in one
    text. `work` is a suite's name or a dataset's id. With a cron expression, `times` are those of a schedule that
    starts the decision again and again."""

    models: dict[str, str] = field(default_factory=lambda: dict.fromkeys(SIDES, ""))
    further: list[str] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)
    work: str = ""
    mode: str = "generate"
    priority: str = ""
    any_job: bool = False
    texts: dict[str, str] = field(default_factory=lambda: {one.rest: "" for one in _FIELDS})
    times: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TIMES, ""))
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    errors: dict[str, str] = field(default_factory=dict)
    failure: str = ""

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> DecisionForm:
        """Fields that were not sent are as in an empty form."""

        def one(name: str) -> str:
            return str(sent.get(name, "")).strip()[:400]

        further = list(dict.fromkeys(str(model)[:400] for model in sent.getlist("further")))
        return cls(
            models={side: one(side) for side in SIDES},
            further=further,
            own={model: one(own_field(model)) for model in further},
            work=one("work"),
            mode=one("mode") if one("mode") in MODES else "generate",
            priority=one("priority") if one("priority") in PRIORITIES else "",
            any_job=bool(one("any_job")),
            texts={field.rest: one(field.rest) for field in _FIELDS},
            times={name: one(name) for name in TIMES},
            request_id=one("request_id") or uuid.uuid4().hex,
        )

    @property
    def limit(self) -> int:
        """0 for none, and while the field is wrong."""
        values, _ = checks.read(self.texts, _FIELDS)
        return int(values.get("limit") or 0)

    def has_parameters(self, side: str) -> bool:
        return any(self.texts[one.rest] for one in of_side(side))

    def request(self) -> scheduler_service_pb2.StartDecisionRequest:
        """Sent again without a change, it is the same request. It is of no use if something is wrong: see `errors`."""
        values, problems = checks.read(self.texts, _FIELDS)
        self.errors |= problems
        for side in SIDES:
            # An endpoint's name has no bar; a model's may have one.
            if not self.models[side].partition("|")[2]:
                self.errors[side] = "Choose a model."
        if len(self.further) > MOST_MODELS - len(SIDES):
            self.errors["further"] = f"Choose at most {MOST_MODELS} models in all."
        if not self.work:
            self.errors["work"] = "Choose a suite or a dataset."
        if jobs.is_dataset(self.work):
            if values.get("shots"):
                self.errors["shots"] = "Examples are for suites. Leave this empty."
            if self.mode != "generate":
                self.errors["mode"] = "Rows of a dataset are generated: choose Generate."
        if not self.times["cron"] and any(self.times.values()):
            self.errors["cron"] = "Give the times of the schedule, or leave time zone and label empty."
        own = {side: _own(side, values) for side in SIDES}
        for model in self.further:
            own[model], problem = _read_own(self.own.get(model, ""))
            if problem:
                self.errors[own_field(model)] = problem
        request = scheduler_service_pb2.StartDecisionRequest(
            baseline=self._spec(self.models["baseline"], own["baseline"], values),
            candidate=self._spec(self.models["candidate"], own["candidate"], values),
            further_candidates=[self._spec(model, own[model], values) for model in self.further],
            margin=values.get("margin", 0) / 100,
            error=values.get("error", 0) / 100,
        )
        made_of = self.request_id.encode() + request.SerializeToString(deterministic=True)
        request.request_id = hashlib.sha256(made_of).hexdigest()[:40]
        return request

    def schedule(
        self, decision: scheduler_service_pb2.StartDecisionRequest
    ) -> scheduler_service_pb2.CreateScheduleRequest:
        """The request that has this decision started at the times of the form."""
        made = scheduler_service_pb2.CreateScheduleRequest(
            decision=decision, cron=self.times["cron"], time_zone=self.times["time_zone"], label=self.times["label"]
        )
        made_of = decision.request_id.encode() + made.SerializeToString(deterministic=True)
        made.request_id = hashlib.sha256(made_of).hexdigest()[:40]
        made.decision.ClearField("request_id")
        return made

    def _spec(self, chosen: str, parameters: Mapping[str, Any], values: Mapping[str, Any]) -> job_pb2.JobSpec:
        endpoint, _, model = chosen.partition("|")
        spec = job_pb2.JobSpec(
            endpoint=endpoint,
            model=model,
            sampling=sampling(parameters),
            mode=suite_pb2.MODE_GENERATE,
        )
        if jobs.is_dataset(self.work):
            spec.dataset.dataset_id = self.work
        else:
            spec.suite.suite = self.work
        options = {name: values.get(name) for name in ("limit", "shots", "budget_usd")}
        options |= {"project_id": values.get("project"), "mode": self.mode, "priority": self.priority}
        fill(spec, options | {"any_job": self.any_job})
        return spec
