"""How much scores change when items are asked again, from stored runs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.comparison.noise import get_noise
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results import builders
from tests.unit.results.builders import START, UNPARSED, answer, batch, event, job, plan, seal
from touchstone.v1 import job_pb2, noise_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb

ITEMS = 60


def finish(connection: Connection, made: job_pb2.Job) -> None:
    writes.store_events(connection, [event(f"b-{made.job_id}", made)])
    seal(connection, made)
    done = job_pb2.Job()
    done.CopyFrom(made)
    done.state = job_pb2.Job.STATE_COMPLETED
    done.finished_at.FromDatetime(START)
    writes.store_events(connection, [event(f"c-{made.job_id}", done, "completed")])


def run(
    connection: Connection, job_id: str, right: Sequence[bool], *tasks: job_pb2.TaskPlan, minute: int = 0, **fields: str
) -> job_pb2.Job:
    """A finished run whose answers are right or wrong, the same in every task."""
    made = job(job_id, *(tasks or (plan("one", len(right)),)), minute=minute, **fields)  # type: ignore[arg-type]
    results = [answer(item, "yes" if is_right else "no") for item, is_right in enumerate(right)]
    for task in made.plan:
        writes.store_items(connection, [batch(job_id, task.task, results[: task.items])])
    finish(connection, made)
    return made


def drawn(seed: int, share: float = 0.7, items: int = ITEMS) -> list[bool]:
    rng = random.Random(seed)
    return [rng.random() < share for _ in range(items)]


def noise(connection: Connection, *job_ids: str, visible: Visibility = EVERYTHING) -> noise_pb2.Noise:
    with connection.cursor() as cursor:
        return get_noise(cursor, pb.GetNoiseRequest(job_ids=job_ids), visible).noise


def test_every_figure_follows_from_the_stored_items(connection: Connection) -> None:
    marks = {name: drawn(seed) for seed, name in enumerate(("a1", "a2", "b1"))}
    for minute, (name, right) in enumerate(marks.items()):
        run(connection, name, right, minute=minute, endpoint=name[0])
    found = noise(connection, "b1", "a2", "a1")
    scores = {name: np.array(right, dtype=float) for name, right in marks.items()}

    assert found.suite == "glue"
    assert [(one.endpoint, [run.job_id for run in one.runs]) for one in found.servings] == [
        ("a", ["a1", "a2"]),
        ("b", ["b1"]),
    ]
    assert [run.score for one in found.servings for run in one.runs] == pytest.approx(
        [scores[name].mean() for name in ("a1", "a2", "b1")]
    )
    total = found.total
    assert total.items == ITEMS
    assert total.reasking.share == pytest.approx(np.mean(scores["a1"] != scores["a2"]))
    assert total.servings.share == pytest.approx(np.mean([np.mean(scores[a] != scores["b1"]) for a in ("a1", "a2")]))
    assert total.reasking.low < total.reasking.share < total.reasking.high
    assert total.variance.HasField("reasking")
    assert total.floor > 0
    assert not found.tasks


def test_items_that_share_a_passage_count_as_one(connection: Connection) -> None:
    def asked(job_id: str, minute: int, passage: int) -> None:
        made = job(job_id, plan("one", ITEMS), plan("two", ITEMS), minute=minute)
        for task in made.plan:
            # The passages 0 to 4 flip as a whole from one asking to the other.
            said = ["no" if minute and item // 6 < 5 else "yes" for item in range(ITEMS)]
            groups = [f"p{item // passage}" if passage else "" for item in range(ITEMS)]
            results = [answer(item, said[item], group=groups[item]) for item in range(ITEMS)]
            writes.store_items(connection, [batch(job_id, task.task, results)])
        finish(connection, made)

    for place, (name, passage) in enumerate((("alone", 0), ("together", 6), ("same", ITEMS))):
        asked(f"{name}1", 0, passage)
        asked(f"{name}2", place + 1, passage)
    alone, together, same = (noise(connection, f"{name}1", f"{name}2") for name in ("alone", "together", "same"))

    assert [one.total.reasking.share for one in (alone, together, same)] == [0.5, 0.5, 0.5]
    # Wilson's of 60 items, and of 10 passages with Student's quantile.
    assert width(alone.tasks[0]) == pytest.approx(0.2453, abs=0.001)
    assert width(together.tasks[0]) == pytest.approx(0.5818, abs=0.001)
    # A passage of one task is no passage of another one.
    assert width(together.total) == pytest.approx(0.4239, abs=0.001)
    assert (same.tasks[0].reasking.low, same.tasks[0].reasking.high) == (0.0, 1.0)


def width(figures: noise_pb2.NoiseFigures) -> float:
    return figures.reasking.high - figures.reasking.low


def test_one_job_with_several_answers_per_item_measures_re_asking(connection: Connection) -> None:
    task = plan("one", 30)
    task.repeats = 2
    made = job("j", task)
    made.spec.suite.repeats = 2
    results = [
        answer(item, "yes" if item % 3 or repeat else "no", repeat=repeat, position=2 * item + repeat)
        for item in range(30)
        for repeat in range(2)
    ]
    writes.store_items(connection, [batch("j", "one", results)])
    finish(connection, made)
    found = noise(connection, "j")

    assert found.total.reasking.share == pytest.approx(1 / 3)
    assert [(run.job_id, run.repeats) for run in found.servings[0].runs] == [("j", 2)]
    assert not found.total.variance.HasField("runs")
    assert not found.total.HasField("servings")


def test_tasks_have_their_own_figures_and_count_the_same_where_the_suite_says_so(connection: Connection) -> None:
    tasks = [plan("one", 40), plan("two", 10)]
    for task in tasks:
        task.weighting = suite_pb2.WEIGHTING_TASKS
    marks = [drawn(1, items=40), drawn(2, items=40)]
    for name, right in zip(("x", "y"), marks, strict=True):
        run(connection, name, right, *tasks)
    found = noise(connection, "x", "y")

    assert [(one.task, one.title, one.items) for one in found.tasks] == [("one", "ONE", 40), ("two", "TWO", 10)]
    assert found.total.items == 50
    assert [run.score for run in found.servings[0].runs] == pytest.approx(
        [(np.mean(right) + np.mean(right[:10])) / 2 for right in marks]
    )


def test_unread_answers_are_wrong_and_failed_ones_are_left_out(connection: Connection) -> None:
    run(connection, "x", [True] * 20)
    made = job("y", plan("one", 20))
    results = [answer(0, outcome=UNPARSED), *(answer(item) for item in range(1, 19))]
    writes.store_items(connection, [batch("y", "one", [*results, answer(19, outcome=builders.ERROR)])])
    finish(connection, made)
    found = noise(connection, "x", "y")

    assert found.total.items == 19
    assert found.total.reasking.share == pytest.approx(1 / 19)
    assert any("1 item without a new answer" in note for note in found.notes)


def test_answers_that_a_run_took_from_another_one_do_not_count(connection: Connection) -> None:
    run(connection, "x", [True] * 20)
    made = job("y", plan("one", 20))
    made.spec.reuse.job_id = "x"
    results = [answer(item, "no", reused=item >= 5) for item in range(20)]
    writes.store_items(connection, [batch("y", "one", results)])
    finish(connection, made)

    assert noise(connection, "x", "y").total.items == 5


def test_tasks_without_scores_of_single_items_are_named(connection: Connection) -> None:
    tasks = (plan("one", 20), plan("rank", 20, "pearson"))
    for name in ("x", "y"):
        made = job(name, *tasks)
        for task in tasks:
            results = [
                answer(item, statistics={"correct": 1.0} if task is tasks[0] else {"value": float(item), "target": 1.0})
                for item in range(20)
            ]
            writes.store_items(connection, [batch(name, task.task, results)])
        finish(connection, made)
    found = noise(connection, "x", "y")

    assert found.total.items == 20
    assert [note for note in found.notes if "RANK" in note]


def test_other_settings_are_named(connection: Connection) -> None:
    for name in ("x", "y"):
        run(connection, name, [True] * 5, configuration=f"c-{name}")

    assert any("differ in more than time" in note for note in noise(connection, "x", "y").notes)


def test_what_did_not_ask_the_same_or_nothing_twice_is_refused(connection: Connection) -> None:
    changed = plan("one", 20)
    changed.version = "2"
    run(connection, "x", [True] * 20)
    run(connection, "y", [True] * 20, changed)
    run(connection, "z", [True] * 20, suite="mmlu")
    writes.store_events(connection, [event("r", job("running", plan("one", 5)))])

    for jobs, said in (
        (("x",), "No item was asked twice"),
        (("x", "y"), "did not ask the same: the prompts have the versions"),
        (("x", "z"), "Only runs of one suite"),
        ((), "at least one finished job"),
        ([f"j{number}" for number in range(21)], "21"),
    ):
        with pytest.raises(InvalidRequestError, match=said):
            noise(connection, *jobs)
    for jobs in (("x", "unknown"), ("x", "running")):
        with pytest.raises(NotFoundError):
            noise(connection, *jobs)
    with pytest.raises(NotFoundError):
        noise(connection, "x", visible=Visibility("bob"))
