"""What judges found: each criterion on its own scale, the composite as a share. And how people agree."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from services.experiments.documents import outside_judge
from services.words import rubrics
from services.words.jobs import status_of
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion
from touchstone_client.client import Client
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import MISSING
from touchstone_client.command.printing.labels import labels
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.errors import ClientError

JudgeRun = results_service_pb2.JudgeRun
OutsideJudge = results_service_pb2.OutsideJudge
PeopleAgreement = results_service_pb2.PeopleAgreement
_SHARE = (0, 1)
"""The scale of choices and of the composite."""


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _two(value: float | None) -> str:
    return MISSING if value is None else _minus(f"{value:.2f}")


def _interval(ends: tuple[float | None, float | None]) -> str:
    return "" if None in ends else " to ".join(map(_two, ends))


def _scale(ends: Sequence[int]) -> str:
    return f"{_minus(str(ends[0]))} to {ends[1]}"


_COLUMNS = (
    Column("judge", "judge", data=False),
    Column("job_id", "job", extra=True),
    Column("model_name", ""),
    Column("endpoint", ""),
    Column("status", "status", extra=True),
    Column("rubric", "rubric"),
    Column("criterion", "criterion"),
    Column("mean_on_scale", "mean", _two, right=True, key=True),
    Column("interval", "95 % interval", _interval, right=True, data=False, key=True),
    Column("ci95_low_on_scale", ""),
    Column("ci95_high_on_scale", ""),
    Column("scale", "scale", _scale),
    Column("judged", "judged", right=True),
    Column("asked", "of", right=True),
    Column("failed", "failed", right=True),
)


_PAIRS = (
    Column("judge", "judge"),
    Column("against", "against job", lambda job_id: f"…{job_id[-6:]}"),
    Column("criterion", "criterion"),
    Column("preferred", "preferred", _two, right=True, key=True),
    Column("interval", "95 % interval", _interval, right=True, key=True),
    Column("better", "better", right=True),
    Column("equal", "equal", right=True),
    Column("worse", "worse", right=True),
    Column("same_in_both_orders", "same in both orders", _two, right=True),
    Column("first_preferred", "first preferred", _two, right=True),
    Column("judged", "judged", right=True),
    Column("asked", "of", right=True),
    Column("failed", "failed", right=True),
)
"""Never CSV, as the next two."""
_OUTSIDE = (
    Column("judge", "judge outside"),
    Column("rater", "user"),
    Column("rubric", "rubric"),
    Column("criterion", "criterion"),
    Column("mean", "mean", _two, right=True, key=True),
    Column("interval", "95 % interval", _interval, right=True, key=True),
    Column("scale", "scale", _scale),
    Column("judged", "judged", right=True),
    Column("answers", "of", right=True),
)
_PEOPLE = (
    Column("rubric", "rubric"),
    Column("criterion", "criterion"),
    Column("alpha", "alpha", _two, right=True, key=True),
    Column("interval", "95 % interval", _interval, right=True, key=True),
    Column("shared", "rated by two or more", right=True),
    Column("answers", "rated", right=True),
    Column("raters", "people", right=True),
)
"""Never CSV: that is the judges' table."""


def report(
    runs: Sequence[JudgeRun], outside: Sequence[OutsideJudge], people: Sequence[PeopleAgreement], none: str
) -> Report:
    """A row for each judge and metric, then one for each criterion by which a judge compared two jobs, for each metric
    of judges outside Touchstone, and for each criterion by which people rated; `none` is the note on no judges."""
    # The mean over single judgements would be another figure of the same preferences.
    single = [run for run in runs if not run.pairs.preferences]
    tables = [_judged(single)] if single or not (runs or outside or people) else []
    called = labels([run.job for run in runs])
    if pairs := [row for run in runs for row in _compared(run, called[run.job.job_id])]:
        tables.append(Table(_PAIRS, pairs, "Pairs of answers, each judged in both orders: 0.50 prefers neither"))
    if outside:
        rows = [row for judge in outside for row in _sent(judge)]
        tables.append(Table(_OUTSIDE, rows, "Judges outside Touchstone"))
    if people:
        rows = [row for one in people for row in _agreed(one)]
        tables.append(Table(_PEOPLE, rows, "People among themselves: Krippendorff's alpha"))
    found = {
        "judges": [_document(run) for run in runs],
        "outside": [outside_judge(one) for one in outside],
        "people": [document(one) for one in people],
    }
    notes = _reasons(runs) if runs or outside else [none]
    return Report(tables, notes=notes, document=found, csv=_judged(runs))


