"""Tasks whose score leans on how unread and cut answers count, and how that is said. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from touchstone.v1 import job_pb2, metric_pb2

CUT_SHARE = 0.01
"""Of a task's answers; above it the score is shown with a caution."""
UNPARSED_SHARE = 0.05
_NAMED = 3
"""Tasks named in a sentence."""


def unread(plan: job_pb2.TaskPlan, scored: metric_pb2.OutcomeCounts) -> metric_pb2.Unread | None:
    """None where few enough answers are missing. `scored` are the outcomes of the answers that metrics are made of."""
    total = scored.answered + scored.unparsed + scored.output_truncated + scored.refused + scored.input_truncated
    if not total:
        return None
    unparsed, cut = scored.unparsed / total, (scored.output_truncated + scored.input_truncated) / total
    if unparsed <= UNPARSED_SHARE and cut <= CUT_SHARE:
        return None
    return metric_pb2.Unread(task=plan.task, title=plan.title or plan.task, unparsed=unparsed, cut=cut)


def caution(found: Sequence[metric_pb2.Unread], tasks: int) -> str:
    """ "" without any. `tasks` is how many the job has."""
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
