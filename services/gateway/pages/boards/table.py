"""The leaderboard's table: what tells its rows apart where names do not, and the shades of its task columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from services.gateway.pages.display import formatting
from services.gateway.reads import values
from services.gateway.reads.jobs import iso
from touchstone.v1 import metric_pb2, results_service_pb2, suite_pb2

LONGEST = 28
"""Characters of one setting that a row has room for."""

MOST_NAMED = 2
"""Tasks of a set that are named; more are counted."""


def distinctions(entries: Sequence[metric_pb2.LeaderboardEntry]) -> dict[str, str]:
    """By job id: what differs between rows of one model at one endpoint; empty for single rows."""
    alike: dict[tuple[str, str], list[metric_pb2.LeaderboardEntry]] = {}
    for entry in entries:
        alike.setdefault((entry.endpoint, entry.model), []).append(entry)
    found: dict[str, str] = {}
    for rows in alike.values():
        if len(rows) > 1:
            found |= dict(zip((row.job_id for row in rows), _apart(rows), strict=True))
    return found


def _apart(rows: Sequence[metric_pb2.LeaderboardEntry]) -> list[str]:
    """The settings that differ; if two rows still look the same, also the hashes of their configurations."""
    settings = [_settings(row) for row in rows]
    names = dict.fromkeys(name for known in settings for name in known)
    differing = [name for name in names if len({known.get(name) for known in settings}) > 1]
    words = [", ".join(filter(None, (known.get(name, "") for name in differing))) for known in settings]
    read = [(text, row.name, row.alias) for text, row in zip(words, rows, strict=True)]
    return [
        text if read.count(key) == 1 else ", ".join(filter(None, (text, row.configuration[:6])))
        for text, key, row in zip(words, read, rows, strict=True)
    ]


def _settings(entry: metric_pb2.LeaderboardEntry) -> Mapping[str, str]:
    """A setting's words by its name, in the order they are read."""
    receipt = entry.receipt
    sent = values.members(receipt.parameters) or {}
    known = {
        "mode": formatting.mode(entry.mode),
        "shots": f"{entry.shots}-shot",
        "repeats": f"{entry.repeats} answers" if entry.repeats > 1 else "1 answer",
        **{name: _short(f"{name} {_plain(value)}") for name, value in sent.items()},
        "template": f"template: {receipt.template}" if receipt.template else "",
        "digest": f"weights {receipt.model_digest.removeprefix('sha256:')[:6]}" if receipt.model_digest else "",
    }
    return {name: words for name, words in known.items() if words}


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def item_set_choices(sets: Sequence[results_service_pb2.ItemSet]) -> list[tuple[str, str]]:
    """(item set, its words) for each, in the given order; sets that would look the same also have their hash."""
    words = [_item_set_words(one, len({tuple(other.tasks) for other in sets}) > 1) for one in sets]
    seen = Counter(words)
    return [
        (one.item_set, text if seen[text] == 1 else f"{text}, {one.item_set[:6]}")
        for one, text in zip(sets, words, strict=True)
    ]


def _item_set_words(one: results_service_pb2.ItemSet, tasks_differ: bool) -> str:
    counted = f"{one.items:,} of {one.published_items:,}" if one.subset else f"all {one.items:,}"
    tasks = ""
    if tasks_differ and one.tasks:
        tasks = " and ".join(one.tasks) if len(one.tasks) <= MOST_NAMED else f"{len(one.tasks)} tasks"
    return ", ".join(filter(None, (counted, tasks, one.scoring, f"{one.configurations} ranked")))


LEVELS = 5
MOST_TASKS = 14
"""With more tasks, the columns are the suite's categories."""


@dataclass(frozen=True, slots=True)
class Column:
    """One task. `level` holds a shade 1–5 by job id, 0 if the model is not shown to beat the majority class."""

    task: str
    title: str
    metric: str
    items: int
    results: dict[str, metric_pb2.TaskResult]
    levels: dict[str, int]

    def value(self, job_id: str) -> float | None:
        """A run's metric; None where it has none."""
        result = self.results.get(job_id)
        return result.metrics[0].mean if result and result.metrics and result.metrics[0].HasField("mean") else None


