"""Rows of a data set: from the bundled demo generator, a local mirror, or the Hugging Face Hub."""

from __future__ import annotations

import io
import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

import pyarrow as pa

from services.errors import TouchstoneError
from services.evaluator import demo
from services.evaluator.data import tables

PROBE_S = 8.0
"""Longest wait for the Hub's first answer. `datasets` itself retries for 23 s before it gives up."""


class HubError(Exception):
    """The Hub does not give the split; the message is a clause that says why."""


def load_from_hub(
    dataset: str, config: str, split: str, revision: str, probe_s: float = PROBE_S
) -> tuple[pa.Table, str]:
    """The split and the commit that it was read at: `revision`, or the current one if that is empty.

    Blocking; the Hub must answer first within `probe_s` seconds. Raises HubError.
    """
    # Imported here: 2.5 s that an installation with a mirror, or with demo data alone, need not spend.
    import datasets
    from huggingface_hub.constants import is_offline_mode

    datasets.disable_progress_bars()
    wanted = revision if is_offline_mode() else _probe(dataset, revision, probe_s)
    try:
        found = datasets.load_dataset(dataset, config or None, split=split, revision=wanted or None)
    except Exception as error:  # `datasets` raises what its file systems and parsers raise
        raise HubError(f"the Hugging Face Hub did not provide it ({_first_line(error)})") from error
    # `datasets` names its cache folder by commit; offline it takes the newest one, whatever revision was asked for.
    commit = Path(found.cache_files[0]["filename"]).parent.name
    if wanted and commit != wanted:
        raise HubError(f"the local cache holds revision {commit}, not {wanted}")
    return found.data.table, commit


def _probe(dataset: str, revision: str, probe_s: float) -> str:
    """The commit that the Hub has for the revision, a branch's newest; asked in a thread, because a name lookup has no
    time limit."""
    from huggingface_hub import HfApi

    outcome: list[Exception | str] = []

    def ask() -> None:
        try:
            info = HfApi().dataset_info(dataset, revision=revision or None, timeout=probe_s)
            outcome.append(info.sha or revision)
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, name="hub-probe", daemon=True)
    thread.start()
    thread.join(probe_s)
    if not outcome:
        raise HubError(f"the Hugging Face Hub did not answer within {probe_s:g} s")
    if isinstance(found := outcome[0], Exception):
        raise HubError(f"the Hugging Face Hub did not provide it ({_first_line(found)})") from found
    return found


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


SHELF_BYTES = 32 * 1024 * 1024


class Holder(Protocol):
    """Has a table and can read it again."""

    def unload(self) -> None: ...


class Shelf:
    """Keeps at most `most_bytes` loaded, and always the one used last. Safe to use from several threads."""

    def __init__(self, most_bytes: int = SHELF_BYTES) -> None:
        self._most_bytes = most_bytes
        self._sizes: OrderedDict[int, tuple[Holder, int]] = OrderedDict()
        self._lock = threading.Lock()

    def used(self, holder: Holder, size: int) -> None:
        """Notes that `holder` has its table of `size` bytes loaded and uses it now; unloads tables beyond the limit."""
        with self._lock:
            self._sizes[id(holder)] = (holder, size)
            self._sizes.move_to_end(id(holder))
            total = sum(each for _, each in self._sizes.values())
            dropped: list[Holder] = []
            while total > self._most_bytes and len(self._sizes) > 1:
                _, (oldest, freed) = self._sizes.popitem(last=False)
                dropped.append(oldest)
                total -= freed
        for each in dropped:
            each.unload()


class DataError(TouchstoneError):
    """The rows are there but cannot be used; the message says what is wrong with which file."""


class DataMissingError(DataError):
    """The rows are not available here; the message names the data set and the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set's configuration. `revision` is the Hub commit to read; empty for data that is not on the Hub, and for
    data that is read at the Hub's current commit. Of data that a package brings, `rows` gives those of a split, the
    same at each call."""

    dataset: str
    config: str
    revision: str = ""
    rows: Callable[[str], Sequence[Mapping[str, Any]]] | None = field(default=None, compare=False)

    def name(self, split: str) -> str:
        """For sentences: "nyu-mll/glue (sst2, validation)"."""
        return f"{self.dataset} ({self.config}, {split})"


class Rows:
    """Columns of a split, as Arrow (about the size of the texts themselves).

    `revision` is the Hub commit, or the SHA-256 of the file (of the generated rows for demo data); both for a mirror's
    file that was pulled from the Hub.
    """

    def __init__(self, table: pa.Table, revision: str) -> None:
        self.table = table
        self.revision = revision
        self._batches = table.to_batches()
        self._starts = [0, *accumulate(len(batch) for batch in self._batches)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, indexes: Sequence[int]) -> list[dict[str, Any]]:
        """The rows with these numbers, in this order, as dictionaries by column."""
        return as_dicts(self.picked(indexes))

    def picked(self, indexes: Sequence[int]) -> pa.Table:
        """The rows with these numbers, in this order.

        From the batches that hold them: `Table.take` would first copy the whole table into one batch.
        """
        if isinstance(indexes, range) and indexes.step == 1:
            return self.table.slice(indexes.start, len(indexes))
        found: list[pa.RecordBatch] = []
        for place, run in groupby(indexes, lambda index: bisect_right(self._starts, index) - 1):
            within = tables.integer_array(index - self._starts[place] for index in run)
            found.append(self._batches[place].take(within))
        return pa.Table.from_batches(found, self.table.schema)


