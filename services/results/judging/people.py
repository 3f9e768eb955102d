"""How a judge's scores agree with people's, and what both say together. A judge may be a job or outside Touchstone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from services.results.judging.ratings import Place, in_order
from services.results.statistics import agreement, prediction_powered, scenario_means
from services.results.statistics.metric_values import Floats
from services.results.storage import archived_items
from services.results.storage.database import Connection
from services.words import rubrics
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion

LEAST_RATED = 10
"""Answers that people rate before their mean over all is estimated. From fewer, too few of the intervals hold: half of
them from two."""
_SEED = 20_261_128
_HALF = 0.5
"""From this share of its scale on, a score says that an answer is good as it is."""
_Shares = Mapping[str, float]


def agreements(connection: Connection, judged: str, judge: str, rubric: Rubric) -> list[pb.JudgeAgreement]:
    """Of the job `judge`, which judges the job `judged` by the rubric, one for each of its metrics; none where nobody
    rated those answers under the rubric."""
    people = _people(connection, judged, rubric)
    if not people:
        return []
    return _agreements(rubric, in_order(connection, judged), people, _judgements(connection, judge, rubric))


def outside(connection: Connection, judged: str) -> list[pb.OutsideJudge]:
    """The judges outside Touchstone that scored answers of the job, by rubric, name and rater."""
    rows = connection.execute(
        "SELECT r.rubric, p.judge, p.rater FROM present_ratings p JOIN rubrics r ON r.digest = p.rubric "
        "WHERE p.job_id = $job_id AND p.judge <> '' GROUP BY ALL ORDER BY min(r.number), p.judge, p.rater",
        {"job_id": judged},
    ).fetchall()
    places = in_order(connection, judged) if rows else []
    return [_outside(connection, judged, rubrics.parse(text), judge, rater, places) for text, judge, rater in rows]


def _outside(
    connection: Connection, judged: str, rubric: Rubric, judge: str, rater: str, places: Sequence[Place]
) -> pb.OutsideJudge:
    said = {
        place: list(by_rater.values()) for place, by_rater in _ratings(connection, judged, rubric, judge, rater).items()
    }
    found = pb.OutsideJudge(judge=judge, rater=rater, rubric=rubric, judged=len(said), answers=len(places))
    for metric in rubrics.names(rubric):
        (mean,) = scenario_means.means(_means(metric, places, said)[None])
        found.means.add(criterion=metric, score=None if mean is None else interval(mean))
    people = _people(connection, judged, rubric)
    found.agreement.extend(_agreements(rubric, places, people, said) if people else [])
    verdicts = _verdicts(connection, judged, rubric, said)
    if verdicts is not None:
        found.verdicts.CopyFrom(verdicts)
    return found


def _agreements(
    rubric: Rubric,
    places: Sequence[Place],
    people: Mapping[Place, Mapping[str, _Shares]],
    said: Mapping[Place, Sequence[_Shares]],
) -> list[pb.JudgeAgreement]:
    return [_agreement(rubric, metric, places, people, said) for metric in rubrics.names(rubric)]


def verdicts(connection: Connection, judged: str, judge: str, rubric: Rubric) -> pb.VerdictAgreement | None:
    """How the score of the job `judge` agrees with people's verdicts on the answers; None where none has both."""
    return _verdicts(connection, judged, rubric, _judgements(connection, judge, rubric))


def _verdicts(
    connection: Connection, judged: str, rubric: Rubric, said: Mapping[Place, Sequence[_Shares]]
) -> pb.VerdictAgreement | None:
    rows = connection.execute(
        "SELECT task, item, repeat, verdict FROM present_annotations WHERE job_id = $job_id AND verdict <> $none",
        {"job_id": judged, "none": int(pb.Annotation.VERDICT_UNSPECIFIED)},
    ).fetchall()
    places = [(task, item, repeat) for task, item, repeat, _ in rows]
    by_people = np.array([float(verdict == pb.Annotation.VERDICT_GOLDEN) for *_, verdict in rows])
    scores = _means(rubrics.names(rubric)[0], places, said)
    by_judge = np.where(np.isnan(scores), np.nan, scores >= _HALF)
    accuracy = agreement.accuracy(by_judge, by_people)
    if accuracy is None:
        return None
    kappa = interval(agreement.kappa(by_judge, by_people))
    return pb.VerdictAgreement(answers=accuracy.n, accuracy=interval(accuracy), kappa=kappa)


def among_people(connection: Connection, judged: str) -> list[pb.PeopleAgreement]:
    """How people agree with each other, for each rubric under which they rated answers of the job."""
    rows = connection.execute(
        "SELECT rubric FROM rubrics WHERE digest IN "
        "(SELECT rubric FROM present_ratings WHERE job_id = $job_id AND judge = '') ORDER BY number",
        {"job_id": judged},
    ).fetchall()
    places = in_order(connection, judged) if rows else []
    return [
        _among(rubric, places, _people(connection, judged, rubric)) for rubric in (rubrics.parse(t) for (t,) in rows)
    ]


def _among(
    rubric: Rubric, places: Sequence[Place], people: Mapping[Place, Mapping[str, _Shares]]
) -> pb.PeopleAgreement:
    found = pb.PeopleAgreement(
        rubric=rubric,
        raters=len({rater for by_rater in people.values() for rater in by_rater}),
        answers=len(people),
        shared=sum(len(by_rater) > 1 for by_rater in people.values()),
    )
    for criterion in rubric.criteria:
        alpha = interval(_alpha(criterion.name, places, people, _level(criterion)))
        found.criteria.add(criterion=criterion.name, alpha=alpha)
    return found


