"""The Run page's form: its content, its errors, and its job specs."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import FormData, QueryParams

from services import further_fields
from services.gateway.fields import checks
from services.gateway.fields.job import custom_problems, sampling
from services.words.enums import MODES, PRIORITIES, READINGS, reading_name
from services.words.fields import INT32_MAX
from services.words.job_options import ALL, MOST_SHOTS, NUMBERS, fill
from services.words.sampling import PARAMETERS, Parameter
from touchstone.v1 import endpoint_pb2, job_pb2, suite_pb2

_WRITTEN = ("mode", "reading", "limit", "shots", "repeats", "priority", "project_id")
"""Options of a job that the form's command names with a value."""
_OPEN_TASK = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(slots=True)
class Form:
    """The form as sent, with a sentence for each field that is wrong. `texts` are the settings' fields."""

    endpoint: str
    models: list[str]
    suite: str
    tasks: list[str]
    open_task: str
    mode: str
    reading: str
    limit: int
    priority: str
    project: str
    custom: str
    texts: dict[str, str]
    request_id: str
    any_job: bool = False
    without_digest: bool = False
    errors: dict[str, str] = field(default_factory=dict)
    failure: str = ""

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> Form:
        def one(name: str) -> str:
            return str(sent.get(name, "")).strip()[:4000]

        limit = one("limit")
        return cls(
            endpoint=one("endpoint"),
            models=[str(model) for model in sent.getlist("model")],
            suite=one("suite"),
            # A suite's boxes count only for the suite that they belong to.
            tasks=[str(task) for task in sent.getlist("task")] if one("tasks_of") == one("suite") else [],
            open_task=one("open_task"),
            mode=one("mode") if one("mode") in MODES else "generate",
            reading=one("reading") if one("reading") in READINGS else "",
            limit=int(limit) if limit.isdecimal() and int(limit) <= INT32_MAX else 0,
            priority=one("priority") if one("priority") in PRIORITIES else "high",
            project=one("project"),
            custom=one("custom"),
            texts={name: one(name) for name in (*(p.rest for p in PARAMETERS.values()), "shots", "repeats")},
            request_id=one("request_id") or uuid.uuid4().hex,
            any_job=bool(one("any_job")),
            without_digest=bool(one("without_digest")),
        )

    @classmethod
    def of(cls, spec: job_pb2.JobSpec) -> Form:
        """What an earlier job over a suite was asked for."""
        suite, _, open_task = spec.suite.suite.partition(":")
        texts = {
            one.rest: _written(getattr(spec.sampling, name)) if spec.sampling.HasField(name) else ""
            for name, one in PARAMETERS.items()
        }
        texts |= {"shots": str(spec.suite.shots or ""), "repeats": str(spec.suite.repeats or "")}
        custom = further_fields.fields(spec.sampling)
        return cls(
            endpoint=spec.endpoint,
            models=[spec.model],
            suite=suite,
            tasks=list(spec.suite.tasks),
            open_task=open_task,
            mode=MODES.of(spec.mode) or "generate",
            reading=reading_name(spec.reading) or "",
            limit=spec.suite.limit,
            priority=PRIORITIES.of(spec.priority) or "high",
            project=str(spec.project_id or ""),
            custom=json.dumps(dict(custom), ensure_ascii=False) if custom else "",
            texts=texts,
            request_id=uuid.uuid4().hex,
            any_job=spec.reuse.any_job,
            without_digest=spec.reuse.without_digest,
        )

    def address(self, suite: suite_pb2.Suite | None, **changes: str) -> str:
        """The page with this whole choice, and some of it changed."""
        chosen = {
            "endpoint": self.endpoint,
            "suite": self.suite,
            "open_task": self.open_task,
            "mode": self.mode if self.mode != "generate" else "",
            "reading": self.reading,
            "limit": str(self.limit or ""),
            "priority": self.priority if self.priority != "high" else "",
            "project": self.project,
            "custom": self.custom,
            "any_job": "1" if self.any_job else "",
            "without_digest": "1" if self.without_digest else "",
            **self.texts,
            **changes,
        }
        pairs = [(name, value) for name, value in chosen.items() if value]
        pairs += [("model", model) for model in self.models]
        if self._part(suite):
            pairs += [("tasks_of", self.suite), *(("task", task) for task in self.tasks)]
        return f"/run?{urlencode(pairs)}"

    def command(self, suite: suite_pb2.Suite | None) -> str:
        """The same jobs from a shell; empty without a model."""
        if not self.models or not self.suite:
            return ""
        words = ["touchstone", "run", "--suite", f"{self.suite}:{self.open_task}" if self.open_task else self.suite]
        words += ["--endpoint", self.endpoint, *(part for model in self.models for part in ("--model", model))]
        if self._part(suite):
            words += ["--tasks", ",".join(self.tasks)]
        written = {"limit": str(self.limit or ""), "project_id": self.project, **self.texts}
        written |= {"mode": self.mode if self.mode != "generate" else "", "priority": self.priority}
        written["reading"] = self.reading
        fields = [*(ALL[name] for name in _WRITTEN), *PARAMETERS.values()]
        words += [part for one in fields if (value := written[one.rest]) for part in (one.flags[0], value)]
        words += [ALL[name].flags[0] for name in ("any_job", "without_digest") if getattr(self, name)]
        return shlex.join([*words, *(("--custom-config", self.custom) if self.custom else ())])

    def _part(self, suite: suite_pb2.Suite | None) -> bool:
        """Whether only some of the suite's tasks are chosen."""
        return suite is not None and not suite.open and len(self.tasks) < len(suite.tasks)

    def check(self, parameters: Sequence[Parameter], suite: suite_pb2.Suite | None, takes_custom: bool) -> Checked:
        """The content as values. Errors are in `errors` by field."""
        chosen, problems = checks.read(self.texts, parameters)
        self.errors |= problems
        most = shots_of(suite, self.tasks)
        options, problems = checks.read(
            self.texts | {"project": self.project},
            [replace(NUMBERS["shots"], high=most), NUMBERS["repeats"], replace(NUMBERS["project_id"], rest="project")],
        )
        if "shots" in problems and most == 0:
            problems["shots"] = "Shots must be 0: the chosen tasks have no examples."
        self.errors |= problems
        if suite is not None and suite.open and not _OPEN_TASK.fullmatch(self.open_task) and self.open_task:
            self.errors["open_task"] = "A task's name has letters, digits, _, . and -."
        if self.without_digest and not self.any_job:
            self.errors["without_digest"] = f"Also tick {ALL['any_job'].label}, or leave this box empty."
        custom = self._custom() if self.custom and takes_custom else None
        return Checked(chosen, custom, options)

    def specs(self, checked: Checked, suite: suite_pb2.Suite) -> Iterator[job_pb2.JobSpec]:
        """One for each chosen model, in order."""
        whole = len(self.tasks) == len(suite.tasks)
        options = {
            "shots": checked.options.get("shots"),
            "repeats": checked.options.get("repeats"),
            "project_id": checked.options.get("project"),
            "limit": self.limit,
            "mode": self.mode,
            "priority": self.priority,
            "reading": self.reading if takes_reading(suite, self.mode) else "",
            "any_job": self.any_job,
            "without_digest": self.without_digest,
            "tasks": [] if whole or suite.open else self.tasks,
        }
        for model in self.models:
            spec = job_pb2.JobSpec(
                endpoint=self.endpoint,
                model=model,
                sampling=sampling(checked.parameters, checked.custom),
                suite=job_pb2.SuiteWork(suite=f"{suite.suite}:{self.open_task}" if suite.open else suite.suite),
            )
            fill(spec, options)
            yield spec

    def _custom(self) -> dict[str, Any]:
        try:
            custom = json.loads(self.custom)
        except (ValueError, RecursionError):
            custom = None
        if not isinstance(custom, dict):
            self.errors["custom"] = 'Custom JSON must be an object, such as {"reasoning_effort": "low"}.'
            return {}
        for _, sentence in custom_problems(custom, "Custom JSON"):
            self.errors["custom"] = sentence
        return custom


