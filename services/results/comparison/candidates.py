"""Which run a name stands for: of the configurations that it may mean, the newest whole run, else the largest.

A model means the configurations of which it has whole runs; else those with partial ones; pilots only where there is
nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.errors import InvalidRequestError, NotFoundError
from services.results import job_reads
from services.results.comparison import settings_apart
from services.results.comparison.wording import listed
from services.results.configurations import SHORT, is_prefix
from services.results.database import Connection, query
from services.results.visibility import Visibility
from touchstone.v1 import suite_pb2

MODE_NAMES = {suite_pb2.MODE_GENERATE: "generate", suite_pb2.MODE_LOGLIKELIHOOD: "loglikelihood"}

_LISTED = 8
"""Configurations that a refusal names."""
_PILOT = "pilot"
"""Label of a run that was made to estimate another by."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The run that stands for a configuration which a subject may mean; `newest` is its newest run of any size."""

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
        """By each way of naming; the first that fits a subject decides what the subject means."""
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
        """That a newer, smaller run does not stand for it; "" where there is none."""
        if self.newest == self.job_id:
            return ""
        which = "run on the most items" if self.subset else "newest whole run"
        return (
            f"{subject!r} stands for its {which}, job {self.job_id} on {self.items:,} items; "
            f"job {self.newest} is newer and ran {self.newest_items:,}."
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a subject stands for; `left_out` are configurations of the same model that it does not."""

    candidate: Candidate
    left_out: Sequence[Candidate] = ()

    def notes(self, subject: str) -> Iterator[str]:
        if self.left_out:
            have = "has" if len(self.left_out) == 1 else "have"
            yield (
                f"{subject!r} stands for configuration {_short(self.candidate)}, not for "
                f"{listed(sorted(map(_short, self.left_out)), _LISTED)}, which {have} partial or pilot runs alone."
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
    candidates = [Candidate(*row) for row in connection.execute(query("subject_runs"), where).fetchall()]
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
        f"{subject!r} has no complete run of {suite} in {MODE_NAMES[mode]} mode that counts. Run it first, retry what "
        "is missing, or name a job."
    )


def _proper(connection: Connection, found: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Those that stand for their model, and the others."""
    jobs = job_reads.jobs_by_id(connection, [candidate.job_id for candidate in found])
    ranks = [(_PILOT in jobs[candidate.job_id].spec.labels, candidate.subset) for candidate in found]
    best = min(ranks)
    ranked = list(zip(found, ranks, strict=True))
    return [one for one, rank in ranked if rank == best], [one for one, rank in ranked if rank != best]


def _listed(connection: Connection, found: Sequence[Candidate]) -> str:
    """The configurations with what tells them apart."""
    jobs = job_reads.jobs_by_id(connection, [candidate.job_id for candidate in found])
    apart = settings_apart.apart([jobs[candidate.job_id] for candidate in found])
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
