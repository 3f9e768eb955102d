"""Compares finished runs: which ones, on which items, by how much, and what follows."""

from __future__ import annotations

from collections.abc import Sequence

from services.results import weighting
from services.results.comparison import (
    common_items,
    common_scores,
    comparability,
    expenses,
    findings,
    order,
    places,
    subjects,
    terms,
)
from services.results.comparison.common_items import Common
from services.results.comparison.comparability import Comparability
from services.results.comparison.findings import Finding
from services.results.comparison.labels import labels
from services.results.comparison.messages import difference_message, omnibus_message, run_message
from services.results.comparison.notes import notes
from services.results.comparison.open_cases import left_unanswered
from services.results.comparison.outcome import Outcome
from services.results.comparison.recommendations import recommendations
from services.results.comparison.shared_rows import SharedRows
from services.results.database import Connection
from services.results.paired.difference import Pair, Terms
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1 import comparison_pb2

MOST_TASK_DIFFERENCES = 5_000
"""More would outgrow what one message may hold."""


def compare(
    connection: Connection, request: comparison_pb2.CompareRequest, visible: Visibility = EVERYTHING
) -> comparison_pb2.CompareResponse:
    """The answer does not depend on the order of the subjects; one seed gives one answer.

    Raises InvalidRequestError for what cannot be compared as asked, NotFoundError for a subject without a finished run.
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


def find(connection: Connection, request: comparison_pb2.CompareRequest, visible: Visibility) -> Outcome:
    """Raises as `compare`."""
    limits = terms.terms_of(request)
    chosen = subjects.choose(connection, request, visible)
    compared = comparability.compare(chosen.runs, weighting.asked(request.weighting))
    metrics = terms.metrics_of(request, compared)
    common = common_items.choose(connection, compared)
    scored = common_scores.read(connection, compared, common)
    rows = SharedRows(connection, compared, common, metrics)
    averages = [one.averages for one in scored]
    ordered = order.order(compared.runs, averages, metrics[0])
    every = order.pairs(ordered, averages, metrics[0])
    models = [place for place in ordered if not compared.runs[place].job.baseline]
    baseline = next((place for place, run in enumerate(compared.runs) if run.job_id == chosen.baseline), None)
    asked = [pair for pair in every if baseline is None or baseline in pair]
    suite = [
        finding
        for metric in metrics
        for finding in findings.of_suite(rows, metric, asked, models, limits, primary=metric == metrics[0])
    ]
    in_detail = [pair for pair in asked if ordered[0] in pair] if _too_many(rows, asked) else asked
    overall = findings.omnibus_of_suite(rows, metrics[0], models)
    return Outcome(
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
        tasks=findings.of_tasks(rows, in_detail, models, limits),
        places=_places(connection, compared, common, suite, metrics[0], ordered, every, limits),
        omnibus=[
            *([("", metrics[0], overall)] if overall is not None else []),
            *findings.omnibus_of_tasks(rows, models),
        ],
        every_pair=len(in_detail) == len(asked),
        costs=expenses.read(connection, compared),
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
    """By run; (0, 0) for baselines and runs that do not rank, which leave no place open to others."""
    runs = compared.runs
    ranked = [place for place in ordered if not runs[place].job.baseline and not runs[place].not_ranked_reason]
    tested = [finding for finding in suite if finding.metric == metric]
    open_to = any(left_unanswered(runs[place], compared.tasks) for place in ranked)
    if open_to or len(ranked) < len(runs) or len(tested) < len(every):
        tested = places.tested(connection, compared, common, metric, ranked, every, limits)
    found = dict(zip(ranked, places.among(ranked, tested, limits.alpha), strict=True))
    return [found.get(place, (0, 0)) for place in range(len(runs))]
