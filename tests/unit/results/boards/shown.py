"""Runs and what a board or an overview shows of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from services.results.boards import overview
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import START
from touchstone.v1 import results_service_pb2 as pb

NOW = START.replace(tzinfo=None) + timedelta(hours=1)


def series(connection: Connection, visible: Visibility = EVERYTHING, **filters: Any) -> dict[str, list[str]]:
    """Jobs of each series by its configuration and item set."""
    found = overview.list_trends(connection, pb.ListTrendsRequest(**{"suite": "glue", **filters}), NOW, visible)
    return {f"{t.configuration} {t.item_set}": [point.job_id for point in t.points] for t in found.trends}
