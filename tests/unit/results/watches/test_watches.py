"""Watches: which items they ask, and what the stored answers show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from services.errors import ConflictError, NotFoundError
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import HiddenJobError, Visibility
from services.results.watches import canaries, reads
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, run, seal
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2, watch_pb2

ITEMS, EACH = 60, 20
Right = Callable[[int], bool]


def finish(connection: Connection, made: job_pb2.Job, items: Sequence[item_result_pb2.ItemResult], minute: int) -> None:
    writes.store_items(connection, [batch(made.job_id, "one", items)])
    seal(connection, made, minute)
    made.state = job_pb2.Job.STATE_COMPLETED
    made.finished_at.FromDatetime(START + timedelta(minutes=minute + 1))
    writes.store_events(connection, [event(f"{minute:06d}-{made.job_id}", made, "completed")])


def reference(connection: Connection, right: Right = lambda item: item % 10 > 0, job_id: str = "ref") -> job_pb2.Job:
    made = job(job_id, plan("one", ITEMS))
    finish(connection, made, [answer(item, "yes" if right(item) else "no") for item in range(ITEMS)], 0)
    return made


def asked(
    connection: Connection, number: int, right: Right, *, again: str = "", failed: Sequence[int] = (), **fields: Any
) -> job_pb2.Job:
    """A run that asks the next items, in order."""
    first = number * EACH % ITEMS
    made = job(f"run-{number}", plan("one", EACH), minute=10 * (number + 1), item_set=f"set-{number}")
    made.plan[0].scorer_version = fields.pop("scorer_version", "")
    made.spec.schedule_id = "watch"
    watching = made.spec.watching
    watching.reference_job_id, watching.again_job_id, watching.error = "ref", again, 0.01
    watching.start, watching.total, watching.items = number * EACH, ITEMS, EACH
    for item in range(first, first + EACH):
        watching.canaries.add(task="one", item=item)
    items = [
        answer(item, position=place, outcome=ERROR)
        if item in failed
        else answer(item, "yes" if right(item) else "no", position=place, **fields)
        for place, item in enumerate(range(first, first + EACH))
    ]
    finish(connection, made, items, 10 * (number + 1))
    return made


def test_a_changed_model_raises_the_alarm_and_the_page_says_since_when(connection: Connection) -> None:
    reference(connection)
    for number in range(2):
        asked(connection, number, lambda item: item % 10 > 0)
    assert reads.get_watch(connection, "watch").raised_by == watch_pb2.WATCH_SIGNAL_UNSPECIFIED
    asked(connection, 2, lambda item: item % 10 > 8, served_model="new")
    found = reads.get_watch(connection, "watch")
    assert found.raised_by == watch_pb2.WATCH_SIGNAL_SCORE
    assert (found.since_job_id, found.raised_job_id, found.asked) == ("run-2", "run-2", 60)
    assert 40 < found.raised_after <= 60
    assert found.raised_at.ToDatetime() > found.since_at.ToDatetime()
    assert {(one.job_id, one.answer_before, one.answer_now) for one in found.changes} == {("run-2", "yes", "no")}
    assert [one.item for one in found.changes] == [item for item in range(40, 60) if 1 <= item % 10 <= 8]
    assert [(one.model, one.reference) for one in found.served] == [("new", False)]
    assert found.mean < found.reference_mean
    assert [(one.asked, one.changed) for one in found.runs] == [(20, 0), (20, 0), (20, 16)]


def test_only_the_run_that_raised_the_alarm_says_so(connection: Connection) -> None:
    reference(connection)
    for number in range(5):
        asked(connection, number, (lambda item: item % 10 > 0) if number < 2 else (lambda item: item % 10 > 8))
    raised = [number for number in range(5) if reads.read_alarm(connection, f"run-{number}") is not None]
    assert raised == [2]
    assert reads.read_alarm(connection, "ref") is None


def test_answers_that_differ_more_often_than_by_chance_raise_the_alarm(connection: Connection) -> None:
    """Right and wrong stay as they were: only what is said changes."""
    rng = np.random.default_rng(3)

    def says(job_id: str, share: float) -> None:
        made = job(job_id, plan("one", ITEMS))
        items = [answer(item, "a" if rng.random() >= share else job_id) for item in range(ITEMS)]
        finish(connection, made, items, 0)

    says("ref", 0.0)
    says("again", 0.2)
    for number in range(3):
        asked(connection, number, lambda item: False, again="again")
    found = reads.get_watch(connection, "watch")
    assert found.raised_by == watch_pb2.WATCH_SIGNAL_ANSWERS
    assert found.answers_differ == 1.0
    assert 0 < found.answers_differ_usually < 0.4


def test_the_first_turn_shows_what_differs_by_chance(connection: Connection) -> None:
    reference(connection)
    for number in range(6):
        # Every second text differs, in the first turn as in the second.
        asked(connection, number, lambda item: item % 10 > 0, response=f"text {number % 2}")
    found = reads.get_watch(connection, "watch")
    assert not found.raised_by
    assert (found.texts_differ, found.texts_differ_usually) == (1.0, 1.0)


def test_without_its_second_run_the_first_turn_shows_what_differs_by_chance(connection: Connection) -> None:
    reference(connection)
    reference(connection, job_id="again")
    for number in range(6):
        # From the second turn on, another text says the same.
        asked(connection, number, lambda item: item % 10 > 0, again="again", response=f"text {number // 3}")
    writes.forget_job(connection, "again", "ann", "ann", START)
    found = reads.get_watch(connection, "watch")
    assert 0 < found.texts_differ_usually <= 1
    assert found.runs[-1].text > found.runs[0].text == -1000


def test_a_failed_call_is_never_counted(connection: Connection) -> None:
    reference(connection)
    asked(connection, 0, lambda item: item % 10 > 0, failed=range(15))
    found = reads.get_watch(connection, "watch")
    assert (found.asked, found.left_out) == (5, 15)
    assert not found.changes


def test_an_item_that_is_another_one_now_is_left_out(connection: Connection) -> None:
    reference(connection)
    asked(connection, 0, lambda item: False, item_hash="changed")
    assert (reads.get_watch(connection, "watch").asked, reads.get_watch(connection, "watch").left_out) == (0, EACH)


def test_without_its_reference_a_watch_says_so(connection: Connection) -> None:
    made = reference(connection)
    asked(connection, 0, lambda item: False)
    made.deleted_at.FromDatetime(START)
    writes.store_events(connection, [event("z", made, "deleted")])
    assert reads.get_watch(connection, "watch").note.startswith("The reference was deleted")


def test_others_do_not_see_a_watch(connection: Connection) -> None:
    reference(connection)
    with pytest.raises(NotFoundError, match="wait for its first run"):
        reads.get_watch(connection, "watch")
    asked(connection, 0, lambda item: True)
    with pytest.raises(HiddenJobError):
        reads.get_watch(connection, "watch", Visibility("bob"))


def test_runs_of_a_watch_are_on_no_board(connection: Connection) -> None:
    reference(connection)
    asked(connection, 0, lambda item: True)
    assert connection.execute("SELECT DISTINCT job_id FROM run_scores").fetchall() == [("ref",)]
    assert [row[0] for row in connection.execute("SELECT item_set FROM item_sets").fetchall()] == ["set-1"]


def watching(**fields: object) -> job_pb2.Watching:
    return job_pb2.Watching(**({"reference_job_id": "ref", "items": 2} | fields))  # type: ignore[arg-type]


def test_canaries_are_the_items_on_which_other_models_differ_most(connection: Connection) -> None:
    reference(connection, lambda item: item < 30)
    for name, upto in (("x", 10), ("y", 30)):
        run(connection, job(name, plan("one", ITEMS), model=name), upto, ITEMS - upto)
    found = canaries.choose(connection, watching())
    assert found.known_runs == 2
    assert {one.item for one in found.canaries} == set(range(10, 30))
    other = canaries.choose(connection, watching(seed=1))
    assert {one.item for one in other.canaries} == set(range(10, 30))
    assert list(other.canaries) != list(found.canaries)
    assert list(canaries.choose(connection, watching()).canaries) == list(found.canaries)


def test_the_scores_of_the_reference_do_not_choose(connection: Connection) -> None:
    """Items that are chosen for the reference's scores would score otherwise when they are asked again."""
    for name, upto in (("x", 10), ("y", 30)):
        run(connection, job(name, plan("one", ITEMS), model=name), upto, ITEMS - upto)
    reference(connection, lambda item: item < 30)
    reference(connection, lambda item: item >= 30, job_id="ref-2")
    found = [canaries.choose(connection, watching(reference_job_id=name)) for name in ("ref", "ref-2")]
    assert list(found[0].canaries) == list(found[1].canaries)


