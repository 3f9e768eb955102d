"""Who ranks, and in which order. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2

NO_REFERENCE = "no row has a reference"


def not_ranked_reason(state: int, lost: int, scored: int, *, several_answers: bool = False) -> str:
    """Why a finished run does not rank, or "" when it does. `lost` items, or answers, have no final outcome; `scored`
    ones count in metrics. Unread and cut answers count as wrong: see `unread`.
    """
    if state == job_pb2.Job.STATE_FAILED:
        return "the job failed"
    if state == job_pb2.Job.STATE_CANCELLED:
        return "the job was cancelled"
    if lost and several_answers:
        return f"{lost:,} {'answer is' if lost == 1 else 'answers are'} missing"
    if lost:
        return f"{lost:,} {'item has' if lost == 1 else 'items have'} no answer"
    return "" if scored else NO_REFERENCE


def redrawn_reason(job: job_pb2.Job, source: job_pb2.Job | None) -> str:
    """Why a re-run of some items of `source` does not rank, or "" when its answers are those of one whole run.

    A failed call was not a draw. With greedy decoding, a cut answer is the beginning of the longer one. Anything else
    would mean drawing again until the answers please.
    """
    again = set(job.spec.reuse.rerun) - {item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR}
    if not again:
        return ""
    parameters = json.loads(job.receipt.parameters or "{}")
    if parameters.get("temperature") != 0:
        return "some answers were sampled a second time, at a temperature above 0"
    now, then = job.spec.sampling, source.spec.sampling if source is not None else job.spec.sampling
    if (now.max_tokens, now.context_length) == (then.max_tokens, then.context_length):
        return "some answers were sampled a second time, without a higher token limit"
    return ""


def rank(entries: Iterable[metric_pb2.LeaderboardEntry], limit: int) -> tuple[list[metric_pb2.LeaderboardEntry], int]:
    """Orders and ranks entries; returns them with the number of ranked configurations before the limit.

    Ranked rows come first, then baselines, then rows that are not ranked; the best `limit` of each group, best first.
    Those beyond the limit also have their ranks. Baselines rank only when nothing else does.
    """
    ordered = sorted(entries, key=_order)
    unranked = [e for e in ordered if e.not_ranked_reason]
    models = [e for e in ordered if not e.not_ranked_reason and not e.baseline]
    baselines = [e for e in ordered if not e.not_ranked_reason and e.baseline]
    ranked, floor = (models, baselines) if models else (baselines, [])
    for place, entry in enumerate(ranked, 1):
        entry.rank = place
    return [*ranked[:limit], *floor[:limit], *unranked[:limit]], len(ranked)


def _order(entry: metric_pb2.LeaderboardEntry) -> tuple[float, int, str]:
    """Best first, then newest first, then by configuration: never by the order of rows."""
    score = entry.score.mean if entry.score.HasField("mean") else float("-inf")
    return -score, -entry.completed_at.ToNanoseconds(), entry.configuration