class Reader:
    """Reads splits. `data_dir` is the mirror's root or None; the Hub must answer first within `probe_s` seconds."""

    def __init__(self, data_dir: Path | None, *, probe_s: float = PROBE_S) -> None:
        self._data_dir = data_dir
        self._probe_s = probe_s
        self.shelf = Shelf()
        # A task in another mode reads the same rows; they are kept for as long as one task holds them.
        self._held: WeakValueDictionary[tuple[Source, str, str, int], Rows] = WeakValueDictionary()

    def read(self, source: Source, split: str, columns: pa.Schema, most: int = 0) -> Rows:
        """These columns of one split. A missing text reads as empty, a missing number as null. Blocking; call it in a
        thread. With `most`, only that many first rows, and no revision.

        Raises DataMissingError within seconds if there is no such split, DataError if it cannot be used.
        """
        key = (source, split, str(columns), most)
        rows = self._held.get(key)
        if rows is None:
            rows = self._held[key] = self._read(source, split, columns, most)
        return rows

    def _read(self, source: Source, split: str, columns: pa.Schema, most: int) -> Rows:
        if source.dataset == demo.DATASET:
            return _made(demo.rows(source.config)[split], columns, most)
        if source.rows is not None:
            try:
                return _made(source.rows(split), columns, most)
            except tables.TableError as error:
                raise _broken(source.name(split), str(error)) from error
        if self._data_dir is not None and (self._data_dir / source.dataset).is_dir():
            return _from_mirror(self._data_dir, source, split, columns, most)
        try:
            table, commit = load_from_hub(source.dataset, source.config, split, source.revision, self._probe_s)
        except HubError as error:
            raise unreachable(source, split, str(error)) from error
        try:
            return Rows(tables.conform(table.slice(0, most or None), columns), commit)
        except tables.TableError as error:
            raise _broken(source.name(split), str(error)) from error


def as_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dictionaries by column. Column by column, which is several times as fast as `Table.to_pylist`."""
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def unreachable(source: Source, split: str, why: str) -> DataMissingError:
    """The error for a split that the Hub does not give; `why` is a clause."""
    return DataMissingError(
        f"The data set {source.name(split)} is missing: {why}. Connect the evaluator to the internet, or set "
        f"TOUCHSTONE_DATA_DIR to a mirror with {source.dataset}/{source.config}/{split}.jsonl, which `touchstone "
        "data pull` writes. Otherwise leave the task out."
    )


# -- local mirror ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a mirror's file comes from: the small JSON file next to it, `<split>.origin.json`."""

    revision: str
    sha256: str
    rows: int

    @staticmethod
    def beside(path: Path) -> Origin | None:
        """What is recorded for the mirror's file, None without a readable record."""
        try:
            noted = json.loads(_origin_path(path).read_bytes())
            return Origin(str(noted["revision"]), str(noted["sha256"]), int(noted["rows"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def note(self, path: Path) -> None:
        """Records it for the mirror's file."""
        noted = {"revision": self.revision, "sha256": self.sha256, "rows": self.rows}
        partial = _origin_path(path).with_suffix(".partial")
        partial.write_text(json.dumps(noted) + "\n")
        partial.replace(_origin_path(path))


def _origin_path(path: Path) -> Path:
    return path.with_name(f"{path.name.partition('.')[0]}.origin.json")


def _made(rows: Sequence[Mapping[str, Any]], columns: pa.Schema, most: int) -> Rows:
    lines = b"".join(json.dumps(row, sort_keys=True).encode() + b"\n" for row in rows)
    return Rows(*tables.from_jsonl(io.BytesIO(lines), columns, most))


def _from_mirror(root: Path, source: Source, split: str, columns: pa.Schema, most: int) -> Rows:
    stem = f"{source.dataset}/{source.config}/{split}"
    for suffix, parse in (("jsonl", tables.from_jsonl), ("parquet", tables.from_parquet)):
        path = root / f"{stem}.{suffix}"
        try:
            with path.open("rb") as file:
                table, digest = parse(file, columns, most)
        except FileNotFoundError:
            continue
        except tables.TableError as error:
            raise _broken(str(path), str(error)) from error
        except OSError as error:
            raise DataError(
                f"{path} cannot be read: {error.strerror}. Give the evaluator permission to read it."
            ) from error
        origin = Origin.beside(path)
        pulled = origin is not None and origin.sha256 == digest
        return Rows(table, f"{origin.revision}, sha256:{digest}" if origin and pulled else digest)
    raise DataMissingError(
        f"The data set {source.name(split)} is not in TOUCHSTONE_DATA_DIR: {root} has no {stem}.jsonl or .parquet. "
        "Add it with `touchstone data pull`, or leave the task out. If only the examples come from this split, set "
        "shots to 0."
    )


def _broken(name: str, what: str) -> DataError:
    return DataError(f"{name} cannot be used: {what}. Replace it with an intact copy.")
