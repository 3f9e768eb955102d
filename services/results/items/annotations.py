"""People's annotations of answers as they are read: the newest annotation of an answer applies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC

from services.results.storage.database import Connection, first_row
from touchstone.v1.results_service_pb2 import Annotation, StoredItem

Key = tuple[str, str, int, int]
"""Job, task, item, repeat."""


def held(connection: Connection, job_ids: Sequence[str], items: Sequence[int]) -> dict[Key, Annotation]:
    """Annotations of these jobs' answers to items with these numbers, in any task, without withdrawn ones."""
    jobs = sorted(set(job_ids))
    # Most jobs have none, and planning the query below takes four times as long.
    some = "SELECT 1 FROM annotations WHERE list_contains($jobs::VARCHAR[], job_id) LIMIT 1"
    if first_row(connection, some, {"jobs": jobs}) is None:
        return {}
    rows = connection.execute(
        "SELECT job_id, task, item, repeat, verdict, corrected_answer, note, author, annotated_at "
        "FROM present_annotations WHERE verdict <> $none "
        "AND job_id IN (SELECT unnest($jobs::VARCHAR[])) AND item IN (SELECT unnest($items::INTEGER[]))",
        {"none": Annotation.VERDICT_UNSPECIFIED, "jobs": jobs, "items": sorted(set(items))},
    ).fetchall()
    found = {}
    for job_id, task, item, repeat, verdict, corrected, note, author, annotated_at in rows:
        one = Annotation(verdict=verdict, corrected_answer=corrected, note=note, author=author)
        one.annotated_at.FromDatetime(annotated_at.replace(tzinfo=UTC))
        found[job_id, task, item, repeat] = one
    return found


def put_on(connection: Connection, stored: Iterable[StoredItem]) -> None:
    """Adds its annotation to each answer."""
    by_key = {(one.job_id, one.task, one.result.item, one.result.repeat): one for one in stored}
    if by_key:
        jobs, _, items, _ = zip(*by_key, strict=True)
        for key, annotation in held(connection, jobs, items).items():
            if key in by_key:
                by_key[key].annotation.CopyFrom(annotation)
