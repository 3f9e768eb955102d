"""Rows of a data set: from the bundled demo generator, a local mirror, or the Hugging Face Hub.

A mirror (TOUCHSTONE_DATA_DIR) is laid out `<dataset id>/<config>/<split>.{jsonl,parquet}`. Where it holds a data
set's folder it is that data set's only source, so that a run does not depend on whether the Hub happens to answer.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.errors import TouchstoneError
from services.evaluator import demo

PROBE_S = 8.0
"""Longest wait for the Hub's first answer. `datasets` itself retries for 23 s before it gives up."""


class DataError(TouchstoneError):
    """The rows are there but cannot be used; the message says what is wrong with which file."""


class DataMissingError(DataError):
    """The rows cannot be had here; the message names the data set and the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set's configuration. `revision` is the Hub commit to read, empty for data that is not on the Hub."""

    dataset: str
    config: str
    revision: str = ""

    def name(self, split: str) -> str:
        """For sentences: "nyu-mll/glue (sst2, validation)"."""
        return f"{self.dataset} ({self.config}, {split})"


@dataclass(frozen=True, slots=True)
class Rows:
    """A split's text columns and its label column, as Arrow (about the size of the texts themselves).

    `revision` is the Hub commit, or the SHA-256 of the file (of the generated rows for demo data).
    """

    table: pa.Table
    revision: str

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, indexes: Sequence[int]) -> list[dict[str, Any]]:
        """The rows with these numbers, in this order, as dictionaries by column."""
        rows: list[dict[str, Any]] = self.table.take(pa.array(indexes, pa.int64())).to_pylist()
        return rows


class Reader:
    """Reads splits. `data_dir` is the mirror's root or None; the Hub has `probe_s` seconds for its first answer."""

    def __init__(self, data_dir: Path | None, *, probe_s: float = PROBE_S) -> None:
        self._data_dir = data_dir
        self._probe_s = probe_s

    def read(self, source: Source, split: str, texts: Sequence[str], label: pa.DataType) -> Rows:
        """The columns `texts` and "label" of one split; missing texts read as empty. Blocking; call it in a thread.

        Raises DataMissingError within seconds where there is no such split, DataError where it cannot be used.
        """
        schema = pa.schema([(column, pa.string()) for column in texts] + [("label", label)])
        if source.dataset == demo.DATASET:
            rows = _as_jsonl(demo.rows(source.config)[split])
            return Rows(_from_jsonl(rows, schema, source.name(split)), hashlib.sha256(rows).hexdigest())
        if self._data_dir is not None and (self._data_dir / source.dataset).is_dir():
            return _from_mirror(self._data_dir, source, split, schema)
        return _from_hub(source, split, schema, self._probe_s)


def _as_jsonl(rows: Sequence[demo.Row]) -> bytes:
    return b"".join(json.dumps(row, sort_keys=True).encode() + b"\n" for row in rows)


# -- local mirror ----------------------------------------------------------------------------------------------


def _from_mirror(root: Path, source: Source, split: str, schema: pa.Schema) -> Rows:
    stem = f"{source.dataset}/{source.config}/{split}"
    parsers: dict[str, Callable[[bytes, pa.Schema, str], pa.Table]] = {"jsonl": _from_jsonl, "parquet": _from_parquet}
    for suffix, parse in parsers.items():
        path = root / f"{stem}.{suffix}"
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}. Let the evaluator read it.") from error
        return Rows(parse(content, schema, str(path)), hashlib.sha256(content).hexdigest())
    raise DataMissingError(
        f"The data set {source.name(split)} is not in TOUCHSTONE_DATA_DIR: {root} has no {stem}.jsonl or .parquet. "
        "Add the file, or name the tasks that you have with `tasks`."
    )


def _from_jsonl(content: bytes, schema: pa.Schema, name: str) -> pa.Table:
    columns: dict[str, list[Any]] = {column: [] for column in schema.names}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:  # not JSON, or not UTF-8
            raise _broken(name, f"line {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise _broken(name, f"line {number} is not a JSON object")
        for column, values in columns.items():
            if column not in row:
                raise _broken(name, f"line {number} has no {column!r}")
            values.append(row[column])
    try:
        table = pa.table(columns, schema=schema)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _broken(name, f"a column has the wrong type ({error})") from error
    return _checked(table, name)


def _from_parquet(content: bytes, schema: pa.Schema, name: str) -> pa.Table:
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        table = file.read(columns=[column for column in schema.names if column in file.schema_arrow.names])
    except (pa.ArrowException, OSError) as error:
        raise _broken(name, f"it is not a Parquet file ({error})") from error
    return _cast(table, schema, name)


def _cast(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    absent = [column for column in schema.names if column not in table.column_names]
    if absent:
        raise _broken(name, f"it has no column {absent[0]!r}")
    try:
        return _checked(table.select(schema.names).cast(schema), name)
    except (pa.ArrowException, ValueError) as error:
        raise _broken(name, f"a column has the wrong type ({error})") from error


def _checked(table: pa.Table, name: str) -> pa.Table:
    if not table.num_rows:
        raise _broken(name, "it has no rows")
    if table["label"].null_count:
        raise _broken(name, f"row {pc.index(table['label'].is_null(), True).as_py()} has no label")
    texts = [pc.fill_null(table[column], "") for column in table.column_names[:-1]]
    return pa.table([*texts, table["label"]], schema=table.schema)


def _broken(name: str, what: str) -> DataError:
    return DataError(f"{name} cannot be used: {what}. Replace it with an intact copy.")


# -- Hugging Face Hub ------------------------------------------------------------------------------------------


def _from_hub(source: Source, split: str, schema: pa.Schema, probe_s: float) -> Rows:
    # Imported here: 2.5 s that an installation with a mirror, or with demo data alone, need not spend.
    import datasets
    from huggingface_hub.constants import is_offline_mode

    datasets.disable_progress_bars()
    if not is_offline_mode():
        _probe(source, split, probe_s)
    try:
        dataset = datasets.load_dataset(source.dataset, source.config, split=split, revision=source.revision)
    except Exception as error:  # `datasets` raises what its file systems and parsers raise
        raise _unreachable(source, split, f"the Hugging Face Hub does not give it ({_first_line(error)})") from error
    # `datasets` names its cache folder by commit; offline it takes the newest one, whatever was asked for.
    commit = Path(dataset.cache_files[0]["filename"]).parent.name
    if commit != source.revision:
        raise _unreachable(source, split, f"the local cache holds revision {commit}, not {source.revision}")
    return Rows(_cast(dataset.data.table, schema, source.name(split)), commit)


def _probe(source: Source, split: str, probe_s: float) -> None:
    """Asks the Hub for the revision, in a thread of its own because a name lookup knows no time limit."""
    from huggingface_hub import HfApi

    outcome: list[Exception | None] = []

    def ask() -> None:
        try:
            HfApi().dataset_info(source.dataset, revision=source.revision, timeout=probe_s)
            outcome.append(None)
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, name="hub-probe", daemon=True)
    thread.start()
    thread.join(probe_s)
    if not outcome:
        raise _unreachable(source, split, f"the Hugging Face Hub does not answer within {probe_s:g} s")
    if (error := outcome[0]) is not None:
        raise _unreachable(source, split, f"the Hugging Face Hub does not give it ({_first_line(error)})") from error


def _unreachable(source: Source, split: str, why: str) -> DataMissingError:
    return DataMissingError(
        f"The data set {source.name(split)} is missing: {why}. Set TOUCHSTONE_DATA_DIR to a mirror that holds "
        f"{source.dataset}/{source.config}/{split}.jsonl, or give the evaluator a network."
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
