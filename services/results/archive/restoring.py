"""Puts archived jobs into a database. A file that is not what was written is named, and nothing is taken from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from services.errors import UnavailableError
from services.results.archive import rows, versions
from services.results.archive.versions import DamagedError, Version
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage import archived_items, run_scores
from services.results.storage.database import Connection, deleted_among, first_row
from services.results.stores.store import Store, fetch, read_bytes
from services.words.refusals import counted
from touchstone.v1 import job_pb2

Say = Callable[[str], None]


def restore_jobs(target: Connection, store: Store, scratch: Path, say: Say, only: Collection[str] = ()) -> int:
    """Adds the jobs of an archive that the database lacks or has in an older state, and forgets those that were
    deleted. `only`: none but these. `scratch` is a folder that the database may read; it is emptied. Returns the
    number of jobs that are damaged. Raises UnavailableError when the archive cannot be reached."""
    changed, damaged = list[str](), 0
    try:
        for job_id in versions.deleted(store):
            _delete(target, store, job_id)
        jobs = store.folders(versions.JOBS)
        for job_id in jobs:
            if only and job_id not in only:
                continue
            names = store.names(versions.folder_of(job_id))
            if versions.manifests(names):
                done = _restore(target, store, job_id, names, scratch, say, with_items=job_id in only)
                damaged += done is None
                changed += [job_id] if done else []
    except OSError as error:
        raise UnavailableError(
            f"The archive {store.place} cannot be read: {error}. Make sure that it can, then run the command again."
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for job_id in only:
        if job_id not in jobs:
            say(f"The archive {store.place} has no job {job_id}.")
    _rank(target, changed)
    say(f"{counted(len(changed), 'job')} restored from the archive {store.place}.")
    if damaged:
        say(f"{counted(damaged, 'job')} could not be restored, as said above.")
    return damaged


def faults(store: Store, scratch: Path) -> Iterator[str]:
    """Reads every file of an archive; a sentence for each that is not what was written. Raises OSError."""
    for job_id in store.folders(versions.JOBS):
        for manifest in versions.manifests(store.names(versions.folder_of(job_id))):
            try:
                version = versions.read(store, job_id, manifest)
                _fetch(store, version, [file.table for file in version.files], scratch)
            except DamagedError as error:
                yield str(error)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)


def lost_items(connection: Connection, store: Store) -> Iterator[str]:
    """A sentence for each job whose items left the database and are missing in the archive. Raises OSError."""
    for away in archived_items.all_away(connection):
        folder = versions.folder_of(away.job_id)
        if away.file not in store.names(folder):
            missing = versions.missing(store, f"{folder}/{away.file}")
            yield f"The items of job {away.job_id} left the database. {missing}"


def _restore(
    target: Connection, store: Store, job_id: str, names: Collection[str], scratch: Path, say: Say, *, with_items: bool
) -> bool | None:
    """Whether the job has changed: it is as in the archive now, in its newest version that is not damaged. None where
    there is none. A job that was deleted stays so. `with_items`: items that left the database come back."""
    if deleted_among(target, [job_id]):
        return False
    for tried, manifest in enumerate(versions.manifests(sorted(names))):
        try:
            version = versions.read(store, job_id, manifest)
            _require_known(target, store, version, manifest)
            before = rows.answers(target, job_id)
            away = archived_items.find(target, job_id) is not None
            there = before == version.answers and not (away and with_items)
            tables = [file.table for file in version.files if not there or file.table not in rows.ANSWERS]
            _fetch(store, version, tables, scratch)
        except DamagedError as error:
            say(str(error))
            continue
        if tried:
            say(f"Job {job_id} is restored as it was at {version.archived_at}, from {manifest}.")
        changed = _put(target, version, tables, scratch) or rows.answers(target, job_id) != before
        archived_items.note_found(target, datetime.now(UTC).replace(tzinfo=None))
        return changed
    say(f"Nothing of job {job_id} is restored.")
    return None


def _require_known(target: Connection, store: Store, version: Version, manifest: str) -> None:
    ((known,),) = target.execute("SELECT max(number) FROM migrations").fetchall()
    if version.schema > known:
        raise versions.newer(store, f"{versions.folder_of(version.job_id)}/{manifest}", version.touchstone)


def _fetch(store: Store, version: Version, tables: Collection[str], scratch: Path) -> None:
    """Copies the files of these tables to `scratch`. Raises DamagedError and OSError."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700, parents=True)
    for file in version.files:
        if file.table in tables:
            name = f"{versions.folder_of(version.job_id)}/{file.file}"
            try:
                if fetch(store, name, scratch / file.table) != file.sha256:
                    raise versions.damaged(store, name)
            except FileNotFoundError as error:
                raise versions.missing(store, name) from error


def _put(target: Connection, version: Version, tables: Collection[str], scratch: Path) -> bool:
    """In one transaction. Whether the database had the job in an older state, or not at all."""
    job = {"job_id": version.job_id}
    files = {table: rows.parquet(scratch / table) for table in tables}
    target.begin()
    try:
        newer = _is_newer(target, version.job_id, files)
        for table, taken in files.items():
            if table not in rows.WHOLE:
                rows.add(target, table, taken)
            elif newer:
                target.execute(f"DELETE FROM {table} WHERE job_id = $job_id", job)
                target.execute(f"INSERT INTO {table} BY NAME FROM {taken}")
        target.commit()
    except duckdb.Error:
        target.rollback()
        raise
    return newer


def _is_newer(target: Connection, job_id: str, files: Mapping[str, str]) -> bool:
    """Whether the files have a later state or result of the job than the database."""
    present = _state(target, job_id, "jobs", "seals")
    # A job without a result has no file of one.
    archived = _state(target, job_id, files["jobs"], files.get("seals", "(FROM seals LIMIT 0)"))
    assert archived is not None
    return present is None or archived > present


def _state(target: Connection, job_id: str, jobs: str, seals: str) -> tuple[Any, ...] | None:
    """Of a job, by what its states are ordered; events as in queries/intake/delete_older_job.sql."""
    return first_row(
        target,
        f"SELECT length(j.event_id), j.event_id, coalesce(epoch_us(s.sealed_at), 0) FROM {jobs} j "
        f"LEFT JOIN {seals} s USING (job_id) WHERE j.job_id = $job_id",
        {"job_id": job_id},
    )


def _delete(target: Connection, store: Store, job_id: str) -> None:
    if deleted_among(target, [job_id]):
        return
    told = json.loads(read_bytes(store, versions.deletion_of(job_id)))
    target.begin()
    writes.forget_job(target, job_id, told["owner"], told["deleted_by"], datetime.fromisoformat(told["deleted_at"]))
    target.commit()


def _rank(target: Connection, job_ids: Collection[str]) -> None:
    """As when the jobs were sealed: in this order, as later ones decide what their item set looks like."""
    sealed = target.execute(
        "SELECT job_id, job FROM seals JOIN jobs USING (job_id) "
        "WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[])) ORDER BY sealed_at, job_id",
        {"job_ids": list(job_ids)},
    )
    for job_id, blob in sealed.fetchall():
        job = job_pb2.Job.FromString(blob)
        if job.plan:
            run_scores.add(target, job)
        for built in job_reads.built_on(target, job_id):
            run_scores.refresh(target, built)
