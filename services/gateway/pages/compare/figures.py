"""The figures of a comparison as the page shows them, from the answers of the results service. Pure.

Nothing is tested or estimated here: differences are turned so that they are those of the run in focus against the
baseline, and sorted by evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.gateway.pages.compare import drawing
from services.gateway.pages.compare.cards import (
    Asked,
    Cell,
    Costs,
    HeadToHead,
    again_of,
    costs_of,
    head_to_head,
    matrix_of,
    speed_of,
)
from services.gateway.pages.compare.differences import Line, Side, Turned
from services.gateway.pages.compare.view import View
from services.gateway.pages.display import formatting, palette
from services.gateway.pages.display.charts import Axis
from services.gateway.reads import jobs
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.comparison_pb2 import ComparedRun, CompareResponse

_CORRECTIONS = {"holm": "Holm", "benjamini-hochberg": "Benjamini–Hochberg"}
_VERDICTS = {
    "better": "is better on {}",
    "worse": "is worse on {}",
    "equivalent": "is equivalent on {}",
    "no_difference_shown": "shows no difference on {}",
    "not_comparable": "cannot be compared on {}",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What the services answered. `jobs` and `results` are by job, without those that could not be read; `rows` are the
    counts of the two runs in question, the run in focus first, None where they share no row."""

    found: CompareResponse
    jobs: Mapping[str, job_pb2.Job]
    results: Mapping[str, metric_pb2.JobResult]
    keys: Sequence[palette.Key] = ()
    rows: results_service_pb2.ListSideBySideResponse | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """`verdict` is a word of REST. Figures are × 100, `amount` without a sign."""

    verdict: str
    amount: str = ""
    change: str = ""
    interval: str = ""
    total: str = ""
    p: str = ""
    reach: str = ""
    needed: str = ""
    within: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that the template shows. `each` has a sentence for every run against the reference."""

    sides: Sequence[Side]
    focus: Side
    reference: Side
    headline: Headline
    each: Sequence[tuple[Side, Headline]]
    margin: str
    tasks_words: str
    method: str
    whole: Line | None
    lines: Sequence[Line]
    axis: Axis
    head_to_head: HeadToHead | None
    matrix: Sequence[tuple[Side, Sequence[Cell | None]]]
    costs: Costs
    again: Sequence[Asked]
    speed: Sequence[tuple[str, Sequence[str]]]
    concurrency: str


def focus_of(view: View, found: CompareResponse) -> str:
    """The run that the page is about: the chosen one, or the best one that is not the baseline."""
    if view.focus and view.focus != view.reference:
        return view.focus
    others = [run for run in found.runs if run.job_id != view.reference]
    models = [run for run in others if not run.baseline]
    return (models or others)[0].job_id


def figures_of(view: View, known: Known) -> Figures:
    """`view.reference` and the focus must be among the compared runs."""
    found = known.found
    sides = _sides(view, found, known.keys)
    by_job = {side.job_id: side for side in sides}
    focus, reference = by_job[focus_of(view, found)], by_job[view.reference]
    turned = [
        Turned(one, focus, reference) for one in found.differences if {one.a, one.b} == {focus.job_id, reference.job_id}
    ]
    axis = drawing.axis_of([end for one in turned for end in one.ends])
    whole = _whole(found, focus, reference)
    lines = [one.line(axis) for one in sorted((one for one in turned if one.task), key=Turned.evidence)]
    return Figures(
        sides=sides,
        focus=focus,
        reference=reference,
        headline=_headline(whole, found.alpha),
        each=[
            (side, _headline(_whole(found, side, reference), found.alpha)) for side in sides if side is not reference
        ],
        margin=points(found.margin),
        tasks_words=_tasks_words(lines),
        method=_method(whole, [one for one in turned if one.task]),
        whole=whole.line(axis) if whole else None,
        lines=lines,
        axis=axis,
        head_to_head=head_to_head(known.rows, focus, reference, lines),
        matrix=matrix_of(view, found, sides) if len(sides) > 2 else (),
        costs=costs_of(known.results, sides, (focus, reference)),
        again=again_of(sides),
        speed=speed_of(known.jobs, known.results, sides),
        concurrency=_concurrency(known.jobs),
    )


def _whole(found: CompareResponse, focus: Side, reference: Side) -> Turned | None:
    """The difference of their scores; None where it was not tested."""
    pair = {focus.job_id, reference.job_id}
    tested = (one for one in found.differences if {one.a, one.b} == pair and not one.task)
    own = next((one for one in tested if one.metric == found.metrics[0]), None)
    return Turned(own, focus, reference) if own is not None else None


def _concurrency(known: Mapping[str, job_pb2.Job]) -> str:
    asked = dict.fromkeys(str(job.receipt.concurrency) for job in known.values() if job.receipt.concurrency)
    return f"concurrency {' or '.join(asked)}" if asked else ""


def points(margin: float) -> str:
    """δ in points: 1 point, 0.5 points."""
    return f"{100 * margin:g} {'point' if f'{100 * margin:g}' == '1' else 'points'}"


def _sides(view: View, found: CompareResponse, keys: Sequence[palette.Key]) -> list[Side]:
    """In the order of the address. Of one model's runs the later ones take free colours."""
    runs = {run.job_id: run for run in found.runs}
    ordered = [runs[job_id] for job_id in view.job_ids if job_id in runs]
    slots = palette.assign(keys, ((run.endpoint, run.model) for run in ordered if not run.baseline))
    names = _names(ordered)
    sides: list[Side] = []
    taken: set[int] = set()
    for run in ordered:
        slot = None if run.baseline else slots[run.endpoint, run.model]
        if slot in taken:
            slot = next((one for one in range(palette.SLOTS) if one not in {*slots.values(), *taken}), slot)
        if slot is not None:
            taken.add(slot)
        sides.append(Side(run, names[run.job_id], slot, "none" if slot is None else f"m{slot % 8 + 1}"))
    return sides