def _agreement(
    rubric: Rubric,
    metric: str,
    places: Sequence[Place],
    people: Mapping[Place, Mapping[str, _Shares]],
    said: Mapping[Place, Sequence[_Shares]],
) -> pb.JudgeAgreement:
    by_people = _means(metric, places, {place: list(by_rater.values()) for place, by_rater in people.items()})
    by_judge = _means(metric, places, said)
    found = pb.JudgeAgreement(
        metric=metric,
        answers=int((~np.isnan(by_people) & ~np.isnan(by_judge)).sum()),
        bias=interval(agreement.bias(by_judge, by_people)),
    )
    criterion = next((one for one in rubric.criteria if one.name == metric), None)
    if criterion is not None:
        usual = _usual(metric, places, people)
        found.MergeFrom(
            pb.JudgeAgreement(
                accuracy=interval(agreement.accuracy(by_judge, usual)),
                kappa=interval(agreement.kappa(by_judge, usual, quadratic=not criterion.choices)),
                alpha=interval(_alpha(metric, places, people, _level(criterion))),
            )
        )
    # Only what was rated in the order drawn at random says something of all answers.
    order = np.arange(len(places))
    drawn = prediction_powered.drawn_labels(order, ~np.isnan(by_people))
    if len(drawn) >= LEAST_RATED:
        labels = np.full(len(places), np.nan)
        labels[drawn] = by_people[drawn]
        both = prediction_powered.combined(labels, by_judge)
        found.combined.CopyFrom(pb.Interval(value=both.mean, low=both.low, high=both.high, n=both.items))
        found.people.CopyFrom(pb.Interval(value=both.alone, low=both.alone_low, high=both.alone_high, n=both.labels))
        found.ratings_to_halve = prediction_powered.labels_to_halve(both) or 0
    return found


def _means(metric: str, places: Sequence[Place], given: Mapping[Place, Sequence[_Shares]]) -> Floats:
    """Of each place (places,), NaN where nothing is given."""
    return np.array(
        [
            sum(one[metric] for one in given[place]) / len(given[place]) if given.get(place) else np.nan
            for place in places
        ]
    )


def _usual(metric: str, places: Sequence[Place], people: Mapping[Place, Mapping[str, _Shares]]) -> Floats:
    """The score (places,) that most raters of an answer give, NaN where two scores are as frequent, or nobody rated."""
    found = np.full(len(places), np.nan)
    for number, place in enumerate(places):
        counts = Counter(one[metric] for one in people.get(place, {}).values()).most_common(2)
        if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]):
            found[number] = counts[0][0]
    return found


def _level(criterion: RubricCriterion) -> agreement.Level:
    return "nominal" if criterion.choices else "ordinal"


def _alpha(
    metric: str, places: Sequence[Place], people: Mapping[Place, Mapping[str, _Shares]], level: agreement.Level
) -> agreement.Estimate | None:
    raters = sorted({rater for by_rater in people.values() for rater in by_rater})
    if len(raters) < 2:
        return None
    rated = [place for place in places if place in people]
    table = np.array(
        [[people[place][rater][metric] if rater in people[place] else np.nan for place in rated] for rater in raters]
    )
    return agreement.krippendorff(table, level, np.random.default_rng(_SEED))


def _people(connection: Connection, judged: str, rubric: Rubric) -> dict[Place, dict[str, _Shares]]:
    return _ratings(connection, judged, rubric, "", "")


def _ratings(
    connection: Connection, judged: str, rubric: Rubric, judge: str, rater: str
) -> dict[Place, dict[str, _Shares]]:
    """By answer and rater, of a judge outside; without one, of people. Without a rater, of all."""
    rows = connection.execute(
        "SELECT task, item, repeat, rater, scores FROM present_ratings WHERE job_id = $job_id AND rubric = $rubric "
        "AND judge = $judge AND $rater IN ('', rater)",
        {"job_id": judged, "rubric": rubrics.digest(rubric), "judge": judge, "rater": rater},
    ).fetchall()
    found: defaultdict[Place, dict[str, _Shares]] = defaultdict(dict)
    for task, item, repeat, rater, scores in rows:
        found[task, item, repeat][rater] = rubrics.shares(rubric, json.loads(scores))
    return dict(found)


def _judgements(connection: Connection, judge: str, rubric: Rubric) -> dict[Place, list[_Shares]]:
    archived_items.require(connection, judge)
    rows = connection.execute(
        "SELECT custom_id, prediction FROM items WHERE job_id = $job_id AND outcome = $answered",
        {"job_id": judge, "answered": int(OUTCOME_ANSWERED)},
    ).fetchall()
    found: defaultdict[Place, list[_Shares]] = defaultdict(list)
    for place, scores in _placed(rows):
        found[place].append(rubrics.shares(rubric, json.loads(scores)))
    return dict(found)


def _placed(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[Place, str]]:
    """The names of rows are those that `request_rows` gives them."""
    for custom_id, scores in rows:
        task, item, repeat = custom_id.partition("#")[0].rsplit("/", 2)
        yield (task, int(item), int(repeat)), scores


def interval(found: agreement.Estimate | scenario_means.Mean | None) -> pb.Interval | None:
    return None if found is None else pb.Interval(value=found.value, low=found.low, high=found.high, n=found.n)
