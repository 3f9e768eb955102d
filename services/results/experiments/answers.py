"""The answers of an experiment's jobs and what was said of them, as arrays over (jobs, rows)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from services.results.experiments.judge_names import JudgeNames
from services.results.experiments.stored import Stored
from services.results.statistics.metric_values import Floats, Ints
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.words import rubrics
from services.words.jobs import is_finished
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR, OUTCOME_UNSPECIFIED

Bools = npt.NDArray[np.bool_]
Span = tuple[int, int]
"""The first and the last of the items that are read. Others are as without an answer and scores."""
EVERY: Span = (0, 2**31 - 1)
Ratings = Mapping[str, np.ndarray]
"""Columns of queries/experiments/rated.sql."""
_COLUMNS = ("correct", "value", "target")
_STARTS_WITHIN = timedelta(seconds=60)
"""The scheduler starts judges within a second or two, unless it restarts or the disk is slow."""


@dataclass(frozen=True, slots=True)
class Asked:
    """All (jobs, rows). `attempt` is the one that the answer is of; it and the others are 0 and NaN without one."""

    answered: Bools
    failed: Bools
    attempt: Ints
    latency_s: Floats
    """NaN also where the answer was taken from the store."""
    output_tokens: Floats
    cost_usd: Floats


@dataclass(frozen=True, slots=True)
class Said:
    """Mean shares (metrics, jobs, rows) of `rubrics.names`, NaN where nobody scored; `failed` (jobs, rows) are answers
    of which no judgement is valid."""

    shares: Floats
    failed: Bools

    @property
    def scored(self) -> Bools:
        known: Bools = ~np.isnan(self.shares[0])
        return known


def asked(connection: Connection, experiment: Stored, span: Span = EVERY) -> Asked:
    archived_items.require(connection, *(job.job_id for job in experiment.jobs))
    shape = len(experiment.jobs), experiment.rows
    found = connection.execute(
        query("experiments/asked"), {"jobs": [job.job_id for job in experiment.jobs]} | _items(span)
    ).fetchnumpy()
    inside = np.asarray(found["item"]) < experiment.rows
    where = np.asarray(found["place"])[inside], np.asarray(found["item"])[inside]

    def spread(name: str, empty: float) -> Floats:
        column = np.full(shape, empty)
        column[where] = np.ma.filled(np.ma.asarray(found[name], dtype=float), np.nan)[inside]
        return column

    outcome, reused = spread("outcome", 0), spread("reused", 0)
    failed = outcome == OUTCOME_INFRASTRUCTURE_ERROR
    answered = ~np.isin(outcome, (OUTCOME_UNSPECIFIED, OUTCOME_INFRASTRUCTURE_ERROR))
    return Asked(
        answered,
        failed,
        spread("attempt", 0).astype(np.int64),
        np.where(answered & (reused == 0), spread("latency_s", np.nan), np.nan),
        spread("output_tokens", np.nan),
        spread("cost_usd", np.nan),
    )


def judged(
    connection: Connection, experiment: Stored, answers: Asked, ratings: Ratings, span: Span = EVERY
) -> dict[str, Said]:
    """By judge, as `JudgeNames` calls it, in the order in which they began: the mean over a judge's judgements of an
    answer. Judges outside Touchstone follow by name, as "outside:rater/judge".

    Of several jobs of one judge, the newest that scored an answer counts. Judgements of an earlier attempt's answer do
    not count for the one that replaced it.
    """
    places = {job.job_id: place for place, job in enumerate(experiment.jobs)}
    jobs = _judges(connection, list(places), rubrics.written(experiment.rubric), JudgeNames())
    names = rubrics.names(experiment.rubric)
    if not jobs:
        return _outside(experiment, ratings)
    archived_items.require(connection, *(one.job_id for one in jobs))
    found = connection.execute(
        query("experiments/judged").format(shares=", ".join(map(_share, names)), form=_form(names)),
        {"jobs": [one.job_id for one in jobs]} | _items(span),
    ).fetchnumpy()
    place, item = np.asarray(found["place"]), np.asarray(found["item"])
    columns: list[Floats] = [np.ma.filled(np.ma.asarray(found[f"share_{name}"], dtype=float), np.nan) for name in names]
    valid = np.asarray(found["valid"]) & ~np.isnan(columns).any(axis=0)
    by_judge: dict[str, Said] = {}
    for number, one in enumerate(jobs):
        said = by_judge.setdefault(one.judge, nothing(experiment))
        judged_job = places[one.judged]
        mine = (place == number) & (item < experiment.rows)
        current = answers.answered[judged_job] & (answers.attempt[judged_job] <= one.attempt)
        counts = np.bincount(item[mine & valid], minlength=experiment.rows)
        scored = current & (counts > 0)
        for metric, column in enumerate(columns):
            sums = np.bincount(item[mine & valid], column[mine & valid], minlength=experiment.rows)
            said.shares[metric, judged_job, scored] = (sums / np.maximum(counts, 1))[scored]
        said.failed[judged_job] |= current & (np.bincount(item[mine], minlength=experiment.rows) > 0)
    for said in by_judge.values():
        said.failed[said.scored] = False
    return by_judge | _outside(experiment, ratings)


def live_judges(connection: Connection, experiment: Stored) -> list[str]:
    """Judges by the experiment's rubric that wait or run, or that are still to start: once no job of the experiment
    waits or runs, and then within moments. Those that have not started by then could not, or were deleted."""
    jobs = [job.job_id for job in experiment.jobs]
    called = JudgeNames()
    known = _judges(connection, jobs, rubrics.written(experiment.rubric), called)
    found = [one.judge for one in known if one.live]
    answering = any(not is_finished(job) for job in experiment.jobs)
    if answering or _changed_lately(connection, jobs):
        begun = {(one.judged, one.judge, one.attempt) for one in known}
        judged = [job for job in experiment.jobs if answering or job.state == job_pb2.Job.STATE_COMPLETED]
        asked = ((job, called.of(judge)) for job in judged for judge in job.spec.judges)
        found += [judge for job, judge in asked if (job.job_id, judge, job.attempt) not in begun]
    return sorted(set(found))


def _changed_lately(connection: Connection, jobs: Sequence[str]) -> bool:
    """Whether one of the jobs has ended, or was given a judge, so lately that its judges may not have started yet."""
    since = datetime.now(UTC).replace(tzinfo=None) - _STARTS_WITHIN
    found = connection.execute(
        "SELECT 1 FROM events JOIN jobs USING (event_id) WHERE jobs.job_id IN (SELECT unnest($jobs::VARCHAR[])) "
        "AND events.occurred_at > $since LIMIT 1",
        {"jobs": list(jobs), "since": since},
    ).fetchall()
    return bool(found)


def rated(experiment: Stored, ratings: Ratings) -> Said:
    """By people: the mean over the raters of an answer."""
    return _rated(experiment, ratings, np.asarray(ratings["judge"]) == "")


def _outside(experiment: Stored, ratings: Ratings) -> dict[str, Said]:
    raters, judges = np.asarray(ratings["rater"]), np.asarray(ratings["judge"])
    pairs = sorted({(rater, judge) for rater, judge in zip(raters, judges, strict=True) if judge})
    return {
        f"outside:{rater}/{judge}": _rated(experiment, ratings, (raters == rater) & (judges == judge))
        for rater, judge in pairs
    }


def ratings(connection: Connection, experiment: Stored, span: Span = EVERY) -> Ratings:
    """Of people and of judges outside Touchstone."""
    where = {"jobs": [job.job_id for job in experiment.jobs], "rubric": rubrics.digest(experiment.rubric)}
    return connection.execute(query("experiments/rated"), where | _items(span)).fetchnumpy()


def _items(span: Span) -> dict[str, int]:
    return {"first": span[0], "last": span[1]}


def _rated(experiment: Stored, ratings: Ratings, mine: Bools) -> Said:
    """From some of the ratings."""
    said = nothing(experiment)
    found = {name: np.asarray(column)[mine] for name, column in ratings.items()}
    # Few scores are different ones.
    numbers: dict[str, int] = {}
    codes = np.array([numbers.setdefault(text, len(numbers)) for text in found["scores"]], dtype=np.int64)
    known = np.array([[*rubrics.shares(experiment.rubric, json.loads(text)).values()] for text in numbers])
    place, item = found["place"], found["item"]
    inside = item < experiment.rows
    flat = place[inside] * experiment.rows + item[inside]
    counts = np.bincount(flat, minlength=said.failed.size)
    rated = counts > 0
    for metric, shares in enumerate(said.shares.reshape(len(said.shares), -1)):
        if numbers:
            sums = np.bincount(flat, known[codes[inside], metric], minlength=said.failed.size)
            shares[rated] = sums[rated] / counts[rated]
    return said


@dataclass(frozen=True, slots=True)
class _Judge:
    """A job that judges: `attempt` is that of the job `judged` whose answers it has."""

    job_id: str
    judge: str
    judged: str
    attempt: int
    live: bool


def _judges(connection: Connection, jobs: Sequence[str], rubric: str, called: JudgeNames) -> list[_Judge]:
    """By age, of judges that have this rubric."""
    rows = connection.execute(
        "SELECT j.job_id, j.job, d.dataset FROM jobs j JOIN datasets d ON d.id = j.suite "
        "WHERE d.judged_job IN (SELECT unnest($jobs::VARCHAR[])) ORDER BY j.created_at, j.job_id",
        {"jobs": list(jobs)},
    ).fetchall()
    found = []
    for job_id, held, blob in rows:
        judging: job_pb2.Judging = dataset_pb2.Dataset.FromString(blob).judging
        if judging.rubric == rubric and not judging.against_job_id:
            job = job_pb2.Job.FromString(held)
            found.append(_Judge(job_id, called.of(job.spec), judging.job_id, judging.attempt, not is_finished(job)))
    return found


def _share(name: str) -> str:
    """SQL of the statistic of this name, which has only small letters, digits and _."""
    return f"{name if name in _COLUMNS else f'told.{name}'} AS share_{name}"


def _form(names: Sequence[str]) -> str:
    """SQL of the form of other statistics, which needs a name also where none is read."""
    return (
        "'"
        + json.dumps({name: "DOUBLE" for name in names if name not in _COLUMNS} or {rubrics.COMPOSITE: "DOUBLE"})
        + "'"
    )


def nothing(experiment: Stored) -> Said:
    """No scores."""
    shape = len(experiment.jobs), experiment.rows
    return Said(np.full((len(rubrics.names(experiment.rubric)), *shape), np.nan), np.zeros(shape, dtype=bool))
