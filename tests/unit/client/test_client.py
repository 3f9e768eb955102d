"""The Python client, both kinds of it, against services that answer as told."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from services import errors
from services.results import duckdb_store
from services.results.export.exports import export
from services.results.schema import open_file
from tests.unit.client.fakes import JOB, OTHER, SERVICES, Fakes, job, result
from tests.unit.results import builders
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, scheduler_service_pb2, set_aside_pb2
from touchstone_client import (
    AsyncClient,
    Client,
    InvalidError,
    LimitError,
    NotAllowedError,
    NotFoundError,
    ServiceError,
    Settings,
    StateError,
    UnreachableError,
    suite_spec,
)
from touchstone_client.command import main

FOR_SERVICES = {"SealJob", "ListStoredItems", "FindResponses", "GetImport", "ImportAnswers", "Scheduler.ListJobs"}
"""Not of one message each: those between services, the import's stream, and a list of live jobs alone."""


def methods(client: type) -> dict[str, inspect.Signature]:
    found = inspect.getmembers(client, inspect.isfunction)
    return {name: inspect.signature(function) for name, function in found if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    blocking, awaited = methods(Client), methods(AsyncClient)
    assert blocking.keys() == awaited.keys()
    assert len(blocking) > 30
    for name, signature in blocking.items():
        assert signature.parameters.keys() == awaited[name].parameters.keys(), name
        kinds = [
            str(signature.return_annotation),
            str(awaited[name].return_annotation).replace("AsyncIterator", "Iterator"),
        ]
        assert kinds[0] == kinds[1], name
        assert getattr(Client, name).__doc__ == getattr(AsyncClient, name).__doc__, name


def test_every_public_call_is_in_the_client() -> None:
    folder = Path(inspect.getfile(Client)).parent
    files = [*folder.glob("blocking/*.py"), folder / "requests.py", folder / "uploading.py"]
    sources = "".join(path.read_text() for path in files)
    public = {
        method.input_type.name
        for service in SERVICES
        for method in service.methods
        if not {method.name, f"{service.name.removesuffix('Service')}.{method.name}"} & FOR_SERVICES
    }
    assert {name for name in public if f".{name}(" not in sources} == set()


def page_of_items(request: Any) -> results_service_pb2.ListItemsResponse:
    first = int(request.page_token or 0)
    items = [
        results_service_pb2.StoredItem(task="sst2", result=item_result_pb2.ItemResult(item=item))
        for item in range(first, first + 2)
    ]
    return results_service_pb2.ListItemsResponse(items=items, next_page_token=str(first + 2) if first < 4 else "")


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


async def test_items_are_awaited_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListItems"] = page_of_items
    async with AsyncClient() as client:
        assert [stored.result.item async for stored in client.items(JOB)] == [0, 1, 2, 3, 4, 5]


def page_of_set_aside(request: Any) -> scheduler_service_pb2.ListSetAsideMessagesResponse:
    message = set_aside_pb2.SetAsideMessage(service="scheduler", sequence=8 if request.page_token else 7)
    return scheduler_service_pb2.ListSetAsideMessagesResponse(
        messages=[message], next_page_token="" if request.page_token else "more", total=2
    )


async def test_messages_set_aside_come_from_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListSetAsideMessages"] = page_of_set_aside
    with Client() as client:
        assert [message.sequence for message in client.set_aside_messages()] == [7, 8]
    async with AsyncClient() as awaited:
        assert [message.sequence async for message in awaited.set_aside_messages()] == [7, 8]


def failing(times: int, answer: Any, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> Callable[[Any], Any]:
    left = [code] * times
    return lambda request: left.pop() if left else answer


def test_a_create_is_repeated_with_its_request_id_while_the_service_is_away(fakes: Fakes) -> None:
    fakes.answers["CreateJob"] = failing(2, scheduler_service_pb2.CreateJobResponse(job=job()))
    with Client() as client:
        assert client.run(suite_spec("glue", endpoint="e", model="m")).job_id == JOB
    ids = [request.request_id for request in fakes.requests("CreateJob")]
    assert len(ids) == 3
    assert len({*ids}) == 1
    assert ids[0]


@pytest.mark.parametrize("method", ["cancel", "retry", "redeliver"])
def test_what_may_not_be_done_twice_is_not_repeated(fakes: Fakes, method: str) -> None:
    rpc = {"cancel": "CancelJob", "retry": "RetryJob", "redeliver": "RedeliverWebhook"}[method]
    fakes.answers[rpc] = failing(1, None)
    with Client() as client, pytest.raises(UnreachableError):
        getattr(client, method)("x")
    assert len(fakes.heard) == 1


def test_two_runs_of_one_spec_are_two_jobs(fakes: Fakes) -> None:
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=job())
    with Client() as client:
        for _ in range(2):
            client.run(suite_spec("glue", endpoint="e", model="m"))
        client.run(suite_spec("glue", endpoint="e", model="m"), "nightly")
    first, second, third = (request.request_id for request in fakes.requests("CreateJob"))
    assert first != second
    assert third == "nightly"


@pytest.mark.parametrize("given", ["argument", "environment"])
def test_a_token_goes_with_every_call(fakes: Fakes, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    fakes.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse()
    if given == "environment":
        monkeypatch.setenv("TOUCHSTONE_TOKEN", "secret")
    with Client(token="secret" if given == "argument" else None) as client:
        client.queue()
        assert "secret" not in repr(client)
    assert fakes.metadata[-1]["authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("told", "kind", "more"),
    [
        (errors.InvalidRequestError("Wrong.", "spec.model"), InvalidError, {"field": "spec.model"}),
        (errors.UnauthenticatedError("Send a token."), NotAllowedError, {}),
        (errors.PermissionDeniedError("Not yours."), NotAllowedError, {}),
        (errors.NotFoundError("Gone."), NotFoundError, {}),
        (errors.ConflictError("It is finished."), StateError, {}),
        (errors.LimitReachedError("Too many.", 300), LimitError, {"retry_after_s": 300}),
        (errors.UnavailableError("NATS does not answer."), UnreachableError, {}),
    ],
)
def test_errors_have_types_sentences_and_details(
    fakes: Fakes, told: errors.TouchstoneError, kind: type[Exception], more: dict[str, Any]
) -> None:
    fakes.answers["CancelJob"] = told
    with Client() as client, pytest.raises(kind) as raised:
        client.cancel(JOB)
    assert str(raised.value).startswith(told.message)
    assert {name: getattr(raised.value, name) for name in more} == more


async def test_an_awaited_call_raises_the_same_errors(fakes: Fakes) -> None:
    fakes.answers["CancelJob"] = errors.LimitReachedError("Too many.", 7)
    async with AsyncClient() as client:
        with pytest.raises(LimitError) as raised:
            await client.cancel(JOB)
    assert raised.value.retry_after_s == 7


def test_an_unknown_failure_is_the_services(fakes: Fakes) -> None:
    fakes.answers["CancelJob"] = lambda request: grpc.StatusCode.INTERNAL
    with Client() as client, pytest.raises(ServiceError, match="said by the fake"):
        client.cancel(JOB)


def test_a_missing_token_says_where_to_set_it(fakes: Fakes) -> None:
    fakes.answers["GetQueue"] = errors.UnauthenticatedError("Send a token.")
    with Client() as client, pytest.raises(NotAllowedError, match="TOUCHSTONE_TOKEN"):
        client.queue()


def test_a_call_ends_at_its_deadline(fakes: Fakes) -> None:
    release = threading.Event()

    def slow(request: Any) -> scheduler_service_pb2.GetQueueResponse:
        release.wait(10)
        return scheduler_service_pb2.GetQueueResponse()

    fakes.answers["GetQueue"] = slow
    settings = Settings(scheduler=fakes.address, results=fakes.address, timeout_s=0.2)
    try:
        with Client(settings) as client, pytest.raises(UnreachableError, match="did not answer in time"):
            client.queue()
    finally:
        release.set()


def states(*names: str) -> list[scheduler_service_pb2.WatchJobResponse]:
    return [scheduler_service_pb2.WatchJobResponse(job=job(state=name)) for name in names]


def watched(fakes: Fakes) -> None:
    """A stream that breaks, one that ends too early, one that goes to the end."""
    streams: Iterator[Any] = iter(
        [[*states("PENDING"), grpc.StatusCode.UNAVAILABLE], states("RUNNING"), states("RUNNING", "COMPLETED", "FAILED")]
    )
    fakes.answers["WatchJob"] = lambda request: next(streams)


def test_a_watch_outlasts_a_scheduler_that_restarts(fakes: Fakes) -> None:
    watched(fakes)
    with Client() as client:
        seen = [state.state for state in client.watch(JOB)]
    names = [job_pb2.Job.State.Name(state) for state in seen]
    assert names == ["STATE_PENDING", "STATE_RUNNING", "STATE_RUNNING", "STATE_COMPLETED"]


async def test_an_awaited_watch_does_so_too(fakes: Fakes) -> None:
    watched(fakes)
    async with AsyncClient() as client:
        assert (await client.wait(JOB)).state == job_pb2.Job.STATE_COMPLETED
    assert len(fakes.heard) == 3


def test_a_job_that_the_scheduler_has_forgotten_is_with_results(fakes: Fakes) -> None:
    fakes.answers["WatchJob"] = [errors.NotFoundError("Unknown.")]
    fakes.answers["Scheduler.GetJob"] = errors.NotFoundError("Unknown.")
    fakes.answers["Results.GetJob"] = results_service_pb2.ResultsServiceGetJobResponse(job=job(model="old"))
    with Client() as client:
        assert client.job(JOB).spec.model == "old"
        assert client.wait(JOB).spec.model == "old"


def test_a_job_that_nobody_knows_is_not_found(fakes: Fakes) -> None:
    for method in ("Scheduler.GetJob", "Results.GetJob"):
        fakes.answers[method] = errors.NotFoundError("Job x was never heard of.")
    fakes.answers["WatchJob"] = [errors.NotFoundError("Unknown.")]
    with Client() as client:
        for ask in (client.job, client.wait):
            with pytest.raises(NotFoundError, match="never heard of"):
                ask("x")


def test_waiting_ends_with_the_time_given(fakes: Fakes) -> None:
    release = threading.Event()

    def pending(request: Any) -> Iterator[Any]:
        yield from states("RUNNING")
        release.wait(10)

    fakes.answers["WatchJob"] = pending
    try:
        with Client() as client, pytest.raises(TimeoutError, match=r"not finished after 0\.3 s; it goes on"):
            client.wait(JOB, timeout_s=0.3)
    finally:
        release.set()


def test_a_rescore_and_a_rerun_copy_their_source(fakes: Fakes) -> None:
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=job(OTHER))
    with Client() as client:
        client.rescore(JOB)
        client.rerun(JOB, [item_result_pb2.OUTCOME_UNPARSED], max_tokens=9)
    first, second = (request.spec for request in fakes.requests("CreateJob"))
    assert (first.reuse.job_id, list(first.reuse.rerun)) == (JOB, [])
    assert (list(second.reuse.rerun), second.sampling.max_tokens) == ([item_result_pb2.OUTCOME_UNPARSED], 9)


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
        duckdb_store.store_events(connection, [builders.event("0001", builders.job(JOB))])
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
