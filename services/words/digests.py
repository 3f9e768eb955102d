"""A digest as JSON, and what it says of a series in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services.words.enums import COMPARISON_VERDICTS, MODES
from services.words.refusals import counted
from services.words.times import iso
from touchstone.v1 import digest_pb2, suite_pb2

DAYS, MOST_DAYS = 7, 366
NOTHING_BEFORE = "There is no run to compare it with."


def asked(series: digest_pb2.DigestSeries) -> str:
    """What tells the runs from others of the model on the suite: 400 items, log-likelihood. Empty for usual ones."""
    part = counted(series.part_items, "item") if series.part_items else ""
    return ", ".join(filter(None, (part, "log-likelihood" if series.mode == suite_pb2.MODE_LOGLIKELIHOOD else "")))


def changes(series: digest_pb2.DigestSeries) -> Iterator[str]:
    """What is not as it was, apart from scores, in sentences without their ends."""
    if not series.HasField("before"):
        return
    before, after = series.before, series.after
    for name, then, now in (
        ("the served model", ", ".join(before.served_models), ", ".join(after.served_models)),
        ("the digest of the weights", before.model_digest[:12], after.model_digest[:12]),
        ("the server", before.server, after.server),
        ("Touchstone", before.software, after.software),
    ):
        if then != now:
            yield f"{name} was {then or 'unknown'} and is {now or 'unknown'}"


def body(digest: digest_pb2.Digest) -> dict[str, Any]:
    """The digest as in REST."""
    return {
        "from": iso(digest.begin_at),
        "to": iso(digest.end_at),
        "series": [_series(one) for one in digest.series],
        "turned": [
            {
                "a": one.a,
                "b": one.b,
                "a_job_id": one.a_job_id,
                "b_job_id": one.b_job_id,
                "suite": one.suite,
                "before": COMPARISON_VERDICTS.of(one.before),
                "after": COMPARISON_VERDICTS.of(one.after),
            }
            for one in digest.turned
        ],
        "left_out": digest.left_out,
    }


def _series(one: digest_pb2.DigestSeries) -> dict[str, Any]:
    return {
        "model": one.model,
        "provider": one.endpoint,
        "suite": one.suite,
        "schedule_id": one.schedule_id or None,
        "mode": MODES.of(one.mode) or None,
        "part_items": one.part_items or None,
        "runs": one.runs,
        "verdict": COMPARISON_VERDICTS.of(one.verdict) or None,
        "words": one.words,
        "items": one.items,
        "became_right": one.became_right,
        "became_wrong": one.became_wrong,
        "changes": list(changes(one)),
        "before": _run(one.before) if one.HasField("before") else None,
        "after": _run(one.after),
    }


def _run(run: digest_pb2.DigestRun) -> dict[str, Any]:
    return {
        "job_id": run.job_id,
        "finished_at": iso(run.finished_at),
        "score": run.score if run.HasField("score") else None,
        "served_models": list(run.served_models),
        "model_digest": run.model_digest,
        "server": run.server,
        "software": run.software,
        "cost_usd": run.cost_usd if run.HasField("cost_usd") else None,
        "median_latency_ms": run.median_latency_ms if run.HasField("median_latency_ms") else None,
    }
