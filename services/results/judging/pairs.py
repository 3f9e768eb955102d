"""What a judge found that compared two jobs' answers, and how it agrees with people who did."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from services.results.judging.people import interval
from services.results.scores import means
from services.results.statistics import agreement
from services.results.statistics.metric_values import Floats
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.words import rubrics
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric

_TINY = 1e-12
_HALF = 0.5


def judged_pairs(connection: Connection, judge: str, judging: job_pb2.Judging, rubric: Rubric) -> pb.JudgedPairs:
    """What the job `judge` found by a rubric of `rubrics.comparing`."""
    archived_items.require(connection, judge)
    names = [criterion.name for criterion in rubric.criteria]
    columns = [
        f", {way}.preferred[{number}] AS {way}_{number}"
        for way in ("one", "other")
        for number in range(1, len(names) + 1)
    ]
    where = {"job_id": judge, "paths": [f"$.{name}" for name in names]}
    rows = connection.execute(query("judging/pairs").format(columns="".join(columns)), where).fetchnumpy()
    place_of_row = np.asarray(rows["place"])
    if not len(place_of_row):
        return pb.JudgedPairs()
    # Rows of one place follow each other.
    begins = np.concatenate([[True], place_of_row[1:] != place_of_row[:-1]])
    first_rows, of_row = np.flatnonzero(begins), np.cumsum(begins) - 1
    places = place_of_row[first_rows]
    found = pb.JudgedPairs(pairs=len(places))
    # For the answer that stands first, by row and criterion: with the judged answer first, and with the other one.
    one_way, other_way = (
        np.stack([np.asarray(rows[f"{way}_{number}"]) for number in range(1, len(names) + 1)], axis=1)
        for way in ("one", "other")
    )
    by_row = (one_way + 1 - other_way) / 2
    preferred = np.stack([np.bincount(of_row, column) for column in by_row.T], axis=1) / np.bincount(of_row)[:, None]
    by_metric = dict(zip(names, preferred.T, strict=True))
    if len(names) > 1:
        by_metric = {rubrics.COMPOSITE: preferred @ _weights(rubric), **by_metric}
    for metric, shares in by_metric.items():
        one = found.preferences.add(metric=metric, preferred=_preferred(shares))
        sides = _sides(shares)
        one.better, one.worse = int((sides > 0).sum()), int((sides < 0).sum())
        one.equal = len(shares) - one.better - one.worse
        if metric in names:
            # Several judgements of one pair depend on each other: the first ones are taken.
            column = names.index(metric)
            positions = agreement.positions(one_way[first_rows, column], other_way[first_rows, column])
            one.MergeFrom(
                pb.JudgedPreference(
                    same_in_both_orders=interval(positions.agreement), first_preferred=interval(positions.first)
                )
            )
    sides = _sides(next(iter(by_metric.values())))
    people = _people(connection, judging, dict(zip(places.tolist(), sides.tolist(), strict=True)))
    if people is not None:
        found.people.CopyFrom(people)
    return found


def _weights(rubric: Rubric) -> Floats:
    """As shares, (criteria,)."""
    weights = np.array([criterion.weight for criterion in rubric.criteria])
    weights = weights if weights.any() else np.ones(len(weights))
    return np.asarray(weights / weights.sum())


def _preferred(shares: Floats) -> pb.Interval:
    """The mean of shares (pairs,). Its interval is that of the judge's own score where no judgement failed."""
    n, value = len(shares), float(shares.mean())
    found = means.clustered_estimate(value, n, means.clustered_stderr((shares - value) / n), n, means.UNIT_SPAN)
    low, high = (0.0, 1.0) if n < 2 else (found.low, found.high)
    return pb.Interval(value=value, low=low, high=high, n=n)


def _sides(shares: Floats) -> Floats:
    """1 where the judged answer is preferred (pairs,), -1 where the other one is, 0 for neither."""
    return np.where(np.abs(shares - _HALF) > _TINY, np.sign(shares - _HALF), 0.0)


def _people(connection: Connection, judging: job_pb2.Judging, sides: dict[str, float]) -> pb.PreferenceAgreement | None:
    """Against people's preferences; `sides` are the judge's, by pair. None where no pair has both."""
    archived_items.require(connection, judging.job_id)
    rows = connection.execute(
        query("judging/preferences"),
        {
            "job_id": judging.job_id,
            "jobs": ",".join(sorted((judging.job_id, judging.against_job_id))),
            "better": int(pb.Preference.CHOICE_BETTER),
            "tie": int(pb.Preference.CHOICE_TIE),
        },
    ).fetchall()
    said: defaultdict[str, list[float]] = defaultdict(list)
    for place, value in rows:
        if place in sides:
            said[place].append(value)
    usual = {place: _usual(values) for place, values in said.items()}
    by_people = np.array([value for value in usual.values() if value is not None])
    by_judge = np.array([sides[place] for place, value in usual.items() if value is not None])
    accuracy = agreement.accuracy(by_judge, by_people)
    if accuracy is None:
        return None
    kappa = interval(agreement.kappa(by_judge, by_people))
    return pb.PreferenceAgreement(pairs=accuracy.n, accuracy=interval(accuracy), kappa=kappa)


def _usual(values: list[float]) -> float | None:
    """What most say; None where two are as frequent."""
    counts = Counter(values).most_common(2)
    return counts[0][0] if len(counts) == 1 or counts[0][1] > counts[1][1] else None
