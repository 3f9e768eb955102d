"""Decisions as they are read from stored answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from numpy.random import default_rng

from services import decision_order
from services.errors import InvalidRequestError, NotFoundError
from services.results.decisions import answers, reads
from services.results.decisions.evidence import read_evidence
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import HiddenJobError, Visibility
from tests.unit.results.builders import ERROR, UNPARSED, answer, batch, event, job, plan
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb

ITEMS, SEED = 200, 5


def sides(
    connection: Connection, *tasks: job_pb2.TaskPlan, names: tuple[str, str] = ("a", "b"), **fields: int
) -> tuple[job_pb2.Job, job_pb2.Job]:
    """A baseline and a candidate, as their events say."""
    made = [job(name, *(tasks or (plan("one", ITEMS),)), model=name, **fields) for name in names]  # type: ignore[arg-type]
    for one, other in (made, made[::-1]):
        side = one.spec.deciding
        side.against_job_id, side.candidate = other.job_id, one is made[1]
        side.error, side.margin, side.seed = 0.05, 0.02, SEED
    writes.store_events(connection, [event(f"{one.job_id}-{one.state}-{one.attempt}", one) for one in made])
    return made[0], made[1]


def store(
    connection: Connection, job_id: str, right: Iterable[int], upto: int = ITEMS, task: str = "one", **fields: int
) -> None:
    """Answers to the first `upto` items of the order, right at these positions."""
    known = {*right}
    order = [position for _, position in decision_order.order([plan(task, ITEMS)], SEED)][:upto]
    items = [answer(position, "yes" if position in known else "no") for position in sorted(order)]
    writes.store_items(connection, [batch(job_id, task, items, **fields)])


def pairs_of(connection: Connection, baseline: job_pb2.Job, candidate: job_pb2.Job) -> answers.Pairs:
    return answers.Answers(connection, (baseline, candidate)).pairs(0, 1)


def verdict(connection: Connection) -> pb.GetDecisionResponse:
    return reads.get_decision(connection, "a")


def test_the_verdict_is_that_of_the_first_pairs_whatever_comes_later(connection: Connection) -> None:
    sides(connection)
    store(connection, "a", range(0, ITEMS, 2))
    store(connection, "b", range(ITEMS))
    found = verdict(connection).decision
    assert found.verdict == job_pb2.DECISION_VERDICT_BETTER
    assert 0 < found.decided_at < ITEMS // 2
    assert (found.pairs, found.items_total) == (ITEMS, ITEMS)
    assert 0 < found.low <= found.difference <= found.high
    assert len(found.path) > 1
    assert found.threshold > 0


def test_only_pairs_before_the_first_gap_count(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    store(connection, "a", range(ITEMS), upto=80)
    store(connection, "b", range(ITEMS), upto=30)
    later = [position for _, position in decision_order.order(baseline.plan, SEED)][40:50]
    writes.store_items(connection, [batch("b", "one", [answer(position) for position in later])])
    assert pairs_of(connection, baseline, candidate).seen == 30


def test_failed_items_are_left_out_and_unread_ones_are_wrong(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    order = [position for _, position in decision_order.order(baseline.plan, SEED)][:4]
    store(connection, "a", range(ITEMS), upto=4)
    outcomes = dict(zip(order, (ERROR, UNPARSED, UNPARSED, ERROR), strict=True))
    items = [answer(position, outcome=outcome) for position, outcome in outcomes.items()]
    writes.store_items(connection, [batch("b", "one", items)])
    found = pairs_of(connection, baseline, candidate)
    assert found.draws.sums.tolist() == [-1.0, -1.0]
    assert (found.failed(None), found.total, found.reached, found.item(1)) == (2, ITEMS, 4, 2)
    assert (found.failed(1), found.failed(2)) == (1, 1)


def test_items_that_fail_in_the_end_do_not_change_a_verdict(connection: Connection) -> None:
    baseline, _ = sides(connection)
    order = [position for _, position in decision_order.order(baseline.plan, SEED)]
    drawn = default_rng(3).choice([-1, 0, 1], ITEMS, p=[0.1, 0.75, 0.15]).tolist()
    better = {position for position, sign in zip(order, drawn, strict=True) if sign > 0}
    worse = {position for position, sign in zip(order, drawn, strict=True) if sign < 0}
    store(connection, "a", {*range(ITEMS)} - better)
    store(connection, "b", {*range(ITEMS)} - worse, upto=150)
    before = verdict(connection).decision
    failed = [answer(position, outcome=ERROR) for position in order[150:]]
    writes.store_items(connection, [batch("b", "one", failed)])
    after = verdict(connection).decision
    # Those that failed come after the verdict.
    assert (after.pairs, after.failed, before.failed) == (150, 0, 0)
    assert (after.verdict, after.decided_at) == (before.verdict, before.decided_at)
    assert before.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE


def test_without_a_verdict_the_pairs_that_are_there_decide_in_the_end(connection: Connection) -> None:
    baseline, _ = sides(connection)
    order = [position for _, position in decision_order.order(baseline.plan, SEED)]
    store(connection, "a", range(ITEMS), upto=15)
    store(connection, "b", (), upto=7)
    assert not verdict(connection).decision.verdict
    failed = [answer(position, outcome=ERROR) for position in order[7:]]
    writes.store_items(connection, [batch("b", "one", failed)])
    rest = [answer(position, outcome=ERROR) for position in order[15:]]
    writes.store_items(connection, [batch("a", "one", rest)])
    after = verdict(connection).decision
    assert (after.pairs, after.failed, after.decided_at) == (7, ITEMS - 7, 7)
    assert after.verdict == job_pb2.DECISION_VERDICT_WORSE


def test_later_attempts_change_nothing(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    store(connection, "a", range(ITEMS), upto=20)
    store(connection, "b", range(ITEMS), upto=20)
    before = pairs_of(connection, baseline, candidate).draws.sums.tolist()
    store(connection, "a", range(ITEMS), attempt=2)
    store(connection, "b", (), attempt=2)
    assert pairs_of(connection, baseline, candidate).draws.sums.tolist() == before


def retry(connection: Connection, *jobs: job_pb2.Job, failed: int = 0) -> None:
    """The jobs have ended, the first attempt having `failed` at some items. A second one asks all that is left."""
    for one in jobs:
        one.state, one.progress.items_failed = job_pb2.Job.STATE_CANCELLED, failed
        writes.store_events(connection, [event(f"{one.job_id}-7-1", one, "cancelled")])
        one.state, one.attempt = job_pb2.Job.STATE_PENDING, 2
        writes.store_events(connection, [event(f"{one.job_id}-8-2", one, "retried")])


def test_a_retry_brings_no_verdict_about(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    store(connection, "a", range(ITEMS), upto=7)
    store(connection, "b", (), upto=7)
    before = verdict(connection).decision
    assert (before.verdict, before.pairs, before.failed) == (job_pb2.DECISION_VERDICT_UNSPECIFIED, 7, 0)
    retry(connection, baseline, candidate)
    store(connection, "a", range(ITEMS), attempt=2)
    store(connection, "b", (), attempt=2)
    after = verdict(connection).decision
    assert (after.verdict, after.pairs, after.failed) == (job_pb2.DECISION_VERDICT_UNSPECIFIED, 7, 0)
    assert (after.low, after.high, after.path) == (before.low, before.high, before.path)


def test_items_that_failed_are_left_out_although_a_retry_answers_them(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    order = [position for _, position in decision_order.order(baseline.plan, SEED)]
    for name, said in (("a", "yes"), ("b", "no")):
        items = [answer(position, said) for position in order[:7]]
        items += [answer(position, outcome=ERROR) for position in order[7:]]
        writes.store_items(connection, [batch(name, "one", items)])
    before = verdict(connection).decision
    assert (before.verdict, before.pairs, before.failed) == (job_pb2.DECISION_VERDICT_WORSE, 7, ITEMS - 7)
    retry(connection, baseline, candidate, failed=ITEMS - 7)
    for upto in (50, ITEMS):
        store(connection, "a", (), attempt=2, upto=upto)
        store(connection, "b", range(ITEMS), attempt=2, upto=upto)
        after = verdict(connection).decision
        assert (after.verdict, after.pairs, after.failed) == (before.verdict, 7, ITEMS - 7)


def test_what_stopped_the_jobs_holds(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    for one in (baseline, candidate):
        one.state = job_pb2.Job.STATE_CANCELLED
        one.decided.MergeFrom(
            job_pb2.Decided(verdict="DECISION_VERDICT_WORSE", pairs=17, difference=-0.3, low=-0.5, high=-0.1, failed=2)
        )
    writes.store_events(connection, [event(f"z-later-{one.job_id}", one) for one in (baseline, candidate)])
    store(connection, "a", range(ITEMS), upto=20)
    store(connection, "b", range(ITEMS), upto=30)
    found = verdict(connection).decision
    assert (found.verdict, found.decided_at) == (job_pb2.DECISION_VERDICT_WORSE, 17)
    assert (found.difference, found.low, found.high, found.pairs, found.failed) == (-0.3, -0.5, -0.1, 17, 2)
    assert found.path[-1].pairs == 20
    (listed,) = reads.list_decisions(connection, pb.ListDecisionsRequest()).decisions
    assert (listed.verdict, listed.difference, listed.pairs, listed.failed) == (found.verdict, -0.3, 17, 2)
    assert found.saved.items == 2 * ITEMS - 50
    assert found.saved.tokens == round((ITEMS - 20) * 23 + (ITEMS - 30) * 23)
    assert not found.saved.HasField("cost_usd")


@pytest.mark.parametrize(("rates", "seconds"), [([3.0, 5.0], 1 / 4), ([0.0, 5.0], 2 / 5), ([], 1 / 20)])
def test_the_time_saved_is_that_of_answers_without_what_came_before_the_first_one(
    connection: Connection, rates: list[float], seconds: float
) -> None:
    baseline, candidate = sides(connection)
    for one in (baseline, candidate):
        one.state = job_pb2.Job.STATE_CANCELLED
        one.progress.rate_history.extend(rates)
    writes.store_events(connection, [event(f"z-later-{one.job_id}", one) for one in (baseline, candidate)])
    store(connection, "a", range(ITEMS), upto=20)
    store(connection, "b", range(ITEMS), upto=20)
    # Each job has run for 30 s.
    assert verdict(connection).decision.saved.seconds == pytest.approx((ITEMS - 20) * seconds)


def test_items_that_failed_were_not_saved(connection: Connection) -> None:
    made = sides(connection)
    for one in made:
        one.state = job_pb2.Job.STATE_COMPLETED
    writes.store_events(connection, [event(f"z-later-{one.job_id}", one) for one in made])
    store(connection, "a", range(ITEMS))
    store(connection, "b", range(ITEMS), upto=190)
    order = [position for _, position in decision_order.order(made[0].plan, SEED)]
    failed = [answer(position, outcome=ERROR, input_untold=True, output_untold=True) for position in order[190:]]
    writes.store_items(connection, [batch("b", "one", failed)])
    saved = verdict(connection).decision.saved
    assert (saved.items, saved.tokens, saved.seconds) == (0, 0, 0.0)


def test_the_candidates_id_leads_to_the_same(connection: Connection) -> None:
    sides(connection)
    assert reads.get_decision(connection, "b") == verdict(connection)


def test_other_jobs_are_no_decision(connection: Connection) -> None:
    writes.store_events(connection, [event("1", job("j", plan("one", 5)))])
    for unknown in ("j", "k"):
        with pytest.raises(NotFoundError):
            reads.get_decision(connection, unknown)


def test_other_items_are_not_compared(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    candidate.plan[0].item_set = "other"
    found = read_evidence(connection, (baseline, candidate))
    assert not found.verdict
    assert "other items" in found.note


def test_datasets_of_the_same_rows_are_compared_whatever_their_prompts(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    baseline.plan[0].question_set = candidate.plan[0].question_set = "questions"
    candidate.plan[0].item_set = "other"
    store(connection, "a", ())
    store(connection, "b", range(ITEMS))
    assert read_evidence(connection, (baseline, candidate)).verdict == job_pb2.DECISION_VERDICT_BETTER


def test_items_of_a_passage_count_as_one(connection: Connection) -> None:
    task = plan("one", ITEMS)
    # 20 passages of 5 items, and 100 items by themselves.
    task.clusters.extend([*(position // 5 for position in range(100)), *range(20, 120)])
    baseline, candidate = sides(connection, task)
    order = [position for _, position in decision_order.order(baseline.plan, SEED)]
    whole = next(place for place in range(5, ITEMS) if order[place - 1] < 100 and order[place - 1] % 5 == 4)
    # A passage counts once all of its items are there, and something follows it.
    for upto, sums in ((whole - 1, [-1.0, -1.0]), (whole + 1, [-1.0, -1.0, -5.0, -1.0])):
        for name, said in (("a", "yes"), ("b", "no")):
            items = [answer(position, said) for position in sorted(order[:upto])]
            writes.store_items(connection, [batch(name, "one", items)])
        draws = pairs_of(connection, baseline, candidate).draws
        assert draws.sums.tolist() == sums
        assert draws.values.tolist() == [value / 5 for value in sums]


def test_a_group_of_all_items_shows_nothing_and_ends_with_the_last_one(connection: Connection) -> None:
    task = plan("one", ITEMS)
    task.clusters.extend([0] * ITEMS)
    sides(connection, task)
    items = {said: [answer(position, said) for position in range(ITEMS)] for said in ("yes", "no")}
    writes.store_items(connection, [batch("a", "one", items["no"]), batch("b", "one", items["yes"][:-1])])
    before = verdict(connection).decision
    assert (before.verdict, before.pairs) == (job_pb2.DECISION_VERDICT_UNSPECIFIED, ITEMS - 1)
    writes.store_items(connection, [batch("b", "one", items["yes"][-1:])])
    after = verdict(connection).decision
    assert after.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE
    assert (after.decided_at, after.difference) == (ITEMS, 1.0)
    assert after.low < 0 < after.high


def test_jobs_whose_items_are_in_other_groups_cannot_be_compared(connection: Connection) -> None:
    made = [plan("one", ITEMS), plan("one", ITEMS)]
    for size, task in zip((5, 4), made, strict=True):
        task.clusters.extend(position // size for position in range(ITEMS))
    baseline, candidate = sides(connection, made[0])
    candidate.plan[0].CopyFrom(made[1])
    assert read_evidence(connection, (baseline, candidate)).note.startswith("The jobs have other items")


def test_passages_of_one_task_leave_the_others_their_weight(connection: Connection) -> None:
    tasks = (plan("one", ITEMS), plan("two", 40))
    tasks[0].clusters.extend(position // 10 for position in range(ITEMS))
    for task in tasks:
        task.weighting = suite_pb2.WEIGHTING_TASKS
    baseline, candidate = sides(connection, *tasks)
    for task in tasks:
        for name, said in (("a", "no"), ("b", "yes")):
            items = [answer(position, said) for position in range(task.items)]
            writes.store_items(connection, [batch(name, task.task, items)])
    draws = pairs_of(connection, baseline, candidate).draws
    assert np.bincount(draws.places).tolist() == [20, 40]
    assert (draws.values <= 1).all()
    # A passage is 1/20 of its task, an item 1/40 of its own: half as much, whatever the passage's size.
    assert draws.values[draws.places == 0][0] == pytest.approx(1, abs=0.3)
    assert draws.values[draws.places == 1][0] == pytest.approx(0.5, abs=0.2)
    assert draws.mean() == 1.0


def test_each_task_has_its_own_score_and_those_without_do_not_count(connection: Connection) -> None:
    f1, numbers = plan("f1", 4, "f1"), plan("numbers", 4, "pearson")
    mean = plan("mean", 4)
    mean.metrics[0].metric, mean.metrics[0].rule, mean.metrics[0].statistic = (
        "token_f1",
        suite_pb2.MetricSpec.RULE_MEAN,
        "token_f1",
    )
    beside = plan("beside", 4)
    beside.beside = True
    tasks = (plan("accuracy", 4), f1, numbers, mean, beside)
    assert [answers.statistic_of(task) for task in tasks] == ["", "", None, "token_f1", None]
    for task in tasks:
        task.weighting = suite_pb2.WEIGHTING_TASKS
    baseline, candidate = sides(connection, *tasks)

    def some(statistics: dict[str, float]) -> Sequence[item_result_pb2.ItemResult]:
        return [answer(place, statistics=statistics) for place in range(4)]

    for job_id, share in (("a", 0.25), ("b", 0.75)):
        batches = [
            batch(job_id, "accuracy", some({"correct": 1.0})),
            batch(job_id, "f1", some({"correct": float(share > 0.5)})),
            batch(job_id, "numbers", some({"value": 1.0, "target": 2.0})),
            batch(job_id, "mean", some({"token_f1": share})),
            batch(job_id, "beside", some({"correct": 1.0})),
        ]
        writes.store_items(connection, batches)
    found = pairs_of(connection, baseline, candidate)
    assert (found.total, found.seen) == (12, 12)
    names = ("accuracy", "f1", "mean")
    by_task = {names[place]: value for place, value in zip(found.draws.places, found.draws.sums, strict=True)}
    assert by_task == {"accuracy": 0.0, "f1": 1.0, "mean": 0.5}
    assert found.draws.mean() == 0.5


def test_lists_are_newest_first_in_pages_without_paths(connection: Connection) -> None:
    for number in range(3):
        sides(connection, names=(f"a{number}", f"b{number}"), minute=number)
    page = reads.list_decisions(connection, pb.ListDecisionsRequest(page_size=2))
    assert [one.decision_id for one in page.decisions] == ["a2", "a1"]
    rest = reads.list_decisions(connection, pb.ListDecisionsRequest(page_size=2, page_token=page.next_page_token))
    assert ([one.decision_id for one in rest.decisions], rest.next_page_token) == (["a0"], "")
    assert not page.decisions[0].path
    with pytest.raises(InvalidRequestError):
        reads.list_decisions(connection, pb.ListDecisionsRequest(page_token="x"))


def test_without_one_of_its_jobs_there_is_no_decision(connection: Connection) -> None:
    _, candidate = sides(connection)
    writes.forget_job(connection, "b", "ann", "ann", candidate.created_at.ToDatetime())
    assert not reads.list_decisions(connection, pb.ListDecisionsRequest()).decisions
    with pytest.raises(NotFoundError):
        verdict(connection)


def test_decisions_without_a_job_hide_no_others(connection: Connection) -> None:
    for number in range(6):
        _, candidate = sides(connection, names=(f"a{number}", f"b{number}"), minute=number)
    for number in (1, 3, 4):
        writes.forget_job(connection, f"b{number}", "ann", "ann", candidate.created_at.ToDatetime())
    found, token = list[str](), ""
    while True:
        page = reads.list_decisions(connection, pb.ListDecisionsRequest(page_size=1, page_token=token))
        found += [one.decision_id for one in page.decisions]
        if not (token := page.next_page_token):
            break
    assert found == ["a5", "a2", "a0"]


def test_decisions_of_others_are_hidden(connection: Connection) -> None:
    sides(connection)
    bob = Visibility("bob")
    assert not reads.list_decisions(connection, pb.ListDecisionsRequest(), bob).decisions
    with pytest.raises(HiddenJobError):
        reads.get_decision(connection, "a", bob)