def columns(
    ranked: Sequence[metric_pb2.LeaderboardEntry],
    floors: Sequence[metric_pb2.LeaderboardEntry],
    suite: suite_pb2.Suite | None,
    weighting: suite_pb2.Weighting,
) -> list[Column]:
    """Columns in the suite's order; tasks of one score group share the first one's column, as they count once.

    `weighting` is what has equal weight in a category.
    """
    if suite and len(suite.tasks) > MOST_TASKS and (by_category := category_columns(ranked, floors, weighting)):
        return by_category
    by_task: dict[str, dict[str, metric_pb2.TaskResult]] = {}
    for entry in (*ranked, *floors):
        for result in entry.tasks:
            by_task.setdefault(result.task, {})[entry.job_id] = result
    place = {task.task: number for number, task in enumerate(suite.tasks)} if suite else {}
    groups: set[str] = set()
    found = []
    for name in sorted(by_task, key=lambda name: place.get(name, len(place))):
        group = next(iter(by_task[name].values())).score_group
        if group and group in groups:
            continue
        groups.add(group)
        found.append(_column(by_task[name], ranked, floors))
    return found


def category_columns(
    ranked: Sequence[metric_pb2.LeaderboardEntry],
    floors: Sequence[metric_pb2.LeaderboardEntry],
    weighting: suite_pb2.Weighting,
) -> list[Column]:
    """One column for each category of a suite with many tasks: the mean over its items, or its tasks."""
    gathered: dict[str, dict[str, metric_pb2.TaskResult]] = {}
    for entry in (*ranked, *floors):
        for average in entry.averages:
            if average.category and average.weighting == weighting:
                gathered.setdefault(average.category, {})[entry.job_id] = metric_pb2.TaskResult(
                    task=average.category, title=average.category, metrics=[average.metric], items=average.metric.n
                )
    found = []
    for category, results in gathered.items():
        tasks = [t for e in (*ranked, *floors)[:1] for t in e.tasks if t.category == category]
        sizes = [t.items if weighting == suite_pb2.WEIGHTING_ITEMS else 1 for t in tasks]
        beside = [results[e.job_id].metrics[0].mean for e in floors if e.job_id in results]
        floor = max([fmean(map(_floor, tasks), sizes) if any(sizes) else 0.0, *beside])
        first = next(iter(results.values()))
        found.append(Column(category, category, "mean", first.items, results, _levels(results, ranked, floor)))
    return found


def _column(
    results: dict[str, metric_pb2.TaskResult],
    ranked: Sequence[metric_pb2.LeaderboardEntry],
    floors: Sequence[metric_pb2.LeaderboardEntry],
) -> Column:
    """Of one task, from its results by job."""
    first = next(iter(results.values()))
    floor = max(map(_floor, results.values()))
    for entry in floors:
        if "majority" in entry.model and (own := results.get(entry.job_id)) and own.metrics:
            floor = own.metrics[0].mean
    metric = first.metrics[0].metric if first.metrics else ""
    levels = _levels(results, ranked, floor)
    return Column(first.task, first.title or first.task, metric, first.items, results, levels)


def _levels(
    results: dict[str, metric_pb2.TaskResult], ranked: Sequence[metric_pb2.LeaderboardEntry], floor: float
) -> dict[str, int]:
    beating = {
        e.job_id: results[e.job_id].metrics[0].mean
        for e in ranked
        if e.job_id in results and _beats(results[e.job_id], floor)
    }
    low, high = min(beating.values(), default=0.0), max(beating.values(), default=0.0)
    return {job_id: level(value, low, high) for job_id, value in beating.items()}


def level(value: float, low: float, high: float) -> int:
    """The shade of a value among those from `low` to `high`, 1 to LEVELS; the highest one if all are equal."""
    position = (value - low) / (high - low) if high > low else 1.0
    return 1 + min(LEVELS - 1, int(position * LEVELS))


