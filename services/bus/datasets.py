"""Uploaded datasets in the object store DATASETS: `manifest/<dataset_id>` and `shard/<SHA-256 of its bytes>`.

The objects are those of any NATS object store. These methods of nats-py are not used: `get`, which makes a consumer for
each object and waits for ever when one is lost; `put`, which removes the new pieces when the answer to the meta is
lost, although the meta may be stored and name them; and `delete`, which leaves a marker for ever and needs room in a
full store.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import nats.errors
import nats.js.errors
from google.protobuf.message import DecodeError
from nats.js import api
from nats.js.object_store import ObjectStore

from services.bus import contract
from services.bus.operations import Bus
from services.errors import LimitReachedError, NotFoundError, UnavailableError
from touchstone.v1 import dataset_pb2

log = logging.getLogger(__name__)

DATASET_ID: Final = re.compile(r"ds_[0-9a-f]{32}")

_BUCKET = contract.DATASETS
_STREAM = contract.object_stream(_BUCKET)
_CHUNK_BYTES = 512 * 1024
_TRIES = 3
_DAMAGED = "The dataset cannot be read completely. Try again in a moment, or upload it again."
_NO_ROOM = (contract.ERR_STREAM_LIMIT, contract.ERR_NO_STORAGE)


class DamagedError(UnavailableError):
    """An object exists but cannot be read: pieces of it are missing or wrong."""


StillFree = Callable[[Collection[str]], Awaitable[Collection[str]]]


class Datasets:
    """Reads and writes datasets. Any service may read; only the results service writes, through one instance.

    Writes are made one after the other. All raise UnavailableError while NATS is away.
    """

    def __init__(self, bus: Bus, max_bytes: int = 0) -> None:
        """`max_bytes` limits the whole store; 0 means no limit but the disk."""
        self._bus = bus
        self._max_bytes = max_bytes
        self._store = ObjectStore(_BUCKET, _STREAM, bus.js)
        # Also held while names are listed, as the listing would wait in vain for names that are removed meanwhile.
        self._writing = asyncio.Lock()

    # -- reading -----------------------------------------------------------------------------------------------

    async def get_manifest(self, dataset_id: str) -> dataset_pb2.DatasetManifest | None:
        """None for a dataset that does not exist. One that is being deleted says so."""
        if not DATASET_ID.fullmatch(dataset_id):
            return None
        data = await self._get(_manifest(dataset_id))
        try:
            return None if data is None else dataset_pb2.DatasetManifest.FromString(data)
        except DecodeError as error:
            raise DamagedError(_DAMAGED) from error

    async def get_shard(self, digest: str) -> dataset_pb2.ShardRows:
        """Raises NotFoundError when it is gone, because every dataset with it was deleted."""
        data = await self._get(_shard(digest))
        if data is None:
            raise NotFoundError("The dataset was deleted, so its rows are gone. Upload it again.")
        return dataset_pb2.ShardRows.FromString(data)

    async def list(self) -> set[str]:
        """Ids of all datasets, also of those being deleted."""
        async with self._writing:
            return self._of("manifest/", await self._names())

    # -- writing -----------------------------------------------------------------------------------------------

    async def put_shard(self, digest: str, data: bytes) -> None:
        """Stores a shard that is not there yet. Raises LimitReachedError when the store is full."""
        async with self._writing:
            if await self._info(_shard(digest)) is None:
                await self._require_room(len(data))
                await self._put(_shard(digest), data)

    async def put_manifest(self, manifest: dataset_pb2.DatasetManifest) -> None:
        """Stores or replaces a manifest. Not counted against the limit: a full store must not hinder deleting."""
        async with self._writing:
            await self._put(_manifest(manifest.dataset.dataset_id), manifest.SerializeToString())

    async def delete(self, dataset_id: str) -> None:
        """Removes the manifest, and so the dataset; its shards stay. A missing one is not an error."""
        async with self._writing:
            await self._remove(_manifest(dataset_id))

    # -- clearing up -------------------------------------------------------------------------------------------

    async def shards(self) -> set[str]:
        """Digests of all shards."""
        async with self._writing:
            return self._of("shard/", await self._names())

    async def delete_shards(self, digests: Collection[str], still_free: StillFree) -> int:
        """Removes the shards that `still_free` names once no other write is running; returns their number."""
        async with self._writing:
            free = await still_free(digests)
            for digest in free:
                await self._remove(_shard(digest))
            return len(free)

    async def drop_strays(self) -> int:
        """Removes pieces of objects that were never finished or not completely removed; returns their number."""
        async with self._writing:
            strays = {subject.rpartition(".")[2] for subject in await self._subjects(contract.object_chunks_subject)}
            # Every object has one subject of pieces; an interrupted write leaves pieces without an object, never the
            # reverse.
            if len(strays) == len(await self._names()):
                return 0
            with _translated():
                async for msg in self._bus.newest(_STREAM, contract.object_meta_subject(_BUCKET, "*")):
                    try:
                        strays.discard(json.loads(msg.data)["nuid"])
                    except (ValueError, KeyError, TypeError):
                        # Some apparent strays may be its pieces.
                        log.error("an object of %s cannot be read; nothing is cleaned up", _BUCKET)
                        return 0
            for nuid in strays:
                await self._purge(contract.object_chunks_subject(_BUCKET, nuid))
            return len(strays)

    # -- objects -----------------------------------------------------------------------------------------------

    async def _get(self, name: str) -> bytes | None:
        for _ in range(_TRIES):
            info = await self._info(name)
            if info is None:
                return None
            with suppress(_ChangedError):
                return await self._pieces(info)
        raise DamagedError(_DAMAGED)

    async def _pieces(self, info: api.ObjectInfo) -> bytes:
        subject = contract.object_chunks_subject(_BUCKET, info.nuid)
        pieces: list[bytes] = []
        sequence = 1
        with _translated():
            for _ in range(info.chunks or 0):
                try:
                    msg = await self._bus.js.get_msg(_STREAM, sequence, subject, direct=True, next=True)
                except nats.js.errors.NotFoundError as error:
                    # Replaced or removed since its meta was read; or this replica has not got it yet.
                    raise _ChangedError from error
                pieces.append(msg.data or b"")
                sequence = (msg.seq or 0) + 1
        data = b"".join(pieces)
        if base64.urlsafe_b64encode(sha256(data).digest()).decode() != (info.digest or "").partition("=")[2]:
            raise _ChangedError
        return data

    async def _info(self, name: str) -> api.ObjectInfo | None:
        with _translated():
            try:
                # Asked of the leader: a replica may not know yet what was stored a moment ago.
                return await self._store.get_info(name)
            except nats.js.errors.NotFoundError:
                return None
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DamagedError(_DAMAGED) from error

    async def _put(self, name: str, data: bytes) -> None:
        """Whatever fails on the way, either the old object or the new one is complete. Pieces of the other may stay,
        which `drop_strays` finds."""
        before = await self._info(name)
        info = api.ObjectInfo(
            name=name,
            bucket=_BUCKET,
            nuid=uuid.uuid4().hex,
            size=len(data),
            chunks=-(-len(data) // _CHUNK_BYTES),
            digest=f"SHA-256={base64.urlsafe_b64encode(sha256(data).digest()).decode()}",
            mtime=datetime.now(UTC).isoformat(),
            options=api.ObjectMetaOptions(max_chunk_size=_CHUNK_BYTES),
        )
        subject = contract.object_chunks_subject(_BUCKET, info.nuid)
        with _translated():
            for start in range(0, len(data), _CHUNK_BYTES):
                await self._bus.js.publish(subject, data[start : start + _CHUNK_BYTES])
            meta = json.dumps(info.as_dict()).encode()
            await self._bus.js.publish(_meta_subject(name), meta, headers=dict(contract.REPLACE))
        if before is not None:
            await self._purge(contract.object_chunks_subject(_BUCKET, before.nuid))

    async def _remove(self, name: str) -> None:
        info = await self._info(name)
        if info is None:
            return
        # In this order: a crash leaves only pieces that nothing names, which `drop_strays` finds.
        await self._purge(_meta_subject(name))
        await self._purge(contract.object_chunks_subject(_BUCKET, info.nuid))

    async def _purge(self, subject: str) -> None:
        with _translated():
            await self._bus.js.purge_stream(_STREAM, subject=subject)

    async def _require_room(self, size: int) -> None:
        if not self._max_bytes:
            return
        with _translated():
            used = (await self._bus.js.stream_info(_STREAM)).state.bytes
        if used + size > self._max_bytes:
            raise LimitReachedError(
                f"The dataset store is full: {used / 1000000000.0:,.1f} of {self._max_bytes / 1000000000.0:,.1f} "
                "GB. Delete datasets, or raise TOUCHSTONE_DATASETS_MAX_BYTES.",
                60,
            )

    @staticmethod
    def _of(prefix: str, names: Sequence[str]) -> set[str]:
        return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}

    async def _names(self) -> Sequence[str]:
        tokens = [subject.rpartition(".")[2] for subject in await self._subjects(contract.object_meta_subject)]
        names = []
        for token in tokens:
            # binascii.Error and UnicodeDecodeError are ValueErrors: nobody gave an object such a name.
            with suppress(ValueError):
                names.append(base64.urlsafe_b64decode(token).decode())
        return names

    async def _subjects(self, kind: Callable[[str, str], str]) -> Sequence[str]:
        with _translated():
            return [msg.subject async for msg in self._bus.newest(_STREAM, kind(_BUCKET, "*"), headers_only=True)]


class _ChangedError(Exception):
    """The object was replaced or removed while it was read."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except nats.js.errors.APIError as error:
        if error.err_code in _NO_ROOM:
            raise LimitReachedError(
                "The disk has no room for the dataset. Delete datasets, or give NATS more room.", 60
            ) from error
        raise UnavailableError(f"NATS refused the request: {error.description}. Try again in a moment.") from error
    except (nats.errors.Error, OSError) as error:
        raise UnavailableError("NATS does not answer. Try again in a moment.") from error


def _manifest(dataset_id: str) -> str:
    return f"manifest/{dataset_id}"


def _shard(digest: str) -> str:
    return f"shard/{digest}"


def _meta_subject(name: str) -> str:
    return contract.object_meta_subject(_BUCKET, base64.urlsafe_b64encode(name.encode()).decode())
