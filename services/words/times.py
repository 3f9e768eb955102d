"""Times of messages in answers."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def moment(stamp: Timestamp) -> datetime | None:
    """None for a time that is not set, or that no calendar has."""
    try:
        return stamp.ToDatetime(tzinfo=UTC) if stamp.seconds or stamp.nanos else None
    except (ValueError, OverflowError):
        return None


def iso(stamp: Timestamp) -> str | None:
    """ISO-8601 in UTC with milliseconds and Z."""
    when = moment(stamp)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if when else None
