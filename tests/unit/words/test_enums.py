"""Words of enums: one for each value, both ways."""

from __future__ import annotations

import pytest

from services.words import enums, phrases
from services.words.jobs import FINISHED, LIVE, STATUSES, states_of, status_of
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, scoring_pb2, suite_pb2

TABLES = [table for table in vars(enums).values() if isinstance(table, enums.Words)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: next(iter(table)))
def test_a_word_leads_to_its_value_and_back(table: enums.Words[int]) -> None:
    assert len(TABLES) > 20
    assert len(set(table.values())) == len(table)
    assert [table.of(value) for value in table.values()] == list(table)
    assert table.of(99) == ""
    assert table.of(99, "other") == "other"


def test_words_are_those_of_the_protos() -> None:
    assert enums.MODES == {"generate": 1, "loglikelihood": 2}
    assert list(enums.MARKS) == ["valid", "invalidated", "superseded"]
    assert enums.LAST_ASSISTANT["refuse"] == job_pb2.LAST_ASSISTANT_REFUSE
    assert enums.ITEM_FILTERS["all"] == results_service_pb2.ListItemsRequest.FILTER_UNSPECIFIED
    assert enums.EXPORT_KINDS["batch"] == results_service_pb2.ExportRequest.KIND_BATCH_OUTPUT
    assert "answered" in enums.OUTCOMES
    assert "answered" not in enums.RERUN


def test_every_export_has_a_word() -> None:
    assert {0, *enums.EXPORT_KINDS.values()} == set(results_service_pb2.ExportRequest.Kind.values())


def test_outcomes_are_counted_under_their_words() -> None:
    assert [field.name for field in metric_pb2.OutcomeCounts.DESCRIPTOR.fields] == list(enums.OUTCOMES)


def test_hashes_hold_the_names_of_the_protos() -> None:
    assert enums.proto_name(suite_pb2.Mode, 1) == "MODE_GENERATE"
    assert enums.proto_name(scoring_pb2.Reading, 2) == "READING_MARKED"


def test_what_is_not_known_has_its_own_word() -> None:
    assert enums.mode_name(suite_pb2.MODE_UNSPECIFIED) == "generate"
    assert enums.reading_name(scoring_pb2.READING_UNSPECIFIED) is None
    assert enums.weighting_name(suite_pb2.WEIGHTING_UNSPECIFIED) is None
    assert phrases.mode(suite_pb2.MODE_UNSPECIFIED) == "generate"


def test_every_state_of_a_job_has_one_status() -> None:
    states = [state for status in STATUSES for state in states_of(status)]

    assert sorted(states) == sorted(FINISHED | LIVE) == sorted(set(job_pb2.Job.State.values()) - {0})
    assert [status_of(state) for state in states_of("running")] == ["running"] * 3
    assert status_of(job_pb2.Job.STATE_UNSPECIFIED) == "pending"


@pytest.mark.parametrize(
    ("value", "enum", "said"),
    [
        ("VERDICT_NO_DIFFERENCE_SHOWN", "Verdict", "no_difference_shown"),
        ("RUN_MARK_VALID", "RunMark", "valid"),
    ],
)
def test_enums_are_words(value: str, enum: str, said: str) -> None:
    assert enums.value_word(value, enum) == said
