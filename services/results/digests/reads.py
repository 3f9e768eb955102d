"""What changed in a time: of each model and suite the newest run against the one before, and what models say of each
other. It follows from stored results alone, so the same time gives the same digest while nothing is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import MappingProxyType

from services.errors import InvalidRequestError, TouchstoneError
from services.results.comparison.compare import find_score
from services.results.runs import job_reads
from services.results.storage import archived_items, lent_items
from services.results.storage.database import Connection, query
from services.results.storage.items_away import ItemsAwayError
from services.results.storage.lent_items import Copies
from services.results.visibility import EVERYTHING, Visibility
from services.words.digests import NOTHING_BEFORE
from services.words.jobs import require_project
from touchstone.v1 import comparison_pb2, digest_pb2, results_service_pb2

_WEEK, _MOST = timedelta(days=7), timedelta(days=366)
_MOST_SERIES, _MOST_TURNED, _MOST_SERVED = 50, 50, 5
_MOST_PAIRED = 8
"""Series of a suite, the newest, that are compared with each other."""
_SAYS_NOTHING = (comparison_pb2.VERDICT_UNSPECIFIED, comparison_pb2.VERDICT_NOT_COMPARABLE)
_TURNED_ROUND = {
    comparison_pb2.VERDICT_BETTER: comparison_pb2.VERDICT_WORSE,
    comparison_pb2.VERDICT_WORSE: comparison_pb2.VERDICT_BETTER,
}


def get_digest(
    connection: Connection,
    request: results_service_pb2.GetDigestRequest,
    visible: Visibility = EVERYTHING,
    copies: Copies = MappingProxyType({}),
) -> results_service_pb2.GetDigestResponse:
    """`copies` are those of items that are in the archive alone.

    Raises InvalidRequestError for a time that is too long, ends before it begins, or is beyond the calendar, and for a
    negative project; ItemsAwayError for items without a copy.
    """
    require_project(request.project_id)
    try:
        end = request.end_at.ToDatetime() if request.HasField("end_at") else datetime.now(UTC).replace(tzinfo=None)
        begin = request.begin_at.ToDatetime() if request.HasField("begin_at") else end - _WEEK
    except (ValueError, OverflowError) as error:
        raise InvalidRequestError("A digest covers a time between the years 1 and 9999.", "end_at") from error
    if not timedelta() < end - begin <= _MOST:
        raise InvalidRequestError("A digest covers more than 0 and at most 366 days. Choose another time.", "begin_at")
    found = connection.execute(
        query("digests/runs"),
        {
            "begin": begin,
            "end": end,
            "schedule_id": request.schedule_id,
            "project_id": request.project_id,
            **visible.parameters,
        },
    ).fetchall()
    digest = digest_pb2.Digest(left_out=max(0, len(found) - _MOST_SERIES))
    digest.begin_at.FromDatetime(begin)
    digest.end_at.FromDatetime(end)
    shown = found[:_MOST_SERIES]
    named = {job_id for row in shown for job_id in row[-2:]}
    lost = archived_items.lost_among(connection, [*named])
    lent_items.require(connection, copies, *(named - lost))
    alike: dict[str, list[digest_pb2.DigestSeries]] = {}
    for model, endpoint, suite, schedule_id, items, mode, is_part, runs, after, before in shown:
        series = digest.series.add(
            model=model, endpoint=endpoint, suite=suite, schedule_id=schedule_id, mode=mode, runs=runs
        )
        if is_part:
            series.part_items = sum(plan.items for plan in job_reads.get_job(connection, after).plan)
        with lent_items.at_hand(connection, copies, after):
            series.after.CopyFrom(_run(connection, after))
        if before == after:
            series.words = NOTHING_BEFORE
            continue
        if gone := lost & {after, before}:
            series.words = f"The archive has lost the items of job {min(gone)}, so nothing is compared."
            continue
        with lent_items.at_hand(connection, copies, after, before):
            series.before.CopyFrom(_run(connection, before))
            where = {"before": before, "after": after}
            ((series.items, series.became_right, series.became_wrong),) = connection.execute(
                query("digests/flips"), where
            ).fetchall()
        series.verdict, series.words = _verdict(connection, copies, after, before)
        alike.setdefault(items, []).append(series)
    digest.turned.extend(_turned(connection, copies, alike.values()))
    return results_service_pb2.GetDigestResponse(digest=digest)


def _run(connection: Connection, job_id: str) -> digest_pb2.DigestRun:
    job, result = job_reads.get_job(connection, job_id), job_reads.get_job_result(connection, job_id)
    served = connection.execute(query("scores/served_models"), {"job_id": job_id, "most": _MOST_SERVED}).fetchall()
    ((median, *_),) = connection.execute(query("scores/latency"), {"job_id": job_id}).fetchall()
    return digest_pb2.DigestRun(
        job_id=job_id,
        finished_at=job.finished_at,
        score=result.suite_score.mean if result.suite_score.HasField("mean") else None,
        served_models=[name for (name,) in served],
        model_digest=job.receipt.model_digest,
        server=job.receipt.server,
        software=job.receipt.software,
        cost_usd=job.progress.cost_usd if job.progress.HasField("cost_usd") else None,
        median_latency_ms=median,
    )


def _verdict(connection: Connection, copies: Copies, a: str, b: str) -> tuple[comparison_pb2.Verdict, str]:
    """Of job a against job b, as a comparison of the two says it."""
    with lent_items.at_hand(connection, copies, a, b):
        try:
            whole = find_score(connection, a, b)
        except ItemsAwayError:
            # Of other jobs than these two.
            raise
        except TouchstoneError as error:
            return comparison_pb2.VERDICT_UNSPECIFIED, error.message
    if whole is None:
        return comparison_pb2.VERDICT_UNSPECIFIED, "The two have no score in common."
    verdict = whole.verdict if whole.a == a else _TURNED_ROUND.get(whole.verdict, whole.verdict)
    return verdict, whole.words or whole.reason


def _turned(
    connection: Connection, copies: Copies, alike: Iterable[Sequence[digest_pb2.DigestSeries]]
) -> Iterator[digest_pb2.TurnedVerdict]:
    """Pairs in which a run is new, and what was shown is not shown any more, or the other way round. Of series with
    the same items, with a run before."""
    count = 0
    for some in alike:
        for a, b in combinations(some[:_MOST_PAIRED], 2):
            before, _ = _verdict(connection, copies, a.before.job_id, b.before.job_id)
            after, _ = _verdict(connection, copies, a.after.job_id, b.after.job_id)
            # A run that was asked or scored otherwise turns nothing.
            says = {before, after}.isdisjoint(_SAYS_NOTHING)
            if says and before != after and count < _MOST_TURNED:
                count += 1
                yield digest_pb2.TurnedVerdict(
                    a_job_id=a.after.job_id,
                    b_job_id=b.after.job_id,
                    a=f"{a.model}@{a.endpoint}",
                    b=f"{b.model}@{b.endpoint}",
                    suite=a.suite,
                    before=before,
                    after=after,
                )
