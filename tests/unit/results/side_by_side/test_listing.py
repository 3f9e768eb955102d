"""Matched rows that are kept for the next page."""

from __future__ import annotations

from services.results.intake import writes
from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection
from tests.unit.results.builders import batch, event
from tests.unit.results.dataset_runs import EXACT, completed, row, stored
from tests.unit.results.side_by_side.rows import walk
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Ask


def test_what_is_kept_of_completed_jobs_is_dropped_when_rows_have_moved_or_a_job_is_run_again(
    connection: Connection,
) -> None:
    for job_id in "ab":
        completed(connection, job_id, [row(number, 1.0) for number in range(10)], EXACT)
    asked, expected = SideBySide(), [f"candidate-{number}" for number in range(10)]
    assert walk(connection, asked) == expected
    # As DuckDB does when a list column is updated: the same row, at the end of the table.
    connection.execute("CREATE TEMP TABLE moved AS FROM items WHERE job_id = 'a' AND item < 5")
    connection.execute("DELETE FROM items WHERE job_id = 'a' AND item < 5")
    connection.execute("INSERT INTO items FROM moved ORDER BY item DESC")
    assert walk(connection, asked) == expected
    again = stored(connection, "a", [], EXACT, planned=11)
    again.attempt, again.state = 2, job_pb2.Job.STATE_RUNNING
    writes.store_events(connection, [event("9-again", again)])
    writes.store_items(connection, [batch("a", "rows", [row(10, 1.0)], attempt=2)])
    assert asked.rows(connection, Ask(job_ids=["a", "b"])).count_all == 11
