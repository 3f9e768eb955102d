"""Which run a name means: among the configurations that fit, the newest whole run, else the largest.

A model means its configurations with whole runs; else those with partial ones; pilots only if there is nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.errors import InvalidRequestError, NotFoundError
from services.results.comparison.selection.runs import listed
from services.results.runs import job_reads
from services.results.runs.configurations import SHORT, is_prefix
from services.results.storage.database import Connection, query
from services.results.visibility import Visibility
from services.words.enums import MODES
from services.words.refusals import counted
from touchstone.v1 import job_pb2, suite_pb2

_LISTED = 8
"""Configurations that a refusal names."""
_PILOT = "pilot"
"""Label of a run that was made to estimate another one."""

_CHARACTERS = 60
"""Of one setting."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The run that represents a configuration which a subject may mean; `newest` is its newest run of any size."""

    job_id: str
    configuration: str
    model: str
    endpoint: str
    sealed_at: datetime
    subset: bool
    items: int
    newest: str
    newest_items: int
    name: str
    alias: str

    def is_called(self, subject: str) -> tuple[bool, ...]:
        """Candidates by each way of naming; the first that fits a subject decides what the subject means."""
        return (
            subject == self.configuration,
            subject in {self.name, self.alias} - {""},
            subject == f"{self.model}@{self.endpoint}",
            subject == self.model,
            is_prefix(subject) and self.configuration.startswith(subject),
        )

    def is_model(self, subject: str) -> bool:
        return subject in (self.model, f"{self.model}@{self.endpoint}")

    def passed_over(self, subject: str) -> str:
        """A note that a newer, smaller run does not represent it; "" without such a run."""
        if self.newest == self.job_id:
            return ""
        which = "run with the most items" if self.subset else "newest full run"
        return (
            f"{subject!r} means its {which}, job {self.job_id} on {counted(self.items, 'item')}; "
            f"job {self.newest} is newer and ran {self.newest_items:,}."
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a subject means; `left_out` are configurations of the same model that it does not mean."""

    candidate: Candidate
    left_out: Sequence[Candidate] = ()

    def notes(self, subject: str) -> Iterator[str]:
        if self.left_out:
            have = "has" if len(self.left_out) == 1 else "have"
            yield (
                f"{subject!r} means configuration {_short(self.candidate)}, not "
                f"{listed(sorted(map(_short, self.left_out)), _LISTED)}, which {have} only partial or pilot runs."
            )
        if words := self.candidate.passed_over(subject):
            yield words


def find(
    connection: Connection,
    subjects: Sequence[str],
    suite: str,
    mode: suite_pb2.Mode,
    project_id: int,
    visible: Visibility,
) -> dict[str, Found]:
    """One per subject. Raises InvalidRequestError for a subject that fits several configurations, NotFoundError for one
    that fits none."""
    prefixes = [re.escape(subject) for subject in subjects if is_prefix(subject)]
    where = {
        "subjects": subjects,
        "prefixes": f"^({'|'.join(prefixes)})" if prefixes else "",
        "suite": suite,
        "mode": int(mode),
        "project_id": project_id,
        **visible.parameters,
    }
    candidates = [Candidate(*row) for row in connection.execute(query("comparison/subject_runs"), where).fetchall()]
    return {subject: _one(connection, subject, candidates, suite, mode) for subject in subjects}


def _one(
    connection: Connection, subject: str, candidates: Sequence[Candidate], suite: str, mode: suite_pb2.Mode
) -> Found:
    called = [(candidate, candidate.is_called(subject)) for candidate in candidates]
    for fits in zip(*(ways for _, ways in called), strict=True):
        found = [candidate for (candidate, _), fit in zip(called, fits, strict=True) if fit]
        left_out: list[Candidate] = []
        if len(found) > 1 and all(candidate.is_model(subject) for candidate in found):
            found, left_out = _proper(connection, found)
        if len(found) > 1:
            raise InvalidRequestError(
                f"{subject!r} fits {len(found)} configurations: {_listed(connection, found)}. Name one of them, or a "
                "job.",
                "subjects",
            )
        if found:
            return Found(found[0], left_out)
    raise NotFoundError(
        f"{subject!r} has no complete run of {suite} in {MODES.of(mode)} mode that counts. Run it first, retry the "
        "missing items, or name a job."
    )


def _proper(connection: Connection, found: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """The configurations that represent their model, and the others."""
    jobs = job_reads.jobs_by_id(connection, [candidate.job_id for candidate in found])
    ranks = [(_PILOT in jobs[candidate.job_id].spec.labels, candidate.subset) for candidate in found]
    best = min(ranks)
    ranked = list(zip(found, ranks, strict=True))
    return [one for one, rank in ranked if rank == best], [one for one, rank in ranked if rank != best]


def _listed(connection: Connection, found: Sequence[Candidate]) -> str:
    """The configurations with their differences."""
    jobs = job_reads.jobs_by_id(connection, [candidate.job_id for candidate in found])
    apart = differing_settings([jobs[candidate.job_id] for candidate in found])
    told = sorted(
        f"{_short(candidate)} ({'; '.join([*_names(candidate), *words])})"
        for candidate, words in zip(found, apart, strict=True)
    )
    more = [f"and {len(told) - _LISTED} more"] if len(told) > _LISTED else []
    return "; ".join([*told[:_LISTED], *more])


def _short(candidate: Candidate) -> str:
    return candidate.configuration[:SHORT]


def _names(candidate: Candidate) -> list[str]:
    called = " or ".join(name for name in (candidate.name, candidate.alias) if name)
    return [*([f"called {called}"] if called else []), f"newest run {candidate.sealed_at:%Y-%m-%d %H:%M}"]


def differing_settings(jobs: Sequence[job_pb2.Job]) -> list[list[str]]:
    """The settings of each job in which not all agree, such as "temperature 0.7"."""
    settings = [dict(_settings(job)) for job in jobs]
    names = dict.fromkeys(name for one in sorted(settings, key=len, reverse=True) for name in one)
    differ = [name for name in names if len({one.get(name) for one in settings}) > 1]
    if "tasks" in differ:
        # Other tasks have other prompts.
        differ.remove("prompts")
    return [[f"{name} {one.get(name, 'not set')[:_CHARACTERS]}" for name in differ] for one in settings]


def _settings(job: job_pb2.Job) -> Iterator[tuple[str, str]]:
    """The parts of a configuration's hash, which runs of one configuration share."""
    spec, receipt = job.spec, job.receipt
    yield "model", spec.model
    yield "endpoint", spec.endpoint
    yield "digest", receipt.model_digest[:SHORT] or "unknown"
    yield from _parameters("", _parsed(receipt.parameters))
    yield "shots", str(spec.suite.shots)
    yield "repeats", str(max(1, spec.suite.repeats))
    yield "tasks", listed([plan.task for plan in job.plan], 3)
    yield "template", receipt.template or "unknown"
    yield "setup", receipt.setup or "unknown"
    prompts = repr(sorted((plan.task, plan.version, plan.prompt_hash) for plan in job.plan))
    yield "prompts", hashlib.sha256(prompts.encode()).hexdigest()[:SHORT]


def _parsed(parameters: str) -> Any:
    try:
        return json.loads(parameters) if parameters else {}
    except ValueError:
        return parameters


def _parameters(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _parameters(f"{path}.{name}" if path else str(name), inner)
    else:
        yield path or "parameters", value if isinstance(value, str) else json.dumps(value)