def _judged(runs: Sequence[JudgeRun]) -> Table:
    called = labels([run.job for run in runs])
    return Table(_COLUMNS, [row for run in runs for row in _rows(run, called[run.job.job_id])])


def _reasons(runs: Sequence[JudgeRun]) -> list[str]:
    called = labels([run.job for run in runs])
    return [f"{called[run.job.job_id]}: {run.job.reason}" for run in runs if run.job.reason]


def _compared(run: JudgeRun, name: str) -> Iterator[Sequence[Any]]:
    for one in run.pairs.preferences:
        preferred, same, first = (
            getattr(one, part) if one.HasField(part) else None
            for part in ("preferred", "same_in_both_orders", "first_preferred")
        )
        yield (
            name,
            run.job.spec.judging.against_job_id,
            one.metric,
            preferred and preferred.value,
            (preferred.low, preferred.high) if preferred else (None, None),
            one.better,
            one.equal,
            one.worse,
            same and same.value,
            first and first.value,
            *_counts(run).values(),
        )


def _sent(judge: OutsideJudge) -> Iterator[Sequence[Any]]:
    scales = _scales(judge.rubric)
    for one in judge.means:
        scale, found = scales.get(one.criterion), one.HasField("score")
        low, mean, high = (
            _on_scale(getattr(one.score, part) if found else None, scale) for part in ("low", "value", "high")
        )
        named = (judge.judge, judge.rater, judge.rubric.version, one.criterion)
        yield *named, mean, (low, high), _ends(scale), judge.judged, judge.answers


def _agreed(people: PeopleAgreement) -> Iterator[Sequence[Any]]:
    for one in people.criteria:
        found = one.HasField("alpha")
        ends = (one.alpha.low, one.alpha.high) if found else (None, None)
        alpha = one.alpha.value if found else None
        yield people.rubric.version, one.criterion, alpha, ends, people.shared, people.answers, people.raters


def print_judge(client: Client, job: job_pb2.Job, format: str) -> None:
    """What one job that judges has found, as `print_scores`."""
    try:
        tasks = client.result(job.job_id).tasks
    except ClientError as error:
        print(f"touchstone: no scores yet: {error.message}", file=sys.stderr)
        return
    rubric = rubrics.parse(job.spec.dataset.scoring.rubric)
    run = JudgeRun(job=job, rubric=rubric, result=tasks[0] if tasks else None)
    show(Report([_judged([run])], notes=_reasons([run]), document=_document(run)), format)


def _rows(run: JudgeRun, name: str) -> Iterator[Sequence[Any]]:
    scales = _scales(run.rubric)
    known = {metric.metric: metric for metric in run.result.metrics}
    counts = _counts(run)
    for word in rubrics.names(run.rubric):
        scale, metric = scales.get(word), known.get(word, metric_pb2.Metric())
        low, mean, high = (_on_scale(optional(metric, part), scale) for part in ("ci95_low", "mean", "ci95_high"))
        yield (
            name,
            run.job.job_id,
            run.job.spec.model,
            run.job.spec.endpoint,
            status_of(run.job.state),
            run.rubric.version,
            word,
            mean,
            (low, high),
            low,
            high,
            _ends(scale),
            *counts.values(),
        )


def _counts(run: JudgeRun) -> dict[str, int]:
    """Judgements: those with scores, those that were asked for, and those that could not be read."""
    result, outcomes = run.result, run.result.outcomes
    return {
        "judged": outcomes.answered,
        "asked": result.items_planned or run.job.progress.items_total,
        "failed": result.items - outcomes.answered - outcomes.infrastructure_error,
    }


def _scales(rubric: Rubric) -> dict[str, RubricCriterion]:
    """Of criteria without choices."""
    return {criterion.name: criterion for criterion in rubric.criteria if not criterion.choices}


def _ends(scale: RubricCriterion | None) -> list[int]:
    return [scale.lowest, scale.highest] if scale else [*_SHARE]


def _on_scale(share: float | None, scale: RubricCriterion | None) -> float | None:
    return share if share is None or scale is None else rubrics.on_scale(scale, share)


def _document(run: JudgeRun) -> dict[str, Any]:
    """The figures of the table, and the whole messages, whose means are shares of the scale."""
    table = Table(_COLUMNS, [*_rows(run, "")])
    kept = ("criterion", "mean_on_scale", "ci95_low_on_scale", "ci95_high_on_scale", "scale")
    return {
        "job_id": run.job.job_id,
        "status": status_of(run.job.state),
        "criteria": [{name: record[name] for name in kept} for record in table.records()],
        **_counts(run),
        **document(run),
    }
