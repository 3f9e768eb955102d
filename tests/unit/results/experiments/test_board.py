"""An experiment's leaderboard: figures worked out by hand, and the same from the stored items one by one."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.errors import InvalidRequestError, NotFoundError
from services.experiments import candidates, grid
from services.results.experiments.board import get_experiment
from services.results.intake import writes
from services.results.judging import ratings
from services.results.read_queue import Questions
from services.results.servicer import ResultsServicer
from services.results.statistics import prediction_powered
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from services.words import rubrics
from tests.unit.results.builders import event, seal
from tests.unit.results.experiments.made import CRITERIA, Made, Scores, all_of
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_INFRASTRUCTURE_ERROR

JUDGE, PEOPLE, COMBINED = (
    pb.GetExperimentRequest.SOURCE_JUDGE,
    pb.GetExperimentRequest.SOURCE_PEOPLE,
    pb.GetExperimentRequest.SOURCE_COMBINED,
)


def board(connection: Connection, **fields: Any) -> pb.GetExperimentResponse:
    return get_experiment(connection, pb.GetExperimentRequest(name="greetings", **fields))


def rows(found: pb.GetExperimentResponse) -> dict[str, pb.ExperimentRow]:
    return {f"{row.model}/{row.prompt}": row for row in found.rows}


@pytest.fixture
def judged(connection: Connection) -> Made:
    """Two models, two prompts and two scenarios: "a" is better with "p", and "b" with "q"."""
    made = Made(connection)
    for job, scores in (("a", (5, 3, 1, 1)), ("b", (3, 3, 5, 5))):
        made.job(job)
        made.judge("j", job, {row: all_of(score) for row, score in enumerate(scores)})
    return made


def test_rows_rank_by_the_mean_over_scenarios(judged: Made) -> None:
    found = board(judged.connection)
    assert (found.source, found.judge, list(found.judges)) == (JUDGE, "local/j", ["local/j"])
    assert [(f"{row.model}/{row.prompt}", row.composite.value, row.rank) for row in found.rows] == [
        ("b/q", 1.0, 1),
        ("a/p", 0.75, 2),
        ("b/p", 0.5, 3),
        ("a/q", 0.0, 4),
    ]
    # Two scenarios show nothing of four rows.
    assert {(row.rank_low, row.rank_high) for row in found.rows} == {(1, 4)}
    row = rows(found)["a/p"]
    assert (row.composite.low, row.composite.high) == pytest.approx((0.0103, 0.9989), abs=5e-4)
    assert row.composite.n == 2
    assert [(one.criterion, one.score.value, one.score.n) for one in row.criteria] == [
        (name, 0.75, 2) for name in CRITERIA
    ]
    assert (row.rows, row.answered, row.errors, row.scored, row.judge_failures) == (2, 2, 0, 2, 0)
    assert (row.to_first.difference.value, row.to_first.difference.n, row.to_first.p_value) == (-0.25, 2, 1.0)
    assert not found.rows[0].HasField("to_first")


def test_models_have_means_over_prompts_and_rankings_that_hold_for_some(judged: Made) -> None:
    found = board(judged.connection)
    assert [
        (one.model, one.mean.value, one.mean.n, one.best_prompt, one.best, one.worst_prompt, one.worst)
        for one in found.models
    ] == [("a", 0.375, 2, "p", 0.75, "q", 0.0), ("b", 0.75, 2, "q", 1.0, "p", 0.5)]
    assert (found.prompts_with_same_first, found.prompts_compared) == (1, 2)


def test_a_model_with_equal_prompts_has_no_best_one(judged: Made) -> None:
    judged.job("c", minute=5)
    judged.judge("j", "c", dict.fromkeys(range(4), all_of(4)), minute=6)
    model = board(judged.connection).models[2]
    assert model.mean.value == 0.75
    assert (model.best_prompt, model.worst_prompt, model.best, model.worst) == ("", "", 0.0, 0.0)


def test_a_model_without_scores_for_a_prompt_has_no_mean_and_stands_last(judged: Made) -> None:
    judged.job("c", minute=5)
    judged.judge("j", "c", {0: all_of(1)}, minute=6)
    found = board(judged.connection)
    assert [(row.model, row.prompt, row.rank) for row in found.rows[-2:]] == [("c", "p", 4), ("c", "q", 0)]
    assert rows(found)["a/q"].rank == 4
    assert not found.models[2].HasField("mean")
    assert (found.models[2].best_prompt, found.models[2].worst_prompt) == ("p", "p")
    assert (found.prompts_with_same_first, found.prompts_compared) == (0, 1)
    # One scenario says nothing about others, and cannot be tested.
    assert (rows(found)["c/p"].composite.low, rows(found)["c/p"].composite.high) == (0.0, 1.0)
    assert not rows(found)["c/p"].HasField("to_first")


def test_rows_without_scores_may_come_before_all_others(connection: Connection) -> None:
    made = Made(connection, scenarios={"set": "tips", "count": 10})
    for job, score in (("a", 5), ("b", 1)):
        made.job(job)
        made.judge("j", job, {row: all_of(score) for row in range(20)})
    before = {(row.model, row.rank_low, row.rank_high) for row in board(connection).rows}
    assert before == {("a", 1, 2), ("b", 3, 4)}
    made.job("c", minute=5)
    ranges = {(row.model, row.rank_low, row.rank_high) for row in board(connection).rows}
    assert ranges == {("a", 1, 4), ("b", 3, 6), ("c", 0, 0)}


def test_a_job_that_was_marked_invalid_has_no_scores(judged: Made) -> None:
    judged.connection.execute(
        "INSERT INTO marks VALUES (1, 'b', $mark, 'wrong weights', '', 'root', now())",
        {"mark": int(pb.RUN_MARK_INVALIDATED)},
    )
    found = board(judged.connection)
    assert [(row.model, row.rank, row.answered) for row in found.rows] == [
        ("a", 1, 2),
        ("a", 2, 2),
        ("b", 0, 2),
        ("b", 0, 2),
    ]
    assert not found.models[1].HasField("mean")
    assert [*found.uncounted_job_ids] == ["b"]


def test_judges_that_are_still_to_come_are_named(connection: Connection) -> None:
    made = Made(connection)
    judges = [job_pb2.Judge(endpoint="local", model=name) for name in ("first", "second")]
    of = made.dataset.dataset_id
    live, done = job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_COMPLETED

    def told(job_id: str, attempt: int, state: job_pb2.Job.State, **spec: Any) -> None:
        job = made.started(job_id, of, 0, attempt, experiment_name=made.name, judges=judges, **spec)
        job.state = state
        writes.store_events(connection, [event(f"{job_id}-{attempt}-{state}", job)])

    told("a", 1, done)
    told("b", 1, live)
    assert [*board(connection).live_judges] == ["local/first", "local/second"]
    told("b", 1, done)
    # Those that could not start are not waited for.
    assert [*board(connection).live_judges] == []
    dataset = made._dataset("ds_j", judging=job_pb2.Judging(job_id="a", rubric=written(made), attempt=1))
    job = made.started("j", dataset.dataset_id, 1, model="first")
    job.state = live
    writes.store_events(connection, [event("j-live", job)])
    assert [*board(connection).live_judges] == ["local/first"]
    assert board(connection).source == pb.GetExperimentRequest.SOURCE_UNSPECIFIED


def test_a_named_judge_without_a_job_is_to_come_only_for_a_moment(connection: Connection) -> None:
    made = Made(connection)
    judges = [job_pb2.Judge(endpoint="local", model="first")]
    job = made.started("a", made.dataset.dataset_id, 0, experiment_name=made.name, judges=judges)
    failed = made.started("b", made.dataset.dataset_id, 0, experiment_name=made.name, judges=judges)
    job.state, failed.state = job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED

    def told(number: int, job: job_pb2.Job, ago_s: float) -> list[str]:
        said = event(f"later-{number}", job)
        said.occurred_at.FromDatetime(datetime.now(UTC) - timedelta(seconds=ago_s))
        writes.store_events(connection, [said])
        return [*board(connection).live_judges]

    assert told(0, failed, 0) == ["local/first"], "a waits or runs"
    assert told(1, job, 0.5) == ["local/first"]
    # Its job is there, has ended, and was given by the newest attempt.
    dataset = made._dataset("ds_j", judging=job_pb2.Judging(job_id="a", rubric=written(made), attempt=1))
    begun = made.started("j", dataset.dataset_id, 1, model="first")
    begun.state = job_pb2.Job.STATE_COMPLETED
    writes.store_events(connection, [event("j-done", begun)])
    assert [*board(connection).live_judges] == [], "a failed job has no judge"
    job.spec.judges.add(endpoint="local", model="second")
    assert told(2, job, 0) == ["local/second"], "a judge that was added later"
    connection.execute("UPDATE events SET occurred_at = occurred_at - INTERVAL 2 MINUTE")
    assert [*board(connection).live_judges] == [], "it could not start, or was deleted"


def written(made: Made) -> str:
    return rubrics.written(made.definition.rubric)


def test_a_judge_that_fails_on_a_tenth_of_the_answers_moves_no_score(connection: Connection) -> None:
    made = Made(connection, scenarios={"set": "tips", "count": 10})
    scores: dict[int, Scores | None] = {row: all_of(1 + row % 5) for row in range(20)}
    for job in ("a", "b"):
        made.job(job)
        made.judge("sound", job, scores)
        made.judge("failing", job, scores | {0: None, 15: None}, minute=2)
    sound, failing = (rows(board(connection, judge=f"local/{judge}")) for judge in ("sound", "failing"))
    assert {name: row.composite.value for name, row in sound.items()} == dict.fromkeys(sound, 0.5)
    for name, row in failing.items():
        left = [(row % 5) / 4 for row in (range(1, 10) if name.endswith("p") else (*range(10, 15), *range(16, 20)))]
        assert row.composite.value == pytest.approx(fmean(left))
        assert (row.scored, row.judge_failures, row.composite.n, row.answered) == (9, 1, 9, 10)
    # The same answers are compared: "a" and "b" do not differ by what the judge left out of both.
    assert failing["a/p"].composite.value == failing["b/p"].composite.value


def test_repeats_and_judgements_are_averaged_within_a_scenario(connection: Connection) -> None:
    made = Made(connection, prompts=["p"], repeats=2)
    made.job("a")
    made.judge("j", "a", {0: [all_of(5), all_of(3), None], 1: all_of(1), 2: all_of(5), 3: None})
    (row,) = board(connection).rows
    # Scenario 1: (0.75 + 0) / 2; scenario 2: 1 from its only scored repeat.
    assert (row.composite.value, row.composite.n) == pytest.approx(((0.375 + 1) / 2, 2))
    assert (row.rows, row.scored, row.judge_failures) == (4, 3, 1)


def test_the_newest_job_of_a_judge_counts_and_no_judgement_of_an_answer_that_was_replaced(
    connection: Connection,
) -> None:
    made = Made(connection, prompts=["p"])
    made.job("a", {0: "good", 1: ""}, failed={1})
    made.judge("j", "a", {0: all_of(5)})
    made.job("a", {1: "late"}, attempt=2)
    assert rows(board(connection))["a/p"].composite.value == 1.0
    made.judge("j", "a", {0: all_of(3), 1: all_of(1)}, attempt=2, minute=2, number=2)
    assert rows(board(connection))["a/p"].composite.value == 0.25
    made.judge("j", "a", {1: all_of(5)}, attempt=1, minute=3, number=3)
    assert rows(board(connection))["a/p"].composite.value == 0.25


def test_a_judge_with_other_parameters_is_another_one_whose_scores_are_never_mixed_in(connection: Connection) -> None:
    made = Made(connection, prompts=["p"])
    for job in ("a", "b"):
        made.job(job)
        made.judge("j", job, {0: all_of(5), 1: all_of(5)})
    # It has judged one of the jobs so far, and is still to judge the other.
    other = job_pb2.Sampling(seed=2, max_tokens=50)
    made.judge("j", "a", {0: all_of(1), 1: all_of(1)}, minute=2, number=2, sampling=other)
    named = "local/j (max_tokens=50, seed=2)"
    found = board(connection)
    assert (found.judge, [*found.judges]) == ("local/j", ["local/j", named])
    assert {name: row.composite.value for name, row in rows(found).items()} == {"a/p": 1.0, "b/p": 1.0}
    told = rows(board(connection, judge=named))
    assert (told["a/p"].composite.value, told["a/p"].scored, told["b/p"].scored) == (0.0, 2, 0)


def test_people_count_without_a_judge_and_each_rater_the_same(connection: Connection) -> None:
    made = Made(connection, prompts=["p"])
    made.job("a")
    assert board(connection).source == pb.GetExperimentRequest.SOURCE_UNSPECIFIED
    made.rate("a", {0: all_of(5), 1: all_of(2)})
    made.rate("a", {0: all_of(3)}, rater="bob")
    found = board(connection)
    assert (found.source, found.judge) == (PEOPLE, "")
    assert found.rows[0].composite.value == pytest.approx((0.75 + 0.25) / 2)
    made.judge("j", "a", {0: all_of(1), 1: all_of(1)})
    assert board(connection).rows[0].composite.value == 0.0
    assert board(connection, source=PEOPLE).rows[0].composite.value == 0.5


def test_a_judge_outside_is_a_judge_and_none_of_the_people(connection: Connection) -> None:
    made = Made(connection, prompts=["p"])
    made.job("a")
    made.rate("a", {0: all_of(5), 1: all_of(3)}, rater="bot", judge="acme/j")
    found = board(connection)
    assert (found.source, found.judge, list(found.judges)) == (JUDGE, "outside:bot/acme/j", ["outside:bot/acme/j"])
    assert found.rows[0].composite.value == 0.75
    assert not board(connection, source=PEOPLE).rows[0].scored
    made.judge("j", "a", {0: all_of(1), 1: all_of(1)})
    assert board(connection).rows[0].composite.value == 0.0
    assert board(connection, judge="outside:bot/acme/j").rows[0].composite.value == 0.75


def test_people_and_a_judge_together_are_the_estimate_of_both(connection: Connection) -> None:
    made = Made(connection, scenarios={"set": "tips", "count": 30})
    people = {row: {name: 1 + (row * 7 + place) % 5 for place, name in enumerate(CRITERIA)} for row in range(60)}
    said = {row: {name: min(5, score + 1) for name, score in scores.items()} for row, scores in people.items()}
    for job in ("a", "b"):
        made.job(job)
        made.judge("j", job, said)
    order = [item for _, item, _ in ratings.in_order(connection, "a")]
    made.rate("a", {row: people[row] for row in order[:50]})
    # Out of order, of which nothing follows for the others.
    made.rate("a", {order[55]: people[order[55]]})
    found = board(connection, source=COMBINED)
    assert (found.source, found.judge) == (COMBINED, "local/j")
    rubric = made.definition.rubric
    for start, prompt in ((0, "p"), (30, "q")):
        row = rows(found)[f"a/{prompt}"]
        drawn = [item for item in order[:50] if start <= item < start + 30]
        for name, interval in (("composite", row.composite), *((one.criterion, one.score) for one in row.criteria)):
            labels, judge = np.full(30, np.nan), np.zeros(30)
            for item in range(start, start + 30):
                judge[item - start] = rubrics.shares(rubric, said[item])[name]
                if item in drawn:
                    labels[item - start] = rubrics.shares(rubric, people[item])[name]
            expected = prediction_powered.combined(labels, judge)
            assert interval.value == pytest.approx(expected.mean)
            # Over scenarios like these, and not over exactly these.
            assert interval.low < expected.low
            assert interval.high > expected.high
        assert row.scored == sum(start <= item < start + 30 for item in (*order[:50], order[55]))
    assert [row.rank for row in found.rows] == [1, 2, 0, 0]
    assert found.rows[1].to_first.difference.value == pytest.approx(
        found.rows[1].composite.value - found.rows[0].composite.value
    )
    (first, _) = found.models
    assert first.mean.value == pytest.approx(fmean(row.composite.value for row in found.rows[:2]))
    assert first.mean.high - first.mean.low < max(row.composite.high - row.composite.low for row in found.rows[:2])


@pytest.mark.parametrize("names", [["correct"], ["value"], ["correct", "tone"], ["target", "value"]])
def test_criteria_may_have_any_names(connection: Connection, names: list[str]) -> None:
    criteria = [{"name": name, "lowest": 0, "highest": 4} for name in names]
    made = Made(connection, prompts=["p"], rubric={"version": "own-v1", "criteria": criteria})
    made.job("a")
    made.judge("j", "a", {0: dict.fromkeys(names, 3), 1: dict.fromkeys(names, 1)})
    (row,) = board(connection).rows
    assert row.composite.value == 0.5
    assert {one.criterion: one.score.value for one in row.criteria} == dict.fromkeys(names, 0.5)


def test_rows_with_one_mean_have_one_rank_whatever_the_order_of_their_scores(connection: Connection) -> None:
    made = Made(connection, scenarios={"set": "tips", "count": 6})
    for job in ("a", "b"):
        made.job(job)
        scores = [{**all_of(1 + number % 5), "tone": 1 + number % 3} for number in range(12)]
        made.judge("j", job, dict(enumerate(scores if job == "a" else scores[:6][::-1] + scores[6:][::-1])))
    assert [row.rank for row in board(connection).rows] == [1, 1, 3, 3]


def test_speed_cost_and_failures_are_those_of_the_calls(connection: Connection) -> None:
    made = Made(connection, prompts=["p"], scenarios={"set": "tips", "count": 4})
    made.job("a", {0: "", 1: "one", 2: "two"}, failed={0}, cost_usd=0.25)
    made.job("b", {0: "one"}, minute=1, reused=True)
    first, second = board(connection).rows
    # Latencies are 10 ms and the row's number more.
    assert (first.rows, first.answered, first.errors) == (4, 2, 1)
    assert (first.latency_s, first.tokens_per_s, first.cost_usd) == pytest.approx((0.0115, 6 / 0.023, 0.5))
    assert (second.answered, second.latency_s, second.tokens_per_s) == (1, 0.0, 0.0)
    assert not second.HasField("cost_usd")


def test_the_diversity_of_tips_is_known_once_a_job_is_sealed_and_stays(connection: Connection) -> None:
    made = Made(connection)
    texts = {0: '["run far", "run fast"]', 1: "1. read\n2. sleep", 2: "one tip", 3: '["same", "same"]'}
    made.job("a", texts)
    assert not any(row.HasField("diversity") for row in board(connection).rows)
    job = made.job("b", texts, minute=1, sealed=True)
    # The texts go, and the result is computed again.
    connection.execute("INSERT INTO answer_texts VALUES ('b', 1, now(), 0, now(), 1)")
    connection.execute("UPDATE items SET response = '' WHERE job_id = 'b'")
    seal(connection, job)
    found = rows(board(connection))
    assert candidates.diversity(["run far", "run fast"]) == pytest.approx(2 / 3)
    assert (found["b/p"].diversity.value, found["b/p"].diversity.n) == pytest.approx(((2 / 3 + 1) / 2, 2))
    assert (found["b/q"].diversity.value, found["b/q"].diversity.n) == (0.0, 1)
    assert not found["a/p"].HasField("diversity")


async def test_a_board_is_computed_again_once_anything_is_stored(judged: Made) -> None:
    database = Database(judged.connection)
    nothing: Any = None
    servicer = ResultsServicer(database, nothing, nothing, nothing, nothing, Questions(database))
    request = pb.GetExperimentRequest(name="greetings")
    first = await servicer.GetExperiment(request, None)
    assert await servicer.GetExperiment(request, None) is first
    # A rating or a judgement, which change no job.
    await database.write(lambda _: None, of_jobs=False)
    again = await servicer.GetExperiment(request, None)
    assert again is not first
    assert again == first
    await database.close()


def test_what_does_not_exist_is_said(judged: Made) -> None:
    with pytest.raises(NotFoundError, match="Experiment tips not found"):
        get_experiment(judged.connection, pb.GetExperimentRequest(name="tips"))
    with pytest.raises(InvalidRequestError, match=r"is not a valid judge\. Use one of: local/j\."):
        board(judged.connection, judge="local/k")


_SCORE = st.one_of(st.none(), st.fixed_dictionaries({name: st.integers(1, 5) for name in CRITERIA}))


@st.composite
def experiments(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, tuple[list[int], dict[int, Any]]]]:
    """A grid, and by job which rows failed and what a judge said of the others."""
    prompts = draw(st.integers(1, 3))
    count, repeats = draw(st.integers(1, 5)), draw(st.integers(1, 2))
    size = prompts * count * repeats
    jobs = {}
    for job in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        failed = draw(st.lists(st.integers(0, size - 1), max_size=size // 3, unique=True))
        said = {row: draw(st.lists(_SCORE, min_size=1, max_size=2)) for row in range(size) if row not in failed}
        jobs[job] = failed, said
    return {
        "prompts": ["p", "q", "r"][:prompts],
        "scenarios": {"set": "tips", "count": count},
        "repeats": repeats,
    }, jobs


@settings(max_examples=25, deadline=None)
@given(experiments())
def test_each_figure_follows_from_the_stored_items(
    new_file: Path, tmp_path_factory: pytest.TempPathFactory, drawn: Any
) -> None:
    changes, jobs = drawn
    path = tmp_path_factory.mktemp("drawn") / "results.duckdb"
    shutil.copy(new_file, path)
    connection = open_file(path)
    try:
        made = Made(connection, **changes)
        for minute, (job, (failed, said)) in enumerate(jobs.items()):
            made.job(job, failed=set(failed), minute=minute)
            made.judge("j", job, said, minute=10)
        _check(connection, board(connection))
    finally:
        connection.close()


def _check(connection: Connection, found: pb.GetExperimentResponse) -> None:
    by_scenario = _by_scenario(connection)
    cells = [(job.job_id, prompt) for job in found.experiment.jobs for prompt in found.experiment.prompts]
    expected = {
        cell: fmean(fmean(values) for values in by_scenario[cell].values()) for cell in cells if by_scenario.get(cell)
    }
    ranked = sorted(expected.values(), reverse=True)
    for row in found.rows:
        cell = row.job_id, row.prompt
        if cell not in expected:
            assert (row.rank, row.HasField("composite")) == (0, False)
            continue
        assert row.composite.value == pytest.approx(expected[cell])
        assert row.composite.n == len(by_scenario[cell])
        assert row.composite.low <= row.composite.value <= row.composite.high
        assert ranked[row.rank - 1] == pytest.approx(expected[cell])
        # Rows without scores leave the order open.
        assert 1 <= row.rank_low <= row.rank_high <= len(cells)
    if not expected:
        return
    first = found.rows[0].job_id, found.rows[0].prompt
    for row in found.rows[1:]:
        cell = row.job_id, row.prompt
        common = by_scenario[first].keys() & by_scenario.get(cell, {}).keys()
        assert row.HasField("to_first") == (len(common) >= 2)
        if len(common) >= 2:
            apart = fmean(fmean(by_scenario[cell][one]) - fmean(by_scenario[first][one]) for one in common)
            assert row.to_first.difference.value == pytest.approx(apart, abs=1e-9)
            assert row.to_first.difference.n == len(common)
            assert 0 <= row.to_first.p_value <= 1
    for model in found.models:
        values = [expected.get((model.job_id, prompt)) for prompt in found.experiment.prompts]
        known = [value for value in values if value is not None]
        assert model.HasField("mean") == (len(known) == len(values))
        if model.HasField("mean"):
            assert model.mean.value == pytest.approx(fmean(known))
        if known:
            assert (model.best, model.worst) == pytest.approx((max(known), min(known)))
    assert sum(row.judge_failures for row in found.rows) == _failures(connection)
    _check_calls(connection, found)


def _by_scenario(connection: Connection) -> dict[tuple[str, str], dict[str, list[float]]]:
    """The composite of each scored answer, by job, prompt and scenario."""
    judged = defaultdict(list)
    for job, place, prediction in connection.execute(
        "SELECT job_id, custom_id, prediction FROM items WHERE starts_with(job_id, 'j-') AND outcome = $answered",
        {"answered": int(OUTCOME_ANSWERED)},
    ).fetchall():
        scores = json.loads(prediction)
        shares = [(scores[name] - 1) / 4 * weight for name, weight in zip(CRITERIA, (0.4, 0.4, 0.2), strict=True)]
        judged[job.split("-")[1], int(place.split("/")[1])].append(sum(shares))
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for job, item, custom_id in connection.execute(
        "SELECT job_id, item, custom_id FROM items WHERE NOT starts_with(job_id, 'j-')"
    ).fetchall():
        cell = grid.cell_of(custom_id)
        assert cell is not None
        if (job, item) in judged:
            found[job, cell.prompt][cell.scenario].append(fmean(judged[job, item]))
    return found


def _failures(connection: Connection) -> int:
    """Judged answers without a valid judgement."""
    valid: dict[tuple[str, str], bool] = defaultdict(bool)
    for job, place, outcome in connection.execute(
        "SELECT job_id, split_part(custom_id, '#', 1), outcome FROM items WHERE starts_with(job_id, 'j-')"
    ).fetchall():
        valid[job, place] |= outcome == OUTCOME_ANSWERED
    return sum(not each for each in valid.values())


def _check_calls(connection: Connection, found: pb.GetExperimentResponse) -> None:
    of_row = defaultdict(list)
    for job, custom_id, outcome, latency_ms, tokens in connection.execute(
        "SELECT job_id, custom_id, outcome, latency_ms, output_tokens FROM items WHERE NOT starts_with(job_id, 'j-')"
    ).fetchall():
        of_row[job, custom_id.split("/")[0]].append((outcome, latency_ms / 1000, tokens))
    for row in found.rows:
        calls = of_row[row.job_id, row.prompt]
        answered = [(seconds, tokens) for outcome, seconds, tokens in calls if outcome != OUTCOME_INFRASTRUCTURE_ERROR]
        assert (row.answered, row.errors) == (len(answered), len(calls) - len(answered))
        if answered:
            assert row.latency_s == pytest.approx(median(seconds for seconds, _ in answered))
            assert row.tokens_per_s == pytest.approx(
                sum(tokens for _, tokens in answered) / sum(seconds for seconds, _ in answered)
            )
