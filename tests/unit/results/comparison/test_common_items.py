"""Items that all compared runs have."""

from __future__ import annotations

from services.results.storage.database import Connection
from tests.unit.results.builders import ERROR
from tests.unit.results.comparison.compared import score_of
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, said, task


def test_answers_that_failed_in_one_run_drop_out_of_both(connection: Connection) -> None:
    finished(connection, "a", task("sst2", right_or_wrong("1111100000")), model="a")
    failed = right_or_wrong("1111111111")
    failed[0], failed[9] = said(0, "", outcome=ERROR), said(9, "", outcome=ERROR)
    finished(connection, "b", task("sst2", failed), model="b")
    response = compared(connection, "a", "b")
    found = difference(response, "sst2")
    assert (found.n, found.only_a + found.only_b) == (8, 4)
    assert response.items == 8
    assert score_of(response, "a").mean == 0.5
    assert any(note.startswith("2 items without a final outcome in b are left out") for note in response.notes)
    assert response.runs[-1].job_id == "b", "an incomplete run does not rank"
    assert "2 items have no answer" in response.runs[-1].not_ranked_reason
    bounds = score_of(response, "b")
    assert (bounds.bound_low, bounds.bound_high) == (0.8, 1.0)
    assert any("Retry job b" in line for line in response.recommendations)