def _names(runs: Sequence[ComparedRun]) -> dict[str, str]:
    """By job: its name or model, with the endpoint or the job's short id where that is not unique."""
    models = [formatting.shown(run.model) for run in runs]
    ways = (
        [run.name or model for run, model in zip(runs, models, strict=True)],
        [run.name or f"{model}@{run.endpoint}" for run, model in zip(runs, models, strict=True)],
        [f"{model} ({jobs.short_id(run.job_id)})" for run, model in zip(runs, models, strict=True)],
    )
    found: dict[str, str] = {}
    for way in ways:
        times = Counter(way)
        for run, name in zip(runs, way, strict=True):
            if times[name] == 1:
                found.setdefault(run.job_id, name)
    return {run.job_id: found.get(run.job_id, run.job_id) for run in runs}


def _headline(whole: Turned | None, alpha: float) -> Headline:
    if whole is None:
        return Headline("not_comparable", reason="their difference was not tested")
    value, interval, reach, p = whole.value, whole.interval, whole.reach, whole.p
    return Headline(
        verdict=whole.verdict,
        amount="" if value is None else formatting.hundredths(abs(value)),
        change="" if value is None else formatting.change(value),
        interval="" if interval is None else _span(interval, turned=whole.verdict == "worse"),
        total="" if whole.total is None else _span(whole.total, turned=whole.verdict == "worse"),
        p="" if p is None else formatting.p_value(p),
        reach="" if reach is None else formatting.hundredths(reach),
        needed=formatting.number(whole.needed) if whole.needed else "",
        within=whole.shown and whole.within(alpha),
        reason=whole.reason,
    )


def _span(interval: tuple[float, float], *, turned: bool) -> str:
    low, high = interval
    return formatting.span(-high, -low) if turned else formatting.span(low, high)


def _tasks_words(lines: Sequence[Line]) -> str:
    """How many tasks show what, by each task's first metric. Empty for a single task."""
    by_task: dict[str, Line] = {}
    for line in lines:
        by_task.setdefault(line.task, line)
    if len(by_task) < 2:
        return ""
    counts = Counter(line.verdict for line in by_task.values())
    parts = [text.format(counts[verdict]) for verdict, text in _VERDICTS.items() if counts[verdict]]
    joined = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"It {joined} of {len(by_task)} tasks."


def _method(whole: Turned | None, tasks: Sequence[Turned]) -> str:
    """The tests behind the figures, and how p is corrected."""
    parts = []
    if whole is not None and whole.test:
        parts.append(f"Suite: {whole.test}{_corrected(whole.correction)}")
    if tests := list(dict.fromkeys(one.test for one in tasks if one.test)):
        correction = next((one.correction for one in tasks if one.correction), "")
        parts.append(f"Tasks: {' or '.join(tests)}{_corrected(correction)}")
    return ". ".join(parts)


def _corrected(correction: str) -> str:
    return f", {_CORRECTIONS.get(correction, correction)} over all comparisons" if correction else ""
