"""What does not compare, and what compares on a part."""

from __future__ import annotations

import random
from typing import Any

import pytest

from services.results.storage.database import Connection
from tests.unit.results.builders import ANSWERED, ERROR
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, said, share_right, task
from touchstone.v1 import comparison_pb2, job_pb2, scoring_pb2, suite_pb2

NOT = comparison_pb2.VERDICT_NOT_COMPARABLE
PATTERNS = {"a": "1110110111", "b": "1010010101"}


def two(
    connection: Connection, change: dict[str, Any], tasks: int = 1, **fields: Any
) -> comparison_pb2.CompareResponse:
    """Runs a and b, of which b's first task is changed."""
    for minute, (job_id, pattern) in enumerate(PATTERNS.items()):
        planned = [
            task(f"t{n}", right_or_wrong(pattern), **(change if job_id == "b" and n == 0 else {})) for n in range(tasks)
        ]
        finished(connection, job_id, *planned, model=job_id, minute=minute, **fields)
    return compared(connection, "a", "b")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "2"}, "the prompts have the versions 1 and 2"),
        ({"prompt_hash": "p2"}, "the prompts differ (p1 and p2)"),
        ({"scorer_version": "2"}, "`touchstone rescore a`"),
        ({"reading": scoring_pb2.READING_STRICT}, "`touchstone rescore b --reading lenient`"),
        ({"revision": "r2", "item_set": "other"}, "the data have the revisions r1 and r2"),
    ],
)
def test_what_a_task_rests_on_must_be_the_same(connection: Connection, change: dict[str, Any], reason: str) -> None:
    response = two(connection, change)
    for found in response.differences:
        assert found.verdict == NOT
        assert reason in found.reason
        assert not found.HasField("p_value")
    assert any("cannot be compared" in line for line in response.recommendations)


def test_one_task_that_does_not_compare_leaves_the_others(connection: Connection) -> None:
    response = two(connection, {"version": "2"}, tasks=3)
    assert [difference(response, f"t{n}").verdict == NOT for n in range(3)] == [True, False, False]
    whole = difference(response)
    assert whole.verdict == NOT
    assert whole.reason == "T0: the prompts have the versions 1 and 2"


def test_modes_shots_and_answers_an_item_must_be_the_same(connection: Connection) -> None:
    for job_id in ("plain", "loglikelihood", "shots", "repeats"):
        results = right_or_wrong("1101")
        planned = task("t", results)
        if job_id == "repeats":
            results += [said(one.item, one.prediction, repeat=1, position=9) for one in results]
            planned = task("t", results, repeats=2)
        made = job_pb2.JobSpec(mode=suite_pb2.MODE_LOGLIKELIHOOD) if job_id == "loglikelihood" else job_pb2.JobSpec()
        made.suite.shots = 5 if job_id == "shots" else 0
        finished(connection, job_id, planned, model=job_id, spec=made)
    response = compared(connection, "plain", "loglikelihood", "shots", "repeats")
    reasons = {
        other: difference(response, "t", pair=("plain", other)).reason
        for other in ("loglikelihood", "shots", "repeats")
    }
    assert "generate mode" in reasons["loglikelihood"]
    assert "loglikelihood mode" in reasons["loglikelihood"]
    assert "0 and 5 examples" in reasons["shots"] or "5 and 0 examples" in reasons["shots"]
    assert "answers per item" in reasons["repeats"]
    assert all(one.verdict == NOT for one in response.differences)


def test_another_revision_with_the_same_items_compares_with_a_note(connection: Connection) -> None:
    response = two(connection, {"revision": "r2"})
    assert difference(response).verdict != NOT
    assert difference(response, "t0").n == 10
    assert "The data come from different revisions with the same items." in response.notes


def test_different_items_compare_on_those_in_common(connection: Connection) -> None:
    every = share_right(0.7, 100, 1)
    finished(connection, "whole", task("t", right_or_wrong(every)), model="m1")
    chosen = random.Random(2).sample(range(100), 40)
    sample = [said(item, "yes" if item % 2 else "no") for item in chosen]
    finished(connection, "sample", task("t", sample), model="m2", subset=True)
    response = compared(connection, "m1", "m2")
    found = difference(response, "t")
    right = {"whole": sum(every[item] == "1" for item in chosen), "sample": sum(item % 2 for item in chosen)}
    assert found.n == response.items == 40
    assert response.subset
    assert {run.job_id: run.scores[0].mean for run in response.runs} == {job: n / 40 for job, n in right.items()}
    assert abs(found.difference) == pytest.approx(abs(right["whole"] - right["sample"]) / 40)
    assert any("m1 ran 100" in note and "m2 ran 40" in note for note in response.notes)


