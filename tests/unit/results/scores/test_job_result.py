"""The result of a job."""

from __future__ import annotations

import pytest

from services.results.intake import writes
from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.unit.results.builders import ANSWERED, ERROR, UNPARSED, answer, batch, job, known, run
from tests.unit.results.dataset_runs import dataset_job, row, stored
from tests.unit.results.scores.planned import planned
from touchstone.v1 import job_pb2


def test_a_failed_job_has_no_averages(connection: Connection) -> None:
    plans = [planned("a", 2, category="x"), planned("b", 3, category="x")]
    known(connection, *plans)
    writes.store_items(connection, [batch("j", t, [answer(0), answer(1)]) for t in "ab"])
    failed = job("j", *plans, state=job_pb2.Job.STATE_FAILED)
    assert not job_result.compute(connection, failed, seal=False).result.averages


def test_a_sealed_job_keeps_its_rule_and_averages(connection: Connection) -> None:
    plans = [planned("a", 10, category="x"), planned("b", 10, category="x")]
    sealed = run(connection, job("j", *plans), right=7, wrong=3).result
    assert sealed.score_rule == "Mean accuracy over 2 tasks."
    assert [average.metric.mean for average in sealed.averages] == pytest.approx([0.7] * 4)


def test_several_answers_per_item_are_planned_counted_and_missed_as_answers(connection: Connection) -> None:
    several = planned("t", 5)
    several.repeats = 4
    results = [
        answer(p // 4, repeat=p % 4, position=p, outcome=UNPARSED if p == 3 else ANSWERED) for p in range(18) if p != 7
    ]
    writes.store_items(connection, [batch("j", "t", results)])
    computed = job_result.compute(connection, job("j", several), seal=True)
    (task,) = computed.result.tasks
    assert (computed.missing, computed.errors) == (3, 0)
    assert (task.items, task.items_planned, task.correct) == (17, 20, 16)
    assert (task.outcomes.answered, task.outcomes.unparsed) == (16, 1)
    assert computed.result.not_ranked_reason == "3 answers are missing"
    (accuracy,) = task.metrics
    assert (accuracy.n, round(accuracy.mean, 9)) == (5, 0.95)
    assert (round(accuracy.bound_low, 9), accuracy.bound_high) == (0.8, 1.0)


def test_fields_are_counted_from_the_stored_answers(connection: Connection) -> None:
    hostile = 'would_read"]}'
    made = [
        row(0, 1, statistics={"correct": 1, "field:a.b": 1, "field:a": 0.5, f"field:{hostile}": 1}),
        row(1, 0, statistics={"correct": 0, "field:a.b": 0, "field:a": 1, "other": 1}),
        row(2, 0, outcome=UNPARSED, statistics={"correct": 0, "field:a.b": 0, f"field:{hostile}": 0}),
        row(3, 0, outcome=ERROR),
        row(4),
        row(5, 1),
    ]
    run_of = stored(connection, "j", made)
    result = job_result.compute(connection, run_of, seal=True).result
    assert [(one.task, one.field, one.right, one.answers) for one in result.fields] == [
        ("rows", "a", 1.5, 2),
        ("rows", "a.b", 1, 3),
        ("rows", hostile, 1, 2),
    ]
    assert not result.unread or result.unread[0].lenient_would_read == 0


def test_of_very_many_fields_those_of_most_answers_are_counted(connection: Connection) -> None:
    many = {f"field:{number:03d}": 1.0 for number in range(300)}
    made = [row(0, 1, statistics={"correct": 1, **many}), row(1, 1, statistics={"correct": 1, "field:299": 0})]
    stored(connection, "j", made)
    fields = job_result.compute(connection, dataset_job("j", 2), seal=True).result.fields
    assert len(fields) == 200
    assert (fields[-1].field, fields[-1].right, fields[-1].answers) == ("299", 1, 2)


def test_suites_have_no_fields(connection: Connection) -> None:
    plan = planned("t", 1)
    writes.store_items(connection, [batch("j", "t", [answer(0, statistics={"correct": 1, "field:a": 1})])])
    assert not job_result.compute(connection, job("j", plan), seal=True).result.fields
