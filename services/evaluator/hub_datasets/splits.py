"""Opens splits that somebody asks for by name: from the mirror where it has the data set, else from the Hub."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pyarrow as pa

from services.bus import Split
from services.errors import InvalidRequestError, NotFoundError, UnavailableError
from services.evaluator import demo
from services.evaluator.data import hub
from services.evaluator.data.reader import Origin
from services.evaluator.hub_datasets import json_lines
from touchstone.v1.dataset_service_pb2 import CreateHubDatasetRequest
from touchstone.v1.suite_pb2 import DataSource

log = logging.getLogger(__name__)

Load = Callable[[str, str, str, str], tuple[pa.Table, str]]

_USUAL_CONFIG = "default"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
_DATASET = re.compile(rf"{_PART}(/{_PART})?")
_CONFIG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,()+ -]{0,149}")
_SPLIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_REVISION = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_./-]{0,99})?")
_KINDS = (("jsonl", json_lines.of_lines), ("parquet", json_lines.of_parquet))


class SplitReader:
    """`data_dir` is the mirror's root or None."""

    def __init__(self, data_dir: Path | None, load: Load = hub.load) -> None:
        self._data_dir = data_dir
        self._load = load

    async def open(self, request: CreateHubDatasetRequest) -> Split:
        """The split's rows as JSON lines, with the revision that they are of.

        Raises InvalidRequestError for names that are none, NotFoundError for what is not there, UnavailableError where
        the Hub does not answer.
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
        # `datasets` would take a folder of that name where this process runs for the data set.
        if Path(source.dataset).exists():
            raise NotFoundError(f"{source.dataset} is no data set that can be read here. Name one of the Hub.")
        try:
            table, commit = self._load(source.dataset, source.config, source.split, source.revision)
        except hub.HubError as error:
            raise _not_given(source, error) from error
        return commit, json_lines.of_table(table, limit)


def _checked(request: CreateHubDatasetRequest) -> DataSource:
    source = DataSource()
    source.CopyFrom(request.source)
    source.config = source.config or _USUAL_CONFIG
    for field, pattern, example in (
        ("dataset", _DATASET, 'the Hub\'s id of a data set, such as "cais/mmlu"'),
        ("config", _CONFIG, 'a configuration of the data set, such as "default"'),
        ("split", _SPLIT, 'a split of the data set, such as "test"'),
        ("revision", _REVISION, "a commit of the data set, or empty for the newest"),
    ):
        if not pattern.fullmatch(getattr(source, field)):
            raise InvalidRequestError(f"{field} must be {example}.", f"source.{field}")
    if request.limit < 0:
        raise InvalidRequestError("limit may be 0 (all rows) or more.", "limit")
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
            f"What the evaluator holds of {source.dataset} is not known to be revision {source.revision}. Leave the "
            "revision out to take it as it is; what is read is recorded."
        )


def _not_given(source: DataSource, error: hub.HubError) -> NotFoundError | UnavailableError:
    # Imported here, like `datasets`: by now it has been.
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    cause = error.__cause__
    wrong = isinstance(cause, RepositoryNotFoundError | RevisionNotFoundError | ValueError)
    sentence = f"{source.dataset} ({source.config}, {source.split}) cannot be had: {error}."
    if wrong:
        return NotFoundError(f"{sentence} Check the names and the revision.")
    return UnavailableError(
        f"{sentence} Give the evaluator a network, or a mirror (TOUCHSTONE_DATA_DIR) that holds the data set."
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
