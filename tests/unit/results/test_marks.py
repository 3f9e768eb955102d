"""Runs taken out of rankings, and names of what ranks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results import configurations, duckdb_store, job_lists, job_reads
from services.results.comparison.compare import compare
from services.results.database import Connection
from services.results.leaderboard import leaderboard
from services.results.marking import mark_run
from services.results.overview import overview
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import LOCAL, Identity
from tests.unit.results.builders import START, answer, batch, event, job, plan, run
from touchstone.v1 import comparison_pb2, metric_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb

NOW = START.replace(tzinfo=None) + timedelta(hours=1)
VALID, INVALIDATED, SUPERSEDED = pb.RUN_MARK_VALID, pb.RUN_MARK_INVALIDATED, pb.RUN_MARK_SUPERSEDED


def user(name: str) -> Identity:
    return Identity(name, token_pb2.ROLE_USER)


def mark(
    connection: Connection,
    job_id: str,
    how: pb.RunMark = INVALIDATED,
    reason: str = "the prompt was wrong",
    by: str = "",
    caller: Identity = LOCAL,
) -> metric_pb2.JobResult:
    request = pb.MarkRunRequest(job_id=job_id, mark=how, reason=reason, superseded_by=by)
    mark_run(connection, request, caller, NOW)
    return job_reads.get_job_result(connection, job_id)


def current(connection: Connection) -> list[tuple[str, str, int]]:
    entries = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue")).entries
    return [(entry.job_id, entry.previous_job_id, entry.run_count) for entry in entries if entry.rank]


def taken_out(connection: Connection, visible: Visibility = EVERYTHING, **asked: int) -> list[tuple[str, str, str]]:
    request = pb.GetLeaderboardRequest(suite="glue", **asked)  # type: ignore[arg-type]
    entries = leaderboard(connection, request, None, visible).entries
    return [(entry.job_id, entry.mark, entry.not_ranked_reason) for entry in entries if not entry.rank]


def three_runs(connection: Connection) -> None:
    for minute, (job_id, right) in enumerate((("first", 4), ("second", 3), ("third", 2))):
        run(connection, job(job_id, plan("t", 4)), right=right, wrong=4 - right, minute=minute)


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
    with pytest.raises(InvalidRequestError, match="Job second does not count itself: the run was invalidated"):
        mark(connection, "first", SUPERSEDED, "why", "second")
    mark(connection, "first", SUPERSEDED, "why", "third")
    with pytest.raises(
        InvalidRequestError, match="Job first does not count itself: the run was superseded by job third"
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
    page = job_lists.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    reasons = {scores.job_id: scores.not_ranked_reason for scores in page.scores}
    assert reasons == {"first": "", "second": "", "third": "the run was invalidated: the prompt was wrong"}


def test_a_reason_that_is_a_sentence_ends_once(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third", INVALIDATED, "The prompt was wrong.")
    result = job_reads.get_job_result(connection, "third")
    assert result.not_ranked_reason == "the run was invalidated: The prompt was wrong"
    assert result.mark_reason == "The prompt was wrong."


def test_later_events_do_not_bring_a_marked_run_back(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third")
    duckdb_store.store_events(connection, [event("999999", job_reads.get_job(connection, "third"), "completed")])
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
    page = job_lists.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    assert {one.job_id: one.not_ranked_reason for one in page.scores}["fifth"] == WRONG
    mark(connection, "third", VALID, "")
    assert current(connection) == [("fifth", "fourth", 5)]
    assert job_reads.get_job_result(connection, "fifth").not_ranked_reason == ""


def took(connection: Connection, job_id: str, sources: Sequence[str], minute: int) -> None:
    """A run that found some of its answers in other jobs, and one in itself."""
    made = job(job_id, plan("t", 4))
    made.spec.reuse.any_job = True
    results = [answer(i, reused=True, source_job=source) for i, source in enumerate((*sources, job_id))]
    duckdb_store.store_items(connection, [batch(job_id, "t", results)])
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
    with pytest.raises(InvalidRequestError, match="Job late does not count itself: its answers come from job third"):
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


def test_every_mark_is_kept_with_who_gave_it_and_when(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third", caller=user("ann"))
    mark(connection, "third", VALID, "it was right after all")
    kept = connection.execute("SELECT job_id, mark, reason, actor, marked_at FROM marks ORDER BY number").fetchall()
    assert kept == [
        ("third", INVALIDATED, "the prompt was wrong", "ann", NOW),
        ("third", VALID, "it was right after all", "local", NOW),
    ]


def test_marks_need_a_reason_a_finished_run_and_a_right_to_it(connection: Connection) -> None:
    three_runs(connection)
    duckdb_store.store_events(connection, [event("000009", job("live", plan("t", 4)))])
    with pytest.raises(PermissionDeniedError):
        mark(connection, "third", caller=user("bob"))
    with pytest.raises(NotFoundError):
        mark(connection, "nobody")
    with pytest.raises(ConflictError):
        mark(connection, "live")
    bad: list[tuple[pb.RunMark, str, str]] = [
        (INVALIDATED, " ", ""),
        (INVALIDATED, "x" * 501, ""),
        (INVALIDATED, "why", "second"),
        (SUPERSEDED, "why", ""),
        (SUPERSEDED, "why", "third"),
        (SUPERSEDED, "why", "nobody"),
        (SUPERSEDED, "why", "live"),
        (pb.RUN_MARK_UNSPECIFIED, "why", ""),
    ]
    for how, reason, by in bad:
        with pytest.raises(InvalidRequestError):
            mark(connection, "third", how, reason, by)
    assert current(connection) == [("third", "second", 3)]


# -- names -------------------------------------------------------------------------------------------------------------


def name(
    connection: Connection,
    configuration: str,
    caller: Identity = LOCAL,
    visible: Visibility = EVERYTHING,
    **given: str,
) -> pb.Configuration:
    request = pb.NameConfigurationRequest(configuration=configuration, **given)
    return configurations.name_configuration(connection, request, caller, NOW, visible)


def listed(connection: Connection, visible: Visibility = EVERYTHING, **filters: object) -> list[pb.Configuration]:
    """Over all pages of one."""
    found: list[pb.Configuration] = []
    token = ""
    while True:
        request = pb.ListConfigurationsRequest(page_size=1, page_token=token, **filters)  # type: ignore[arg-type]
        page = configurations.list_configurations(connection, request, visible)
        found += page.configurations
        token = page.next_page_token
        if not token:
            return found


def two_configurations(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), model="one", owner="ann"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), model="two", owner="bob"), right=4, minute=2)
    run(connection, job("c", plan("t", 4), model="one", owner="ann", suite="mmlu"), right=4, minute=3)


def test_configurations_are_listed_newest_run_first_with_their_runs(connection: Connection) -> None:
    two_configurations(connection)
    name(connection, "two@local", name="second", alias="prod")
    one, two = listed(connection)
    assert (one.configuration, one.model, one.job_id, one.suite, one.run_count) == ("one@local", "one", "c", "mmlu", 2)
    assert (two.name, two.alias, two.endpoint, two.run_count) == ("second", "prod", "local", 1)
    assert [c.configuration for c in listed(connection, model="two")] == ["two@local"]
    assert [c.configuration for c in listed(connection, named=True)] == ["two@local"]
    assert [c.configuration for c in listed(connection, Visibility("bob"))] == ["two@local"]


def test_configurations_of_a_project_are_those_with_a_run_of_it_by_its_newest(connection: Connection) -> None:
    two_configurations(connection)
    run(connection, job("d", plan("t", 4), model="one", project_id=7), right=4, minute=4)
    run(connection, job("e", plan("t", 4), model="one", project_id=7), right=4, minute=5)
    run(connection, job("f", plan("t", 4), model="one", project_id=1), right=4, minute=6)
    (one,) = listed(connection, project_id=7)
    assert (one.configuration, one.job_id, one.run_count) == ("one@local", "e", 2)
    assert [(c.job_id, c.run_count) for c in listed(connection, project_id=1)] == [("f", 3), ("b", 1)]
    assert [c.job_id for c in listed(connection, Visibility("bob"), project_id=1)] == ["b"]
    assert listed(connection, project_id=9) == []


def test_an_alias_moves_and_a_name_stays(connection: Connection) -> None:
    two_configurations(connection)
    assert not name(connection, "one@local", name="first", alias="prod").alias_taken_from
    assert list(name(connection, "two@local", alias="prod").alias_taken_from) == ["one@local"]
    assert {c.configuration: (c.name, c.alias) for c in listed(connection)} == {
        "one@local": ("first", ""),
        "two@local": ("", "prod"),
    }
    with pytest.raises(ConflictError):
        name(connection, "two@local", name="first")
    with pytest.raises(ConflictError):
        name(connection, "two@local", alias="first")
    with pytest.raises(ConflictError):
        name(connection, "one@local", name="prod")
    assert name(connection, "one@local", name="").name == ""
    assert name(connection, "two@local", name="first").alias == "prod"


def test_names_and_aliases_are_of_one_suite(connection: Connection) -> None:
    for suite in ("glue", "mmlu"):
        run(connection, job(suite, plan("t", 4), suite=suite, configuration=f"c-{suite}"), right=4)
        assert not name(connection, f"c-{suite}", name="first", alias="prod").alias_taken_from
    assert {c.configuration: (c.name, c.alias) for c in listed(connection)} == {
        "c-glue": ("first", "prod"),
        "c-mmlu": ("first", "prod"),
    }


@pytest.mark.parametrize("text", ["two", "01234567-89ab-4cde-8f01-23456789abcd"])
def test_what_stands_for_something_else_is_no_name(connection: Connection, text: str) -> None:
    two_configurations(connection)
    with pytest.raises(InvalidRequestError) as raised:
        name(connection, "one@local", name=text)
    assert raised.value.field == "name"
    with pytest.raises(InvalidRequestError) as raised:
        name(connection, "one@local", alias=text)
    assert raised.value.field == "alias"


def test_a_configuration_is_named_by_the_beginning_of_its_hash(connection: Connection) -> None:
    for ending in ("aa", "bb"):
        run(connection, job(ending, plan("t", 4), configuration=f"01234567{ending}" + "0" * 54), right=4)
    assert name(connection, "01234567a", name="first").configuration.startswith("01234567aa")
    with pytest.raises(InvalidRequestError, match=r"begins several configurations: 01234567aa.*, 01234567bb"):
        name(connection, "01234567", name="second")


def test_names_show_on_the_leaderboard(connection: Connection) -> None:
    two_configurations(connection)
    name(connection, "two@local", name="second", alias="prod")
    entries = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue")).entries
    assert [(e.configuration, e.name, e.alias) for e in entries] == [
        ("two@local", "second", "prod"),
        ("one@local", "", ""),
    ]


def test_only_who_ran_it_or_an_admin_names_a_configuration_and_moves_its_alias(connection: Connection) -> None:
    two_configurations(connection)
    name(connection, "one@local", user("ann"), alias="prod")
    with pytest.raises(PermissionDeniedError):
        name(connection, "one@local", user("bob"), name="mine")
    with pytest.raises(PermissionDeniedError):
        name(connection, "two@local", user("bob"), alias="prod")
    assert name(connection, "two@local", alias="prod").alias == "prod"
    with pytest.raises(NotFoundError):
        name(connection, "one@local", user("bob"), Visibility("bob"), name="mine")


@pytest.mark.parametrize("text", ["two words", "x" * 65, "ü", "a/b", "'; DROP TABLE jobs; --"])
def test_names_are_short_and_plain(connection: Connection, text: str) -> None:
    two_configurations(connection)
    with pytest.raises(InvalidRequestError):
        name(connection, "one@local", name=text)
    with pytest.raises(InvalidRequestError):
        name(connection, "one@local", alias=text)
    with pytest.raises(InvalidRequestError):
        name(connection, "one@local", name="same", alias="same")
    with pytest.raises(NotFoundError):
        name(connection, "unknown", name="fine")
