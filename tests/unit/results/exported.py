"""Items from their exported rows."""

from __future__ import annotations

from typing import Any

from touchstone.v1 import item_result_pb2
from touchstone.v1 import results_service_pb2 as pb


def exported_item(row: dict[str, Any]) -> pb.StoredItem:
    """An item from its exported row, as far as metrics need it."""
    result = item_result_pb2.ItemResult(
        item=row["item"],
        repeat=row["repeat"],
        group=row["group"],
        prediction=row["prediction"],
        reference=row["reference"],
        outcome=f"OUTCOME_{row['outcome'].upper()}",
    )
    numbers = {name: row[name] for name in ("correct", "value", "target")} | (row["statistics"] or {})
    for name, number in numbers.items():
        if number is not None:
            result.statistics[name] = number
    return pb.StoredItem(task=row["task"], result=result)
