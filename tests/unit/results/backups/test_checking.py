"""What a check of a database finds."""

from __future__ import annotations

from pathlib import Path

import duckdb

from services.results.backups.checking import database_faults


def test_a_check_names_what_contradicts(finished: Path) -> None:
    with duckdb.connect(str(finished)) as connection:
        assert list(database_faults(connection)) == []
        connection.execute("UPDATE items SET correct = 0 WHERE job_id = 'j2' AND item < 40")
        assert list(database_faults(connection)) == ["job j2: its result does not match its items"]
        connection.execute("DELETE FROM items WHERE job_id = 'j1' AND item = 7")
        connection.execute("DELETE FROM seals WHERE job_id = 'j0'")
        assert list(database_faults(connection)) == [
            "job j0 is completed but has no result; the next start computes it",
            "job j1: 299 of 300 answers are stored",
        ]


def test_a_check_names_a_complete_job_that_has_lost_answers(finished: Path) -> None:
    with duckdb.connect(str(finished)) as connection:
        connection.execute("DELETE FROM items WHERE job_id = 'j1' AND item < 7")
        connection.execute("UPDATE seals SET missing = 7 WHERE job_id = 'j1'")
        assert next(iter(database_faults(connection))) == "job j1 was complete, but 7 of its answers are lost"
        connection.execute("UPDATE jobs SET incomplete = true WHERE job_id = 'j1'")
        assert "was complete" not in " ".join(database_faults(connection))
