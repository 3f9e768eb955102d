"""Which runs a comparison means."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import event, job, seal
from tests.unit.results.comparison.selection.named import chosen, jobs, run
from tests.unit.results.finished import right_or_wrong, task
from touchstone.v1 import job_pb2, suite_pb2


def test_a_model_stands_for_its_newest_complete_run(connection: Connection) -> None:
    run(connection, "old", "m1", minute=1)
    run(connection, "new", "m1", minute=2)
    run(connection, "other", "m2", minute=3)
    assert jobs(chosen(connection, "m1", "m2")) == {"m1": "new", "m2": "other"}
    assert jobs(chosen(connection, "old", "m1")) == {"m1": "new", "old": "old"}


def test_a_configuration_is_found_by_hash_and_by_model_at_its_endpoint(connection: Connection) -> None:
    run(connection, "a", "m1", endpoint="here", configuration="c-a", minute=1)
    run(connection, "b", "m1", endpoint="there", configuration="c-b", minute=2)
    assert jobs(chosen(connection, "c-a", "m1@there")) == {"c-a": "a", "m1@there": "b"}


def test_a_name_of_several_configurations_lists_them(connection: Connection) -> None:
    run(connection, "a", "m1", configuration="c-a", minute=1)
    run(connection, "b", "m1", configuration="c-b", minute=2)
    run(connection, "c", "m2", minute=3)
    with pytest.raises(InvalidRequestError, match=r"'m1' fits 2 configurations: c-a .*; c-b ") as raised:
        chosen(connection, "m1", "m2")
    assert raised.value.field == "subjects"


def test_a_given_name_goes_before_a_model_of_the_same_name(connection: Connection) -> None:
    run(connection, "a", "m1", configuration="c-a", minute=1)
    run(connection, "b", "prod", configuration="c-b", minute=2)
    connection.execute("INSERT INTO configuration_names VALUES ('c-a', 'baseline', 'prod', 'ann', now()::TIMESTAMP)")
    assert jobs(chosen(connection, "prod", "c-b")) == {"prod": "a", "c-b": "b"}
    assert {one.name for one in chosen(connection, "baseline", "c-b").runs} == {"baseline", ""}


def test_a_subject_without_a_finished_run_is_named(connection: Connection) -> None:
    run(connection, "a", "m1")
    with pytest.raises(NotFoundError, match=r"'m9' has no complete run of glue in generate mode"):
        chosen(connection, "m1", "m9")
    with pytest.raises(NotFoundError, match="loglikelihood mode"):
        chosen(connection, "m1", "a2", mode=suite_pb2.MODE_LOGLIKELIHOOD)


def test_runs_that_do_not_count_stand_for_nobody_but_themselves(connection: Connection) -> None:
    run(connection, "good", "m1", minute=1)
    run(connection, "marked", "m1", minute=2)
    run(connection, "other", "m2", minute=3)
    connection.execute("INSERT INTO marks VALUES (1, 'marked', 2, 'the prompt was wrong', '', 'ann', now()::TIMESTAMP)")
    connection.execute("UPDATE run_scores SET counts = false WHERE job_id = 'marked'")
    assert jobs(chosen(connection, "m1", "m2"))["m1"] == "good"
    named = {one.job_id: one for one in chosen(connection, "marked", "m2").runs}
    assert named["marked"].not_ranked_reason == "the run was invalidated: the prompt was wrong"


def test_unfinished_and_failed_jobs_are_refused_by_their_state(connection: Connection) -> None:
    run(connection, "a", "m1")
    planned = task("sst2", right_or_wrong("1"))[0]
    writes.store_events(connection, [event("1", job("going", planned, state=job_pb2.Job.STATE_RUNNING))])
    writes.store_events(connection, [event("2", job("failed", planned, state=job_pb2.Job.STATE_FAILED))])
    with pytest.raises(NotFoundError, match="Job going has no finished run yet"):
        chosen(connection, "a", "going", suite="")
    with pytest.raises(NotFoundError, match="Job failed failed"):
        chosen(connection, "a", "failed", suite="")


def test_a_result_that_is_stored_before_its_jobs_plan_is_not_compared_yet(connection: Connection) -> None:
    run(connection, "a", "m1")
    planned = task("sst2", right_or_wrong("1"))[0]
    writes.store_events(connection, [event("1", job("early", state=job_pb2.Job.STATE_RUNNING))])
    seal(connection, job("early", planned, state=job_pb2.Job.STATE_RUNNING))
    with pytest.raises(NotFoundError, match="Job early has no finished run yet"):
        chosen(connection, "a", "early", suite="")


def test_two_names_of_one_run_are_no_two_runs(connection: Connection) -> None:
    run(connection, "a", "m1")
    with pytest.raises(InvalidRequestError, match="are the same run, job a"):
        chosen(connection, "m1", "a")
    with pytest.raises(InvalidRequestError, match="at least two"):
        chosen(connection, "m1", " m1 ", "")
    run(connection, "b", "m2")
    found = chosen(connection, "m1", "a", "m2")
    assert len(found.runs) == 2
    assert found.notes == ["'a' and 'm1' are the same run."]


def test_jobs_tell_their_suite_and_mode(connection: Connection) -> None:
    run(connection, "a", "m1")
    run(connection, "b", "m2")
    assert chosen(connection, "a", "b", suite="").suite == "glue"
    with pytest.raises(NotFoundError, match=r"Benchmark job 0{8}-.* not found"):
        chosen(connection, "a", "00000000-0000-4000-8000-000000000000", suite="")
    gone = "01a00000-0000-7000-8000-000000000000"
    connection.execute("INSERT INTO deleted_jobs VALUES ($job_id, 'ann', 'bob', '2026-11-28 12:00')", {"job_id": gone})
    with pytest.raises(NotFoundError, match=f"{gone} was deleted by bob on 2026-11-28"):
        chosen(connection, "a", gone, suite="")
    with pytest.raises(InvalidRequestError, match="Name the suite"):
        chosen(connection, "a", "m2", suite="")
    with pytest.raises(InvalidRequestError, match=r"ran 'glue', not mmlu"):
        chosen(connection, "a", "b", suite="mmlu")
    run(connection, "c", "m3", suite="superglue")
    with pytest.raises(InvalidRequestError, match=r"'glue' and 'superglue'"):
        chosen(connection, "a", "c", suite="")


def test_the_baseline_is_compared_though_it_is_not_listed(connection: Connection) -> None:
    run(connection, "a", "m1")
    run(connection, "b", "m2")
    found = chosen(connection, "m1", baseline="m2")
    assert len(found.runs) == 2
    assert found.baseline == "b"


def test_only_a_projects_runs_count_where_it_is_named(connection: Connection) -> None:
    run(connection, "a1", "m1", project_id=1, minute=1)
    run(connection, "a2", "m1", project_id=2, minute=2)
    run(connection, "b1", "m2", project_id=1, minute=3)
    assert jobs(chosen(connection, "m1", "m2", project_id=1)) == {"m1": "a1", "m2": "b1"}
    with pytest.raises(NotFoundError, match="'m2'"):
        chosen(connection, "m1", "m2", project_id=2)


def test_where_reads_are_closed_others_runs_do_not_exist(connection: Connection) -> None:
    run(connection, "a", "m1", owner="ann")
    run(connection, "b", "m2", owner="ben")
    for names in (("m1", "m2"), ("a", "b")):
        with pytest.raises(NotFoundError, match=f"'{names[1]}'"):
            chosen(connection, *names, visible=Visibility("ann"))


def test_more_than_twenty_runs_are_refused(connection: Connection) -> None:
    with pytest.raises(InvalidRequestError, match="The comparison has 21 runs; at most 20 are allowed"):
        chosen(connection, *(f"m{number}" for number in range(21)))


def test_a_hash_is_named_by_its_beginning_where_that_is_unique(connection: Connection) -> None:
    run(connection, "a", "m1", configuration="01234567aa" + "0" * 54, minute=1)
    run(connection, "b", "m2", configuration="01234567bb" + "0" * 54, minute=2)
    assert jobs(chosen(connection, "01234567a", "01234567b")) == {"01234567a": "a", "01234567b": "b"}
    with pytest.raises(NotFoundError):
        chosen(connection, "0123456", "01234567b")
    with pytest.raises(
        InvalidRequestError, match=r"'01234567' fits 2 configurations: 01234567aa00 \(.*; 01234567bb00 \("
    ):
        chosen(connection, "01234567", "01234567b")


def test_a_name_is_one_configurations_on_each_suite(connection: Connection) -> None:
    for suite in ("glue", "mmlu"):
        run(connection, suite, "m1", configuration=f"c-{suite}", suite=suite)
        run(connection, f"{suite}-2", "m2", suite=suite)
        connection.execute(
            "INSERT INTO configuration_names VALUES (?, '', 'prod', 'ann', now()::TIMESTAMP)", [f"c-{suite}"]
        )
    assert jobs(chosen(connection, "prod", "m2"))["prod"] == "glue"
    assert jobs(chosen(connection, "prod", "m2", suite="mmlu"))["prod"] == "mmlu"


def test_a_job_of_another_project_is_refused(connection: Connection) -> None:
    run(connection, "a", "m1", project_id=1)
    run(connection, "b", "m2", project_id=2)
    with pytest.raises(NotFoundError, match="Job b does not belong to project 1"):
        chosen(connection, "a", "b", project_id=1)


@pytest.mark.parametrize("mode", [-1, 7])
def test_a_mode_that_is_none_is_refused(connection: Connection, mode: int) -> None:
    with pytest.raises(InvalidRequestError, match="mode"):
        chosen(connection, "m1", "m2", mode=mode)