def test_without_runs_of_two_other_models_canaries_are_drawn(connection: Connection) -> None:
    reference(connection)
    run(connection, job("x", plan("one", ITEMS), model="x"), 10, ITEMS - 10)
    found = canaries.choose(connection, watching(items=100))
    assert (found.known_runs, found.total) == (0, ITEMS)
    assert [one.item for one in found.canaries] != sorted(one.item for one in found.canaries)


def test_canaries_are_of_as_many_passages_as_possible(connection: Connection) -> None:
    """Answers about one passage may change together by chance."""
    made = job("ref", plan("one", ITEMS))
    finish(connection, made, [answer(item, group=f"passage {item // 6}") for item in range(ITEMS)], 0)
    chosen = [one.item // 6 for one in canaries.choose(connection, watching(items=3)).canaries]
    assert [sorted(chosen[first : first + 10]) for first in (0, 10, 20)] == [list(range(10))] * 3


def test_a_reference_must_have_completed_with_scores(connection: Connection) -> None:
    writes.store_events(connection, [event("1", job("ref", plan("one", ITEMS)))])
    with pytest.raises(ConflictError, match="has not completed"):
        canaries.choose(connection, watching())
    with pytest.raises(NotFoundError):
        canaries.choose(connection, watching(reference_job_id="none"))


def test_a_second_asking_must_be_of_the_same_model(connection: Connection) -> None:
    reference(connection)
    run(connection, job("x", plan("one", ITEMS), model="x"), 10, ITEMS - 10)
    with pytest.raises(ConflictError, match="the model and the suite of the reference"):
        canaries.choose(connection, watching(again_job_id="x"))


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: setattr(spec.sampling, "temperature", 0.7),
        lambda spec: setattr(spec.suite, "repeats", 3),
        lambda spec: setattr(spec.suite, "shots", 5),
        lambda spec: setattr(spec, "mode", suite_pb2.MODE_LOGLIKELIHOOD),
    ],
)
def test_a_second_asking_must_ask_as_the_reference(
    connection: Connection, change: Callable[[job_pb2.JobSpec], None]
) -> None:
    """At another temperature it would differ more or less often than the runs of the watch, by itself."""
    reference(connection)
    second = job("again", plan("one", ITEMS))
    change(second.spec)
    finish(connection, second, [answer(item) for item in range(ITEMS)], 0)
    with pytest.raises(ConflictError, match="must ask as the reference does"):
        canaries.choose(connection, watching(again_job_id="again"))


