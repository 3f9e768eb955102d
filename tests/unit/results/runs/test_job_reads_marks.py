"""Runs taken out of rankings, and names of what ranks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.errors import InvalidRequestError
from services.results.boards.leaderboard import leaderboard
from services.results.boards.overview import overview
from services.results.comparison.compare import compare
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import answer, batch, event, job, plan, run
from tests.unit.results.runs.marked import INVALIDATED, NOW, SUPERSEDED, VALID, current, mark, three_runs
from touchstone.v1 import comparison_pb2
from touchstone.v1 import results_service_pb2 as pb


def taken_out(connection: Connection, visible: Visibility = EVERYTHING, **asked: int) -> list[tuple[str, str, str]]:
    request = pb.GetLeaderboardRequest(suite="glue", **asked)  # type: ignore[arg-type]
    entries = leaderboard(connection, request, None, visible).entries
    return [(entry.job_id, entry.mark, entry.not_ranked_reason) for entry in entries if not entry.rank]


def test_a_marked_run_gives_its_place_to_the_one_before_and_takes_it_back(connection: Connection) -> None:
    three_runs(connection)
    assert current(connection) == [("third", "second", 3)]
    result = mark(connection, "third")
    assert (result.mark, result.mark_reason) == ("invalidated", "the prompt was wrong")
    assert result.not_ranked_reason == "the run was invalidated: the prompt was wrong"
    assert result.suite_score.mean == 0.5
    assert current(connection) == [("second", "first", 2)]
    mark(connection, "first", SUPERSEDED, "a longer limit", "second")
    assert current(connection) == [("second", "", 1)]
    result = mark(connection, "third", VALID, "")
    assert (result.mark, result.not_ranked_reason) == ("", "")
    assert current(connection) == [("third", "second", 2)]


def test_an_invalidated_run_stays_on_the_board_with_its_reason_until_a_newer_one_counts(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "first", INVALIDATED, "an older one")
    assert taken_out(connection) == [], "a newer run of the configuration stands for it"
    mark(connection, "third")
    third = ("third", "invalidated", "the run was invalidated: the prompt was wrong")
    assert taken_out(connection) == [third]
    assert taken_out(connection, project_id=1) == taken_out(connection, Visibility("ann")) == [third]
    mark(connection, "second")
    assert (current(connection), taken_out(connection)) == ([], [third]), "a board without a rank still says why"
    assert taken_out(connection, project_id=1) == [third]
    run(connection, job("fourth", plan("t", 4)), right=4, minute=9)
    assert (current(connection), taken_out(connection)) == ([("fourth", "", 1)], [])
    assert taken_out(connection, project_id=1) == []


def test_a_superseded_run_leaves_the_board_to_the_one_in_its_place(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third", SUPERSEDED, "more tokens", "second")
    assert (current(connection), taken_out(connection)) == ([("second", "first", 2)], [])
    mark(connection, "third")
    assert [job_id for job_id, *_ in taken_out(connection)] == ["third"]
    mark(connection, "third", SUPERSEDED, "more tokens", "second")
    assert taken_out(connection) == taken_out(connection, project_id=1) == []


def test_items_with_invalid_runs_alone_are_not_shown_before_those_with_others(connection: Connection) -> None:
    run(connection, job("whole", plan("t", 4)), right=4, minute=2)
    run(connection, job("cut", plan("t", 2), item_set="cut", subset=True), right=2, minute=1)
    mark(connection, "whole")
    assert current(connection) == [("cut", "", 1)]
    whole = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue", item_set="set-1"))
    assert [entry.job_id for entry in whole.entries] == ["whole"]
    assert (whole.total_models, [one.configurations for one in whole.item_sets]) == (0, [0, 1])


def test_a_superseded_run_names_the_one_in_its_place(connection: Connection) -> None:
    three_runs(connection)
    result = mark(connection, "first", SUPERSEDED, "more tokens", "second")
    assert (result.mark, result.superseded_by) == ("superseded", "second")
    assert result.not_ranked_reason == "the run was superseded by job second: more tokens"


def test_what_does_not_count_itself_stands_in_nobodys_place(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "second")
    with pytest.raises(InvalidRequestError, match="Job second is itself not counted: the run was invalidated"):
        mark(connection, "first", SUPERSEDED, "why", "second")
    mark(connection, "first", SUPERSEDED, "why", "third")
    with pytest.raises(
        InvalidRequestError, match="Job first is itself not counted: the run was superseded by job third"
    ):
        mark(connection, "third", SUPERSEDED, "why", "first")


def test_a_mark_holds_for_a_later_attempt_until_it_is_taken_back(connection: Connection) -> None:
    """A retry keeps the answers for which the run was marked."""
    three_runs(connection)
    mark(connection, "third")
    run(connection, job("third", plan("t", 4), attempt=2), right=4, minute=5)
    assert job_reads.get_job_result(connection, "third").mark == "invalidated"
    assert current(connection) == [("second", "first", 2)]
    mark(connection, "third", VALID, "")
    assert current(connection) == [("third", "second", 3)]


def test_a_marked_run_leaves_averages_and_is_still_counted_as_a_job(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third")
    found = overview(connection, pb.GetOverviewRequest(), NOW)
    assert (found.total_jobs, found.completed_jobs, found.runs_with_metric, found.mean) == (3, 3, 2, 0.875)
    page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    reasons = {scores.job_id: scores.not_ranked_reason for scores in page.scores}
    assert reasons == {"first": "", "second": "", "third": "the run was invalidated: the prompt was wrong"}


def test_later_events_do_not_bring_a_marked_run_back(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third")
    writes.store_events(connection, [event("999999", job_reads.get_job(connection, "third"), "completed")])
    assert current(connection) == [("second", "first", 2)]


def built(connection: Connection, job_id: str, source: str, minute: int) -> None:
    """A run with the answers of another one."""
    made = job(job_id, plan("t", 4))
    made.spec.reuse.job_id = source
    run(connection, made, right=1, wrong=3, minute=minute)


WRONG = "its answers come from job third, which was invalidated: the prompt was wrong"


def test_runs_with_answers_of_an_invalidated_run_do_not_rank_until_that_is_taken_back(connection: Connection) -> None:
    three_runs(connection)
    built(connection, "fourth", "third", 4)
    built(connection, "fifth", "fourth", 5)
    assert current(connection) == [("fifth", "fourth", 5)]
    mark(connection, "third")
    assert current(connection) == [("second", "first", 2)]
    assert taken_out(connection) == [("fifth", "", WRONG)]
    for job_id in ("fourth", "fifth"):
        result = job_reads.get_job_result(connection, job_id)
        assert (result.not_ranked_reason, result.mark, result.mark_reason) == (WRONG, "", "")
    page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    assert {one.job_id: one.not_ranked_reason for one in page.scores}["fifth"] == WRONG
    mark(connection, "third", VALID, "")
    assert current(connection) == [("fifth", "fourth", 5)]
    assert job_reads.get_job_result(connection, "fifth").not_ranked_reason == ""


def took(connection: Connection, job_id: str, sources: Sequence[str], minute: int) -> None:
    """A run that found some of its answers in other jobs, and one in itself."""
    made = job(job_id, plan("t", 4))
    made.spec.reuse.any_job = True
    results = [answer(i, reused=True, source_job=source) for i, source in enumerate((*sources, job_id))]
    writes.store_items(connection, [batch(job_id, "t", results)])
    run(connection, made, right=4, minute=minute)


def test_a_run_that_found_answers_in_several_jobs_counts_while_none_of_them_is_invalidated(
    connection: Connection,
) -> None:
    three_runs(connection)
    took(connection, "fourth", ["second", "third"], 4)
    built(connection, "fifth", "fourth", 5)
    mark(connection, "fourth", VALID, "")
    for source in ("second", "third"):
        assert current(connection)[0][0] == "fifth"
        result = mark(connection, source)
        assert result.not_ranked_reason == "the run was invalidated: the prompt was wrong"
        for job_id in ("fourth", "fifth"):
            reason = job_reads.get_job_result(connection, job_id).not_ranked_reason
            assert reason == WRONG.replace("third", source)
        assert current(connection)[0][0] not in ("fourth", "fifth")
        mark(connection, source, VALID, "")
    assert mark(connection, "first").not_ranked_reason
    assert current(connection)[0][0] == "fifth", "no answer comes from there"


def test_a_run_is_not_its_own_source(connection: Connection) -> None:
    took(connection, "alone", [], 1)
    assert connection.execute("FROM run_sources").fetchall() == []
    assert mark(connection, "alone").not_ranked_reason == "the run was invalidated: the prompt was wrong"


def test_two_runs_that_found_answers_in_each_other_fall_and_rise_together(connection: Connection) -> None:
    for minute, (job_id, other) in enumerate((("first", "second"), ("second", "first"))):
        took(connection, job_id, [other], minute)
    mark(connection, "first")
    assert current(connection) == []
    mark(connection, "first", VALID, "")
    assert current(connection) == [("second", "first", 2)]


def test_a_run_that_is_finished_after_its_source_was_invalidated_never_ranks(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third")
    built(connection, "late", "third", 4)
    assert current(connection) == [("second", "first", 2)]
    with pytest.raises(InvalidRequestError, match="Job late is itself not counted: its answers come from job third"):
        mark(connection, "first", SUPERSEDED, "why", "late")


def test_answers_of_a_superseded_run_are_as_good_as_they_were(connection: Connection) -> None:
    three_runs(connection)
    built(connection, "fourth", "third", 4)
    mark(connection, "third", SUPERSEDED, "scored better", "fourth")
    assert current(connection) == [("fourth", "second", 3)]


def test_a_runs_own_mark_says_why_before_its_sources(connection: Connection) -> None:
    three_runs(connection)
    built(connection, "fourth", "third", 4)
    mark(connection, "third")
    assert mark(connection, "fourth", reason="too few").not_ranked_reason == "the run was invalidated: too few"
    assert mark(connection, "fourth", VALID, "").not_ranked_reason == WRONG
    assert current(connection) == [("second", "first", 2)]


def test_comparisons_say_that_a_runs_answers_come_from_an_invalidated_one(connection: Connection) -> None:
    three_runs(connection)
    built(connection, "fourth", "third", 4)
    mark(connection, "third")
    found = compare(connection, comparison_pb2.CompareRequest(subjects=["first", "fourth"]))
    reasons = {one.job_id: one.not_ranked_reason for one in found.runs}
    assert reasons == {"first": "", "fourth": WRONG}
    assert any(note.endswith(f"is not ranked: {WRONG}.") for note in found.notes)
