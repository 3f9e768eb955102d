"""Jobs named by part of their id, by other APIs' ids, and as the last one."""

from __future__ import annotations

import pytest

from services import errors
from tests.unit.client.fakes import Fakes, job
from touchstone.v1 import comparison_pb2, job_pb2, queue_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
WAITING = "019aa1b2-0000-7000-8000-00000000beef"
NEWEST = "019aa1b2-0000-7000-8000-0000000c0ffe"
OLDER = "019aa000-0000-7000-8000-00000000feed"
UNKNOWN = "019aa1b2-0000-7000-8000-000000000000"


def at(job_id: str, seconds: int) -> job_pb2.Job:
    made = job(job_id)
    made.created_at.seconds = 1_700_000_000 + seconds
    return made


@pytest.fixture
def three(fakes: Fakes) -> Fakes:
    """One job waits, two are done."""
    queue = queue_pb2.Queue(pending=[at(WAITING, 20)])
    done = [at(NEWEST, 30), at(OLDER, 10)]
    fakes.answers |= {
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue),
        "Results.ListJobs": results_service_pb2.ResultsServiceListJobsResponse(jobs=done),
        "CancelJob": scheduler_service_pb2.CancelJobResponse(job=job(state="CANCELLED")),
        "Compare": comparison_pb2.CompareResponse(alpha=0.05),
    }
    return fakes


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (NEWEST, NEWEST),
        (NEWEST.upper(), NEWEST),
        (NEWEST.replace("-", ""), NEWEST),
        (f"bm_{NEWEST.replace('-', '')}", NEWEST),
        (f"batch_{NEWEST.replace('-', '')}", NEWEST),
        (UNKNOWN, UNKNOWN),
        ("c0ffe", NEWEST),
        ("…0c0ffe", NEWEST),
        ("8000-00000000beef", WAITING),
        ("019aa000", OLDER),
        ("019aa000-0000-7", OLDER),
        ("bm_019aa000", OLDER),
        ("last", NEWEST),
    ],
)
def test_a_job_is_named_by_what_is_unique(three: Fakes, word: str, meant: str) -> None:
    assert main(["cancel", word]) == 0
    assert three.requests("CancelJob")[0].job_id == meant


def test_a_whole_id_is_not_looked_for(three: Fakes) -> None:
    main(["cancel", UNKNOWN])
    assert [name for name, _ in three.heard] == ["Scheduler.CancelJob"]


def test_several_jobs_that_fit_are_listed_and_left_alone(three: Fakes, capsys: Captured) -> None:
    assert main(["cancel", "019aa1b2"]) == 2
    said = capsys.readouterr().err
    assert f"019aa1b2 fits 2 jobs: {WAITING} (m, glue); {NEWEST} (m, glue). Give more of the id." in said
    assert three.requests("CancelJob") == []


def test_a_part_that_fits_nothing_says_where_to_look(three: Fakes, capsys: Captured) -> None:
    assert main(["cancel", "abcdef"]) == 2
    assert "None of the newest 1,000 jobs has an id that starts or ends with abcdef." in capsys.readouterr().err


@pytest.mark.parametrize("word", ["ffe", "job", "nightly", "019aa1b2 "])
def test_what_can_be_no_part_of_an_id_is_for_the_service_to_refuse(three: Fakes, capsys: Captured, word: str) -> None:
    three.answers["CancelJob"] = errors.NotFoundError("Unknown.")
    assert main(["cancel", word]) == 2
    assert three.requests("CancelJob")[0].job_id == word


def test_a_job_that_results_have_not_heard_of_can_be_the_last(three: Fakes) -> None:
    queue = queue_pb2.Queue(running=[at(WAITING, 40)])
    three.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse(queue=queue)
    main(["cancel", "last"])
    assert three.requests("CancelJob")[0].job_id == WAITING


def test_without_any_job_there_is_no_last_one(three: Fakes, capsys: Captured) -> None:
    three.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse()
    three.answers["Results.ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse()
    assert main(["cancel", "last"]) == 2
    assert "There is no job yet. Start one: touchstone run." in capsys.readouterr().err


def test_a_search_ends_after_a_thousand_jobs(three: Fakes) -> None:
    three.answers["Results.ListJobs"] = lambda request: results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[job(OLDER)] * request.page_size, next_page_token="more"
    )
    assert main(["cancel", "abcdef"]) == 2
    assert sum(request.page_size for request in three.requests("ListJobs")) == 1000


@pytest.mark.parametrize(
    ("word", "meant"),
    [("last", NEWEST), ("0c0ffe", NEWEST), ("c0ffe", "c0ffe"), ("prod", "prod"), ("decade", "decade"), ("m@e", "m@e")],
)
def test_a_run_to_compare_may_be_a_name_as_well(three: Fakes, word: str, meant: str) -> None:
    main(["compare", word, "other", "--suite", "glue"])
    assert list(three.requests("Compare")[0].subjects) == [meant, "other"]
