"""Races as they are read from stored answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from numpy.random import default_rng

from services import decision_order
from services.errors import NotFoundError
from services.results.decisions import reads
from services.results.decisions.evidence import read_evidence
from services.results.intake import writes
from services.results.storage.database import Connection
from services.words.decisions import names as names_of
from services.words.decisions import said_of_race
from tests.unit.results.builders import answer, batch, event, job, plan
from touchstone.v1 import decision_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

Racer = decision_pb2.Racer
ITEMS, SEED = 400, 5
NAMES = ("a", "b", "c", "d")
SHARES = (0.5, 0.9, 0.9, 0.6)
"""Of the items that each has right."""


def racers(connection: Connection, names: Sequence[str] = NAMES, margin: float = 0.0) -> list[job_pb2.Job]:
    made = [job(name, plan("one", ITEMS), model=name) for name in names]
    for place, one in enumerate(made):
        side = one.spec.deciding
        side.candidate, side.against_job_id = place > 0, names[0 if place else 1]
        side.error, side.margin, side.seed = 0.05, margin, SEED
        side.race_job_ids.extend(names)
    save(connection, made)
    return made


def save(connection: Connection, jobs: Sequence[job_pb2.Job]) -> None:
    writes.store_events(connection, [event(f"{one.job_id}-{one.state}-{one.attempt}", one) for one in jobs])


def store(connection: Connection, name: str, first: int, upto: int, seed: int = 0) -> None:
    """Answers to these items of the order."""
    order = [position for _, position in decision_order.order([plan("one", ITEMS)], SEED)]
    right = default_rng([seed, NAMES.index(name)]).random(ITEMS) < SHARES[NAMES.index(name)]
    items = [answer(order[at], "yes" if right[at] else "no") for at in range(first, upto)]
    writes.store_items(connection, [batch(name, "one", sorted(items, key=lambda one: one.position))])


def read(connection: Connection) -> decision_pb2.Decision:
    return reads.get_decision(connection, "c").decision


def standing(found: decision_pb2.Decision) -> dict[str, str]:
    return {racer.job.job_id: Racer.State.Name(racer.state).removeprefix("STATE_") for racer in found.racers}


def test_models_that_are_beaten_are_named_and_the_last_ones_are_left(connection: Connection) -> None:
    racers(connection)
    for name in NAMES:
        store(connection, name, 0, ITEMS)
    found = read(connection)
    assert standing(found) == {"a": "BEATEN", "b": "LEFT", "c": "LEFT", "d": "BEATEN"}
    assert (found.verdict, found.decision_id, found.items_total) == (job_pb2.DECISION_VERDICT_NO_DIFFERENCE, "a", ITEMS)
    assert (found.baseline.job_id, found.HasField("candidate")) == ("a", False)
    out = found.racers[0]
    assert out.against_job_id in ("b", "c")
    assert 0 < out.beaten_at < ITEMS // 4
    assert -1 < out.low <= out.difference <= out.high < 0
    assert max(point.worse for point in out.path) >= found.threshold
    left = found.racers[1:3]
    assert [racer.against_job_id for racer in left] == ["c", "b"]
    assert left[0].difference == -left[1].difference


def test_the_best_is_the_only_one_left(connection: Connection) -> None:
    names = ("a", "b", "d")
    racers(connection, names)
    for name in names:
        store(connection, name, 0, ITEMS)
    found = reads.get_decision(connection, "a").decision
    assert standing(found) == {"a": "BEATEN", "b": "BEST", "d": "BEATEN"}
    assert found.verdict == job_pb2.DECISION_VERDICT_BEST
    assert found.decided_at == max(racer.beaten_at for racer in found.racers)
    assert found.racers[1].against_job_id == ""


def test_a_race_is_known_as_far_as_all_in_it_have_answered(connection: Connection) -> None:
    jobs = racers(connection)
    for name in NAMES[:3]:
        store(connection, name, 0, ITEMS)
    found = read_evidence(connection, jobs)
    assert (found.pairs, found.verdict, {*standing(found).values()}) == (0, 0, {"RACING"})
    store(connection, "d", 0, 60)
    found = read_evidence(connection, jobs, whole=False)
    assert found.pairs == 60
    assert standing(found) == {"a": "BEATEN", "b": "RACING", "c": "RACING", "d": "RACING"}
    assert [racer.HasField("difference") for racer in found.racers] == [True, False, False, False]


def test_what_is_known_does_not_depend_on_what_is_asked_afterwards(connection: Connection) -> None:
    jobs = racers(connection)
    for name in NAMES:
        store(connection, name, 0, 120)
    before = {racer.job.job_id: racer.beaten_at for racer in read_evidence(connection, jobs).racers if racer.beaten_at}
    assert before
    for name in {*NAMES} - {*before}:
        store(connection, name, 120, ITEMS)
    found = read_evidence(connection, jobs)
    after = {racer.job.job_id: racer.beaten_at for racer in found.racers}
    assert before.items() <= after.items()
    # Nor on the jobs that the scheduler has forgotten.
    rest = [one for one in jobs if one.job_id not in before]
    assert read_evidence(connection, rest).verdict == found.verdict


def test_a_job_that_ended_by_itself_is_withdrawn(connection: Connection) -> None:
    jobs = racers(connection)
    jobs[3].state = job_pb2.Job.STATE_FAILED
    save(connection, jobs[3:])
    store(connection, "d", 0, 5)
    for name in NAMES[:3]:
        store(connection, name, 0, ITEMS)
    assert standing(read(connection))["d"] == "WITHDRAWN"
    for one in jobs[1:]:
        one.state = job_pb2.Job.STATE_FAILED
    found = read_evidence(connection, [jobs[0], *(one for one in jobs[1:] if one.job_id == "d")])
    assert found.verdict == job_pb2.DECISION_VERDICT_BEST  # The other two were beaten, or they would be here.


def test_without_anything_to_compare_with_there_is_no_verdict(connection: Connection) -> None:
    jobs = racers(connection)
    for one in jobs[1:]:
        one.state = job_pb2.Job.STATE_FAILED
        del one.plan[:]
    found = read_evidence(connection, jobs)
    assert not found.verdict
    assert "nothing to compare with" in found.note
    jobs[1].plan.add().CopyFrom(plan("other", 7))
    assert "other items" in read_evidence(connection, jobs).note


def test_what_stopped_the_jobs_holds_and_lists_need_no_more(connection: Connection) -> None:
    jobs = racers(connection)
    for name in NAMES:
        store(connection, name, 0, 40)
    for one, word in zip(jobs, ("WORSE", "BEST", "WORSE", ""), strict=True):
        one.state = job_pb2.Job.STATE_CANCELLED
        if word:
            one.decided.MergeFrom(
                job_pb2.Decided(
                    verdict=f"DECISION_VERDICT_{word}",
                    pairs=33,
                    difference=-0.3,
                    low=-0.5,
                    high=-0.1,
                    against_job_id="b" if one.job_id != "b" else "",
                    counted=31,
                    failed=2,
                )
            )
    save(connection, jobs)
    found = read(connection)
    (listed,) = reads.list_decisions(connection, pb.ListDecisionsRequest()).decisions
    for shown in (found, listed):
        assert (shown.verdict, shown.decided_at) == (job_pb2.DECISION_VERDICT_BEST, 33)
        assert standing(shown) == {"a": "BEATEN", "b": "BEST", "c": "BEATEN", "d": "WITHDRAWN"}
        assert [racer.beaten_at for racer in shown.racers] == [33, 0, 33, 0]
        assert [(racer.pairs, racer.failed) for racer in shown.racers[:3]] == [(31, 2)] * 3
        assert shown.pairs == 33
        assert (shown.racers[0].difference, shown.racers[0].against_job_id) == (-0.3, "b")
        assert not shown.racers[1].HasField("difference")
        assert shown.saved.items == 4 * (ITEMS - 40)
    assert found.racers[0].path
    assert not any(racer.path for racer in listed.racers)


def test_deleted_jobs_are_left_out_but_for_the_baseline(connection: Connection) -> None:
    jobs = racers(connection)
    writes.forget_job(connection, "d", "ann", "ann", jobs[0].created_at.ToDatetime())
    assert [*standing(read(connection))] == ["a", "b", "c"]
    assert len(reads.list_decisions(connection, pb.ListDecisionsRequest()).decisions) == 1
    writes.forget_job(connection, "a", "ann", "ann", jobs[0].created_at.ToDatetime())
    with pytest.raises(NotFoundError):
        read(connection)


def ended(jobs: Sequence[job_pb2.Job], words: Sequence[str]) -> None:
    """The jobs were stopped by these verdicts, each by the job "c"; "" for one that ended by itself."""
    for one, word in zip(jobs, words, strict=True):
        one.state = job_pb2.Job.STATE_CANCELLED
        if word:
            one.decided.MergeFrom(
                job_pb2.Decided(
                    verdict=f"DECISION_VERDICT_{word}", pairs=33, difference=-0.3, low=-0.5, high=-0.1, counted=31
                )
            )
            one.decided.against_job_id = "c" if one.job_id != "c" else ""


def delete(connection: Connection, name: str, one: job_pb2.Job) -> None:
    writes.forget_job(connection, name, "ann", "ann", one.created_at.ToDatetime())


def told(connection: Connection) -> set[str]:
    """What lists and the decision itself say."""
    (listed,) = reads.list_decisions(connection, pb.ListDecisionsRequest()).decisions
    shown = reads.get_decision(connection, "a").decision
    assert (listed.verdict, listed.decided_at) == (shown.verdict, shown.decided_at)
    return {
        said_of_race(one, names_of([racer.job.spec for racer in one.racers]), one.baseline.spec.deciding.margin)
        for one in (listed, shown)
    }


def test_a_race_whose_best_model_was_deleted_says_so(connection: Connection) -> None:
    jobs = racers(connection)
    for name in NAMES:
        store(connection, name, 0, 40)
    ended(jobs, ("WORSE", "WORSE", "BEST", "WORSE"))
    save(connection, jobs)
    delete(connection, "c", jobs[2])
    assert told(connection) == {"The best of 4 models is one that was deleted"}
    for name in ("b", "d"):
        delete(connection, name, jobs[NAMES.index(name)])
    assert told(connection) == {"The best of 4 models is one that was deleted"}
    found = reads.get_decision(connection, "a").decision
    assert (found.verdict, found.decided_at, found.note) == (job_pb2.DECISION_VERDICT_BEST, 33, "")
    assert (found.racers[0].pairs, found.racers[0].against_job_id, *found.racers[0].path) == (31, "c")


@pytest.mark.parametrize("verdict", ["NO_DIFFERENCE", "EQUIVALENT"])
def test_a_race_of_whose_last_models_some_were_deleted_says_so(connection: Connection, verdict: str) -> None:
    jobs = racers(connection, margin=0.02)
    for name in NAMES:
        store(connection, name, 0, 40)
    ended(jobs, ("WORSE", verdict, verdict, "WORSE"))
    save(connection, jobs)
    delete(connection, "c", jobs[2])
    assert told(connection) == {"The best of 4 models is b@local or one that was deleted"}
    delete(connection, "b", jobs[1])
    assert told(connection) == {"The best of 4 models is one that was deleted"}


def test_models_that_were_deleted_count_as_neither_beaten_nor_better(connection: Connection) -> None:
    three = NAMES[:3]
    jobs = racers(connection, three)
    for name in three:
        store(connection, name, 0, ITEMS)
    for one in jobs:
        one.state = job_pb2.Job.STATE_COMPLETED
    save(connection, jobs)
    delete(connection, "b", jobs[1])
    assert told(connection) == {"c@local is the best of 2 models"}
    delete(connection, "c", jobs[2])
    assert told(connection) == {"It is not decided which of 1 model is the best"}
