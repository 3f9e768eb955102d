"""Which runs rank, in which order, and with which caution where answers are unread or cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, scoring_pb2

NO_REFERENCE = "no row has a reference"
CUT_SHARE = 0.01
"""Share of a task's answers above which the score is shown with a caution."""
UNPARSED_SHARE = 0.05
OFFERED_SHARE = 0.2
"""Share of a task's answers above which a layer that reads more of them is offered."""
_NAMED = 3
"""Tasks named in a sentence."""


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


def unread(
    plan: job_pb2.TaskPlan, scored: metric_pb2.OutcomeCounts, marked_would_read: int = 0, lenient_would_read: int = 0
) -> metric_pb2.Unread | None:
    """None if few enough answers are missing. `scored` are the outcomes of the answers that metrics are made of; the
    numbers say how many of the unparsed ones further layers would read."""
    total = scored.answered + scored.unparsed + scored.output_truncated + scored.refused + scored.input_truncated
    if not total:
        return None
    unparsed, cut = scored.unparsed / total, (scored.output_truncated + scored.input_truncated) / total
    if unparsed <= UNPARSED_SHARE and cut <= CUT_SHARE:
        return None
    return metric_pb2.Unread(
        task=plan.task,
        title=plan.title or plan.task,
        unparsed=unparsed,
        cut=cut,
        unparsed_answers=scored.unparsed,
        marked_would_read=marked_would_read,
        lenient_would_read=lenient_would_read,
    )


def add_offer(job: job_pb2.Job, result: metric_pb2.JobResult) -> None:
    """Says which layer would read how many of the answers that could not be read. Empty for a job that cannot be scored
    again: a baseline, or imported answers."""
    if job.baseline or job.spec.reuse.import_id:
        return
    offered = [one for one in result.unread if one.unparsed > OFFERED_SHARE and one.lenient_would_read]
    if not offered:
        return
    marked, lenient = (sum(getattr(one, f"{name}_would_read") for one in offered) for name in ("marked", "lenient"))
    result.offered_reading = scoring_pb2.READING_LENIENT if lenient > marked else scoring_pb2.READING_MARKED
    sentences = [_offer(one, len(job.plan)) for one in offered[:_NAMED]]
    if further := offered[_NAMED:]:
        read = sum(one.lenient_would_read for one in further)
        of = sum(one.unparsed_answers for one in further)
        tasks = f"{len(further)} more {'task' if len(further) == 1 else 'tasks'}"
        sentences.append(f"Of {tasks}: the lenient layer would read {read:,} of {of:,}.")
    result.offer = " ".join(sentences)


def _offer(one: metric_pb2.Unread, tasks: int) -> str:
    where = f"{one.title}: the" if tasks > 1 else "The"
    unread = f"of the {one.unparsed_answers:,} unread answers"
    if not one.marked_would_read:
        return f"{where} lenient layer would read {one.lenient_would_read:,} {unread}."
    lenient = "as many" if one.lenient_would_read == one.marked_would_read else f"{one.lenient_would_read:,}"
    return f"{where} marked layer would read {one.marked_would_read:,} {unread}, the lenient one {lenient}."


def caution(found: Sequence[metric_pb2.Unread], tasks: int) -> str:
    """ "" without any. `tasks` is the job's number of tasks."""
    return "; ".join(_said(found, tasks))


def _said(found: Sequence[metric_pb2.Unread], tasks: int) -> Iterator[str]:
    for field, most, became in (
        ("unparsed", UNPARSED_SHARE, "could not be read"),
        ("cut", CUT_SHARE, "were cut at a token limit"),
    ):
        shares = sorted(((getattr(one, field), one.title) for one in found), key=lambda share: -share[0])
        over = [(share, title) for share, title in shares if share > most]
        if over and tasks == 1:
            yield f"{over[0][0]:.1%} of the answers {became}"
        elif over:
            named = ", ".join(f"{title} {share:.1%}" for share, title in over[:_NAMED])
            further = len(over) - _NAMED
            more = (
                f", and of {further} more {'task' if further == 1 else 'tasks'} above {most:.0%}" if further > 0 else ""
            )
            yield f"answers {became}: {named}{more}"
