"""Sets the gauges of the way from NATS into the database, NATS's consumers, and the database's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from services.bus import Bus
from services.bus.measuring import behind, consumers
from services.results.intake.feeds import Feed
from services.telemetry import metrics

STREAM_GAUGES = (
    metrics.INGEST_PENDING,
    metrics.INGEST_LAG,
    metrics.CONSUMER_PENDING,
    metrics.CONSUMER_UNACKNOWLEDGED,
)


async def measure_streams(connection: Bus, feeds: Sequence[Feed]) -> None:
    """Raises NATS's errors; then no gauge has changed."""
    left = {(feed.stream_name,): await behind(connection, feed.stream_name, feed.position) for feed in feeds}
    found = await consumers(connection)
    metrics.INGEST_PENDING.replace({stream: messages for stream, (messages, _) in left.items()})
    metrics.INGEST_LAG.replace({stream: age_s for stream, (_, age_s) in left.items()})
    metrics.CONSUMER_PENDING.replace({(one.stream, one.name): one.pending for one in found})
    metrics.CONSUMER_UNACKNOWLEDGED.replace({(one.stream, one.name): one.unacknowledged for one in found})


async def measure_files(database: Path) -> None:
    log = database.with_suffix(f"{database.suffix}.wal")
    for name, path in zip(metrics.DATABASE_FILES, (database, log), strict=True):
        metrics.DATABASE_BYTES.set(path.stat().st_size if path.exists() else 0, name)
