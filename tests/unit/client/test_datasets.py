"""Datasets in the Python client: what is sent, in which pieces, and what comes back."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset, dataset_job, job
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    endpoint_pb2,
    item_result_pb2,
    results_service_pb2,
    scheduler_service_pb2,
)
from touchstone_client import AsyncClient, Client, InvalidError, NotFoundError, Scoring, UnreachableError
from touchstone_client.specs import changed_scoring
from touchstone_client.uploading import PIECE

CONTENT = b"".join(b'{"prompt": "%d"}\n' % number for number in range(100_000))
STORED = dataset_service_pb2.UploadDatasetResponse(dataset=dataset())


def sent(fakes: Fakes) -> tuple[dataset_pb2.DatasetOptions, bytes, int]:
    """Options, content and longest piece of the only upload."""
    (messages,) = fakes.requests("UploadDataset")
    assert [message.HasField("options") for message in messages].index(True) == 0
    pieces = [message.data for message in messages]
    return messages[0].options, b"".join(pieces), max(map(len, pieces))


def as_path(folder: Path) -> Any:
    file = folder / "rows.jsonl"
    file.write_bytes(CONTENT)
    return str(file)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "path": as_path,
    "file": lambda folder: io.FileIO(as_path(folder)),
    "memory": lambda folder: io.BytesIO(CONTENT),
    "bytes": lambda folder: CONTENT,
    "pieces": lambda folder: iter([CONTENT[:10], CONTENT[10:]]),
}
NAMES = {"path": "rows.jsonl", "file": "rows.jsonl"}


@pytest.mark.parametrize("kind", SOURCES)
def test_whatever_holds_the_rows_is_sent_in_pieces(fakes: Fakes, tmp_path: Path, kind: str) -> None:
    fakes.answers["UploadDataset"] = STORED
    source, told = SOURCES[kind](tmp_path), list[int]()
    with Client() as client:
        made = client.upload_dataset(source, sent=told.append, template="{{prompt}}", project_id=7)
    options, content, longest = sent(fakes)
    assert (made.dataset_id, content == CONTENT) == (DATASET, True)
    assert (options.name, options.template, options.project_id) == (NAMES.get(kind, "dataset"), "{{prompt}}", 7)
    assert longest <= PIECE < len(CONTENT)
    assert told == sorted(told)
    assert told[-1] == len(CONTENT)


async def test_an_awaited_upload_sends_the_same(fakes: Fakes, tmp_path: Path) -> None:
    fakes.answers["UploadDataset"] = STORED
    async with AsyncClient() as client:
        made = await client.upload_dataset(
            as_path(tmp_path), name="mine", format="lines", scoring=Scoring(scorer="json")
        )
    options, content, _ = sent(fakes)
    assert (made, content == CONTENT) == (dataset(), True)
    assert (options.name, options.format, options.scoring.scorer) == ("mine", dataset_pb2.Dataset.FORMAT_LINES, "json")


def test_a_file_is_read_as_it_is_sent(fakes: Fakes) -> None:
    """Not whole before: one that never ends is refused all the same."""
    made = 0

    def endless() -> Iterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield b"x" * PIECE

    def refuses(request_iterator: Iterator[Any], context: grpc.ServicerContext) -> Any:
        next(request_iterator)
        next(request_iterator)
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Too large.")

    server = grpc.server(ThreadPoolExecutor(1))
    handler = grpc.stream_unary_rpc_method_handler(
        refuses,
        dataset_service_pb2.UploadDatasetRequest.FromString,
        dataset_service_pb2.UploadDatasetResponse.SerializeToString,
    )
    handlers = grpc.method_handlers_generic_handler("touchstone.v1.DatasetService", {"UploadDataset": handler})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        settings = type(fakes.settings)(results=f"127.0.0.1:{port}")
        with Client(settings) as client, pytest.raises(InvalidError, match="Too large"):
            client.upload_dataset(endless())
    finally:
        server.stop(None).wait()
    assert made < 100


def test_a_file_open_as_text_is_refused_in_words(fakes: Fakes) -> None:
    fakes.answers["UploadDataset"] = STORED
    with Client() as client, pytest.raises(TypeError, match='mode "rb"'):
        client.upload_dataset(io.StringIO("text"))  # type: ignore[arg-type]  # What the test is about.


def test_what_goes_wrong_in_reading_is_what_the_caller_hears(fakes: Fakes) -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise OSError("The disk is gone.")

    fakes.answers["UploadDataset"] = STORED
    with Client() as client, pytest.raises(OSError, match="The disk is gone"):
        client.upload_dataset(broken())


def test_bad_lines_are_told_with_their_numbers(fakes: Fakes) -> None:
    lines = [(3, "It is no JSON."), (17, "custom_id stands in line 3, too.")]
    fakes.answers["UploadDataset"] = errors.BadLinesError("250 lines cannot be used.", lines, 250)
    with Client() as client, pytest.raises(InvalidError, match="250 lines") as raised:
        client.upload_dataset(b"x")
    assert [(bad.line, bad.reason) for bad in raised.value.lines] == lines
    assert (raised.value.lines_total, raised.value.field) == (250, "")


def test_other_refusals_have_no_lines(fakes: Fakes) -> None:
    fakes.answers["UploadDataset"] = errors.InvalidRequestError("template is needed.", "options.template")
    with Client() as client, pytest.raises(InvalidError) as raised:
        client.upload_dataset(b"x")
    assert (raised.value.lines, raised.value.field) == ((), "options.template")


@pytest.mark.parametrize("method", ["UploadDataset", "CreateHubDataset", "DeleteDataset"])
def test_what_makes_or_removes_a_dataset_is_not_repeated(fakes: Fakes, method: str) -> None:
    fakes.answers[method] = lambda request: grpc.StatusCode.UNAVAILABLE
    calls: dict[str, Callable[[Client], object]] = {
        "UploadDataset": lambda client: client.upload_dataset(b"x"),
        "CreateHubDataset": lambda client: client.create_hub_dataset("a/b", template="{{q}}", split="test"),
        "DeleteDataset": lambda client: client.delete_dataset(DATASET),
    }
    with Client() as client, pytest.raises(UnreachableError):
        calls[method](client)
    assert len(fakes.heard) == 1


def test_a_hub_dataset_says_what_it_is_made_of(fakes: Fakes) -> None:
    fakes.answers["CreateHubDataset"] = dataset_service_pb2.CreateHubDatasetResponse(dataset=dataset())
    with Client() as client:
        client.create_hub_dataset("openai/gsm8k", config="main", split="test", template="{{question}}", limit=9)
    (request,) = fakes.requests("CreateHubDataset")
    assert (request.source.dataset, request.source.config, request.source.split) == ("openai/gsm8k", "main", "test")
    assert (request.options.name, request.options.template, request.limit) == ("", "{{question}}", 9)
    assert request.options.format == dataset_pb2.Dataset.FORMAT_HUB


def test_datasets_and_rows_come_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListDatasets"] = lambda request: dataset_service_pb2.ListDatasetsResponse(
        datasets=[dataset()], next_page_token="" if request.page_token else "more"
    )
    fakes.answers["ListDatasetRows"] = lambda request: dataset_service_pb2.ListDatasetRowsResponse(
        rows=[dataset_pb2.DatasetRow(custom_id=request.page_token or "first")],
        next_page_token="" if request.page_token else "last",
    )
    with Client() as client:
        assert len(list(client.datasets("cap", owner="alice", project_id=7))) == 2
        assert [row.custom_id for row in client.dataset_rows(DATASET)] == ["first", "last"]
    first = fakes.requests("ListDatasets")[0]
    assert (first.query, first.owner, first.project_id) == ("cap", "alice", 7)


def fleet(fakes: Fakes) -> None:
    """Two endpoints: `both` stands at each of them."""
    endpoints = [
        endpoint_pb2.Endpoint(endpoint="left", kind="vllm"),
        endpoint_pb2.Endpoint(endpoint="right", kind="ollama"),
    ]
    listed = {"left": ["both", "a@b"], "right": ["both", "one"]}
    fakes.answers["ListEndpoints"] = scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints)
    fakes.answers["ListModels"] = lambda request: scheduler_service_pb2.ListModelsResponse(
        models=[endpoint_pb2.Model(model=name) for name in listed[request.endpoint]]
    )
    fakes.answers["CreateJobs"] = lambda request: scheduler_service_pb2.CreateJobsResponse(
        jobs=[job(model=spec.model) for spec in request.specs]
    )


@pytest.mark.parametrize(
    ("words", "endpoint", "targets"),
    [
        (["one"], "", [("one", "right")]),
        (["both@left", "both@ollama"], "", [("both", "left"), ("both", "right")]),
        (["a@b"], "", [("a@b", "left")]),
        (["both", "one@right"], "left", [("both", "left"), ("one", "right")]),
        (["not-listed@right"], "", [("not-listed", "right")]),
    ],
)
def test_a_model_is_found_where_it_is(fakes: Fakes, words: list[str], endpoint: str, targets: list[Any]) -> None:
    fleet(fakes)
    with Client() as client:
        assert client.targets(words, endpoint) == targets


@pytest.mark.parametrize(
    ("word", "kind", "said"),
    [
        ("both", InvalidError, "left, right"),
        ("none", NotFoundError, "none"),
        ("one@right", InvalidError, "one at right is named twice"),
    ],
)
def test_a_model_that_is_nowhere_or_everywhere_must_be_placed(
    fakes: Fakes, word: str, kind: type[Exception], said: str
) -> None:
    fleet(fakes)
    with Client() as client, pytest.raises(kind, match=said):
        client.run_dataset(DATASET, ["one", word])
    assert fakes.specs() == []


async def test_several_models_are_a_job_each(fakes: Fakes) -> None:
    fleet(fakes)
    async with AsyncClient() as client:
        for _ in range(2):
            jobs = await client.run_dataset(
                DATASET,
                ["one", "both@left"],
                limit=50,
                scoring=Scoring(scorer="contains"),
                labels={"ticket": "T-1"},
                budget_usd=2.5,
                request_id="once",
            )
    assert [made.spec.model for made in jobs] == ["one", "both"]
    asked, again = fakes.requests("CreateJobs")
    assert asked == again
    assert asked.request_id == "once"
    first, second = asked.specs
    work = first.dataset
    assert (work.dataset_id, work.limit, work.scoring.scorer) == (DATASET, 50, "contains")
    assert (dict(first.labels), first.budget_usd) == ({"ticket": "T-1"}, 2.5)
    assert (second.endpoint, second.model) == ("left", "both")


async def test_where_one_of_several_is_refused_both_clients_have_queued_none(fakes: Fakes) -> None:
    fleet(fakes)
    fakes.answers["CreateJobs"] = errors.InvalidRequestError("both@left: max_tokens is 0; it may be 1 to 1e+06.")
    with Client() as client, pytest.raises(InvalidError, match="both@left"):
        client.run_dataset(DATASET, ["one", "both@left"])
    async with AsyncClient() as client:
        with pytest.raises(InvalidError, match="both@left"):
            await client.run_dataset(DATASET, ["one", "both@left"])
    assert [len(request.specs) for request in fakes.requests("CreateJobs")] == [2, 2]
    assert fakes.requests("CreateJob") == []


def test_an_annotation_says_whose_answer_it_is_about(fakes: Fakes) -> None:
    fakes.answers["AnnotateItem"] = results_service_pb2.AnnotateItemResponse()
    with Client() as client:
        client.annotate(JOB, "rows", 3, "fix", repeat=1, corrected_answer="Lima.", note="Was Quito.")
    (request,) = fakes.requests("AnnotateItem")
    assert (request.job_id, request.task, request.item, request.repeat) == (JOB, "rows", 3, 1)
    assert request.verdict == results_service_pb2.Annotation.VERDICT_FIX
    assert (request.corrected_answer, request.note) == ("Lima.", "Was Quito.")


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


def test_an_estimate_names_the_run_it_is_learned_from(fakes: Fakes) -> None:
    fakes.answers["EstimateRun"] = results_service_pb2.EstimateRunResponse(items=5000)
    with Client() as client:
        assert client.estimate(JOB, 5000, concurrency=8).items == 5000
    (request,) = fakes.requests("EstimateRun")
    assert (request.job_id, request.items, request.concurrency) == (JOB, 5000, 8)


def test_a_rescore_may_score_rows_in_another_way_and_costs_nothing(fakes: Fakes) -> None:
    source = dataset_job()
    source.spec.budget_usd, source.spec.provider_batch, source.spec.dataset.scorer = 2.0, True, "json"
    source.spec.time_limit_s, source.spec.webhook_url = 90_000, "https://ci.example/hook"
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=source)
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER))
    with Client() as client:
        client.rescore(JOB, Scoring(scorer="contains"))
    (request,) = fakes.requests("CreateJob")
    assert (request.spec.dataset.scoring, request.spec.dataset.scorer) == (Scoring(scorer="contains"), "")
    assert (request.spec.budget_usd, request.spec.provider_batch, request.spec.reuse.job_id) == (0, False, JOB)
    assert (request.spec.time_limit_s, request.spec.webhook_url) == (0, "")


def test_a_suite_keeps_its_scorers(fakes: Fakes) -> None:
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    with Client() as client, pytest.raises(InvalidError, match="ran glue"):
        client.rescore(JOB, Scoring(scorer="contains"))


def test_a_rerun_goes_on_with_a_higher_budget(fakes: Fakes) -> None:
    source = dataset_job()
    source.spec.budget_usd = 2.0
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=source)
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER))
    error = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    with Client() as client:
        client.rerun(JOB, [error], budget_usd=10.0)
        client.rerun(JOB, [error])
    assert [request.spec.budget_usd for request in fakes.requests("CreateJob")] == [10.0, 2.0]


@pytest.mark.parametrize(
    ("known", "given", "made"),
    [
        ({}, {"scorer": "json"}, {"scorer": "json"}),
        (
            {"scorer": "numeric", "tolerance": 0.1, "reference_field": "y", "answer_pattern": "(.)"},
            {"scorer": "contains"},
            {"scorer": "contains", "reference_field": "y", "answer_pattern": "(.)"},
        ),
        (
            {"scorer": "numeric", "tolerance": 0.1, "tolerance_is_relative": True},
            {"tolerance": 0.5, "tolerance_is_relative": False},
            {"scorer": "numeric", "tolerance": 0.5},
        ),
        ({"scorer": "choice", "choices": ["a", "b"]}, {"choices": ["c"]}, {"scorer": "choice", "choices": ["c"]}),
        ({"reference_field": "y"}, {"reference_field": ""}, {}),
        (
            {"answer_pattern": "(.)", "answer_match": 2},
            {"scorer": "choice"},
            {"scorer": "choice", "answer_pattern": "(.)", "answer_match": 2},
        ),
        ({"answer_pattern": "(.)", "answer_match": 2}, {"answer_pattern": ""}, {}),
        ({"scorer": "json", "fields": ["a"]}, {"scorer": None}, {"scorer": "json", "fields": ["a"]}),
    ],
)
def test_another_scoring_keeps_the_reference_and_drops_the_old_scorers_options(
    known: dict[str, Any], given: dict[str, Any], made: dict[str, Any]
) -> None:
    assert changed_scoring(Scoring(**known), **given) == Scoring(**made)


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
