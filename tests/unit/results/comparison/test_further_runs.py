"""What comparisons say of the noise of whole runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import UNPARSED
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, said, share_right, task
from touchstone.v1 import comparison_pb2, job_pb2

ITEMS = 400
NOT_INCLUDED = "Re-asking noise is not included"


def runs(connection: Connection, model: str, shares: list[float], **fields: object) -> list[str]:
    """Runs of one configuration, each right on its share of the items; returns their patterns."""
    patterns = []
    for number, share in enumerate(shares):
        pattern = share_right(share, ITEMS, hash_of(model, number))
        spec = fields.get("spec")
        one = {"model": model, "minute": 10 * number} | {k: v for k, v in fields.items() if k != "spec"}
        finished(connection, f"{model}{number}", task("one", right_or_wrong(pattern)), spec=spec, **one)  # type: ignore[arg-type]
        patterns.append(pattern)
    return patterns


def hash_of(model: str, number: int) -> int:
    return random.Random(f"{model}/{number}").randrange(10**6)


def noise_notes(found: comparison_pb2.CompareResponse) -> list[str]:
    return [note for note in found.notes if "e-asking noise" in note]


def test_without_other_runs_the_comparison_says_that_noise_is_not_included(connection: Connection) -> None:
    runs(connection, "a", [0.7])
    runs(connection, "b", [0.6])
    found = compared(connection, "a0", "b0")
    (note,) = noise_notes(found)

    assert note.startswith(NOT_INCLUDED)
    assert not difference(found).HasField("total_low")
    assert not any(run.HasField("again") for run in found.runs)


def test_measured_of_both_it_widens_the_interval_by_what_moves_whole_runs(connection: Connection) -> None:
    marks = runs(connection, "a", [0.6, 0.7, 0.8])
    runs(connection, "b", [0.5, 0.5, 0.5])
    found = compared(connection, "a0", "b0")
    one = difference(found)
    again = {run.model: run.again for run in found.runs}

    assert noise_notes(found) == [
        "Re-asking noise is included in the total intervals, as measured in 3 runs of a and 3 runs of b."
    ]
    assert one.total_low < one.low < one.difference < one.high < one.total_high
    assert {model: made.runs for model, made in again.items()} == {"a": 3, "b": 3}
    scores = np.array([[float(mark) for mark in pattern] for pattern in marks])
    flips = [np.mean(scores[a] != scores[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert again["a"].flips.share == pytest.approx(np.mean(flips))
    assert again["a"].floor > again["b"].floor


def test_runs_that_differ_only_item_by_item_leave_the_interval_as_it_is(connection: Connection) -> None:
    for model in "ab":
        for number in range(3):
            # Each run has as many right answers.
            pattern = "".join(random.Random(f"{model}{number}").sample("1" * 280 + "0" * 120, ITEMS))
            finished(connection, f"{model}{number}", task("one", right_or_wrong(pattern)), model=model, minute=number)
    one = difference(compared(connection, "a0", "b0"))

    assert (one.total_low, one.total_high) == pytest.approx((one.low, one.high))


def test_measured_of_one_there_is_no_total_interval(connection: Connection) -> None:
    runs(connection, "a", [0.6, 0.7])
    runs(connection, "b", [0.5])
    found = compared(connection, "a1", "b0")

    assert not difference(found).HasField("total_low")
    (note,) = noise_notes(found)
    assert note.startswith(NOT_INCLUDED)
    assert "Of b there is one run" in note


def test_of_several_runs_those_without_others_are_named(connection: Connection) -> None:
    for model, shares in {"a": [0.6, 0.7], "b": [0.5, 0.5], "c": [0.4]}.items():
        runs(connection, model, shares)
    found = compared(connection, "a0", "b0", "c0")
    (note,) = noise_notes(found)

    assert note.endswith("as measured in 2 runs of a and 2 runs of b, but not for c, with one run.")
    assert {(one.a, one.b): one.HasField("total_low") for one in found.differences if not one.task} == {
        ("a0", "b0"): True,
        ("a0", "c0"): False,
        ("b0", "c0"): False,
    }


def test_bundled_baselines_never_vary(connection: Connection) -> None:
    runs(connection, "a", [0.6, 0.8])
    runs(connection, "random", [0.5], baseline=True)
    one = difference(compared(connection, "a0", "random0"))

    assert one.total_low < one.low


def test_other_configurations_items_and_copies_are_no_measurement(connection: Connection) -> None:
    runs(connection, "a", [0.6])
    runs(connection, "b", [0.5])
    pattern = right_or_wrong("1" * ITEMS)
    finished(connection, "other-setting", task("one", pattern), model="a", configuration="warm")
    finished(connection, "fewer", task("one", pattern[:100]), model="a")
    copy = job_pb2.JobSpec(endpoint="local", model="a", reuse=job_pb2.Reuse(job_id="a0"))
    copy.suite.suite = "glue"
    finished(connection, "copy", task("one", pattern), model="a", spec=copy)
    failed = [said(0, "", outcome=UNPARSED), *pattern[1:]]
    finished(connection, "other-prompts", task("one", failed, version="2"), model="a")

    assert noise_notes(compared(connection, "a0", "b0"))[0].startswith(NOT_INCLUDED)


def test_runs_of_other_users_are_not_read(connection: Connection) -> None:
    runs(connection, "a", [0.6], owner="ann")
    runs(connection, "b", [0.5, 0.5], owner="ann")
    finished(connection, "hers", task("one", right_or_wrong("1" * ITEMS)), model="a", owner="bob")

    assert [one.runs for one in (run.again for run in compared(connection, "a0", "b0").runs)] == [2, 2]
    found = compared(connection, "a0", "b0", visible=Visibility("ann"))
    assert [run.model for run in found.runs if run.HasField("again")] == ["b"]


def test_metrics_that_are_no_mean_over_items_have_no_total_interval(connection: Connection) -> None:
    for model in "ab":
        for number in range(2):
            answers = right_or_wrong(share_right(0.6, ITEMS, hash_of(model, number)))
            finished(
                connection,
                f"{model}{number}",
                task("one", answers, "accuracy", "f1"),
                task("two", answers, "accuracy"),
                model=model,
                minute=number,
            )
    found = compared(connection, "a0", "b0", metrics=["score", "accuracy", "f1"])
    known = {(one.task, one.metric): one.HasField("total_low") for one in found.differences}

    assert known == {
        ("", "score"): False,
        ("", "accuracy"): True,
        ("", "f1"): False,
        ("one", "accuracy"): True,
        ("one", "f1"): False,
        ("two", "accuracy"): True,
    }
