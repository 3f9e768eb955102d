"""What a gate's run can prove, from the baseline's standard errors alone."""

from __future__ import annotations

import math

import pytest

from tests.unit.client.command.gate.compared import Pipeline, compared, difference
from tests.unit.client.fakes import JOB, metric, result
from touchstone.v1 import comparison_pb2, metric_pb2, suite_pb2
from touchstone_client.command.gate import margin


def test_the_margin_is_told_before_the_run(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.run()
    said = capsys.readouterr().err
    # Two tasks of standard errors .01 and .02: √2 · √(.01² + .02²) / 2, times z.95 + z.80.
    expected = 2.4865 * math.sqrt(2) * math.sqrt(0.01**2 + 0.02**2) / 2
    assert f"On 2,000 items the gate can prove that a drop is less than about {expected:.4f}" in said
    assert "their errors are independent, which is the worst case" in said
    assert "if both are equally good, exit code 2 (undecided) is likely" in said
    assert said.index("can prove") < said.index("candidate: job")


def test_the_margin_comes_from_the_candidates_last_run_where_there_is_one(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    last = compared(difference(-0.002, -0.008, 0.004, 0.6, stderr=0.003))
    last.runs[0].job_id = last.differences[0].b = "earlier"
    pipeline.last_time = last
    pipeline.run()
    said = capsys.readouterr().err
    assert f"less than about {2.4865 * 0.003:.4f}" in said
    assert "as the candidate's last run (earlier) does" in said
    assert "exit code 2" not in said
    assert list(pipeline.fakes.requests("Compare")[0].subjects) == [JOB, "new@mine"]


def test_a_sample_proves_less() -> None:
    whole = margin.independent(result(), "score", (), 0)
    part = margin.independent(result(), "score", (), 250)
    assert whole.margin is not None
    assert part.items == 500
    assert part.margin == pytest.approx(2 * whole.margin)
    one = margin.independent(result(), "score", ("rte",), 0)
    assert one.items == 1000
    assert one.margin == pytest.approx(2.4865 * math.sqrt(2) * 0.02, rel=1e-4)


def test_tasks_of_a_score_group_count_once() -> None:
    made = result()
    made.tasks.append(metric_pb2.TaskResult(task="m1", score_group="mnli", metrics=[metric(stderr=0.01)]))
    made.tasks.append(metric_pb2.TaskResult(task="m2", score_group="mnli", metrics=[metric(stderr=0.01)]))
    made.tasks.append(metric_pb2.TaskResult(task="ax", beside=True, metrics=[metric(stderr=0.5)]))
    found = margin.independent(made, "score", (), 0)
    s = math.sqrt(2 * (0.01**2 + 0.02**2 + 2 * 0.01**2 / 4)) / 3
    assert found.items == 4000
    assert found.margin == pytest.approx(2.4865 * s, rel=1e-4)


def test_over_items_tasks_count_by_their_items() -> None:
    made = metric_pb2.JobResult(
        tasks=[
            metric_pb2.TaskResult(
                task=task, metrics=[metric_pb2.Metric(metric="accuracy", mean=0.5, stderr=error, n=n)]
            )
            for task, error, n in (("small", 0.05, 100), ("large", 0.01, 900))
        ],
    )
    found = margin.independent(made, "score", (), 0, suite_pb2.WEIGHTING_ITEMS)
    s = math.sqrt(2 * ((0.1 * 0.05) ** 2 + (0.9 * 0.01) ** 2))
    assert found.items == 1000
    assert found.margin == pytest.approx(2.4865 * s, rel=1e-4)


def test_a_margin_that_cannot_be_told_says_why() -> None:
    made = result()
    made.tasks[0].metrics[0].ClearField("stderr")
    assert "accuracy of sst2 has no standard error" in margin.independent(made, "score", (), 0).words(0.01)
    assert "has no bleu on these tasks" in margin.independent(result(), "bleu", (), 0).words(0.01)


def test_runs_that_agree_on_every_item_do_not_prove_any_drop_away() -> None:
    """Of 100 items without a disagreement the interval at 90 % ends at 1.645² / (100 + 1.645²)."""
    end = 1.645**2 / (100 + 1.645**2)
    last = comparison_pb2.Difference(difference=0, stderr=0, low=-end, high=end, n=100)
    assert margin.like_last_time(last, 100, "job").margin == pytest.approx(end)


def test_a_baseline_without_an_error_does_not_prove_any_drop_away() -> None:
    """Wilson's interval of 100 right of 100 is 0.963 to 1."""
    perfect = metric_pb2.Metric(metric="accuracy", mean=1, stderr=0, ci95_low=0.963, ci95_high=1, n=100)
    made = metric_pb2.JobResult(tasks=[metric_pb2.TaskResult(task="t", metrics=[perfect])])
    found = margin.independent(made, "accuracy", (), 0)
    assert found.margin == pytest.approx(2.4865 * math.sqrt(2) * 0.037 / 2 / 1.96, rel=1e-3)