def _written(value: float) -> str:
    """A parameter as a field holds it: whole numbers with all digits."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The settings that were filled in, as values by their names in the form."""

    parameters: dict[str, Any]
    custom: dict[str, Any] | None
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Category:
    """Tasks under one heading; `chosen` of them are ticked."""

    title: str
    tasks: list[suite_pb2.TaskInfo]
    chosen: int


def categories(suite: suite_pb2.Suite, chosen: Sequence[str]) -> list[Category]:
    """The suite's tasks by category, in its order."""
    gathered: dict[str, list[suite_pb2.TaskInfo]] = {}
    for task in suite.tasks:
        gathered.setdefault(task.category, []).append(task)
    return [Category(title, tasks, sum(task.task in chosen for task in tasks)) for title, tasks in gathered.items()]


def modes(
    suite: suite_pb2.Suite | None, tasks: Sequence[str], endpoint: endpoint_pb2.Endpoint | None
) -> list[tuple[str, str]]:
    """(mode, why it cannot be chosen) for both modes. A task that lacks the mode is left out while others remain."""
    found = []
    for mode, value in MODES.items():
        why = ""
        if suite is not None and not suite.open:
            chosen = [task for task in suite.tasks if task.task in tasks]
            if chosen and not any(value in task.modes for task in chosen):
                why = f"{chosen[0].title or chosen[0].task} cannot run in it"
        if value == suite_pb2.MODE_LOGLIKELIHOOD and endpoint and _gives_none(endpoint.capabilities):
            why = f"{endpoint.endpoint} gives no log-likelihoods"
        found.append((mode, why))
    return found


def _gives_none(protocol: endpoint_pb2.Capabilities) -> bool:
    return protocol.HasField("loglikelihood") and not protocol.loglikelihood


def takes_reading(suite: suite_pb2.Suite | None, mode: str) -> bool:
    """Whether a job may choose the layers by which answers are read."""
    return mode == "generate" and not (suite is not None and suite.open)


def shots_of(suite: suite_pb2.Suite | None, tasks: Sequence[str]) -> int:
    """The most few-shot examples that a chosen task takes; tasks that take fewer than are asked for are left out."""
    if suite is None or suite.open:
        return MOST_SHOTS
    return max((task.max_shots for task in suite.tasks if task.task in tasks), default=0)


def left_out(suite: suite_pb2.Suite | None, tasks: Sequence[str], mode: str, shots: str) -> list[str]:
    """Titles of chosen tasks that cannot run in the mode, or with this number of examples."""
    if suite is None or suite.open:
        return []
    asked = int(shots) if shots.isdecimal() else 0
    return [
        task.title or task.task
        for task in suite.tasks
        if task.task in tasks and (MODES[mode] not in task.modes or asked > task.max_shots)
    ]
