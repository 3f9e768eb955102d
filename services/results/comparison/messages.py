"""Comparisons as messages."""

from __future__ import annotations

from services.results.comparison.findings import Finding
from services.results.comparison.further_runs import Again
from services.results.comparison.outcome import Outcome
from services.results.comparison.selection.runs import in_points
from services.results.paired.corrections import Correction
from services.results.paired.pairs.difference import Difference, Omnibus
from services.results.paired.verdicts import sentence
from services.results.scores.metric_kinds import GROUP_RULES
from services.words.enums import COMPARISON_VERDICTS
from touchstone.v1 import comparison_pb2, metric_pb2, noise_pb2

_NAMES = {Correction.HOLM: "Holm", Correction.BENJAMINI_HOCHBERG: "Benjamini–Hochberg"}


def run_message(outcome: Outcome, place: int) -> comparison_pb2.ComparedRun:
    run, scored = outcome.runs[place], outcome.scored[place]
    low, high = outcome.places[place]
    nothing = "the runs do not share such a figure"
    return comparison_pb2.ComparedRun(
        subject=run.subject,
        job_id=run.job_id,
        model=run.job.spec.model,
        endpoint=run.job.spec.endpoint,
        configuration=run.configuration,
        name=run.name,
        rank_low=low,
        rank_high=high,
        scores=[
            scored.averages.get(metric) or metric_pb2.Metric(metric=metric, undefined_reason=nothing)
            for metric in outcome.metrics
        ],
        baseline=run.job.baseline,
        completed_at=run.completed_at,
        not_ranked_reason=run.not_ranked_reason,
        tasks=scored.tasks,
        caution=run.result.caution,
        again=_again(outcome.again[place]),
    )


def difference_message(outcome: Outcome, finding: Finding) -> comparison_pb2.Difference:
    found = finding.difference or Difference(None, 0)
    a, b = outcome.runs[finding.a], outcome.runs[finding.b]
    verdict = outcome.verdict(finding)
    total_low, total_high = outcome.total_interval(finding) or (None, None)
    return comparison_pb2.Difference(
        a=a.job_id,
        b=b.job_id,
        task=finding.task,
        title=outcome.compared.title(finding.task) if finding.task else "",
        metric=finding.metric,
        difference=found.value,
        stderr=found.stderr,
        low=found.low,
        high=found.high,
        p_value=found.p,
        p_adjusted=finding.adjusted,
        family=finding.family.value,
        correction=finding.correction.value,
        test=found.test,
        n=found.n,
        only_a=found.only_a,
        only_b=found.only_b,
        verdict=COMPARISON_VERDICTS[verdict.name.lower()],
        words=sentence(
            verdict,
            found,
            outcome.labels[finding.a],
            outcome.labels[finding.b],
            finding.adjusted,
            outcome.terms,
            points=in_points(finding.metric),
            unit=_unit(outcome, finding),
            reason=finding.reason,
            comparisons=finding.comparisons,
            corrected_by=_corrected_by(finding),
        ),
        smallest_difference=found.smallest,
        equivalence_p=found.equivalence_p,
        reason=finding.reason or found.undefined_reason,
        baseline=a.job.baseline or b.job.baseline,
        items_needed=outcome.items_needed(finding),
        total_low=total_low,
        total_high=total_high,
    )


def omnibus_message(task: str, metric: str, found: Omnibus) -> comparison_pb2.Omnibus:
    return comparison_pb2.Omnibus(
        task=task,
        metric=metric,
        test=found.test,
        statistic=found.statistic,
        degrees_of_freedom=found.degrees_of_freedom,
        p_value=found.p,
        n=found.n,
    )


def _again(found: Again | None) -> comparison_pb2.RunsAgain | None:
    if found is None:
        return None
    flips = noise_pb2.Flips(share=found.flips.share, low=found.flips.low, high=found.flips.high)
    return comparison_pb2.RunsAgain(runs=found.runs, flips=flips, floor=found.floor)


def _corrected_by(finding: Finding) -> str:
    """What made p larger, for a sentence."""
    if finding.overall:
        return "p is that of the test of whether the models differ at all"
    return f"p is corrected for {finding.comparisons:,} comparisons ({_NAMES.get(finding.correction, '')})"


def _unit(outcome: Outcome, finding: Finding) -> str:
    """What n counts."""
    if not finding.task:
        return "items"
    specs = {spec.metric: spec for spec in outcome.runs[finding.a].plans[finding.task].metrics}
    return "groups" if specs[finding.metric].rule in GROUP_RULES else "items"
