"""Opens splits that a user names, as JSON lines: from the mirror where it has the data set, else from the Hub."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from services.bus import Split
from services.errors import InvalidRequestError, NotFoundError, UnavailableError
from services.evaluator import demo
from services.evaluator.data import reader
from services.evaluator.data.reader import Origin, as_dicts
from services.words import refusals
from touchstone.v1.dataset_service_pb2 import CreateHubDatasetRequest
from touchstone.v1.suite_pb2 import DataSource

_ROWS = 500
_BYTES = 256 * 1024

log = logging.getLogger(__name__)

Load = Callable[[str, str, str, str], tuple[pa.Table, str]]

_USUAL_CONFIG = "default"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
_DATASET = re.compile(rf"{_PART}(/{_PART})?")
_CONFIG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,()+ -]{0,149}")
_SPLIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_REVISION = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_./-]{0,99})?")


class SplitReader:
    """`data_dir` is the mirror's root or None."""

    def __init__(self, data_dir: Path | None, load: Load = reader.load_from_hub) -> None:
        self._data_dir = data_dir
        self._load = load

    async def open(self, request: CreateHubDatasetRequest) -> Split:
        """The split's rows as JSON lines, with their revision.

        Raises InvalidRequestError for invalid names, NotFoundError for a missing split, UnavailableError where the Hub
        does not answer.
        """
        source = _checked(request)
        revision, lines = await asyncio.to_thread(self._opened, source, request.limit)
        log.info("reading %s (%s, %s) at %s for a dataset", source.dataset, source.config, source.split, revision)
        told = DataSource(dataset=source.dataset, config=source.config, split=source.split, revision=revision)
        return Split(told, _pieces(lines, source))

    def _opened(self, source: DataSource, limit: int) -> tuple[str, Iterator[bytes]]:
        if source.dataset == demo.DATASET:
            return _from_demo(source, limit)
        if self._data_dir is not None and (self._data_dir / source.dataset).is_dir():
            return _from_mirror(self._data_dir, source, limit)
        # `datasets` would use a folder of that name in the working directory as the data set.
        if Path(source.dataset).exists():
            raise NotFoundError(f"{source.dataset} is a local folder. Name a data set on the Hub, such as cais/mmlu.")
        try:
            table, commit = self._load(source.dataset, source.config, source.split, source.revision)
        except reader.HubError as error:
            raise _not_given(source, error) from error
        return commit, of_table(table, limit)


def _checked(request: CreateHubDatasetRequest) -> DataSource:
    source = DataSource()
    source.CopyFrom(request.source)
    source.config = source.config or _USUAL_CONFIG
    for field, pattern, example in (
        ("dataset", _DATASET, 'the Hub id of a data set, such as "cais/mmlu"'),
        ("config", _CONFIG, 'a configuration of the data set, such as "default"'),
        ("split", _SPLIT, 'a split of the data set, such as "test"'),
        ("revision", _REVISION, "a commit of the data set, or empty for the latest"),
    ):
        if not pattern.fullmatch(getattr(source, field)):
            raise InvalidRequestError(f"{field} must be {example}.", f"source.{field}")
    if request.limit < 0:
        raise InvalidRequestError(refusals.at_least("limit", 0, zero="all rows"), "limit")
    return source


def _from_demo(source: DataSource, limit: int) -> tuple[str, Iterator[bytes]]:
    try:
        rows = demo.rows(source.config)[source.split]
    except KeyError as error:
        raise NotFoundError(f"The bundled data has no {source.config} with a split {source.split}.") from error
    lines = [json.dumps(row, sort_keys=True).encode() + b"\n" for row in rows]
    revision = hashlib.sha256(b"".join(lines)).hexdigest()
    _require(source, revision)
    return revision, iter(lines[: limit or None])


