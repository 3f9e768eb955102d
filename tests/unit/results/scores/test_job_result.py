"""The result of a job."""

from __future__ import annotations

import pytest

from services.results.intake import writes
from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.unit.results.builders import ANSWERED, UNPARSED, answer, batch, job, known, run
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
