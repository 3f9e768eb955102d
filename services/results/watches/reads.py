"""Watches as they are read: an alarm follows from the stored answers alone, whenever it is asked for.

The completed runs count, in the order in which they ended. So a crash of any process changes nothing, and each run
either raised the alarm or did not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.errors import NotFoundError, UnavailableError
from services.results.decisions.answers import statistic_of
from services.results.runs import job_reads
from services.results.sequential.alarm import ANSWERS, SCORE, TEXT, Alarm, Asking, alarm
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals, scorers
from services.words.enums import WATCH_SIGNALS
from services.words.jobs import FINISHED
from touchstone.v1 import item_result_pb2, job_pb2, watch_pb2

_MOST_RUNS = 400
_MOST_CHANGES = 100
_GONE = "The reference was deleted, so nothing can be compared with it. Start a watch with another reference."
_OTHERWISE = (
    "Run {run} scored answers otherwise than the reference, as after an upgrade, so nothing can be compared. Score the "
    "reference again, and start a watch with that job."
)
_Key = tuple[str, int]
_Second = tuple[job_pb2.Job, int]
"""The job and the repeat that show how much answers differ by chance."""


@dataclass(frozen=True, slots=True)
class _Answer:
    score: float | None
    said: tuple[int, str]
    text: str | None
    shown: str
    served: str
    kind: tuple[object, ...]
    """What was asked, and how the answer was scored. Only answers of one kind are compared."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A canary of a run that counts: what the reference says, what the second asking says (None where that is not
    known), and what the run says."""

    run: job_pb2.Job
    key: _Key
    turn: int
    before: _Answer
    again: _Answer | None
    now: _Answer

    @property
    def changed(self) -> bool:
        return self.now.said != self.before.said or self.now.score != self.before.score

    def asking(self) -> Asking:
        before, again, now = self.before, self.again, self.now
        score = None
        if before.score is not None and now.score is not None:
            score = min(max(now.score, 0.0), 1.0) - min(max(before.score, 0.0), 1.0)
        answers = text = None
        if again is not None:
            answers = int(now.said != before.said) - int(again.said != before.said)
            if before.text is not None and again.text is not None and now.text is not None:
                text = int(now.text != before.text) - int(again.text != before.text)
        return Asking(self.turn, score, answers, text)


def get_watch(connection: Connection, schedule_id: str, visible: Visibility = EVERYTHING) -> watch_pb2.Watch:
    """Raises NotFoundError where no run of it is stored, or none is visible."""
    runs = _runs(connection, schedule_id)
    if not runs:
        found = connection.execute(
            "SELECT job FROM jobs WHERE schedule_id = $id ORDER BY created_at, job_id LIMIT 1", {"id": schedule_id}
        ).fetchone()
        begun = job_pb2.Job.FromString(found[0]) if found else job_pb2.Job()
        if not begun.spec.HasField("watching"):
            raise NotFoundError(f"{refusals.not_found('Watch', schedule_id)}. If it is new, wait for its first run.")
        visible.check(begun)
        return _head(schedule_id, begun.spec.watching)
    visible.check(runs[0])
    return _watch(connection, schedule_id, runs)


def is_ended(connection: Connection, job_id: str) -> bool:
    """Whether the end of a job is stored. Raises NotFoundError."""
    return job_reads.get_job(connection, job_id).state in FINISHED


def read_alarm(connection: Connection, job_id: str) -> watch_pb2.Watch | None:
    """The watch if this run raised the alarm: with it there is one, and with the runs that ended before there is none.
    Raises NotFoundError, and UnavailableError while its end is not stored."""
    job = job_reads.get_job(connection, job_id)
    if job.state not in FINISHED:
        raise UnavailableError(f"The end of job {job_id} is not stored yet. Ask again.")
    runs = _runs(connection, job.spec.schedule_id)
    ended = [run.job_id for run in runs]
    if not job.spec.HasField("watching") or job_id not in ended:
        return None
    upto = runs[: ended.index(job_id) + 1]
    found = _watch(connection, job.spec.schedule_id, upto)
    if not found.raised_by or (len(upto) > 1 and _watch(connection, job.spec.schedule_id, upto[:-1]).raised_by):
        return None
    return found


def _runs(connection: Connection, schedule_id: str) -> list[job_pb2.Job]:
    rows = connection.execute(query("watches/runs"), {"schedule_id": schedule_id}).fetchall() if schedule_id else []
    jobs = [job_pb2.Job.FromString(blob) for (blob,) in rows]
    return [job for job in jobs if job.spec.HasField("watching")]


def _head(schedule_id: str, watching: job_pb2.Watching) -> watch_pb2.Watch:
    return watch_pb2.Watch(
        schedule_id=schedule_id,
        reference_job_id=watching.reference_job_id,
        again_job_id=watching.again_job_id,
        error=watching.error,
    )


def _watch(connection: Connection, schedule_id: str, runs: Sequence[job_pb2.Job]) -> watch_pb2.Watch:
    watching = runs[-1].spec.watching
    watch = _head(schedule_id, watching)
    try:
        reference = job_reads.get_job(connection, watching.reference_job_id)
    except NotFoundError:
        watch.note = _GONE
        return watch
    second = _second_asking(connection, reference, watching)
    asked = _asked(connection, reference, second, runs)
    found = alarm([one.asking() for one in asked], error=watching.error, second=second is not None)
    watch.asked, watch.threshold = len(asked), found.threshold
    _add_runs(watch, runs, asked, found)
    since = 0
    if found.raised_at is not None and found.since is not None:
        raised, began = asked[found.raised_at - 1].run, asked[found.since].run
        watch.raised_by, watch.raised_after = WATCH_SIGNALS[found.by], found.raised_at
        watch.raised_job_id, watch.since_job_id = raised.job_id, began.job_id
        watch.raised_at.CopyFrom(raised.finished_at)
        watch.since_at.CopyFrom(began.created_at)
        since = found.since
    elif asked:
        since = next(place for place, one in enumerate(asked) if one.run is asked[-1].run)
    if found.raised_at is None and not _scored_alike(runs[-1], reference):
        watch.note = _OTHERWISE.format(run=runs[-1].job_id)
    _add_changes(watch, [one for one in asked[since:] if one.changed])
    _add_shares(watch, asked)
    _add_served(connection, watch, reference, asked)
    return watch


def _asked(
    connection: Connection, reference: job_pb2.Job, second: _Second | None, runs: Sequence[job_pb2.Job]
) -> list[_Asked]:
    """Every canary that counts, in the order in which the runs ended and asked them."""
    of_second = [second[0].job_id] if second else []
    archived_items.require(connection, reference.job_id, *of_second, *(run.job_id for run in runs))
    statistics = {task.task: name for task in reference.plan if (name := statistic_of(task)) is not None}
    by_run = _answers(connection, runs, 0, statistics, runs)
    before = _answers(connection, [reference], 0, statistics, runs).get(reference.job_id, {})
    again: Mapping[_Key, _Answer] = {}
    if second:
        job, repeat = second
        again = _answers(connection, [job], repeat, statistics, runs).get(job.job_id, {})
    first: dict[_Key, _Answer] = {}
    """Answers of the first turn, which are the second asking if no other is given."""
    asked: list[_Asked] = []
    for run in runs:
        mine = run.spec.watching
        answers = by_run.get(run.job_id, {})
        turn = mine.start // max(1, mine.total)
        for canary in mine.canaries:
            key = canary.task, canary.item
            now, then = answers.get(key), before.get(key)
            if now is None or then is None or now.kind != then.kind:
                continue
            other = again.get(key) if second else first.get(key)
            other = other if other is not None and other.kind == then.kind else None
            asked.append(_Asked(run, key, turn, then, other, now))
            if turn == 0:
                first.setdefault(key, now)
    return asked


def _second_asking(connection: Connection, reference: job_pb2.Job, watching: job_pb2.Watching) -> _Second | None:
    """None where the first turn shows how much answers differ by chance, as after the deletion of that job."""
    if watching.again_job_id and job_reads.is_stored(connection, watching.again_job_id):
        return job_reads.get_job(connection, watching.again_job_id), 0
    return (reference, 1) if reference.spec.suite.repeats > 1 else None


def _ways(job: job_pb2.Job) -> dict[str, tuple[object, ...]]:
    """By task, how its answers were read and scored."""
    scored = tuple(one.SerializeToString(deterministic=True) for one in scorers.all_of_job(job.spec))
    return {plan.task: (scored, scorers.reading_of(job.spec, plan), plan.scorer_version) for plan in job.plan}


def _scored_alike(run: job_pb2.Job, reference: job_pb2.Job) -> bool:
    """Whether some canary of the run may count."""
    mine, known = _ways(run), _ways(reference)
    return any(known.get(task) == way for task, way in mine.items())


def _answers(
    connection: Connection,
    jobs: Sequence[job_pb2.Job],
    repeat: int,
    statistics: Mapping[str, str],
    runs: Sequence[job_pb2.Job],
) -> dict[str, dict[_Key, _Answer]]:
    rows = connection.execute(
        query("watches/answers"),
        {
            "jobs": [job.job_id for job in jobs],
            "repeat": repeat,
            "tasks": list(statistics),
            "statistics": list(statistics.values()),
            "runs": [run.job_id for run in runs],
        },
    ).fetchall()
    ways = {job.job_id: _ways(job) for job in jobs}
    found: dict[str, dict[_Key, _Answer]] = {}
    for job_id, task, item, item_hash, prompt_hash, score, outcome, prediction, said, text, served in rows:
        answered = outcome == item_result_pb2.OUTCOME_ANSWERED
        found.setdefault(job_id, {})[task, item] = _Answer(
            score=score,
            said=(outcome, said if answered else ""),
            text=text,
            shown=prediction,
            served=served,
            kind=(item_hash, prompt_hash, ways[job_id].get(task)),
        )
    return found


def _add_runs(watch: watch_pb2.Watch, runs: Sequence[job_pb2.Job], asked: Sequence[_Asked], found: Alarm) -> None:
    last = {one.run.job_id: place for place, one in enumerate(asked)}
    counts: dict[str, list[int]] = {run.job_id: [0, 0] for run in runs}
    for one in asked:
        counts[one.run.job_id][0] += 1
        counts[one.run.job_id][1] += one.changed
    for run in runs[-_MOST_RUNS:]:
        counted, changed = counts[run.job_id]
        shown = watch.runs.add(
            job_id=run.job_id,
            created_at=run.created_at,
            finished_at=run.finished_at,
            asked=counted,
            changed=changed,
            left_out=len(run.spec.watching.canaries) - counted,
        )
        place = last.get(run.job_id)
        if place is not None:
            shown.score, shown.answers, shown.text = (
                float(found.evidence[signal][place]) for signal in (SCORE, ANSWERS, TEXT)
            )
    watch.left_out = sum(len(run.spec.watching.canaries) for run in runs) - len(asked)


def _add_changes(watch: watch_pb2.Watch, changed: Sequence[_Asked]) -> None:
    for one in changed[:_MOST_CHANGES]:
        watch.changes.add(
            job_id=one.run.job_id,
            task=one.key[0],
            item=one.key[1],
            answer_before=one.before.shown,
            answer_now=one.now.shown,
            score_before=one.before.score,
            score_now=one.now.score,
        )


def _add_shares(watch: watch_pb2.Watch, asked: Sequence[_Asked]) -> None:
    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if values else None

    scored = [(a.before.score, a.now.score) for a in asked if a.before.score is not None and a.now.score is not None]
    texts = [a for a in asked if a.before.text is not None and a.now.text is not None]
    second = [a for a in asked if a.again is not None]
    shares: dict[str, Any] = {
        "reference_mean": mean([before for before, _ in scored]),
        "mean": mean([now for _, now in scored]),
        "answers_differ": mean([a.now.said != a.before.said for a in asked]),
        "answers_differ_usually": mean([a.again.said != a.before.said for a in second if a.again]),
        "texts_differ": mean([a.now.text != a.before.text for a in texts]),
        "texts_differ_usually": mean([
            a.again.text != a.before.text for a in texts if a.again is not None and a.again.text is not None
        ]),
    }  # fmt: skip
    for name, share in shares.items():
        if share is not None:
            setattr(watch, name, share)


def _add_served(
    connection: Connection, watch: watch_pb2.Watch, reference: job_pb2.Job, asked: Sequence[_Asked]
) -> None:
    rows = connection.execute(
        "SELECT DISTINCT served_model FROM items WHERE job_id = $job_id AND served_model <> ''",
        {"job_id": reference.job_id},
    ).fetchall()
    known = {name for (name,) in rows}
    served: dict[str, watch_pb2.WatchServed] = {}
    for one in asked:
        if one.now.served:
            created = one.run.created_at
            named = served.setdefault(one.now.served, watch_pb2.WatchServed(model=one.now.served, first_at=created))
            named.last_at.CopyFrom(created)
            named.reference = one.now.served in known
    watch.served.extend(sorted(served.values(), key=lambda one: (-one.last_at.ToNanoseconds(), one.model))[:20])
