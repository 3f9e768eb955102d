"""Which run of several a name stands for."""

from __future__ import annotations

import json

import pytest

from services.errors import InvalidRequestError
from services.results.intake import writes
from services.results.storage.database import Connection
from tests.unit.results.builders import event
from tests.unit.results.comparison.selection.named import chosen, jobs, run
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import job_pb2


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
    assert found.notes == [f"'{word}' means its newest full run, job whole on 40 items; job trial is newer and ran 5."]


def test_without_a_whole_run_the_newest_on_the_most_items_stands(connection: Connection) -> None:
    for minute, (job_id, items) in enumerate((("large", 20), ("again", 20), ("trial", 5))):
        run(connection, job_id, "m1", "1" * items, minute=minute, subset=True)
    run(connection, "other", "m2")
    found = chosen(connection, "m1", "m2")
    assert jobs(found)["m1"] == "again"
    assert found.notes == [
        "'m1' means its run with the most items, job again on 20 items; job trial is newer and ran 5."
    ]


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
        f"'{word}' means configuration aaaaaaaaaaaa, not bbbbbbbbbbbb and cccccccccccc, which have only "
        "partial or pilot runs."
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


def test_an_ambiguous_name_tells_what_differs_between_its_configurations(connection: Connection) -> None:
    digests = {"a": "aa" * 32, "b": "bb" * 32, "c": "cc" * 32}
    for minute, (job_id, temperature) in enumerate((("a", 0.0), ("b", 0.7))):
        made = run(connection, job_id, "m1", configuration=digests[job_id], minute=minute)
        made.receipt.parameters = json.dumps({"options": {"temperature": temperature, "top_p": 0.9}})
        made.spec.suite.repeats = 1 + 4 * minute
        writes.store_events(connection, [event(f"{minute:06d}-{job_id}-", made, "completed")])
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
