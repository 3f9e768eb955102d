"""Who ranks, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from touchstone.v1 import job_pb2, metric_pb2

CUT_SHARE = 0.01
"""Above this share of items with cut prompts or answers a score does not rank."""
UNPARSED_SHARE = 0.05
"""Above this share of items whose answer could not be read a score does not rank."""


def not_ranked_reason(state: int, lost: int, outcomes: metric_pb2.OutcomeCounts) -> str:
    """Why a finished run does not rank, or "" when it does. `lost` items have no final outcome."""
    if state == job_pb2.Job.STATE_FAILED:
        return "the job failed"
    if state == job_pb2.Job.STATE_CANCELLED:
        return "the job was cancelled"
    if lost:
        return f"{lost:,} {'item has' if lost == 1 else 'items have'} no answer"
    scored = (
        outcomes.answered + outcomes.unparsed + outcomes.output_truncated + outcomes.refused + outcomes.input_truncated
    )
    cut = outcomes.output_truncated + outcomes.input_truncated
    if cut > CUT_SHARE * scored:
        return f"{cut / scored:.1%} of the items were cut at a token limit, more than {CUT_SHARE:.0%}"
    if outcomes.unparsed > UNPARSED_SHARE * scored:
        return f"{outcomes.unparsed / scored:.1%} of the answers could not be read, more than {UNPARSED_SHARE:.0%}"
    return ""


def rank(entries: Iterable[metric_pb2.LeaderboardEntry], limit: int) -> tuple[list[metric_pb2.LeaderboardEntry], int]:
    """Orders and ranks entries; returns them with the number of ranked configurations before the limit.

    Ranked rows come first, at most `limit`, then baselines, then rows that are not ranked; each group best first.
    Baselines rank only when nothing else does.
    """
    ordered = sorted(entries, key=_order)
    unranked = [e for e in ordered if e.not_ranked_reason]
    models = [e for e in ordered if not e.not_ranked_reason and not e.baseline]
    baselines = [e for e in ordered if not e.not_ranked_reason and e.baseline]
    ranked, floor = (models, baselines) if models else (baselines, [])
    for place, entry in enumerate(ranked[:limit], 1):
        entry.rank = place
    return [*ranked[:limit], *floor, *unranked], len(ranked)


def _order(entry: metric_pb2.LeaderboardEntry) -> tuple[float, int, str]:
    """Best first, then newest first, then by configuration: never by the order of rows."""
    score = entry.score.mean if entry.score.HasField("mean") else float("-inf")
    return -score, -entry.completed_at.ToNanoseconds(), entry.configuration
