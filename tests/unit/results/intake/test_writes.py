"""What the database keeps, and what replaces what."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from services.errors import NotFoundError
from services.results.intake import writes
from services.results.intake.writes import Mark
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file
from services.results.visibility import Visibility
from tests.unit.results.builders import ANSWERED, CUT, ERROR, UNPARSED, answer, batch, event, job, plan, run, seal
from tests.unit.results.intake.written import store, stored
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2

CLASS_METRICS = """
    SELECT
        avg(CASE WHEN outcome = 1 THEN correct ELSE 0 END),
        2 * count(*) FILTER (reference = 'yes' AND outcome = 1 AND prediction = 'yes')
          / (count(*) FILTER (reference = 'yes')
             + count(*) FILTER ((outcome = 1 AND prediction = 'yes') OR (outcome <> 1 AND reference <> 'yes')))
    FROM items WHERE task = 'mrpc' AND outcome <> 6
"""


def test_new_items_are_inserted_at_once_and_stored_ones_void_the_insertion(connection: Connection) -> None:
    writes.insert_items(connection, [batch("j", "t", [answer(0), answer(1)])])
    connection.begin()
    with pytest.raises(duckdb.ConstraintException):
        writes.insert_items(connection, [batch("j", "t", [answer(2), answer(1, "no")])])
    connection.rollback()
    assert connection.execute("SELECT item FROM items ORDER BY item").fetchall() == [(0,), (1,)]
    writes.store_items(connection, [batch("j", "t", [answer(2), answer(1, "no")])])
    assert connection.execute("SELECT item, prediction FROM items ORDER BY item").fetchall() == [
        (0, "yes"),
        (1, "yes"),
        (2, "yes"),
    ]


def test_a_duplicate_changes_nothing(connection: Connection) -> None:
    store(connection, answer(0, "yes"))
    store(connection, answer(0, "no"), attempt=2)
    assert stored(connection).result.prediction == "yes"
    assert stored(connection).attempt == 1


@pytest.mark.parametrize("final", [ANSWERED, UNPARSED, CUT])
def test_a_final_outcome_replaces_an_infrastructure_error(connection: Connection, final: int) -> None:
    store(connection, answer(0, outcome=ERROR, error="timeout"))
    store(connection, answer(0, outcome=final))
    assert stored(connection).result.outcome == final
    assert stored(connection).result.error == ""


@pytest.mark.parametrize("final", [ANSWERED, UNPARSED, CUT])
def test_an_infrastructure_error_never_replaces_a_final_outcome(connection: Connection, final: int) -> None:
    store(connection, answer(0, outcome=final))
    store(connection, answer(0, outcome=ERROR), attempt=9)
    assert stored(connection).result.outcome == final


def test_a_later_attempts_error_replaces_an_earlier_one_and_not_the_other_way(connection: Connection) -> None:
    store(connection, answer(0, outcome=ERROR, error="second"), attempt=2)
    store(connection, answer(0, outcome=ERROR, error="first"), attempt=1)
    assert stored(connection).result.error == "second"
    store(connection, answer(0, outcome=ERROR, error="third"), attempt=3)
    assert stored(connection).result.error == "third"


def test_items_in_one_batch_leave_what_they_would_leave_one_by_one(connection: Connection, tmp_path: Path) -> None:
    """De-duplication before the insert and the conflict rule in SQL must be the same rule."""
    rng = random.Random(4)
    outcomes = [ANSWERED, UNPARSED, ERROR, ERROR, ERROR]
    batches = [
        batch(
            "j",
            "t",
            [answer(rng.randrange(8), f"v{n}", outcome=rng.choice(outcomes), error=f"e{n}")],
            rng.randrange(1, 5),
        )
        for n in range(200)
    ]
    writes.store_items(connection, batches)
    other = open_file(tmp_path / "one-by-one.duckdb")
    for one in batches:
        writes.store_items(other, [one])
    everything = "SELECT * FROM items ORDER BY item"
    assert connection.execute(everything).fetchall() == other.execute(everything).fetchall()
    other.close()


def test_a_result_without_an_outcome_is_not_stored(connection: Connection) -> None:
    store(connection, item_result_pb2.ItemResult(item=0), answer(1))
    assert connection.execute("SELECT item FROM items").fetchall() == [(1,)]


def test_late_and_repeated_events_do_not_move_a_job_back(connection: Connection) -> None:
    running = job("j", plan("t", 1))
    finished = job("j", plan("t", 1), state=job_pb2.Job.STATE_COMPLETED)
    writes.store_events(connection, [event("0002", finished, "completed")])
    writes.store_events(connection, [event("0001", running), event("0002", finished, "completed")])
    assert job_reads.get_job(connection, "j").state == job_pb2.Job.STATE_COMPLETED
    assert connection.execute("SELECT count(*) FROM events").fetchone() == (2,)


def test_event_ids_without_padding_order_as_numbers(connection: Connection) -> None:
    writes.store_events(connection, [event("10", job("j", state=job_pb2.Job.STATE_FAILED)), event("9", job("j"))])
    assert job_reads.get_job(connection, "j").state == job_pb2.Job.STATE_FAILED


def test_every_class_metric_is_recomputable_by_plain_sql(connection: Connection) -> None:
    planned = job("j", plan("mrpc", 9, "f1", "accuracy"))
    writes.store_items(
        connection,
        [
            batch(
                "j",
                "mrpc",
                [
                    *(answer(i, "yes", "yes") for i in range(3)),
                    *(answer(i, "no", "yes") for i in range(3, 5)),
                    answer(5, "yes", "no"),
                    answer(6, "no", "no"),
                    answer(7, "", "no", UNPARSED),
                    answer(8, "", "yes", UNPARSED),
                ],
            )
        ],
    )
    f1, accuracy = seal(connection, planned).result.tasks[0].metrics
    assert connection.execute(CLASS_METRICS).fetchone() == pytest.approx((accuracy.mean, f1.mean))
    assert accuracy.n == 9


def test_correlations_are_recomputable_by_plain_sql(connection: Connection) -> None:
    pairs = [(1.0, 0.5), (2.0, 2.5), (3.0, 2.0), (4.5, 5.0), (2.5, 3.0)]
    results = [answer(i, statistics={"value": v, "target": t}) for i, (v, t) in enumerate(pairs)]
    writes.store_items(connection, [batch("j", "stsb", results)])
    pearson = seal(connection, job("j", plan("stsb", 5, "pearson", "spearman"))).result.tasks[0].metrics[0]
    assert connection.execute("SELECT corr(value, target) FROM items").fetchone() == (pytest.approx(pearson.mean),)


def test_a_seal_counts_missing_and_failed_items_and_repeating_it_changes_nothing(connection: Connection) -> None:
    planned = job("j", plan("t", 10), plan("u", 2))
    store(connection, *(answer(i) for i in range(6)), answer(6, outcome=ERROR), answer(7, outcome=ERROR))
    writes.store_items(connection, [batch("j", "u", [answer(0), answer(1, "no")])])
    first = seal(connection, planned)
    assert (first.missing, first.infrastructure_errors) == (2, 2)
    assert first.result.not_ranked_reason == "4 items have no answer"
    task = first.result.tasks[0].metrics[0]
    assert (task.mean, task.n, task.bound_low, task.bound_high) == (1.0, 6, 0.6, 1.0)
    before = connection.execute("SELECT * FROM seals").fetchall()
    store(connection, answer(8))
    assert seal(connection, planned, minute=5) == first
    assert connection.execute("SELECT * FROM seals").fetchall() == before


def test_a_retry_is_sealed_anew_with_all_its_items(connection: Connection) -> None:
    store(connection, answer(0), answer(1, outcome=ERROR))
    assert seal(connection, job("j", plan("t", 2))).infrastructure_errors == 1
    assert connection.execute("SELECT DISTINCT newest FROM current_scores").fetchall() == [(0,)]
    store(connection, answer(1, "no"), attempt=2)
    again = seal(connection, job("j", plan("t", 2), attempt=2))
    assert (again.missing, again.infrastructure_errors) == (0, 0)
    assert again.result.suite_score.mean == 0.5
    assert connection.execute("SELECT DISTINCT job_id, newest FROM current_scores").fetchall() == [("j", 1)]
    assert connection.execute("SELECT mean FROM metrics WHERE task = 't'").fetchall() == [(0.5,)]


def test_a_job_that_is_cancelled_after_its_seal_stands_for_nothing(connection: Connection) -> None:
    run(connection, job("old", plan("t", 4)), right=2, wrong=2, minute=1)
    run(connection, job("new", plan("t", 4)), right=4, minute=2)
    assert connection.execute("SELECT DISTINCT job_id FROM current_scores WHERE newest = 1").fetchall() == [("new",)]
    cancelled = job("new", plan("t", 4), state=job_pb2.Job.STATE_CANCELLED)
    writes.store_events(connection, [event("999999-zzz", cancelled, "cancelled")])
    assert connection.execute("SELECT DISTINCT job_id FROM current_scores WHERE newest = 1").fetchall() == [("old",)]


def test_stored_positions_are_those_with_a_final_outcome(connection: Connection) -> None:
    store(connection, answer(3), answer(1, outcome=UNPARSED), answer(2, outcome=ERROR))
    found = reads.list_stored_items(connection, "j")
    assert [(task.task, list(task.positions)) for task in found.tasks] == [("t", [1, 3])]


def test_a_mark_is_kept_per_stream(connection: Connection) -> None:
    assert writes.read_mark(connection, "RESULTS") == Mark("RESULTS", "", 0)
    writes.write_mark(connection, Mark("RESULTS", "today", 5))
    writes.write_mark(connection, Mark("RESULTS", "today", 2**40))
    assert writes.read_mark(connection, "RESULTS") == Mark("RESULTS", "today", 2**40)
    assert writes.read_mark(connection, "AUDIT").sequence == 0


def _deleted(job_id: str = "j1", event_id: str = "999999999999") -> job_pb2.JobEvent:
    gone = job(job_id, state=job_pb2.Job.STATE_COMPLETED)
    gone.deleted_at.FromSeconds(1_800_000_000)
    return event(event_id, gone, "deleted")


def _rows(connection: Connection, job_id: str) -> dict[str, int]:
    tables = ("jobs", "items", "seals", "metrics", "run_scores", "current_scores", "answer_texts")
    counts = {}
    for table in tables:
        ((count,),) = connection.execute(f"SELECT count(*) FROM {table} WHERE job_id = '{job_id}'").fetchall()
        counts[table] = count
    return {table: count for table, count in counts.items() if count}


def test_a_deleted_job_leaves_nothing_but_its_events_and_the_run_before_stands_again(connection: Connection) -> None:
    for number, name in enumerate(("j0", "j1")):
        run(connection, job(name, plan("t", 4), minute=number), right=4, minute=number)
    chosen = "SELECT DISTINCT job_id, runs FROM current_scores WHERE newest = 1"
    assert connection.execute(chosen).fetchall() == [("j1", 2)]
    writes.store_events(connection, [_deleted()])
    assert _rows(connection, "j1") == {}
    assert connection.execute(chosen).fetchall() == [("j0", 1)]
    with pytest.raises(NotFoundError, match="deleted by ann on 2027-01-15 at 08:00 UTC"):
        job_reads.get_job(connection, "j1")
    request = results_service_pb2.ListEventsRequest(job_id="j1")
    for visible in (Visibility(), Visibility("ann")):
        assert [e.action for e in job_reads.list_events(connection, request, visible).events][-1] == "deleted"
    with pytest.raises(NotFoundError, match="not found"):
        job_reads.list_events(connection, request, Visibility("bob"))


def test_nothing_brings_a_deleted_job_back(connection: Connection) -> None:
    whole = job("j1", plan("t", 4), state=job_pb2.Job.STATE_COMPLETED)
    writes.store_events(connection, [event("000001", whole, "completed"), _deleted()])
    writes.store_items(connection, [batch("j1", "t", [answer(0)]), batch("j2", "t", [answer(0)])])
    writes.insert_items(connection, [batch("j1", "t", [answer(1)])])
    writes.store_events(connection, [event("000001", whole, "completed"), event("1000000", whole, "retried")])
    with pytest.raises(NotFoundError):
        seal(connection, whole)
    connection.rollback()
    writes.store_events(connection, [_deleted()])
    assert _rows(connection, "j1") == {}
    assert connection.execute("SELECT job_id FROM items").fetchall() == [("j2",)]


def test_parameters_that_a_message_holds_once_are_stored_with_each_item(connection: Connection) -> None:
    """A message of an earlier version has them in each item. A place that the message lacks leaves them empty."""
    made = batch("j", "t", [answer(number) for number in range(4)])
    made.parameters.append('{"tools":[]}')
    for item, place in zip(made.items, (1, 0, 1, 7), strict=True):
        item.shared_parameters = place
    made.items[1].parameters = '{"seed":1}'
    made.items[3].parameters = ""
    writes.insert_items(connection, [made])
    found = connection.execute("SELECT parameters FROM items ORDER BY item").fetchall()
    assert [text for (text,) in found] == ['{"tools":[]}', '{"seed":1}', '{"tools":[]}', ""]