def _from_mirror(root: Path, source: DataSource, limit: int) -> tuple[str, Iterator[bytes]]:
    stem = f"{source.dataset}/{source.config}/{source.split}"
    for suffix, lines in _KINDS:
        path = root / f"{stem}.{suffix}"
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UnavailableError(f"{stem}.{suffix} cannot be read: {error.strerror}.") from error
        origin = Origin.beside(path)
        pulled = origin.revision if origin and origin.sha256 == digest else ""
        _require(source, digest, pulled)
        return f"{pulled}, sha256:{digest}" if pulled else digest, lines(path, limit)
    raise NotFoundError(
        f"The evaluator's mirror of {source.dataset} has no {source.config} with a split {source.split}."
    )


def _require(source: DataSource, *known: str) -> None:
    if source.revision and source.revision not in known:
        raise NotFoundError(
            f"The evaluator cannot confirm that its copy of {source.dataset} is revision {source.revision}. Leave "
            "the revision out to use the copy as it is."
        )


def _not_given(source: DataSource, error: reader.HubError) -> NotFoundError | UnavailableError:
    # Imported here, like `datasets`, which has already imported it.
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    cause = error.__cause__
    wrong = isinstance(cause, RepositoryNotFoundError | RevisionNotFoundError | ValueError)
    sentence = f"{source.dataset} ({source.config}, {source.split}) cannot be loaded: {error}."
    if wrong:
        return NotFoundError(f"{sentence} Check the names and the revision.")
    return UnavailableError(
        f"{sentence} Connect the evaluator to the internet, or set TOUCHSTONE_DATA_DIR to a mirror with the data set."
    )


async def _pieces(lines: Iterator[bytes], source: DataSource) -> AsyncIterator[bytes]:
    try:
        while (piece := await asyncio.to_thread(next, lines, None)) is not None:
            yield piece
    except (pa.ArrowException, OSError, UnicodeError) as error:
        why = next(iter(str(error).splitlines()), "")
        raise UnavailableError(
            f"{source.dataset} ({source.config}, {source.split}) cannot be read: {why}. Replace it with an intact copy."
        ) from error


def of_lines(path: Path, limit: int) -> Iterator[bytes]:
    """A JSON Lines file as it is; with a limit, only that many first rows."""
    with path.open("rb") as file:
        if not limit:
            while piece := file.read(_BYTES):
                yield piece
            return
        rows = islice((line.rstrip() + b"\n" for line in file if line.strip()), limit)
        while some := b"".join(islice(rows, _ROWS)):
            yield some


def of_parquet(path: Path, limit: int) -> Iterator[bytes]:
    """A Parquet file without the columns that JSON cannot hold. Raises pyarrow.ArrowException, OSError."""
    with pq.ParquetFile(path) as file:
        columns = [field.name for field in file.schema_arrow if _is_text(field.type)]
        left = limit or file.metadata.num_rows
        for batch in file.iter_batches(_ROWS, columns=columns):
            yield _lines(pa.Table.from_batches([batch.slice(0, left)]))
            left -= len(batch)
            if left <= 0:
                return


_KINDS = (("jsonl", of_lines), ("parquet", of_parquet))


def of_table(table: pa.Table, limit: int) -> Iterator[bytes]:
    """A table without the columns that JSON cannot hold."""
    chosen = table.select([field.name for field in table.schema if _is_text(field.type)]).slice(0, limit or None)
    for start in range(0, len(chosen), _ROWS):
        yield _lines(chosen.slice(start, _ROWS))


def _lines(table: pa.Table) -> bytes:
    return b"".join(
        json.dumps(_whole(row), ensure_ascii=False, default=str).encode() + b"\n" for row in as_dicts(table)
    )


def _whole(value: Any) -> Any:
    """With null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def _is_text(type_: pa.DataType) -> bool:
    """Whether it contains no image, sound or other bytes at any depth."""
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return False
    if pa.types.is_struct(type_):
        return all(_is_text(field.type) for field in type_)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return _is_text(type_.value_type)
    return not (pa.types.is_map(type_) or isinstance(type_, pa.BaseExtensionType))
