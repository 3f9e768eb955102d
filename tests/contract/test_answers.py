"""What succeeds: members and types of answers, pages, filters, repeated requests and changes of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.backends import Backend
from tests.contract.things import FLOOR, LINES, SILENT, Things, Twin, new_project, run, upload
from tests.gateway import conformance
from touchstone.v1 import job_pb2, scheduler_service_pb2

Shape = dict[str, set[str]]

READS = {
    "/results?project_id={project}": "/results",
    "/results/{done}": "/results/{job_id}",
    "/results/{live}": "/results/{job_id}",
    "/results/{run_job}": "/results/{job_id}",
    "/results/{done}/logs": "/results/{job_id}/logs",
    "/results/{done}/items": "/results/{job_id}/items",
    "/results/{done}/items?baseline={other}": "/results/{job_id}/items",
    "/results/{run_job}/items/rows/0": "/results/{job_id}/items/{task}/{item}",
    "/results/{replay}/replay": "/results/{job_id}/replay",
    "/results/{done}/judges": "/results/{job_id}/judges",
    "/results/{done}/ratings": "/results/{job_id}/ratings",
    "/history?project_id={project}": "/history",
    "/leaderboard?suite=demo&project_id={project}": "/leaderboard",
    "/side-by-side?job_ids={done},{other}&diffs=true": "/side-by-side",
    "/noise?job_ids={done},{other}": "/noise",
    "/overview?suite=demo&project_id={project}": "/overview",
    "/trends?suite=demo&project_id={project}": "/trends",
    "/configurations?project_id={project}": "/configurations",
    "/queue": "/queue",
    "/evaluators": "/evaluators",
    "/endpoints": "/endpoints",
    "/models?provider=baselines": "/models",
    "/suites": "/suites",
    "/schedules": "/schedules",
    "/digest?days=1": "/digest",
    "/webhooks": "/webhooks",
    "/webhooks/dead": "/webhooks/dead",
    "/set-aside": "/set-aside",
    "/calls": "/calls",
    "/usage": "/usage",
    "/recorded-runs": "/recorded-runs",
    "/decisions": "/decisions",
    "/decisions/{decision}": "/decisions/{decision_id}",
    "/api/bench/experiments": "/api/bench/experiments",
    "/api/bench/runs/{experiment}": "/api/bench/runs/{experiment}",
    "/api/bench/leaderboard/{experiment}": "/api/bench/leaderboard/{experiment}",
    "/api/bench/definition/{experiment}": "/api/bench/definition/{experiment}",
    "/admin/datasets": "/admin/datasets",
    "/admin/datasets/{dataset}": "/admin/datasets/{dataset_id}",
    "/admin/datasets/{dataset}/rows": "/admin/datasets/{dataset_id}/rows",
    "/admin/benchmarks?project_id={project}": "/admin/benchmarks",
    "/admin/benchmarks/{run}": "/admin/benchmarks/{benchmark_id}",
    "/admin/benchmarks/{run}/results": "/admin/benchmarks/{benchmark_id}/results",
    "/admin/benchmarks/{run}/estimate": "/admin/benchmarks/{benchmark_id}/estimate",
}
"""Questions with the operation that each asks."""
NO_BODY = {
    "/results/{job_id}/events",
    "/results/{job_id}/export",
    "/export",
    "/compare",
    "/openapi.json",
    "/watches/{schedule_id}",
}
"""Streams, files, the document itself, and watches, whose first run takes a minute."""
MAPS = (
    "criteria",
    "data",
    "judged",
    "labels",
    "metadata",
    "metrics",
    "parameters",
    "performance_data",
    "rated",
    "statistics",
    "task_scores",
    "values",
)
"""Objects whose members are data."""


def shape(value: Any, place: str = "$") -> Shape:
    """By place the kinds of values there; of an object its members also."""
    found: Shape = {}
    if isinstance(value, dict):
        own = {"object"} if place.rpartition(".")[2] in MAPS else {"object", *(f".{name}" for name in value)}
        found[place] = own
        for name, inner in value.items() if len(own) > 1 else ():
            _join(found, shape(inner, f"{place}.{name}"))
    elif isinstance(value, list):
        found[place] = {"list"}
        for inner in value:
            _join(found, shape(inner, f"{place}[]"))
    elif value is not None:
        found[place] = {"number" if type(value) in (int, float) else type(value).__name__}
    return found


def _join(found: Shape, more: Shape) -> None:
    for place, kinds in more.items():
        found[place] = found.get(place, set()) | kinds


def test_every_read_of_the_document_is_asked() -> None:
    base = "/api/v1/benchmarking"
    paths = conformance.document()["paths"].items()
    # OpenAI's own clients ask for what is below /v1.
    reads = {path.removeprefix(base) for path, methods in paths if "get" in methods and not path.startswith("/v1/")}
    assert reads == {*READS.values(), *NO_BODY}


@pytest.mark.parametrize("path", READS)
def test_a_read_has_the_same_members_of_the_same_types(backend: Backend, things: Things, twin: Twin, path: str) -> None:
    told = shape(backend.call("GET", things.put_into(path)))
    assert len(told["$"]) > 1
    if twin:
        fake, others = twin
        faked = shape(fake.call("GET", others.put_into(path)))
        assert {place: faked[place] for place in faked.keys() & told.keys()} == {
            place: told[place] for place in faked.keys() & told.keys()
        }


def pages(backend: Backend, path: str, listed: str, size_name: str, size: int) -> Iterator[list[Any]]:
    token, mark = "", "&" if "?" in path else "?"
    while True:
        page = backend.call("GET", f"{path}{mark}{size_name}={size}" + (f"&page_token={token}" if token else ""))
        assert len(page[listed]) <= size
        yield page[listed]
        token = page["next_page_token"]
        if not token:
            return


@pytest.mark.parametrize(
    ("path", "listed", "names", "size_name"),
    [
        ("/results?project_id={project}", "results", ("job_id",), "limit"),
        ("/history?project_id={project}", "history", ("job_id",), "limit"),
        ("/configurations?project_id={project}", "configurations", ("configuration",), "limit"),
        ("/results/{done}/items", "items", ("task", "item"), "limit"),
        ("/side-by-side?job_ids={done},{other}", "rows", ("task", "item"), "limit"),
        ("/admin/datasets/{dataset}/rows", "rows", ("custom_id",), "page_size"),
        ("/admin/benchmarks/{run}/results", "results", ("custom_id",), "page_size"),
    ],
)
def test_pages_have_every_element_once_in_one_order(
    backend: Backend, things: Things, path: str, listed: str, names: tuple[str, ...], size_name: str
) -> None:
    asked = things.put_into(path)

    def keys(size: int) -> list[tuple[Any, ...]]:
        return [
            tuple(one[name] for name in names)
            for page in pages(backend, asked, listed, size_name, size)
            for one in page
        ]

    whole = keys(100)
    assert len(whole) == len(set(whole)) > 1
    for size in (1, 2, len(whole), len(whole) + 1):
        assert keys(size) == whole


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"done", "other", "live", "run_job"}),
        ("status=completed", {"done", "other", "run_job"}),
        ("status=running", {"live"}),
        ("status=failed", set()),
        ("model_name=majority", {"done"}),
        ("suite=demo", {"done", "other", "live"}),
        ("suite=demo&status=completed&model_name=random", {"other"}),
        ("query=RAND", {"other"}),
        ("query=a", {"done", "other", "live"}),
        ("owner=nobody", set()),
    ],
)
def test_a_list_of_jobs_is_filtered(backend: Backend, things: Things, query: str, found: set[str]) -> None:
    answer = backend.call("GET", f"/results?project_id={things.project}&{query}")
    assert {one["job_id"] for one in answer["results"]} == {getattr(things, name) for name in found}
    assert answer["total"] == len(found)


def test_rows_and_datasets_are_found_by_their_text(backend: Backend, things: Things) -> None:
    rows = backend.call("GET", f"/admin/benchmarks/{things.run}/results?custom_id=c-3")
    assert [row["custom_id"] for row in rows["results"]] == ["c-3"]
    rows = backend.call("GET", f"/admin/benchmarks/{things.run}/results?metadata_field=name&metadata_value=ADA%204")
    assert [row["custom_id"] for row in rows["results"]] == ["c-4"]
    named = backend.call("GET", "/admin/datasets?query=UNUSED")
    assert things.unused in [one["id"] for one in named["datasets"]]
    assert {one["name"] for one in named["datasets"]} == {"unused.jsonl"}
    over = backend.call("GET", f"/admin/benchmarks?dataset_id={things.dataset}")
    assert [one["benchmark_id"] for one in over["benchmarks"]] == [things.run]


def test_a_repeated_request_has_the_answer_of_the_first(backend: Backend, things: Things) -> None:
    project = new_project()
    body = {"project_id": project, "suite": "demo", "limit": 5, "config": FLOOR, "request_id": f"run-{project}"}
    first = backend.call("POST", "/run", json=body)
    assert backend.call("POST", "/run", json=body)["job_id"] == first["job_id"]
    assert first["job_id"] in backend.call("POST", "/run", 409, json=body | {"limit": 6})["detail"]
    over = {"model_id": "echo@baselines", "dataset_id": things.unused, "project_id": project}
    over["request_id"] = f"over-{project}"
    started = backend.call("POST", "/admin/benchmarks/run", json=over)
    assert backend.call("POST", "/admin/benchmarks/run", json=over)["benchmark_id"] == started["benchmark_id"]
    backend.call("POST", "/admin/benchmarks/run", 409, json=over | {"limit": 2})
    schedule = {"cron": "0 3 * * 1", "job": {"project_id": project, "suite": "demo", "config": FLOOR}}
    schedule["request_id"] = f"schedule-{project}"
    planned = backend.call("POST", "/schedules", json=schedule)
    assert backend.call("POST", "/schedules", json=schedule)["schedule_id"] == planned["schedule_id"]
    assert planned["schedule_id"] in backend.call("POST", "/schedules", 409, json=schedule | {"label": "b"})["detail"]
    backend.call("DELETE", f"/schedules/{planned['schedule_id']}")
    asked = {"suite": "demo", "limit": 5, "baseline": FLOOR, "candidate": FLOOR | {"model": "random"}, "margin": 0.02}
    deciding = {"cron": "0 3 * * 1", "decision": asked, "request_id": f"decisions-{project}"}
    planned = backend.call("POST", "/schedules", json=deciding)
    assert backend.call("POST", "/schedules", json=deciding)["schedule_id"] == planned["schedule_id"]
    assert (planned["job"]["model"], planned["job"]["priority"]) == (FLOOR["model"], "low")
    assert ([one["model"] for one in planned["decision"]["candidates"]], planned["decision"]["margin"]) == (
        ["random"],
        0.02,
    )
    assert backend.call("GET", f"/decisions?schedule_id={planned['schedule_id']}")["decisions"] == []
    backend.call("POST", "/schedules", 422, json=schedule | deciding)
    backend.call("DELETE", f"/schedules/{planned['schedule_id']}")
    uploaded = upload(backend, request_id=f"upload-{project}")
    assert upload(backend, request_id=f"upload-{project}") == uploaded
    assert upload(backend, data=LINES + b"\n", request_id=f"upload-{project}") == uploaded, "the rows are the same"
    sent = {"data": {"request_id": f"upload-{project}"}, "files": {"file": ("rows.jsonl", b'{"prompt": "a"}\n')}}
    assert uploaded in backend.call("POST", "/admin/datasets/upload", 409, **sent)["detail"]
    for job_id in (first["job_id"], started["job_id"]):
        backend.finish(job_id)


def test_a_job_is_cancelled_retried_and_scored_again(backend: Backend, things: Things) -> None:
    job_id = run(backend, new_project(), SILENT)
    backend.begin(job_id)
    assert job_id in backend.call("POST", f"/cancel/{job_id}")["message"]
    backend.finish(job_id)
    assert backend.call("GET", f"/results/{job_id}")["status"] == "cancelled"
    assert backend.call("POST", f"/retry/{job_id}")["job_id"] == job_id
    backend.begin(job_id)
    again = backend.call("GET", f"/results/{job_id}")
    assert (again["status"], again["attempt"]) == ("running", 2)
    backend.call("POST", f"/cancel/{job_id}")
    scored = backend.call("POST", f"/rescore/{things.done}")
    assert scored["source_job"] == things.done
    backend.finish(scored["job_id"])
    made = backend.call("GET", f"/results/{scored['job_id']}")
    assert (made["status"], made["reuse"]["job_id"]) == ("completed", things.done)
    for finished in (job_id, scored["job_id"]):
        backend.finish(finished)
        assert finished in backend.call("DELETE", f"/jobs/{finished}")["message"]
        backend.call("GET", f"/results/{finished}", 404)
        backend.call("DELETE", f"/jobs/{finished}", 404)


def test_grpc_submits_gets_lists_and_watches_until_the_end(backend: Backend) -> None:
    spec = job_pb2.JobSpec(
        project_id=new_project(),
        endpoint=SILENT["provider"],
        model=SILENT["model"],
        suite=job_pb2.SuiteWork(suite="demo", limit=5),
    )
    request = scheduler_service_pb2.CreateJobRequest(spec=spec, request_id=f"grpc-{spec.project_id}")
    made = backend.scheduler.CreateJob(request, timeout=30).job
    assert backend.scheduler.CreateJob(request, timeout=30).job.job_id == made.job_id
    backend.begin(made.job_id)
    got = backend.scheduler.GetJob(scheduler_service_pb2.GetJobRequest(job_id=made.job_id), timeout=30).job
    assert (got.state, got.spec.suite.limit, got.attempt) == (job_pb2.Job.STATE_RUNNING, 5, 1)
    listed = backend.scheduler.ListJobs(scheduler_service_pb2.ListJobsRequest(page_size=1), timeout=30).jobs
    assert [job.job_id for job in listed] == [made.job_id]
    watched = backend.scheduler.WatchJob(scheduler_service_pb2.WatchJobRequest(job_id=made.job_id), timeout=60)
    assert next(watched).job.state == job_pb2.Job.STATE_RUNNING
    backend.scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=made.job_id), timeout=30)
    *_, last = watched
    assert last.job.state == job_pb2.Job.STATE_CANCELLED
