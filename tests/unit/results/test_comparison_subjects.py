"""Which runs a comparison means."""

from __future__ import annotations

import json

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results import duckdb_store
from services.results.comparison import subjects
from services.results.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import event, job
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import comparison_pb2, job_pb2, suite_pb2


def run(connection: Connection, job_id: str, model: str, pattern: str = "1101", **fields: object) -> job_pb2.Job:
    return finished(connection, job_id, task("sst2", right_or_wrong(pattern)), model=model, **fields)  # type: ignore[arg-type]


def chosen(connection: Connection, *names: str, visible: Visibility = EVERYTHING, **fields: object) -> subjects.Chosen:
    fields.setdefault("suite", "glue")
    request = comparison_pb2.CompareRequest(subjects=names, **fields)  # type: ignore[arg-type]
    return subjects.choose(connection, request, visible)


def jobs(found: subjects.Chosen) -> dict[str, str]:
    return {one.subject: one.job_id for one in found.runs}


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
    duckdb_store.store_events(connection, [event("1", job("going", planned, state=job_pb2.Job.STATE_RUNNING))])
    duckdb_store.store_events(connection, [event("2", job("failed", planned, state=job_pb2.Job.STATE_FAILED))])
    with pytest.raises(NotFoundError, match="Job going has no finished run yet"):
        chosen(connection, "a", "going", suite="")
    with pytest.raises(NotFoundError, match="Job failed failed"):
        chosen(connection, "a", "failed", suite="")


def test_two_names_of_one_run_are_no_two_runs(connection: Connection) -> None:
    run(connection, "a", "m1")
    with pytest.raises(InvalidRequestError, match="mean one run, job a"):
        chosen(connection, "m1", "a")
    with pytest.raises(InvalidRequestError, match="at least two"):
        chosen(connection, "m1", " m1 ", "")
    run(connection, "b", "m2")
    found = chosen(connection, "m1", "a", "m2")
    assert len(found.runs) == 2
    assert found.notes == ["'a' and 'm1' mean one run."]


def test_jobs_tell_their_suite_and_mode(connection: Connection) -> None:
    run(connection, "a", "m1")
    run(connection, "b", "m2")
    assert chosen(connection, "a", "b", suite="").suite == "glue"
    with pytest.raises(NotFoundError, match=r"Benchmark job 0{8}-.* not found"):
        chosen(connection, "a", "00000000-0000-4000-8000-000000000000", suite="")
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
    with pytest.raises(InvalidRequestError, match="21 runs are named"):
        chosen(connection, *(f"m{number}" for number in range(21)))


@pytest.mark.parametrize("word", ["m1", "m1@local", "prod", "0123456789abcdef"])
def test_a_name_stands_for_the_newest_whole_run_and_says_which_newer_one_it_passed_over(
    connection: Connection, word: str
) -> None:
    known = {"configuration": "0123456789abcdef"}
    run(connection, "older", "m1", "1" * 41, minute=0, **known)
    run(connection, "whole", "m1", "1" * 40, minute=1, **known)
    run(connection, "trial", "m1", "1" * 5, minute=2, subset=True, **known)
    run(connection, "other", "m2", "1" * 40, minute=3)
    connection.execute(
        "INSERT INTO configuration_names VALUES ($1, '', 'prod', '', now()::TIMESTAMP)", [*known.values()]
    )
    found = chosen(connection, word, "m2")
    assert jobs(found)[word] == "whole"
    assert found.notes == [
        f"'{word}' stands for its newest whole run, job whole on 40 items; job trial is newer and ran 5."
    ]


def test_without_a_whole_run_the_newest_on_the_most_items_stands(connection: Connection) -> None:
    for minute, (job_id, items) in enumerate((("large", 20), ("again", 20), ("trial", 5))):
        run(connection, job_id, "m1", "1" * items, minute=minute, subset=True)
    run(connection, "other", "m2")
    found = chosen(connection, "m1", "m2")
    assert jobs(found)["m1"] == "again"
    assert found.notes == [
        "'m1' stands for its run on the most items, job again on 20 items; job trial is newer and ran 5."
    ]


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


