"""Data sets of lm_eval's tasks, from the local mirror or the Hub, whatever columns they have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from services.evaluator.data import reader
from services.evaluator.data.reader import DataError, DataMissingError, Source, unreachable


@dataclass(frozen=True, slots=True)
class Place:
    """Where a data set is. `hub_config` is the configuration to ask the Hub for, None for a data set's only one; a
    mirror's folder is named by `source`."""

    source: Source
    hub_config: str | None
    data_dir: Path | None

    def load(self, needed: Sequence[str], further: Iterable[str]) -> tuple[dict[str, Any], str]:
        """The existing splits, as `datasets` gives them, and the revision of the first needed one.

        A mirror that holds the data set's folder is its only source. Raises DataMissingError if a needed split is
        missing, DataError if one cannot be read.
        """
        mirror = self.data_dir / self.source.dataset if self.data_dir is not None else None
        found: dict[str, Any] = {}
        revision = ""
        for split in dict.fromkeys((*needed, *sorted(further))):
            try:
                if mirror is not None and mirror.is_dir():
                    found[split], read = self._from_mirror(mirror / self.source.config, split)
                else:
                    found[split], read = self._from_hub(split)
            except DataMissingError:
                if split in needed:
                    raise
            else:
                revision = revision or read
        return found, revision

    def _from_mirror(self, folder: Path, split: str) -> tuple[Any, str]:
        from datasets import Dataset

        for suffix, parse in (("jsonl", _json_rows), ("parquet", _parquet_rows)):
            file = folder / f"{split}.{suffix}"
            if not file.exists():
                continue
            content = file.read_bytes()
            try:
                return Dataset.from_list(parse(content)), hashlib.sha256(content).hexdigest()
            except (ValueError, TypeError) as error:  # errors of JSON, Arrow, or rows of different shapes
                raise DataError(f"{file} cannot be used: {error}. Replace it with an intact copy.") from error
        raise DataMissingError(
            f"The data set {self.source.name(split)} is not in TOUCHSTONE_DATA_DIR: {folder} has no {split}.jsonl or "
            ".parquet. Add the file."
        )

    def _from_hub(self, split: str) -> tuple[Any, str]:
        from datasets import Dataset
        from datasets.table import InMemoryTable

        try:
            table, commit = reader.load_from_hub(self.source.dataset, self.hub_config or "", split, "")
        except reader.HubError as error:
            raise unreachable(self.source, split, str(error)) from error
        return Dataset(InMemoryTable(table)), commit


def _json_rows(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.split(b"\n") if line.strip()]


def _parquet_rows(content: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    return rows
