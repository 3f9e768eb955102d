"""Reading results with the blocking client."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from services.results.export.exports import export
from services.results.intake import writes
from services.results.storage.migrations import open_file
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, page_of_items, result
from tests.unit.results import builders
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client import AsyncClient, Client, ServiceError
from touchstone_client.command import main


def test_items_come_from_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListItems"] = page_of_items
    with Client() as client:
        found = client.items(JOB, task="sst2", filter="unparsed", query="é")
        assert next(found).result.item == 0
        assert len(fakes.heard) == 1, "a page that nobody asked for was read"
        assert [stored.result.item for stored in found] == [1, 2, 3, 4, 5]
    asked = fakes.requests("ListItems")
    assert [request.page_token for request in asked] == ["", "2", "4"]
    assert {(request.job_id, request.task, request.filter, request.query) for request in asked} == {
        (JOB, "sst2", results_service_pb2.ListItemsRequest.FILTER_UNPARSED, "é")
    }


def test_history_pairs_jobs_with_their_scores(fakes: Fakes) -> None:
    scores = [results_service_pb2.JobScores(job_id=JOB), results_service_pb2.JobScores(job_id=OTHER)]
    fakes.answers["ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[job(), job(OTHER)], scores=scores
    )
    with Client() as client:
        found = list(client.history(7, model="m", states=[job_pb2.Job.STATE_COMPLETED]))
    assert [(scored.job.job_id, scored.scores.job_id) for scored in found] == [(JOB, JOB), (OTHER, OTHER)]
    (request,) = fakes.requests("ListJobs")
    assert (request.with_scores, request.model, list(request.states)) == (True, "m", [job_pb2.Job.STATE_COMPLETED])
    assert request.HasField("created_after")


def test_history_of_all_time_has_no_beginning(fakes: Fakes) -> None:
    fakes.answers["ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse()
    with Client() as client:
        assert list(client.history(0)) == []
    assert not fakes.requests("ListJobs")[0].HasField("created_after")


PIECES = [results_service_pb2.ExportResponse(data=piece) for piece in (b"a,b\n", b"1,2\n")]


def test_an_export_is_a_file_when_it_is_whole(fakes: Fakes, tmp_path: Path) -> None:
    fakes.answers["Export"] = PIECES
    file = tmp_path / "items.csv"
    with Client() as client:
        assert client.export_file(file, "items", "csv", job_id=JOB, items={"filter": "failures"}) == 8
    assert file.read_bytes() == b"a,b\n1,2\n"
    (request,) = fakes.requests("Export")
    assert request.items.job_id == JOB
    assert request.items.filter == results_service_pb2.ListItemsRequest.FILTER_FAILURES


def test_one_jobs_metrics_are_exported_by_the_services_own_rule(fakes: Fakes, tmp_path: Path) -> None:
    with closing(open_file(tmp_path / "results.duckdb")) as connection:
        writes.store_events(connection, [builders.event("0001", builders.job(JOB))])
        fakes.answers["Export"] = lambda request: export(connection, request)
        with Client(fakes.settings) as client:
            assert client.export_file(tmp_path / "metrics.csv", "metrics", "csv", job_id=JOB) > 0
        assert main(["export", "metrics", "--job", JOB, "--output", str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "metrics.csv").read_bytes()


async def test_a_broken_export_leaves_the_old_file_and_nothing_else(fakes: Fakes, tmp_path: Path) -> None:
    fakes.answers["Export"] = [PIECES[0], grpc.StatusCode.INTERNAL]
    file = tmp_path / "jobs.csv"
    file.write_text("old")
    async with AsyncClient() as client:
        with pytest.raises(ServiceError):
            await client.export_file(file, "jobs", "csv", jobs={"model": "m"})
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["jobs.csv"]


def test_names_are_left_taken_away_or_given(fakes: Fakes) -> None:
    fakes.answers["NameConfiguration"] = results_service_pb2.NameConfigurationResponse()
    with Client() as client:
        client.name_configuration("hash", alias="")
    (request,) = fakes.requests("NameConfiguration")
    assert (request.HasField("name"), request.HasField("alias"), request.alias) == (False, True, "")


def test_a_result_is_what_the_service_says(fakes: Fakes) -> None:
    fakes.answers["GetJobResult"] = results_service_pb2.GetJobResultResponse(result=result())
    with Client() as client:
        assert client.result(JOB) == result()


def test_an_annotation_says_whose_answer_it_is_about(fakes: Fakes) -> None:
    fakes.answers["AnnotateItem"] = results_service_pb2.AnnotateItemResponse()
    with Client() as client:
        client.annotate(JOB, "rows", 3, "fix", repeat=1, corrected_answer="Lima.", note="Was Quito.")
    (request,) = fakes.requests("AnnotateItem")
    assert (request.job_id, request.task, request.item, request.repeat) == (JOB, "rows", 3, 1)
    assert request.verdict == results_service_pb2.Annotation.VERDICT_FIX
    assert (request.corrected_answer, request.note) == ("Lima.", "Was Quito.")


def test_a_preference_names_the_row_and_the_better_answer(fakes: Fakes) -> None:
    fakes.answers["JudgeRow"] = results_service_pb2.JudgeRowResponse()
    with Client() as client:
        client.prefer([JOB, OTHER], "rows", 3, "better", preferred_job_id=OTHER, repeat=1, blind=True)
    (request,) = fakes.requests("JudgeRow")
    assert (list(request.job_ids), request.task, request.item, request.repeat) == ([JOB, OTHER], "rows", 3, 1)
    assert request.choice == results_service_pb2.Preference.CHOICE_BETTER
    assert (request.preferred_job_id, request.blind) == (OTHER, True)


def test_judges_are_listed_with_or_without_their_judgements(fakes: Fakes) -> None:
    judge = results_service_pb2.JudgeRun(job=job(OTHER))
    people = results_service_pb2.PeopleAgreement(raters=2)
    fakes.answers["ListJudges"] = results_service_pb2.ListJudgesResponse(judges=[judge], people=[people])
    with Client() as client:
        assert client.judges(JOB) == client.judgements(JOB, "rows", 3, 1) == [judge]
        assert client.people_agreement(JOB) == [people]
    whole, one, rated = fakes.requests("ListJudges")
    assert whole == rated == results_service_pb2.ListJudgesRequest(job_id=JOB)
    assert one == results_service_pb2.ListJudgesRequest(job_id=JOB, task="rows", item=3, repeat=1)


async def test_rows_side_by_side_come_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListSideBySide"] = lambda request: results_service_pb2.ListSideBySideResponse(
        rows=[results_service_pb2.SideBySideRow(custom_id="a")], next_page_token="" if request.page_token else "more"
    )
    async with AsyncClient() as client:
        pages = client.side_by_side([JOB, OTHER], filter="only-right", only_job_id=OTHER, diffs=True, custom_id="a")
        assert [page.rows[0].custom_id async for page in pages] == ["a", "a"]
    request = fakes.requests("ListSideBySide")[0]
    assert (list(request.job_ids), request.only_job_id, request.with_diffs) == ([JOB, OTHER], OTHER, True)
    assert request.filter == results_service_pb2.ListSideBySideRequest.FILTER_ONLY_RIGHT
    assert request.conditions.custom_id == "a"


def test_items_are_chosen_by_conditions_and_none_means_none(fakes: Fakes) -> None:
    fakes.answers["ListItems"] = results_service_pb2.ListItemsResponse()
    with Client() as client:
        list(client.items(JOB))
        list(client.items(JOB, metadata_field="name", metadata_value="Ada", length=(None, 200), score=(0.0, 0.5),
                          verdicts=["golden", "none"]))  # fmt: skip
    plain, conditioned = fakes.requests("ListItems")
    assert not plain.HasField("conditions")
    asked = conditioned.conditions
    assert (asked.metadata_field, asked.metadata_value) == ("name", "Ada")
    assert (asked.HasField("length_low"), asked.length_high) == (False, 200)
    assert (asked.HasField("score_low"), asked.score_low, asked.score_high) == (True, 0.0, 0.5)
    verdict = results_service_pb2.Annotation
    assert list(asked.verdicts) == [verdict.VERDICT_GOLDEN, verdict.VERDICT_UNSPECIFIED]


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (lambda client: client.queue(7), "GetQueue"),
        (lambda client: list(client.schedules(project_id=7)), "ListSchedules"),
        (lambda client: list(client.webhooks(7)), "ListWebhooks"),
        (lambda client: list(client.configurations(project_id=7)), "ListConfigurations"),
    ],
)
def test_lists_can_be_of_one_project(fakes: Fakes, call: Callable[[Client], object], method: str) -> None:
    fakes.answers |= {
        "GetQueue": scheduler_service_pb2.GetQueueResponse(),
        "ListSchedules": scheduler_service_pb2.ListSchedulesResponse(),
        "ListWebhooks": scheduler_service_pb2.ListWebhooksResponse(),
        "ListConfigurations": results_service_pb2.ListConfigurationsResponse(),
    }
    with Client() as client:
        call(client)
    assert [request.project_id for request in fakes.requests(method)] == [7]
