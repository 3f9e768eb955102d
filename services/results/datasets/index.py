"""The index of datasets: the table `datasets`, in which deleted ones stay, and which shards each has.

For a day, a request that made a dataset gives the same dataset again. A request is noted in its dataset's manifest, and
from there in the index. So it is known if and only if the dataset is, whatever crashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.message import Message

from services.errors import ConflictError, NotFoundError
from services.results import paging
from services.results.storage.database import Connection, first_row
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from services.words.jobs import require_project
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import dataset_service_pb2 as pb

REQUESTS_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Request:
    """`asked` is a hash of its content. An empty `request_id` is never recognised again."""

    owner: str = ""
    request_id: str = ""
    asked: bytes = b""


def fingerprint(*asked: Message | str) -> bytes:
    """The hash of a request's content."""
    parts = [one.encode() if isinstance(one, str) else one.SerializeToString(deterministic=True) for one in asked]
    return hashlib.sha256(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


def made_by(connection: Connection, request: Request, now: datetime) -> dataset_pb2.Dataset | None:
    """The dataset that it made. Raises ConflictError if its id was used for another one. `now` is UTC without a
    zone."""
    if not request.request_id:
        return None
    row = first_row(
        connection,
        "SELECT r.asked, d.dataset FROM dataset_requests r JOIN datasets d ON d.id = r.dataset_id "
        "WHERE r.owner = $owner AND r.request_id = $request_id AND r.made_at > $since AND d.deleted_at IS NULL",
        {"owner": request.owner, "request_id": request.request_id, "since": now - REQUESTS_KEPT},
    )
    if row is None:
        return None
    dataset = dataset_pb2.Dataset.FromString(row[1])
    if bytes(row[0]) != request.asked:
        raise ConflictError(refusals.id_used(request.request_id, f"dataset {dataset.dataset_id}"))
    return dataset


def note(connection: Connection, manifest: dataset_pb2.DatasetManifest, now: datetime) -> None:
    """Notes the request of a dataset that is listed in this transaction. Removes requests that are too old."""
    connection.execute("DELETE FROM dataset_requests WHERE made_at <= $since", {"since": now - REQUESTS_KEPT})
    made_at = manifest.dataset.uploaded_at.ToDatetime()
    if manifest.request_id and made_at > now - REQUESTS_KEPT:
        connection.execute(
            "INSERT OR REPLACE INTO dataset_requests VALUES ($owner, $request_id, $asked, $dataset_id, $made_at)",
            {
                "owner": manifest.dataset.owner,
                "request_id": manifest.request_id,
                "asked": manifest.asked,
                "dataset_id": manifest.dataset.dataset_id,
                "made_at": made_at,
            },
        )


@dataclass(frozen=True, slots=True)
class Jobs:
    """How many jobs are over a dataset, according to the audit trail."""

    live: int = 0
    finished: int = 0


_WHERE = """
    deleted_at IS NULL
    AND ($owner = '' OR owner = $owner)
    AND ($visible_owner = '' OR owner = $visible_owner)
    AND ($project_id = 0 OR project_id = $project_id)
    AND ($query = '' OR contains(lower(name), lower($query)))
    AND (NOT $files OR is_file)
    AND judged_job = ''
    AND experiment = ''
"""


def add(connection: Connection, manifest: dataset_pb2.DatasetManifest, now: datetime) -> None:
    """Lists a dataset. A listed one stays unchanged; a deleted one comes back, as its manifest was lost and restored.
    `now` is UTC without a zone."""
    dataset = manifest.dataset
    where = {"id": dataset.dataset_id}
    known = first_row(connection, "SELECT deleted_at FROM datasets WHERE id = $id", where)
    if known is None:
        connection.execute(
            "INSERT INTO datasets VALUES ($id, $name, $file_path, $count, $uploaded_at, $now, $owner, $project_id, "
            "$digest, $is_file, $dataset, NULL, $judged_job, $experiment)",
            where
            | {
                "name": dataset.name,
                "file_path": f"manifest/{dataset.dataset_id}",
                "count": dataset.rows,
                "uploaded_at": dataset.uploaded_at.ToDatetime(),
                "now": now,
                "owner": dataset.owner,
                "project_id": dataset.project_id,
                "digest": dataset.digest,
                "is_file": dataset.is_file,
                "dataset": dataset.SerializeToString(),
                "judged_job": dataset.judging.job_id,
                "experiment": dataset.experiment.name,
            },
        )
        note(connection, manifest, now)
    elif known[0] is None:
        return
    else:
        connection.execute("UPDATE datasets SET deleted_at = NULL WHERE id = $id", where)
    digests = list(dict.fromkeys(bytes.fromhex(shard.digest) for shard in manifest.shards))
    connection.execute("INSERT INTO dataset_shards SELECT $id, unnest($digests::BLOB[])", where | {"digests": digests})


def mark_deleted(connection: Connection, dataset_id: str, now: datetime) -> None:
    """From here on its shards belong only to other datasets. Doing it twice changes nothing."""
    connection.execute(
        "UPDATE datasets SET deleted_at = $now WHERE id = $id AND deleted_at IS NULL", {"id": dataset_id, "now": now}
    )
    connection.execute("DELETE FROM dataset_shards WHERE dataset_id = $id", {"id": dataset_id})


def get(connection: Connection, dataset_id: str, visible: Visibility = EVERYTHING) -> dataset_pb2.Dataset:
    """Raises NotFoundError for one that never existed, is deleted, or is not visible to the caller."""
    row = first_row(
        connection,
        "SELECT dataset FROM datasets WHERE id = $id AND deleted_at IS NULL "
        "AND ($visible_owner = '' OR owner = $visible_owner)",
        {"id": dataset_id, **visible.parameters},
    )
    if row is None:
        raise NotFoundError(refusals.not_found("Dataset", dataset_id))
    return dataset_pb2.Dataset.FromString(row[0])


def of_experiment(connection: Connection, name: str) -> dataset_pb2.Dataset | None:
    """The rows of the experiment of this name; None without one."""
    row = first_row(
        connection,
        "SELECT dataset FROM datasets WHERE experiment = $name AND experiment <> '' AND deleted_at IS NULL "
        # There is an older one only after a failed upload that a crash brought back.
        "ORDER BY uploaded_at DESC, id DESC LIMIT 1",
        {"name": name},
    )
    return None if row is None else dataset_pb2.Dataset.FromString(row[0])


def of_experiments(connection: Connection, after: tuple[datetime, str] | None, most: int) -> list[dataset_pb2.Dataset]:
    """The rows of experiments, newest first, after the one of this id that was uploaded at this time, in UTC without a
    zone."""
    rows = connection.execute(
        "SELECT dataset FROM datasets WHERE experiment <> '' AND deleted_at IS NULL "
        "AND ($at::TIMESTAMP IS NULL OR (uploaded_at, id) < ($at::TIMESTAMP, $id)) "
        "ORDER BY uploaded_at DESC, id DESC LIMIT $most",
        {"at": after and after[0], "id": after[1] if after else "", "most": most},
    ).fetchall()
    return [dataset_pb2.Dataset.FromString(row) for (row,) in rows]


def expiring(connection: Connection) -> list[dataset_pb2.Dataset]:
    """Datasets with a time of deletion, which may have passed."""
    rows = connection.execute("SELECT dataset FROM datasets WHERE deleted_at IS NULL").fetchall()
    found = (dataset_pb2.Dataset.FromString(blob) for (blob,) in rows)
    return [dataset for dataset in found if dataset.HasField("expires_at")]


def jobs_over(connection: Connection, dataset_ids: Collection[str]) -> list[Jobs]:
    """For each dataset, in order."""
    found = connection.execute(
        "SELECT suite, count(*) FILTER (state < $finished), count(*) FILTER (state >= $finished) "
        "FROM jobs WHERE suite IN (SELECT unnest($ids::VARCHAR[])) GROUP BY suite",
        {"ids": list(dataset_ids), "finished": int(job_pb2.Job.STATE_COMPLETED)},
    ).fetchall()
    counted = {suite: Jobs(live, finished) for suite, live, finished in found}
    return [counted.get(dataset_id, Jobs()) for dataset_id in dataset_ids]


def list_datasets(
    connection: Connection, request: pb.ListDatasetsRequest, visible: Visibility = EVERYTHING
) -> pb.ListDatasetsResponse:
    """Newest first. Raises InvalidRequestError for a bad page or project."""
    require_project(request.project_id)
    size = paging.page_size(request.page_size, default=100, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    where: dict[str, Any] = {
        "owner": request.owner,
        "project_id": request.project_id,
        "query": request.query,
        "files": request.files,
        **visible.parameters,
    }
    total = first_row(connection, f"SELECT count(*) FROM datasets WHERE {_WHERE}", where)
    rows = connection.execute(
        f"SELECT dataset FROM datasets WHERE {_WHERE} "
        "AND ($after_at::TIMESTAMP IS NULL OR (uploaded_at, id) < ($after_at::TIMESTAMP, $after_id)) "
        "ORDER BY uploaded_at DESC, id DESC LIMIT $size",
        where
        | {
            "after_at": paging.time_of(after[0]) if after else None,
            "after_id": after[1] if after else "",
            "size": size + 1,
        },
    ).fetchall()
    found = [dataset_pb2.Dataset.FromString(row) for (row,) in rows]
    page, token = paging.fill_page(found, size, filter_, _key)
    jobs = jobs_over(connection, [dataset.dataset_id for dataset in page])
    return pb.ListDatasetsResponse(
        datasets=page,
        next_page_token=token,
        total_size=total[0] if total else 0,
        finished_jobs=[one.finished for one in jobs],
    )


def _key(dataset: dataset_pb2.Dataset) -> paging.Key:
    return [dataset.uploaded_at.ToMicroseconds(), dataset.dataset_id]


def listed(connection: Connection) -> set[str]:
    """Ids of all datasets that are not deleted."""
    return {row[0] for row in connection.execute("SELECT id FROM datasets WHERE deleted_at IS NULL").fetchall()}


def without_dataset(connection: Connection, digests: Collection[str]) -> set[str]:
    """The shards among these that no dataset has."""
    found = connection.execute(
        "SELECT digest FROM (SELECT unnest($digests::BLOB[]) AS digest) ANTI JOIN dataset_shards USING (digest)",
        {"digests": [bytes.fromhex(digest) for digest in digests]},
    ).fetchall()
    return {bytes(digest).hex() for (digest,) in found}