def _beats(result: metric_pb2.TaskResult, floor: float) -> bool:
    """Whether the interval is above the majority class's score."""
    if not result.metrics or not result.metrics[0].HasField("mean"):
        return False
    metric = result.metrics[0]
    return (metric.ci95_low if metric.HasField("ci95_low") else metric.mean) > floor


def _floor(result: metric_pb2.TaskResult) -> float:
    """The primary metric of always answering the most frequent class. For F1 the case that this class is positive."""
    if not result.HasField("majority_share") or not result.metrics:
        return 0.0
    m = result.majority_share
    by_metric = {"accuracy": m, "f1": 2 * m / (1 + m)}
    return by_metric.get(result.metrics[0].metric, 0.0)


LEAST_SPAN = 4.0
"""Points that the sparklines of a table span at least."""
SPARK_RUNS = 12


@dataclass(frozen=True, slots=True)
class Sparks:
    """Scores × 100 over time by job id of the newest run, and the span that all of them share."""

    values: dict[str, list[float]]
    span: float

    @classmethod
    def of(
        cls, entries: Sequence[metric_pb2.LeaderboardEntry], trends: Sequence[results_service_pb2.Trend], item_set: str
    ) -> Sparks:
        """The newest runs of each entry's configuration on the board's items, oldest first."""
        by_configuration = {trend.configuration: trend for trend in trends if trend.item_set == item_set}
        found = {}
        for entry in entries:
            trend = by_configuration.get(entry.configuration, results_service_pb2.Trend())
            scores = [100 * point.score.mean for point in trend.points if point.score.HasField("mean")]
            found[entry.job_id] = scores[-SPARK_RUNS:]
        return cls(found, max([LEAST_SPAN, *(max(one) - min(one) for one in found.values() if one)]))


def task_width(shown: Sequence[Column]) -> str:
    """The class of a width at which every column's title fits, as far as words may be that long."""
    longest = max((len(word) for one in shown for word in one.title.replace("-", " ").split()), default=0)
    return "narrow-tasks" if longest <= 8 else "wide-tasks" if longest > 11 else ""


def place_words(entry: metric_pb2.LeaderboardEntry | results_service_pb2.ExperimentRow) -> str:
    """What the range of ranks means: "may be 2nd to 4th"."""
    first, last = formatting.ordinal(entry.rank_low), formatting.ordinal(entry.rank_high)
    if first == last:
        return f"is {first}, whatever the data leave open"
    places = " to ".join((first, last))
    return f"may be {places}"


def end_of_top(ranked: Sequence[metric_pb2.LeaderboardEntry]) -> str:
    """The job id of the last row that may be first; empty if all may be, or ranges are not known."""
    may_be_first = [entry.rank_low == 1 for entry in ranked if entry.rank_low]
    if not any(may_be_first) or all(may_be_first):
        return ""
    return [entry.job_id for entry in ranked if entry.rank_low == 1][-1]


def exported(entry: metric_pb2.LeaderboardEntry, suite: str, metric: str, tasks: Sequence[Column]) -> dict[str, object]:
    """A row with REST's names and values, and a column for each column of tasks."""
    score = entry.score
    has_interval, ranged = score.HasField("ci95_low"), bool(entry.rank_low)
    return {
        "rank": entry.rank or None,
        "rank_low": entry.rank_low if ranged else None,
        "rank_high": entry.rank_high if ranged else None,
        "model": entry.model,
        "provider": entry.endpoint,
        "baseline": entry.baseline,
        "name": entry.name or None,
        "suite": suite,
        "metric": metric,
        "score": score.mean if score.HasField("mean") and not entry.not_ranked_reason else None,
        "ci95_low": score.ci95_low if has_interval else None,
        "ci95_high": score.ci95_high if has_interval else None,
        "n": score.n,
        "benchmark_count": entry.run_count,
        "cost_usd": values.cost(entry),
        "completed_at": iso(entry.completed_at),
        "job_id": entry.job_id,
        "reason": entry.not_ranked_reason or None,
        **{f"{one.task} {one.metric}": one.value(entry.job_id) for one in tasks},
    }
