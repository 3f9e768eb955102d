"""Compares finished runs: which ones, on which items, their differences, and recommendations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from services.errors import InvalidRequestError
from services.results.comparison import common_items, expenses, findings, further_runs, rank_ranges
from services.results.comparison.advice import notes, recommendations
from services.results.comparison.common_items import Common
from services.results.comparison.findings import Finding, left_unanswered
from services.results.comparison.messages import difference_message, omnibus_message, run_message
from services.results.comparison.outcome import Outcome
from services.results.comparison.selection import comparability, subjects
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import labels
from services.results.comparison.shared_rows import SharedRows
from services.results.paired.pairs.difference import Pair, Terms
from services.results.scores.suite_score import SCORE
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals, suites
from touchstone.v1 import comparison_pb2

MOST_TASK_DIFFERENCES = 5_000
"""More would not fit into one message."""

_ALPHAS = (0.0001, 0.5)
_MOST_MARGIN = 2.0
_MOST_METRICS = 20


def compare(
    connection: Connection, request: comparison_pb2.CompareRequest, visible: Visibility = EVERYTHING
) -> comparison_pb2.CompareResponse:
    """The answer does not depend on the order of the subjects; one seed gives one answer.

    Raises InvalidRequestError for runs that cannot be compared in this way, NotFoundError for a subject without a
    finished run.
    """
    outcome = find(connection, request, visible)
    return comparison_pb2.CompareResponse(
        suite=outcome.chosen.suite,
        mode=outcome.chosen.mode,
        runs=[run_message(outcome, place) for place in outcome.ordered],
        differences=[difference_message(outcome, finding) for finding in (*outcome.suite, *outcome.tasks)],
        omnibus=[omnibus_message(*found) for found in outcome.omnibus],
        recommendations=recommendations(outcome),
        items=outcome.items,
        subset=outcome.subset,
        notes=notes(outcome),
        metrics=outcome.metrics,
        margin=outcome.terms.margin,
        alpha=outcome.terms.alpha,
        weighting=outcome.compared.weighting,
    )


def find_score(connection: Connection, a: str, b: str) -> comparison_pb2.Difference | None:
    """The difference of two jobs' scores, the same as in a comparison of the two, without what that computes further.
    None if they have no score in common. Raises as `compare`."""
    outcome = find(connection, comparison_pb2.CompareRequest(subjects=[a, b]), EVERYTHING, score_alone=True)
    return next((difference_message(outcome, finding) for finding in outcome.suite), None)


def find(
    connection: Connection, request: comparison_pb2.CompareRequest, visible: Visibility, *, score_alone: bool = False
) -> Outcome:
    """`score_alone`: without tasks, ranks, costs and further runs. Raises as `compare`."""
    limits = terms_of(request)
    chosen = subjects.choose(connection, request, visible)
    compared = comparability.compare(chosen.runs, suites.asked(request.weighting))
    metrics = metrics_of(request, compared)
    common = common_items.choose(connection, compared)
    scored = common_items.read(connection, compared, common)
    rows = SharedRows(connection, compared, common, metrics)
    averages = [one.averages for one in scored]
    ordered = common_items.order(compared.runs, averages, metrics[0])
    every = common_items.pairs(ordered, averages, metrics[0])
    models = [place for place in ordered if not compared.runs[place].job.baseline]
    baseline = next((place for place, run in enumerate(compared.runs) if run.job_id == chosen.baseline), None)
    asked = [pair for pair in every if baseline is None or baseline in pair]
    suite = [
        finding
        for metric in metrics
        for finding in findings.of_suite(rows, metric, asked, models, limits, primary=metric == metrics[0])
    ]
    scores = Outcome(
        chosen=chosen,
        compared=compared,
        common=common,
        scored=scored,
        metrics=metrics,
        terms=limits,
        ordered=ordered,
        labels=labels(compared.runs),
        baseline=baseline,
        suite=suite,
        tasks=[],
        places=[(0, 0)] * len(compared.runs),
        omnibus=[],
        every_pair=True,
        costs=[],
        again=[None] * len(compared.runs),
    )
    if score_alone:
        return scores
    in_detail = [pair for pair in asked if ordered[0] in pair] if _too_many(rows, asked) else asked
    overall = findings.omnibus_of_suite(rows, metrics[0], models)
    return replace(
        scores,
        tasks=findings.of_tasks(rows, in_detail, models, limits),
        places=_places(connection, compared, common, suite, metrics[0], ordered, every, limits),
        omnibus=[
            *([("", metrics[0], overall)] if overall is not None else []),
            *findings.omnibus_of_tasks(rows, models),
        ],
        every_pair=len(in_detail) == len(asked),
        costs=expenses.read(connection, compared),
        again=further_runs.read(connection, chosen, compared, common, visible),
    )


def _too_many(rows: SharedRows, pairs: Sequence[Pair]) -> bool:
    figures = sum(len(rows.task_metrics(rows.compared.plans[task][0])) for task in rows.compared.tasks)
    return figures * len(pairs) > MOST_TASK_DIFFERENCES


def _places(
    connection: Connection,
    compared: Comparability,
    common: Common,
    suite: Sequence[Finding],
    metric: str,
    ordered: Sequence[int],
    every: Sequence[Pair],
    limits: Terms,
) -> list[tuple[int, int]]:
    """By run; (0, 0) for baselines and runs that do not rank, which take no rank from others."""
    runs = compared.runs
    ranked = [place for place in ordered if not runs[place].job.baseline and not runs[place].not_ranked_reason]
    tested = [finding for finding in suite if finding.metric == metric]
    open_to = any(left_unanswered(runs[place], compared.tasks) for place in ranked)
    if open_to or len(ranked) < len(runs) or len(tested) < len(every):
        tested = rank_ranges.tested(connection, compared, common, metric, ranked, every, limits)
    found = dict(zip(ranked, rank_ranges.among(ranked, tested, limits.alpha), strict=True))
    return [found.get(place, (0, 0)) for place in range(len(runs))]


def terms_of(request: comparison_pb2.CompareRequest) -> Terms:
    """Raises InvalidRequestError for an invalid margin or alpha."""
    alpha, margin = request.alpha or 0.05, request.margin or 0.01
    if not (math.isfinite(alpha) and _ALPHAS[0] <= alpha <= _ALPHAS[1]):
        raise InvalidRequestError(refusals.between("alpha", *_ALPHAS), "alpha")
    if not (math.isfinite(margin) and 0 < margin <= _MOST_MARGIN):
        raise InvalidRequestError(f"margin must be above 0 and at most {_MOST_MARGIN:g}.", "margin")
    # Generators take seeds from 0; the two halves of the range do not overlap.
    return Terms(alpha=alpha, margin=margin, seed=request.seed % 2**64)


def metrics_of(request: comparison_pb2.CompareRequest, compared: Comparability) -> list[str]:
    """Raises InvalidRequestError for a metric that no task of the suite has."""
    asked = list(dict.fromkeys(request.metrics)) or [SCORE]
    if len(asked) > _MOST_METRICS:
        raise InvalidRequestError(refusals.too_large("The comparison", len(asked), _MOST_METRICS, "metrics"), "metrics")
    known = _known_metrics(compared)
    for metric in asked:
        if metric not in known:
            raise InvalidRequestError(
                f"No task that these runs have in common has the metric {metric[:80]!r}. Metrics: {', '.join(known)}.",
                "metrics",
            )
    return asked


def _known_metrics(compared: Comparability) -> Sequence[str]:
    plans = [run.plans[task] for run in compared.runs for task in compared.tasks]
    return list(dict.fromkeys([SCORE, *(spec.metric for plan in plans for spec in plan.metrics)]))
