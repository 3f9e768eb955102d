"""What an exported table's columns are: their names, their kinds, where their values come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Generic, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Value = str | int | float | bool | datetime | dict[str, "Value"] | list["Value"] | None
"""None where there is no value; a number that is not finite counts as no value. A text is never None."""
Row = Sequence[Value]

T = TypeVar("T")

_ROWS_TOGETHER = 256


class Kind(Enum):
    """TEXT and ANY are what others may have written; ANY is any value of JSON. OBJECT is JSON: text in CSV and Parquet,
    as ANY is in Parquet."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"
    TIME = "time"
    OBJECT = "object"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """`read` gives the value for what a row is made of."""

    name: str
    kind: Kind
    read: Callable[[T], Value]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one kind, in order, as they come: one batch holds some megabytes of them at most. JSON leaves out columns
    in `optional` where they have no value."""

    columns: Sequence[tuple[str, Kind]]
    batches: Iterator[Sequence[Row]]
    optional: frozenset[str] = frozenset()


def table(columns: Sequence[Column[T]], sources: Iterable[T]) -> Table:
    """For small rows."""
    return Table([(column.name, column.kind) for column in columns], _batches(columns, iter(sources)))


def _batches(columns: Sequence[Column[T]], sources: Iterator[T]) -> Iterator[list[Row]]:
    while some := list(islice(sources, _ROWS_TOGETHER)):
        yield [[column.read(source) for column in columns] for source in some]


def number(message: Message, field: str) -> float | None:
    """An optional number of a message."""
    if not message.HasField(field):
        return None
    return finite(getattr(message, field))


def finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def time(message: Message, field: str) -> datetime | None:
    if not message.HasField(field):
        return None
    stamp: Timestamp = getattr(message, field)
    return stamp.ToDatetime(UTC)
