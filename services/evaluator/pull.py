"""Fetches a suite's data from the Hugging Face Hub into a mirror directory: `touchstone data pull <suite>`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from services.evaluator import demo
from services.evaluator.catalogue import TaskNotFoundError
from services.evaluator.data import reader
from services.evaluator.data.reader import DataError, Origin, Source, unreachable
from services.evaluator.suites import shipped
from services.words import refusals
from services.words.refusals import counted

Load = Callable[[str, str, str, str], tuple[pa.Table, str]]


def pull(suite: str, directory: Path, report: Callable[[str], None], load: Load = reader.load_from_hub) -> None:
    """Writes every split that the suite's tasks read into `directory`, with one line to `report` for each. Blocking.

    A split that is there already, as recorded and at the wanted commit, is not fetched again, so that an interrupted
    pull continues where it was; a file that was not written by a pull is left alone. A file appears whole or not at
    all. Raises TaskNotFoundError for an unknown suite, DataMissingError if the Hub does not give a split, DataError if
    the directory cannot be written.
    """
    suites = shipped()
    if suite not in suites:
        raise TaskNotFoundError(f"{refusals.not_found('Suite', suite)}. Suites: {', '.join(suites)}.", "suite")
    splits = dict.fromkeys(found for definition in suites[suite].definitions for found in definition.splits())
    wanted = [(source, split) for source, split in splits if source.dataset != demo.DATASET]
    if not wanted:
        report(f"{suite}: nothing to fetch, its data is part of Touchstone.")
        return
    written = 0
    for source, split in wanted:
        path = directory / source.dataset / source.config / f"{split}.parquet"
        try:
            present = _present(path, source)
            if present:
                report(f"{source.name(split)}: {present}")
                continue
            origin = _fetch(path, source, split, load)
        except OSError as error:
            raise DataError(
                f"{path} cannot be written: {error.strerror or error}. Choose a directory that has room and that "
                "you can write to."
            ) from error
        written += 1
        report(f"{source.name(split)}: {counted(origin.rows, 'row')} of commit {origin.revision[:12]}, written")
    report(f"{suite}: {len(wanted)} splits in {directory}, {written} of them new.")


def _present(path: Path, source: Source) -> str:
    """Why the split need not be fetched, empty where it must be."""
    own = path.with_suffix(".jsonl")
    if own.exists():
        return f"unchanged: {own.name} was not written by a pull"
    if not path.exists():
        return ""
    origin = Origin.beside(path)
    if origin is None:
        return f"unchanged: {path.name} was not written by a pull"
    with path.open("rb") as file:
        intact = hashlib.file_digest(file, "sha256").hexdigest() == origin.sha256
    if not intact or (source.revision and source.revision != origin.revision):
        return ""
    return f"{counted(origin.rows, 'row')} of commit {origin.revision[:12]}, already there"


def _fetch(path: Path, source: Source, split: str, load: Load) -> Origin:
    try:
        table, commit = load(source.dataset, source.config, split, source.revision)
    except reader.HubError as error:
        raise unreachable(source, split, str(error)) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w+b") as file:
            # Without what `datasets` keeps in the schema's metadata, so that equal rows give equal files.
            pq.write_table(table.replace_schema_metadata(None), file, compression="zstd")
            os.fsync(file.fileno())
            file.seek(0)
            origin = Origin(commit, hashlib.file_digest(file, "sha256").hexdigest(), table.num_rows)
        # Recorded first: a record without its file makes the next pull fetch it, a file without its record would look
        # like one that somebody put there.
        origin.note(path)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return origin