def test_an_ambiguous_name_tells_what_differs_between_its_configurations(connection: Connection) -> None:
    digests = {"a": "aa" * 32, "b": "bb" * 32, "c": "cc" * 32}
    for minute, (job_id, temperature) in enumerate((("a", 0.0), ("b", 0.7))):
        made = run(connection, job_id, "m1", configuration=digests[job_id], minute=minute)
        made.receipt.parameters = json.dumps({"options": {"temperature": temperature, "top_p": 0.9}})
        made.spec.suite.repeats = 1 + 4 * minute
        duckdb_store.store_events(connection, [event(f"{minute:06d}-{job_id}-", made, "completed")])
    finished(connection, "c", task("cola", right_or_wrong("1101")), model="m1", configuration=digests["c"], minute=3)
    run(connection, "other", "m2", minute=4)
    with pytest.raises(InvalidRequestError) as raised:
        chosen(connection, "m1", "m2")
    said = raised.value.message
    assert "aaaaaaaaaaaa (newest run 2026-11-20 08:00; options.temperature 0.0; options.top_p 0.9; repeats 1;" in said
    assert "bbbbbbbbbbbb (newest run 2026-11-20 08:01; options.temperature 0.7; options.top_p 0.9; repeats 5;" in said
    assert "tasks sst2" in said
    assert "tasks cola" in said
    assert "endpoint" not in said
    assert digests["a"] not in said


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
    with pytest.raises(NotFoundError, match="Job b is not of project 1"):
        chosen(connection, "a", "b", project_id=1)


@pytest.mark.parametrize("mode", [-1, 7])
def test_a_mode_that_is_none_is_refused(connection: Connection, mode: int) -> None:
    with pytest.raises(InvalidRequestError, match="mode"):
        chosen(connection, "m1", "m2", mode=mode)


PILOT = job_pb2.JobSpec(labels={"pilot": "1"})


@pytest.mark.parametrize("word", ["m1", "m1@local"])
def test_a_model_does_not_mean_a_configuration_that_only_pilots_and_parts_have(
    connection: Connection, word: str
) -> None:
    digests = {"whole": "aa" * 32, "pilot": "bb" * 32, "part": "cc" * 32}
    run(connection, "whole", "m1", "1" * 40, configuration=digests["whole"], minute=1)
    run(connection, "pilot", "m1", "1" * 5, configuration=digests["pilot"], minute=2, subset=True, spec=PILOT)
    run(connection, "part", "m1", "1" * 20, configuration=digests["part"], minute=3, subset=True)
    run(connection, "other", "m2", "1" * 40, minute=4)
    found = chosen(connection, word, "m2")
    assert jobs(found)[word] == "whole"
    assert found.notes == [
        f"'{word}' stands for configuration aaaaaaaaaaaa, not for bbbbbbbbbbbb and cccccccccccc, which have partial or "
        "pilot runs alone."
    ]
    assert jobs(chosen(connection, digests["pilot"], "m2"))[digests["pilot"]] == "pilot", "named, it is meant"
    assert jobs(chosen(connection, "part", "m2"))["part"] == "part"


def test_parts_go_before_pilots_and_pilots_stand_where_there_is_nothing_else(connection: Connection) -> None:
    run(connection, "pilot", "m1", "1" * 30, configuration="c-a", minute=1, subset=True, spec=PILOT)
    run(connection, "other", "m2", "1" * 30)
    assert jobs(chosen(connection, "m1", "m2"))["m1"] == "pilot"
    run(connection, "part", "m1", "1" * 20, configuration="c-b", minute=2, subset=True)
    assert jobs(chosen(connection, "m1", "m2"))["m1"] == "part"
    run(connection, "again", "m1", "1" * 20, configuration="c-c", minute=3, subset=True)
    with pytest.raises(InvalidRequestError, match=r"'m1' fits 2 configurations: c-b .*; c-c "):
        chosen(connection, "m1", "m2")


def test_two_whole_configurations_are_asked_about_whatever_was_piloted(connection: Connection) -> None:
    for minute, name in enumerate(("c-a", "c-b")):
        run(connection, name, "m1", "1" * 40, configuration=name, minute=minute)
    run(connection, "pilot", "m1", "1" * 5, configuration="c-p", minute=3, subset=True, spec=PILOT)
    with pytest.raises(InvalidRequestError, match="fits 2 configurations") as refused:
        chosen(connection, "m1", "other")
    assert "c-p" not in refused.value.message
