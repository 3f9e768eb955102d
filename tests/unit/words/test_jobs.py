"""A job's states, the words for them, and what its spec says alone."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.words import jobs
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2

Job = job_pb2.Job


def test_every_state_is_live_or_finished_and_has_a_word() -> None:
    known = {*Job.State.values()} - {Job.STATE_UNSPECIFIED}
    assert known == jobs.LIVE | jobs.FINISHED
    assert not jobs.LIVE & jobs.FINISHED
    assert sorted(state for word in jobs.STATUSES for state in jobs.states_of(word)) == sorted(known)


def test_a_state_of_a_later_version_is_unknown() -> None:
    later: Job.State = 99  # type: ignore[assignment]
    assert jobs.status_of(later) == "unknown"
    assert jobs.state_name(Job.STATE_PLANNING) == "planning"


@pytest.mark.parametrize(
    ("state", "incomplete", "retried"),
    [
        (Job.STATE_FAILED, False, True),
        (Job.STATE_CANCELLED, False, True),
        (Job.STATE_COMPLETED, True, True),
        (Job.STATE_COMPLETED, False, False),
        (Job.STATE_RUNNING, True, False),
    ],
)
def test_a_job_that_lacks_answers_can_be_retried_once_it_has_ended(
    state: Job.State, incomplete: bool, retried: bool
) -> None:
    assert jobs.can_retry(Job(state=state, incomplete=incomplete)) == retried


def test_a_completed_run_of_a_watch_is_not_retried() -> None:
    """It would end again, and so change what the watch has said."""
    run = Job(state=Job.STATE_COMPLETED, incomplete=True, spec=job_pb2.JobSpec(schedule_id="s"))
    assert jobs.can_retry(run)
    run.spec.watching.reference_job_id = "ref"
    assert not jobs.can_retry(run)
    run.state = Job.STATE_FAILED
    assert jobs.can_retry(run)


def test_rescores_and_imports_call_nobody_and_reruns_do() -> None:
    rescore = job_pb2.JobSpec(reuse=job_pb2.Reuse(job_id="1"))
    rerun = job_pb2.JobSpec(reuse=job_pb2.Reuse(job_id="1", rerun=[item_result_pb2.OUTCOME_OUTPUT_TRUNCATED]))
    imported = job_pb2.JobSpec(reuse=job_pb2.Reuse(import_id="1"))
    assert [jobs.calls_nobody(spec) for spec in (rescore, imported, rerun, job_pb2.JobSpec())] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_job_is_filed_under_what_it_runs() -> None:
    suite = job_pb2.JobSpec(suite=job_pb2.SuiteWork(suite="glue"))
    dataset = job_pb2.JobSpec(dataset=job_pb2.DatasetWork(dataset_id="ds_1", name="rows"))
    assert [jobs.suite_of(spec) for spec in (suite, dataset, job_pb2.JobSpec())] == ["glue", "ds_1", ""]
    assert [jobs.work_of(spec) for spec in (suite, dataset)] == ["glue", "rows"]


def test_without_a_mode_answers_are_generated_and_a_number_that_is_none_is_refused() -> None:
    assert jobs.mode_of(job_pb2.JobSpec()) == suite_pb2.MODE_GENERATE == jobs.asked_mode(0)
    assert jobs.asked_mode(suite_pb2.MODE_LOGLIKELIHOOD) == suite_pb2.MODE_LOGLIKELIHOOD
    with pytest.raises(InvalidRequestError, match="mode"):
        jobs.asked_mode(99)


def test_a_job_whose_items_are_done_is_scoring() -> None:
    job = Job(state=Job.STATE_RUNNING)
    assert jobs.stage_of(job) == "running", "nothing is planned yet"
    job.progress.items_total, job.progress.items_done = 8, 7
    assert jobs.stage_of(job) == "running"
    job.progress.items_done = 8
    assert jobs.stage_of(job) == "scoring"
    job.state = Job.STATE_FINALIZING
    assert (jobs.stage_of(job), jobs.status_of(job.state)) == ("scoring", "running")
    job.state = Job.STATE_COMPLETED
    assert jobs.stage_of(job) == "completed"