def test_items_without_a_revision_are_known_by_what_is_in_them(connection: Connection) -> None:
    # The second run read a file with other rows before the same ones, and one of them twice.
    finished(connection, "a", task("t", right_or_wrong("110100"), revision=""), model="a")
    moved = [said(0, "yes", item_hash="new")]
    moved += [said(item + 1, "yes", item_hash=f"h{item}") for item in range(6)]
    moved += [said(7, "yes", item_hash="h0")]
    finished(connection, "b", task("t", moved, revision=""), model="b")
    response = compared(connection, "a", "b")
    found = difference(response, "t")
    assert (found.a, found.n, found.only_a, found.only_b) == ("b", 6, 3, 0)


def test_tasks_that_not_all_ran_are_left_out(connection: Connection) -> None:
    shared = task("x", right_or_wrong("1101"))
    finished(connection, "a", shared, task("y", right_or_wrong("0000")), model="a")
    finished(connection, "b", shared, model="b", subset=True)
    response = compared(connection, "a", "b")
    assert {one.task for one in response.differences} == {"", "x"}
    assert [run.scores[0].mean for run in response.runs] == [0.75, 0.75]
    assert "Left out because not every run has it: Y." in response.notes
    assert response.subset


def test_runs_without_a_task_in_common_say_so(connection: Connection) -> None:
    finished(connection, "a", task("x", right_or_wrong("11")), model="a")
    finished(connection, "b", task("y", right_or_wrong("11")), model="b")
    (found,) = compared(connection, "a", "b").differences
    assert (found.verdict, found.reason) == (NOT, "they have no tasks in common")


def test_runs_without_an_item_in_common_say_so(connection: Connection) -> None:
    finished(connection, "a", task("x", [said(n, "yes") for n in range(5)]), model="a")
    finished(connection, "b", task("x", [said(n, "yes") for n in range(5, 10)]), model="b")
    for found in compared(connection, "a", "b").differences:
        assert (found.verdict, found.n) == (NOT, 0)
        assert "no items in common" in found.reason


def test_of_three_runs_those_that_compare_are_compared(connection: Connection) -> None:
    finished(connection, "a", task("t", right_or_wrong("1" * 30)), model="a")
    finished(connection, "b", task("t", right_or_wrong("10" * 15)), model="b")
    finished(connection, "other", task("t", right_or_wrong("01" * 15), version="2"), model="other")
    response = compared(connection, "a", "b", "other")
    assert difference(response, "", pair=("a", "b")).verdict == comparison_pb2.VERDICT_BETTER
    assert difference(response, "", pair=("a", "other")).verdict == NOT
    assert not response.omnibus


def test_a_metric_that_one_run_lacks_leaves_the_others(connection: Connection) -> None:
    finished(connection, "old", task("t", right_or_wrong("1101"), "accuracy"), model="old")
    newer = task("t", right_or_wrong("1001"), "accuracy")
    newer[0].metrics.add(metric="pass@1", rule=suite_pb2.MetricSpec.RULE_ANY, statistic="correct", beside=True)
    finished(connection, "new", newer, model="new")
    response = compared(connection, "old", "new")
    assert difference(response).difference == 0.25
    assert difference(response, "t", "accuracy").n == 4
    (missing,) = compared(connection, "old", "new", metrics=["pass@1"]).differences
    assert missing.reason == "they have no tasks in common that has this metric"
    finished(connection, "other", task("t", right_or_wrong("1001"), "accuracy", "f1"), model="other")
    assert difference(compared(connection, "old", "other")).reason == "the score of T consists of different metrics"


@pytest.mark.parametrize("metric", ["f1", "macro_f1", "matthews_correlation"])
def test_clustered_runs_without_an_item_in_common_say_so(connection: Connection, metric: str) -> None:
    for job_id, start in (("a", 0), ("b", 5)):
        answers = [said(n, "yes", repeat=r) for n in range(start, start + 5) for r in (0, 1)]
        finished(connection, job_id, task("x", answers, metric, repeats=2), model=job_id)
    for found in compared(connection, "a", "b").differences:
        assert found.verdict == NOT
        assert "no items in common" in found.reason


def test_items_that_lack_some_of_their_answers_are_counted_one_by_one(connection: Connection) -> None:
    for job_id in ("a", "b"):
        answers = [
            said(
                n, "yes" if n % 4 else "no", outcome=ERROR if job_id == "a" and n < 3 and r == 0 else ANSWERED, repeat=r
            )
            for n in range(20)
            for r in range(3)
        ]
        finished(connection, job_id, task("x", answers, repeats=3), model=job_id)
    response = compared(connection, "a", "b")
    assert response.items == 17
    assert "3 items without a final outcome in a are left out of all runs." in response.notes
    # 13 of the 17 in common are right: of all 20 between 13 and 16 would be.
    score = next(run.scores[0] for run in response.runs if run.job_id == "a")
    assert [score.bound_low, score.bound_high] == pytest.approx([13 / 20, 16 / 20])
