"""Requests that made datasets: for a day, the same one again gives the dataset that it made.

A request is noted with its dataset's manifest, and from there in the index: so it is known if and only if the dataset
is, whatever crashes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from google.protobuf.message import Message

from services.errors import ConflictError
from services.results.storage.database import Connection, first_row
from services.words import sentences
from touchstone.v1 import dataset_pb2

KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Request:
    """`asked` is a hash of what it asks for. An empty `request_id` is never known again."""

    owner: str = ""
    request_id: str = ""
    asked: bytes = b""


def fingerprint(*asked: Message | str) -> bytes:
    """The hash of what a request asks for."""
    parts = [one.encode() if isinstance(one, str) else one.SerializeToString(deterministic=True) for one in asked]
    return hashlib.sha256(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


def find(connection: Connection, request: Request, now: datetime) -> dataset_pb2.Dataset | None:
    """The dataset that it made. Raises ConflictError where its id has made another one. `now` is UTC without a zone."""
    if not request.request_id:
        return None
    row = first_row(
        connection,
        "SELECT r.asked, d.dataset FROM dataset_requests r JOIN datasets d ON d.id = r.dataset_id "
        "WHERE r.owner = $owner AND r.request_id = $request_id AND r.made_at > $since AND d.deleted_at IS NULL",
        {"owner": request.owner, "request_id": request.request_id, "since": now - KEPT},
    )
    if row is None:
        return None
    dataset = dataset_pb2.Dataset.FromString(row[1])
    if bytes(row[0]) != request.asked:
        raise ConflictError(sentences.id_used(request.request_id, f"dataset {dataset.dataset_id}"))
    return dataset


def note(connection: Connection, manifest: dataset_pb2.DatasetManifest, now: datetime) -> None:
    """Of a dataset that is listed in this transaction. Requests that are too old to be known go."""
    connection.execute("DELETE FROM dataset_requests WHERE made_at <= $since", {"since": now - KEPT})
    made_at = manifest.dataset.uploaded_at.ToDatetime()
    if manifest.request_id and made_at > now - KEPT:
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
