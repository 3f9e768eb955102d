"""What a split must be for a task to use it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.data.reader import DataError


def unusable(name: str, what: str) -> DataError:
    """The error for a split without usable answers; `what` is half a sentence."""
    return DataError(f"{name} cannot be used: {what}. Use a split whose answers are published.")


def check_range(column: pa.ChunkedArray, low: float, high: float, name: str) -> None:
    """Raises DataError where a label is missing or outside `low`–`high`."""
    if column.null_count:
        raise unusable(name, f"row {pc.index(column.is_null(), True).as_py()} has no label")
    bounds = pc.min_max(column).as_py()
    if not low <= bounds["min"] <= bounds["max"] <= high:
        raise unusable(name, f"labels run from {bounds['min']:g} to {bounds['max']:g}, not within {low:g}–{high:g}")