def test_a_second_asking_may_have_another_seed(connection: Connection) -> None:
    reference(connection)
    second = job("again", plan("one", ITEMS))
    second.spec.sampling.seed = 2
    finish(connection, second, [answer(item) for item in range(ITEMS)], 0)
    assert canaries.choose(connection, watching(again_job_id="again")).total == 20


def test_a_second_asking_with_the_references_answers_is_refused(connection: Connection) -> None:
    """It would never differ from the reference, so that every later answer that does would be evidence."""
    first = reference(connection)
    for name, source in (("again", "ref"), ("ref-2", "ref"), ("ref-3", "ref-2")):
        copied = job(name, *first.plan)
        copied.spec.reuse.job_id = source
        finish(connection, copied, [answer(item) for item in range(ITEMS)], 0)
    for reference_job_id, again_job_id in (("ref", "again"), ("again", "ref"), ("ref-3", "again")):
        with pytest.raises(ConflictError, match="has answers of the reference"):
            canaries.choose(connection, watching(reference_job_id=reference_job_id, again_job_id=again_job_id))


def test_answers_that_were_scored_otherwise_do_not_count(connection: Connection) -> None:
    """As after an upgrade: the scorer has changed, not the model."""
    reference(connection)
    for number in range(2):
        asked(connection, number, lambda item: item % 10 > 0)
    made = asked(connection, 2, lambda item: False, scorer_version="2")
    found = reads.get_watch(connection, "watch")
    assert (found.asked, found.left_out, found.raised_by) == (2 * EACH, EACH, watch_pb2.WATCH_SIGNAL_UNSPECIFIED)
    assert found.note.startswith(f"Run {made.job_id} scored answers otherwise than the reference")


def test_a_second_asking_that_was_scored_otherwise_shows_nothing(connection: Connection) -> None:
    reference(connection)
    second = job("again", plan("one", ITEMS))
    second.plan[0].scorer_version = "2"
    finish(connection, second, [answer(item, "no") for item in range(ITEMS)], 0)
    asked(connection, 0, lambda item: item % 10 > 0, again="again")
    found = reads.get_watch(connection, "watch")
    assert found.asked == EACH
    assert not found.HasField("answers_differ_usually")
