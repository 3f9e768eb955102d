"""What became of rows, in words."""

from __future__ import annotations

import pytest

from services.evaluator.suites import shipped
from services.gateway.pages.display import work_words
from services.gateway.pages.jobs import receipt
from touchstone.v1 import dataset_pb2, job_pb2, metric_pb2

_NOTHING = metric_pb2.JobResult()


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (job_pb2.LAST_ASSISTANT_REFERENCE, "the assistant's is the reference, not part of the prompt"),
        (job_pb2.LAST_ASSISTANT_PREFILL, "the assistant's starts the answer, as part of the prompt"),
        (job_pb2.LAST_ASSISTANT_UNSPECIFIED, ""),
    ],
)
def test_a_run_over_rows_says_what_became_of_the_assistants_last_message(
    done: job_pb2.LastAssistant, words: str
) -> None:
    work = job_pb2.DatasetWork(dataset_id="ds_", name="a.jsonl", last_assistant=done)
    shown = {name: what for name, what, _ in receipt.rows(job_pb2.Job(spec=job_pb2.JobSpec(dataset=work)), _NOTHING)}
    assert shown.get("Last message", "") == words
    half = dataset_pb2.Dataset(rows=4, last_assistant=done, rows_with_last_assistant=2)
    facts = {name: what for name, what, _ in work_words.facts(half)}
    assert facts.get("Last message", "") == (f"{words}, in 2 of 4 rows" if words else "")


def test_rows_without_references_are_scored_where_a_schema_is_enough() -> None:
    rows = dataset_pb2.Dataset(rows=4)
    assert "Scored by" not in {name for name, _, _ in work_words.facts(rows)}
    rows.scoring.scorer = "json_schema"
    facts = {name: what for name, what, _ in work_words.facts(rows)}
    assert facts["Scored by"] == "JSON schema"
    assert facts["Reference"] == "none: answers are checked by the schema of their row"
    rows.scoring.schema = "{}"
    assert ("Scored by", "JSON schema, by a schema of its own", "") in work_words.facts(rows)


def test_groups_of_rows_are_counted_with_their_field() -> None:
    rows = dataset_pb2.Dataset(rows=4_000, groups=1_200, rows_with_reference=4_000)
    rows.scoring.scorer, rows.scoring.group_field = "contains", "passage"
    facts = {name: what for name, what, _ in work_words.facts(rows)}
    assert facts["Groups"] == "1,200 by passage"
    assert facts["Scored by"] == "presence of the reference, groups by passage"


def test_headings_name_suites_by_their_titles() -> None:
    for name, suite in shipped().items():
        assert work_words.heading(job_pb2.Job(spec=job_pb2.JobSpec(suite=job_pb2.SuiteWork(suite=name)))) == suite.title
