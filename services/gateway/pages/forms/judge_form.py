"""The form that has a model judge a job's answers: what was sent, what is wrong with it, and the job it asks for."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace

from starlette.datastructures import FormData, QueryParams

from services.gateway.fields import checks
from services.gateway.fields.job import sampling
from services.words import rubrics
from services.words.job_options import NUMBERS
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2
from touchstone.v1.rubric_pb2 import Rubric

QUESTION, RUBRIC = "question", "rubric"
"""What a judge can judge by: whether the answer is correct, or a rubric as JSON."""
_CORRECT = """{
  "version": "correct-v1",
  "instructions": "Is the answer correct? Where there is a reference, it is the correct answer. Choose right if all of \
the answer is correct, partly if only some of it is, and wrong otherwise.",
  "criteria": [
    {"name": "correct", "choices": [
      {"name": "right", "value": 1}, {"name": "partly", "value": 0.5}, {"name": "wrong", "value": 0}
    ]}
  ]
}"""
_EXAMPLE = """{
  "version": "help-v1",
  "instructions": "Judge how well the answer helps the person who asked.",
  "criteria": [
    {"name": "relevance", "description": "It answers what was asked.", "lowest": 1, "highest": 5, "weight": 2},
    {"name": "clarity", "description": "It is easy to follow.", "lowest": 1, "highest": 5, "weight": 1}
  ]
}"""
_TOKENS = PARAMETERS["max_tokens"].rest
_FIELDS = (
    replace(NUMBERS["repeats"], low=1, high=rubrics.MOST_REPEATS, label="Judgements of each answer"),
    NUMBERS["budget_usd"],
    PARAMETERS["max_tokens"],
)


@dataclass(slots=True)
class JudgeForm:
    """As sent, with a sentence for each field that is wrong. `model` is the judge's endpoint and model with a bar
    between them; `by` is QUESTION or RUBRIC. `against` is another job, with whose answers these are compared; empty
    where each answer is judged by itself."""

    model: str = ""
    by: str = QUESTION
    against: str = ""
    rubric: str = _EXAMPLE
    texts: dict[str, str] = field(default_factory=lambda: {one.rest: "" for one in _FIELDS})
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    errors: dict[str, str] = field(default_factory=dict)
    failure: str = ""

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> JudgeForm:
        """Fields that were not sent are as in an empty form."""

        def one(name: str, most: int = 400) -> str:
            return str(sent.get(name, "")).strip()[:most]

        return cls(
            model=one("model"),
            by=RUBRIC if one("by") == RUBRIC else QUESTION,
            against=one("against", 40),
            # Longer than a rubric may be, so that it is refused and not cut.
            rubric=one("rubric", 4 * rubrics.MOST_BYTES).replace("\r\n", "\n") if "rubric" in sent else _EXAMPLE,
            texts={field.rest: one(field.rest) for field in _FIELDS},
            request_id=one("request_id") or uuid.uuid4().hex,
        )

    @property
    def repeats(self) -> int:
        """Judgements of each answer, or of each pair in each order; 1 while the field is wrong."""
        values, _ = checks.read(self.texts, _FIELDS)
        return int(values.get("repeats") or 1)

    def use(self, rubric: Rubric | None) -> None:
        """Fills in this rubric, if there is one."""
        if rubric is not None:
            self.by, self.rubric = RUBRIC, json.dumps(json.loads(rubrics.written(rubric)), indent=2, ensure_ascii=False)

    def spec(self, judged: job_pb2.Job) -> job_pb2.JobSpec:
        """The judge's job. It is of no use if something is wrong: see `errors`."""
        values, problems = checks.read(self.texts, _FIELDS)
        self.errors |= problems
        # An endpoint's name has no bar; a model's may have one.
        endpoint, _, model = self.model.partition("|")
        if not model:
            self.errors["model"] = "Choose a model."
        return job_pb2.JobSpec(
            endpoint=endpoint,
            model=model,
            sampling=sampling({name: values[name] for name in (_TOKENS,) if name in values}, None),
            project_id=judged.spec.project_id,
            budget_usd=values.get("budget_usd", 0),
            judging=job_pb2.Judging(
                job_id=judged.job_id,
                rubric=self._rubric(),
                repeats=values.get("repeats", 0),
                against_job_id=self.against,
            ),
        )

    def _rubric(self) -> str:
        """Its JSON in one line; empty if it is wrong, and where a judge says which answer is better."""
        if self.against and self.by == QUESTION:
            return ""
        try:
            return rubrics.written(rubrics.parse(self.rubric if self.by == RUBRIC else _CORRECT))
        except ValueError as error:
            self.errors["rubric"] = f"The rubric {error}."
            return ""
