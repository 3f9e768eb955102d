"""The score of one item."""

from __future__ import annotations

from services.results.intake import writes
from services.results.items import reads
from services.results.storage.database import Connection
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, event, job, plan
from tests.unit.results.dataset_runs import EXACT, TOKEN_F1, row, stored
from tests.unit.results.items.listed import found
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest


def test_scores_are_those_of_the_first_metric(connection: Connection) -> None:
    rows = [row(0, 0.25, TOKEN_F1), row(1, 1.0, TOKEN_F1), row(2, 0.5, TOKEN_F1, outcome=UNPARSED), row(3)]
    stored(connection, "j", [*rows, row(4, 1.0, TOKEN_F1, outcome=ERROR)], TOKEN_F1, EXACT)
    page = reads.list_items(connection, ListItemsRequest(job_id="j"))
    assert [one.score if one.HasField("score") else None for one in page.items] == [0.25, 1.0, 0.5, None, None]
    assert found(connection, score_low=0.25, score_high=0.5) == [0, 2]
    assert found(connection, score_low=float("-inf")) == [0, 1, 2]
    assert found(connection, score_high=0.2) == []


def test_of_a_suite_each_task_has_its_own_score(connection: Connection) -> None:
    tasks = (plan("class", 2), plan("table", 2, "f1"), plan("numbers", 2, "pearson"))
    writes.store_events(connection, [event("1", job("j", *tasks))])
    right, wrong, unread = answer(0), answer(1, "no"), answer(2, outcome=CUT)
    number = answer(0, "1.0", "2.0", statistics={"value": 1.0, "target": 2.0})
    batches = [
        batch("j", "class", [right, wrong, unread]),
        batch("j", "table", [right]),
        batch("j", "numbers", [number]),
    ]
    writes.store_items(connection, batches)
    page = reads.list_items(connection, ListItemsRequest(job_id="j"))
    scores = {(one.task, one.result.item): one.score for one in page.items if one.HasField("score")}
    assert scores == {("class", 0): 1.0, ("class", 1): 0.0, ("class", 2): 0.0}
    whole = reads.get_item(connection, pb.GetItemRequest(job_id="j", task="class", item=1))
    assert (whole.HasField("score"), whole.score) == (True, 0.0)


def test_a_statistic_that_is_no_number_counts_as_nothing_reached(connection: Connection) -> None:
    stored(connection, "j", [row(0, float("nan"), TOKEN_F1), row(1, float("inf")), row(2)], TOKEN_F1)
    page = reads.list_items(connection, ListItemsRequest(job_id="j"))
    assert [one.score if one.HasField("score") else None for one in page.items] == [0.0, 0.0, None]
